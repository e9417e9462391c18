#!/usr/bin/env bash
# Usage: demo.sh BIN
#
# Real vLLM on this machine's CPU, serving the probe: once healthy, which passes, and once with a
# sliding window of 512 tokens, which fails on the rows that are longer. BIN holds `mrcr`. The reports
# stay in mrcr-demo/vllm-healthy and mrcr-demo/vllm-broken.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$1" && pwd)
MRCR_VLLM=$("$here/environment/install.sh")/vllm
export MRCR_VLLM VLLM_CPU_KVCACHE_SPACE=2 VLLM_NO_USAGE_STATS=1
# All cores: by itself, vLLM leaves one of them to its clients.
VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=$(nproc)
export VLLM_CPU_OMP_THREADS_BIND OMP_NUM_THREADS
# Without instructions for bfloat16, computing in it takes three times as long.
flags=--enforce-eager
grep -qE 'avx512_bf16|amx_bf16|\bbf16\b' /proc/cpuinfo || flags+=' --dtype float32'

probe() {
  "$bin/mrcr" probe --plan smoke --output-dir "mrcr-demo/$1" "--server-args=$flags ${2:-}"
}

echo "A healthy server: the probe reads every prompt exactly."
probe vllm-healthy

echo
echo "The same server with a sliding window of 512 tokens; it must fail:"
code=0
probe vllm-broken "--hf-overrides '{\"sliding_window\":512}'" || code=$?
test "$code" -eq 1
