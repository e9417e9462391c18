from pathlib import Path

import pytest

from mrcr_action.calibration.hardware import gpu_names, hardware_of
from mrcr_action.config import RunConfig


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a machine with three GPUs, as NVIDIA's driver shows them."""
    for bus, model in (("0000:01", "NVIDIA H200"), ("0000:02", "NVIDIA H200"), ("0000:03", "T4")):
        folder = tmp_path / "proc/driver/nvidia/gpus" / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 48\n")
    return tmp_path


def test_gpus_are_counted_by_name(machine: Path) -> None:
    assert gpu_names(machine) == "2 NVIDIA H200, 1 T4"
    assert hardware_of("process", RunConfig(), machine) == "2 NVIDIA H200, 1 T4"


def test_without_the_driver_s_names_devices_are_counted(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    assert hardware_of("process", RunConfig(), tmp_path) == "1 NVIDIA GPU"


def test_without_a_gpu_it_is_the_cpu(tmp_path: Path) -> None:
    assert hardware_of("process", RunConfig(), tmp_path) == "CPU"
    assert hardware_of("container", RunConfig(gpus="none"), tmp_path) == "CPU"


def test_a_container_has_what_it_was_given(machine: Path) -> None:
    assert hardware_of("container", RunConfig(gpus="0,1"), machine) == "GPUs of a container: 0,1"


def test_of_a_running_server_nothing_is_known(machine: Path) -> None:
    assert hardware_of("external", RunConfig(), machine) is None
