"""``pytest --config-list-file=LIST``, as vLLM's own MRCR test is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mrcr_action.errors import ServerError
from mrcr_action.pytest_plugin import _text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Mrcr, StartStandIn

COMMAND = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "--color=no"]

Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_pytest(mrcr: Mrcr) -> Pytest:
    """Runs pytest where the command would run."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=mrcr.cwd,
            env=mrcr.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    return run


def test_every_configuration_is_one_test_and_fails_with_the_commands_verdict(
    mrcr: Mrcr, run_pytest: Pytest, start_standin: StartStandIn, dataset: Path
) -> None:
    common = {"dataset": str(dataset), "num_samples": 3, "match_ratio_threshold": 0.9}
    good = mrcr.config("good", base_url=start_standin().url, **common)
    broken = start_standin("--fault", "drop-nonce").url
    bad = mrcr.config("Bad-1.5B", base_url=broken, **common)
    lost = mrcr.config("lost", base_url=start_standin("--fault", "empty").url, **common)
    odd = mrcr.config("odd", base_url=broken, needles=[3])
    mrcr.list_of(good, bad, lost, odd)
    (mrcr.cwd / "test_other.py").write_text("def test_other(): raise SystemError\n")

    ended = run_pytest("--config-list-file=list.txt")

    assert ended.returncode == 1, ended.stdout
    lines = ended.stdout.splitlines()
    tests = [line.split(" ")[0] for line in lines if line.endswith("%]")]
    assert tests == [f"list.txt::{name}" for name in ("good", "Bad-1.5B", "lost", "odd")]
    assert "3 failed, 1 passed" in lines[-1]
    assert "MRCR thresholds failed: match_ratio: 0.0000 < 0.9000 - 0.0500" in lines
    assert any(line.startswith("MRCR is inconclusive: match_ratio: 3 of 3") for line in lines)
    reason = "3: needle counts are 2, 4 and 8 (1 to 16 in synthetic samples)"
    assert f"{odd}:1: needles: {reason}" in lines
    assert "Traceback" not in ended.stdout
    assert (mrcr.cwd / "mrcr-results" / "good" / "junit.xml").is_file()
    by_command = mrcr("run", bad)
    assert "MRCR thresholds failed: match_ratio: 0.0000 < 0.9000 - 0.0500" in by_command.stdout


def test_a_part_of_a_plan_has_neither_passed_nor_failed(
    mrcr: Mrcr, run_pytest: Pytest, start_standin: StartStandIn, dataset: Path
) -> None:
    keys = {"dataset": str(dataset), "num_samples": 6, "match_ratio_threshold": 1.0}
    mrcr.list_of(mrcr.config("part", base_url=start_standin().url, shard="1/2", **keys))

    ended = run_pytest("--config-list-file=list.txt", "-rs")

    assert ended.returncode == 0, ended.stdout
    assert "1 skipped" in ended.stdout
    assert "Part 1 of 2: measured, judged by mrcr merge" in ended.stdout


def test_the_list_is_collected_beside_the_paths_that_are_named(
    mrcr: Mrcr, run_pytest: Pytest
) -> None:
    mrcr.list_of(mrcr.config("one"), mrcr.config("two"))
    (mrcr.cwd / "test_other.py").write_text("def test_other(): pass\n")

    ended = run_pytest("--collect-only", "-qq", "--config-list-file=list.txt", "test_other.py")

    collected = [line for line in ended.stdout.splitlines() if "::" in line]
    assert collected == ["test_other.py::test_other", "list.txt::one", "list.txt::two"]


def test_a_conftest_that_has_the_option_keeps_it(mrcr: Mrcr, run_pytest: Pytest) -> None:
    mrcr.list_of(mrcr.config("one"))
    (mrcr.cwd / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--config-list-file', default='other.txt', help='ours')\n"
        "def pytest_generate_tests(metafunc):\n"
        "    metafunc.parametrize('name', [metafunc.config.getoption('--config-list-file')])\n"
    )
    (mrcr.cwd / "test_other.py").write_text("def test_other(name): assert name == 'list.txt'\n")

    ended = run_pytest("--config-list-file=list.txt")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "test_other.py::test_other[list.txt] PASSED" in ended.stdout
    assert "1 passed" in ended.stdout


