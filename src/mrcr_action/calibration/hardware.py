"""What a server ran on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.text import one_line
from mrcr_action.server.gpu import ROOT, visible_gpus
from mrcr_action.telemetry.gpu import gpu_names, read_gpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mrcr_action.config import RunConfig
    from mrcr_action.server import RouteName
    from mrcr_action.telemetry.gpu import GpuReading


def hardware_of(
    route: RouteName,
    config: RunConfig,
    root: Path = ROOT,
    read: Callable[[], tuple[GpuReading, ...]] = read_gpus,
) -> str | None:
    """The GPUs of a server that was started here, or ``CPU``; None where that cannot be seen.

    Args:
        route: how the server was reached.
        config: may keep the GPUs from the server's container.
        root: root of the file system to look at.
        read: asks the driver for its GPUs.
    """
    if route == "external":
        return None
    if route == "container":
        # Which devices it has decides the engine, which may be on another machine.
        return "CPU" if config.gpus == "none" else f"GPUs of a container: {config.gpus}"
    devices = visible_gpus(root)
    names = gpu_names(read()) if "NVIDIA" in devices else ""
    return one_line(names) or devices or "CPU"
