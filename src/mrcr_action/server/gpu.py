"""Which GPUs can be used here, seen from the device files that drivers make."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")

_NVIDIA = re.compile(r"nvidia\d+")


def visible_gpus(root: Path = ROOT) -> str:
    """The GPUs in words, such as ``2 NVIDIA GPUs``; empty without any.

    A container sees the device files that its runtime has put there, and no others.

    Args:
        root: root of the file system to look at.
    """
    try:
        names = [path.name for path in (root / "dev").iterdir()]
    except OSError:
        return ""
    if nvidia := sum(bool(_NVIDIA.fullmatch(name)) for name in names):
        return f"{nvidia} NVIDIA GPU{'s' if nvidia > 1 else ''}"
    if "kfd" in names:
        return "an AMD GPU"
    # Windows hands its GPUs to Linux through one file, whatever their number.
    return "a GPU of the Windows host" if "dxg" in names else ""