def test_a_missing_entry_is_an_error_that_names_it(mrcr: Mrcr, run_pytest: Pytest) -> None:
    mrcr.list_of(mrcr.config("one"), mrcr.cwd / "gone.yaml")

    ended = run_pytest("--config-list-file=list.txt")

    assert ended.returncode == 2
    assert "ERROR collecting list.txt" in ended.stdout
    assert "list.txt:2: gone.yaml: no such file" in ended.stdout


def test_what_is_told_of_a_failure_holds_no_control_character_and_no_workflow_command(
    mrcr: Mrcr, run_pytest: Pytest, start_standin: StartStandIn, dataset: Path
) -> None:
    evil = "\x1b[2J\n::error::evil\u202e"
    served = {"base_url": start_standin().url, "dataset": str(dataset)}
    mrcr.list_of(
        mrcr.config("error", **{evil: 1}),
        mrcr.config("verdict", model_name=evil, **served),
    )

    ended = run_pytest("--config-list-file=list.txt")

    assert ended.returncode == 1, ended.stdout
    assert "2 failed" in ended.stdout
    assert "[2J ::error::evil : unknown key" in ended.stdout
    assert "MRCR is inconclusive: --model [2J ::error::evil : not served there" in ended.stdout
    for harmful in ("\x1b", "\u202e", "\n::error"):
        assert harmful not in ended.stdout


def test_an_entry_with_control_characters_is_named_without_them(
    mrcr: Mrcr, run_pytest: Pytest
) -> None:
    mrcr.list_of(mrcr.cwd / "go\x1b[2Jne.yaml")

    ended = run_pytest("--config-list-file=list.txt")

    assert ended.returncode == 2
    assert "list.txt:1: go [2Jne.yaml: no such file" in ended.stdout
    assert "\x1b" not in ended.stdout


def test_details_of_an_error_keep_their_lines() -> None:
    error = ServerError(
        "died\x1b", hint="look\nthere", details="first\n::error::second\n\nlast\x07"
    )
    assert _text(error).splitlines() == [
        *("died", "look there", "first", ": :error::second", "last"),
    ]


def test_a_missing_list_is_a_mistake_of_the_command_line(run_pytest: Pytest) -> None:
    ended = run_pytest("--config-list-file=gone.txt")

    assert ended.returncode == 4
    assert "gone.txt: no such file" in ended.stderr


def test_without_the_option_pytest_is_as_ever(mrcr: Mrcr, run_pytest: Pytest) -> None:
    mrcr.list_of(mrcr.config("one"), name="test_list.txt")
    (mrcr.cwd / "test_other.py").write_text(
        "import sys\n"
        "def test_other():\n"
        "    heavy = {'httpx', 'datasets', 'pyarrow', 'numpy', 'rich', 'tiktoken', 'msgspec'}\n"
        "    assert heavy.isdisjoint(sys.modules)\n"
    )

    ended = run_pytest()

    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


def test_an_interrupt_ends_the_session_and_not_just_one_configuration(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    url = start_standin("--fault", "stall=60@1-").url
    configs = [
        mrcr.config(name, base_url=url, dataset=str(dataset), num_samples=3)
        for name in ("one", "two")
    ]
    mrcr.list_of(*configs)
    output = mrcr.cwd / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*COMMAND, "-s", "--config-list-file=list.txt"],
            cwd=mrcr.cwd,
            env={**mrcr.environment, "PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=file,
        )
    try:
        deadline = time.monotonic() + 30
        while b"Asking" not in output.read_bytes():
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(10) == 2
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert "KeyboardInterrupt" in output.read_text()
    assert (mrcr.cwd / "mrcr-results" / "one" / "result.json").is_file()
    assert not (mrcr.cwd / "mrcr-results" / "two").exists()
