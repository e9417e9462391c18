"""What a server ran on, in words."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from mrcr_action.report.text import one_line
from mrcr_action.server.gpu import ROOT, visible_gpus

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.config import RunConfig
    from mrcr_action.server import RouteName

DRIVER = "proc/driver/nvidia/gpus"
"""Where NVIDIA's driver lists its GPUs, a folder each."""

_MODEL = re.compile(r"^Model:\s*(.+)$", re.MULTILINE)


def hardware_of(route: RouteName, config: RunConfig, root: Path = ROOT) -> str | None:
    """The GPUs of a server that was started here, or ``CPU``; None where that cannot be seen.

    Args:
        route: how the server was reached.
        config: may keep the GPUs from the server's container.
        root: root of the file system to look at.
    """
    if route == "external":
        return None
    if route == "container":
        # Which devices it has decides the engine, which may be on another machine.
        return "CPU" if config.gpus == "none" else f"GPUs of a container: {config.gpus}"
    return gpu_names(root) or visible_gpus(root) or "CPU"


def gpu_names(root: Path = ROOT) -> str:
    """The names of NVIDIA's GPUs, such as ``2 NVIDIA H200``; empty where the driver tells none."""
    names: Counter[str] = Counter()
    for path in sorted((root / DRIVER).glob("*/information")):
        try:
            found = _MODEL.search(path.read_text(errors="replace"))
        except OSError:
            continue
        if found:
            names[one_line(found[1].strip(), 100)] += 1
    return ", ".join(f"{count} {name}" for name, count in names.items())
