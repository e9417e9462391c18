#!/usr/bin/env bash
# Usage: demo.sh BIN
#
# Real vLLM on this machine's CPU, serving the probe: once healthy, which passes, and once with a
# sliding window of 512 tokens, which fails on the rows that are longer. BIN holds `mrcr` and
# `python`. The reports stay in mrcr-demo/vllm-healthy and mrcr-demo/vllm-broken.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$1" && pwd)
MRCR_VLLM=$("$here/environment/install.sh")/vllm
export MRCR_VLLM

reports=$PWD/mrcr-demo
mkdir -p mrcr-demo/vllm
cd mrcr-demo/vllm
"$bin/python" -m mrcr_action.probe probe
"$bin/python" "$here/rows.py" rows

echo "A healthy server: the probe reads every row exactly."
"$bin/mrcr" run "$here/vllm-probe.yaml" --output-dir "$reports/vllm-healthy"

echo
echo "The same server with a sliding window of 512 tokens; it must fail:"
broken="--served-model-name probe --enforce-eager --max-model-len 16384"
broken+=" --hf-overrides '{\"sliding_window\":512}'"
code=0
"$bin/mrcr" run "$here/vllm-probe.yaml" --output-dir "$reports/vllm-broken" "--server-args=$broken" ||
  code=$?
test "$code" -eq 1
