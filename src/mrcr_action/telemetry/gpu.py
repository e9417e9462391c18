"""The GPUs that this process can see, through NVIDIA's management library (NVML)."""

from __future__ import annotations

import importlib
import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrcr_action.telemetry.document import Gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST = 64
"""GPUs that are read; the largest machines have 16."""

NAME = 100
"""Most characters of a name."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one moment; None where the driver does not tell, as of a part of a GPU."""

    index: int
    name: str
    driver: str | None = None
    memory_total: int | None = None
    """Bytes."""
    memory_used: int | None = None
    power: float | None = None
    """Watts."""


def read_gpus(library: Any = None) -> tuple[GpuReading, ...]:
    """Every GPU now; none where there is no driver. Takes milliseconds; a driver may also hang.

    Args:
        library: a module like ``pynvml``; None imports that one.
    """
    try:
        nvml = library or importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # no library, no driver, or one that does not fit: nothing is known
        return ()
    try:
        count = _told(nvml.nvmlDeviceGetCount) or 0
        driver = _told(nvml.nvmlSystemGetDriverVersion)
        readings = (_read(nvml, index, driver) for index in range(min(count, MOST)))
        return tuple(reading for reading in readings if reading is not None)
    finally:
        _told(nvml.nvmlShutdown)


def gpu_names(readings: Iterable[GpuReading]) -> str:
    """The names, such as ``2 NVIDIA H200``; empty without any."""
    names = Counter(reading.name for reading in readings)
    return ", ".join(f"{count} {name}" for name, count in names.items())


@dataclass
class GpuMeter:
    """Readings of one run, taken together."""

    readings: dict[int, list[GpuReading]] = field(default_factory=dict)
    """By index, in the order in which they were taken."""

    def add(self, readings: Iterable[GpuReading]) -> None:
        """Take in one look at all GPUs."""
        for reading in readings:
            self.readings.setdefault(reading.index, []).append(reading)

    def document(self) -> tuple[Gpu, ...]:
        """What a result says of each GPU; none without a reading."""
        return tuple(_summed(own) for _, own in sorted(self.readings.items()))


def _summed(own: list[GpuReading]) -> Gpu:
    power = [reading.power for reading in own if reading.power is not None]
    used = [reading.memory_used for reading in own if reading.memory_used is not None]
    return Gpu(
        index=own[0].index,
        name=own[0].name,
        driver=own[0].driver,
        samples=len(own),
        memory_total=own[0].memory_total,
        memory_used_peak=max(used, default=None),
        power_mean=statistics.fmean(power) if power else None,
        power_max=max(power, default=None),
    )


def _read(nvml: Any, index: int, driver: Any) -> GpuReading | None:
    handle = _told(nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return None
    memory = _told(nvml.nvmlDeviceGetMemoryInfo, handle)
    milliwatts = _told(nvml.nvmlDeviceGetPowerUsage, handle)
    return GpuReading(
        index=index,
        name=_text(_told(nvml.nvmlDeviceGetName, handle)) or "a GPU without a name",
        driver=_text(driver) or None,
        memory_total=None if memory is None else int(memory.total),
        memory_used=None if memory is None else int(memory.used),
        power=None if milliwatts is None else milliwatts / 1000,
    )


def _told(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the library says; None where it says that it cannot."""
    try:
        return function(*arguments)
    except Exception:  # its own errors, and ctypes' where a driver lacks a function
        return None


def _text(value: Any) -> str:
    """A name; older versions of the library give bytes."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text[:NAME] if isinstance(text, str) else ""
