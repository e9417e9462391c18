#!/usr/bin/env bash
# Usage: free-disk.sh
#
# Makes room on GitHub's own runners: vLLM's image unpacks to more than they leave free beside the
# toolchains that they bring, none of which is used here.
set -euo pipefail

# On a machine of somebody's own, these folders may be wanted.
if [[ ${RUNNER_ENVIRONMENT:-} != github-hosted ]]; then
  echo "free-disk.sh: not a runner of GitHub's; nothing is removed" >&2
  exit 0
fi
sudo rm -rf /usr/local/lib/android /usr/share/dotnet /usr/share/swift /opt/ghc /usr/local/.ghcup \
  /opt/hostedtoolcache/CodeQL
df --human-readable --output=avail,target / >&2
