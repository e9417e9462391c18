"""Against a stand-in for the driver's library: the machines that run these tests have no GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from mrcr_action.telemetry.document import Gpu
from mrcr_action.telemetry.gpu import MOST, GpuMeter, GpuReading, gpu_names, read_gpus


class Driver:
    """The calls of ``pynvml`` that are made; two GPUs unless told otherwise."""

    def __init__(self, count: int = 2, *, lacking: tuple[str, ...] = ()) -> None:
        self.count, self.lacking = count, lacking
        self.opened = 0
        self.used, self.milliwatts = 10, 300_000

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in self.lacking:
            return refuse
        return super().__getattribute__(name)

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name, as all below
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.95.05"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return b"NVIDIA H200" if handle else "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=100, used=self.used + handle, free=0)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return self.milliwatts


def refuse(*_: Any) -> Any:
    raise RuntimeError("Not Supported")


def test_the_calls_exist_in_the_library() -> None:
    calls = [name for name in vars(Driver) if name.startswith("nvml")]
    assert len(calls) == 8
    assert all(callable(getattr(pynvml, name)) for name in calls)


def test_every_gpu_is_read_and_the_library_closed() -> None:
    driver = Driver()
    assert read_gpus(driver) == (
        GpuReading(0, "NVIDIA H200", "580.95.05", 100, 10, 300.0),
        GpuReading(1, "NVIDIA H200", "580.95.05", 100, 11, 300.0),
    )
    assert driver.opened == 0


def test_names_are_counted() -> None:
    other = GpuReading(2, "T4")
    assert gpu_names((*read_gpus(Driver()), other)) == "2 NVIDIA H200, 1 T4"
    assert gpu_names(()) == ""


def test_a_run_has_the_peak_of_the_memory_and_mean_and_most_of_the_power() -> None:
    driver, meter = Driver(1), GpuMeter()
    for used, milliwatts in ((10, 100_000), (90, 400_000), (40, 400_000)):
        driver.used, driver.milliwatts = used, milliwatts
        meter.add(read_gpus(driver))
    assert meter.document() == (
        Gpu(
            index=0,
            name="NVIDIA H200",
            driver="580.95.05",
            samples=3,
            memory_total=100,
            memory_used_peak=90,
            power_mean=300.0,
            power_max=400.0,
        ),
    )


@pytest.mark.parametrize("call", ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo"])
def test_what_a_gpu_does_not_tell_is_unknown(call: str) -> None:
    meter = GpuMeter()
    meter.add(read_gpus(Driver(1, lacking=(call,))))
    (gpu,) = meter.document()
    power, memory = (gpu.power_mean, gpu.power_max), (gpu.memory_total, gpu.memory_used_peak)
    assert (None in power, None in memory) == (call.endswith("Usage"), call.endswith("Info"))


@pytest.mark.parametrize(
    "lacking", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"]
)
def test_a_driver_that_fails_tells_nothing_and_is_no_error(lacking: str) -> None:
    driver = Driver(lacking=(lacking,))
    assert read_gpus(driver) == ()
    assert driver.opened == 0


def test_without_names_and_closing_the_rest_is_told() -> None:
    without = ("nvmlDeviceGetName", "nvmlSystemGetDriverVersion", "nvmlShutdown")
    (found,) = read_gpus(Driver(1, lacking=without))
    assert (found.name, found.driver, found.memory_used) == ("a GPU without a name", None, 10)


def test_a_machine_of_thousands_is_not_believed() -> None:
    assert len(read_gpus(Driver(100_000))) == MOST


def test_without_a_driver_the_real_library_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert read_gpus() == ()
