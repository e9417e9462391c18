from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mrcr_action.server.gpu import visible_gpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ([], ""),
        (["null", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia-caps", "dri"], ""),
        (["nvidia0", "nvidiactl", "nvidia-uvm"], "1 NVIDIA GPU"),
        (["nvidia0", "nvidia1", "nvidia12"], "3 NVIDIA GPUs"),
        (["kfd", "dri"], "an AMD GPU"),
        (["dxg"], "a GPU of the Windows host"),
    ],
)
def test_gpus_are_seen_by_the_files_of_their_drivers(
    tmp_path: Path, devices: list[str], text: str
) -> None:
    (tmp_path / "dev").mkdir()
    for name in devices:
        (tmp_path / "dev" / name).touch()

    assert visible_gpus(tmp_path) == text


def test_without_device_files_there_is_no_gpu(tmp_path: Path) -> None:
    assert visible_gpus(tmp_path) == ""
