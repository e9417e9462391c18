from collections.abc import Callable
from pathlib import Path

import pytest

from mrcr_action.calibration.hardware import hardware_of
from mrcr_action.config import RunConfig
from mrcr_action.telemetry.gpu import GpuReading

Read = Callable[[], tuple[GpuReading, ...]]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a machine with three of NVIDIA's device files."""
    (tmp_path / "dev").mkdir()
    for index in range(3):
        (tmp_path / f"dev/nvidia{index}").touch()
    return tmp_path


def reading(*names: str) -> Read:
    return lambda: tuple(GpuReading(index=index, name=name) for index, name in enumerate(names))


def never() -> tuple[GpuReading, ...]:
    raise AssertionError("the driver was asked")


def test_gpus_are_counted_by_name(machine: Path) -> None:
    read = reading("NVIDIA H200", "NVIDIA H200", "T4\n::error::planted")
    found = hardware_of("process", RunConfig(), machine, read)
    assert found == "2 NVIDIA H200, 1 T4 ::error::planted"


def test_without_the_driver_s_names_devices_are_counted(machine: Path) -> None:
    assert hardware_of("process", RunConfig(), machine, reading()) == "3 NVIDIA GPUs"


def test_without_a_gpu_it_is_the_cpu(tmp_path: Path) -> None:
    assert hardware_of("process", RunConfig(), tmp_path, never) == "CPU"
    assert hardware_of("container", RunConfig(gpus="none"), tmp_path, never) == "CPU"


def test_a_container_has_what_it_was_given(machine: Path) -> None:
    found = hardware_of("container", RunConfig(gpus="0,1"), machine, never)
    assert found == "GPUs of a container: 0,1"


def test_of_a_running_server_nothing_is_known(machine: Path) -> None:
    assert hardware_of("external", RunConfig(), machine, never) is None
