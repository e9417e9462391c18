import os
from pathlib import Path

import pytest

from mrcr_action.action.entry import LEAKING, restore_environment


def test_what_a_job_put_over_the_image_s_environment_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "environment"
    file.write_text("PATH=/image/bin:/a=b\nLD_LIBRARY_PATH=\nHOME=/root\n")
    leaked = {"PATH": "/runner/bin", "LD_LIBRARY_PATH": "/runner/lib", "PYTHONPATH": "/runner"}
    for name in LEAKING:
        monkeypatch.setenv(name, "anything")
    for name, value in {**leaked, "HOME": "/github/home", "HF_TOKEN": "kept"}.items():
        monkeypatch.setenv(name, value)
    restore_environment(file)

    assert os.environ["PATH"] == "/image/bin:/a=b"
    assert os.environ["HOME"] == "/root"
    assert "LD_LIBRARY_PATH" not in os.environ
    assert "PYTHONPATH" not in os.environ
    assert os.environ["HF_TOKEN"] == "kept"


def test_outside_the_image_the_environment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/own/bin")
    restore_environment(tmp_path / "absent")

    assert os.environ["PATH"] == "/own/bin"
