#!/usr/bin/env bash
# Usage: release.sh ghcr.io/OWNER/mrcr-action@sha256:DIGEST
#
# Makes the release commit and its tag for an image that the workflow `release` has built from the
# current commit: action.yml, which builds the Dockerfile while developing, names that image. The
# commit is on no branch. Nothing is pushed; the last line says how.
set -euo pipefail

fail() {
  printf 'release.sh: %s\n' "$*" >&2
  exit 1
}

if (($# != 1)); then
  echo "usage: release.sh ghcr.io/OWNER/mrcr-action@sha256:DIGEST" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$(git rev-parse --show-toplevel)"

[[ $1 =~ ^(ghcr\.io/[a-z0-9._/-]+)@(sha256:[0-9a-f]{64})$ ]] ||
  fail "$1: not an image with its digest, such as ghcr.io/OWNER/mrcr-action@sha256:…"
name=${BASH_REMATCH[1]} digest=${BASH_REMATCH[2]}
[[ -z $(git status --porcelain) ]] || fail "the working tree has changes; commit them first"
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' src/mrcr_action/__init__.py)
if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null; then
  fail "v$version is there already; raise the version in src/mrcr_action/__init__.py"
fi
grep -q '^  image: Dockerfile$' action.yml || fail "action.yml does not say 'image: Dockerfile'"

start=$(git symbolic-ref --quiet --short HEAD || git rev-parse HEAD)
git switch --quiet --detach
trap 'git switch --quiet "$start" 2>/dev/null || git switch --quiet --detach "$start"' EXIT
sed -i "s|^  image: Dockerfile\$|  image: docker://$name:$version@$digest|" action.yml
git commit --quiet --message "Release $version" \
  --message "Name the image that was built from the commit before." -- action.yml
"$here/check-release.sh" "v$version" >&2
git tag --annotate --message "mrcr-action $version" "v$version"
echo "v$version is ready. Publish it with: git push origin v$version"
