#!/usr/bin/env bash
# Usage: smoke-test.sh IMAGE
#
# Runs what an image of this project must be able to do on any machine, without a GPU and without a
# network: the evaluator starts, passes a healthy server and fails a broken one, and vLLM is there.
set -euo pipefail

if (($# != 1)); then
  echo "usage: smoke-test.sh IMAGE" >&2
  exit 2
fi
image=$1

run() {
  local command=$1
  shift
  docker run --rm --network none --entrypoint "$command" "$image" "$@"
}

run mrcr --version
run vllm --version

run mrcr demo --output-dir /tmp/demo
code=0
run mrcr demo --break window --output-dir /tmp/demo || code=$?
if ((code != 1)); then
  echo "smoke-test.sh: $image: a broken server ended in exit code $code, expected was 1" >&2
  exit 1
fi
echo "smoke-test.sh: $image: fine" >&2
