from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from mrcr_action.errors import UsageError
from mrcr_action.server.vllm import find_vllm, look_for_vllm, take_api_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "kept", "key"),
    [
        ([], [], None),
        (["--seed", "0"], ["--seed", "0"], None),
        (["--api-key", "k", "--seed", "0"], ["--seed", "0"], "k"),
        (["--seed", "0", "--api-key=k=="], ["--seed", "0"], "k=="),
        (["--api_key", "k"], [], "k"),
        (["--api-key", "-k"], [], "-k"),
        (["--api-key", "k", "second", "third", "-O3"], ["-O3"], "k"),
        (["--api-key"], [], None),
        (["--api-key-file", "k"], ["--api-key-file", "k"], None),
    ],
)
def test_a_key_is_taken_out_of_the_arguments(
    arguments: list[str], kept: list[str], key: str | None
) -> None:
    assert take_api_key(arguments) == (kept, key)


def executable(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_vllm_is_named_or_lies_beside_the_interpreter_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("named", "bin", "path"):
        (tmp_path / name).mkdir()
    named = executable(tmp_path / "named" / "my-vllm")
    on_path = executable(tmp_path / "path" / "vllm")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    environ = {"PATH": str(tmp_path / "path")}

    assert find_vllm({**environ, "MRCR_VLLM": named}) == named
    assert find_vllm(environ) == on_path
    beside = executable(tmp_path / "bin" / "vllm")
    assert find_vllm(environ) == beside


def test_a_path_of_another_machine_hides_no_vllm_of_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for name in ("usual", "path"):
        (tmp_path / name).mkdir()
    usual = executable(tmp_path / "usual" / "vllm")
    folders = [str(tmp_path / "gone"), str(tmp_path / "usual")]

    assert look_for_vllm({"PATH": "/home/runner/bin"}, folders) == usual
    on_path = executable(tmp_path / "path" / "vllm")
    assert look_for_vllm({"PATH": str(tmp_path / "path")}, folders) == on_path


def test_a_vllm_that_is_not_there_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    environ = {"PATH": str(tmp_path)}
    (tmp_path / "text").write_text("no program")

    with pytest.raises(UsageError, match="vllm is not installed here"):
        find_vllm(environ)
    for path in (tmp_path / "gone", tmp_path / "text", tmp_path):
        with pytest.raises(UsageError, match="not an executable"):
            find_vllm({"MRCR_VLLM": str(path)})
