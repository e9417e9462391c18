"""How vLLM is made as fast as this machine's CPU allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrcr_action.probe.checkpoint import Dtype

NATIVE = {"avx512_bf16", "amx_bf16", "bf16"}
"""What CPUs, the last ones Arm's, call instructions that multiply bfloat16."""


def fast_dtype() -> Dtype:
    """What is computed in where a test does not name it.

    Without instructions for bfloat16, a prompt of 2,000 tokens took 7.3 s in it and 2.2 s in
    float32. The weights of the probe are the same numbers in both.
    """
    words = set(Path("/proc/cpuinfo").read_text().split())
    return "bfloat16" if words & NATIVE else "float32"


def all_cores() -> dict[str, str]:
    """Environment that makes vLLM compute with every core; by itself it leaves one to its clients.

    Of two cores that is half.
    """
    cores = len(os.sched_getaffinity(0))
    return {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(cores)}
