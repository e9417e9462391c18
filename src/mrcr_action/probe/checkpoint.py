"""The file of weights: safetensors, written out here so that its bytes never change.

The format is the length of a JSON header in 8 bytes, the header, and the tensors' bytes. The
library's writer takes other arguments in other releases and may lay tensors out differently.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

Dtype = Literal["bfloat16", "float16", "float32"]
"""How weights are stored, and with ``--dtype auto`` how vLLM computes."""

_NAMES: dict[Dtype, str] = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


def write(path: Path, weights: Mapping[str, NDArray[np.float64]], dtype: Dtype) -> None:
    """Write named matrices, in the order of their names.

    Raises:
        OSError: the file cannot be written.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blocks: list[bytes] = []
    end = 0
    for name in sorted(weights):
        block = stored(weights[name], dtype)
        start, end = end, end + len(block)
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(weights[name].shape),
            "data_offsets": [start, end],
        }
        blocks.append(block)
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # the tensors begin at a multiple of 8 bytes
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little"))
        file.write(head)
        file.writelines(blocks)


def stored(matrix: NDArray[np.float64], dtype: Dtype) -> bytes:
    """Little-endian bytes of a matrix, each number rounded to the nearest that the dtype holds."""
    if dtype == "float16":
        return matrix.astype("<f2").tobytes()
    if dtype == "float32":
        return matrix.astype("<f4").tobytes()
    # bfloat16 is the upper half of float32; ties go to the even one. numpy has no such type.
    bits = np.frombuffer(matrix.astype("<f4").tobytes(), np.dtype("<u4"))
    rounded: NDArray[np.uint32] = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype("<u2").tobytes()
