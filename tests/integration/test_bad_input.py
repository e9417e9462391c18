"""Mistakes on the command line and in files: one clear line, the right exit code, no traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Ended, Mrcr


def assert_one_line(ended: Ended, message: str, code: int = 2) -> None:
    assert ended.code == code, ended.said
    errors = [line for line in ended.stderr.splitlines() if line.startswith("mrcr: error: ")]
    assert len(errors) == 1, ended.stderr
    assert message in errors[0]
    assert "Traceback" not in ended.said
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.yaml: the file is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "bad.yaml: not text in UTF-8 (byte 0 is 0x89)"),
        (b"model_name: m\0\n", "bad.yaml: a binary file, not YAML"),
        (b"- a\n- b\n", "bad.yaml: expected keys with values"),
        (b"model_name: [m\n", "bad.yaml:2: "),
        (b"model_name: m\nneedles: [2, 17]\n", "bad.yaml:2: needles: [2, 17]: needle counts are"),
        (b"model_name: m\nneedles: [2, 3]\n", "bad.yaml:2: needles: 3: needle counts are 2, 4 "),
        (b"model_name: m\nbins: [4K-8K]\n", "bad.yaml:2: bins: only the openai protocol"),
        (b"protocol: openai\nbins: [4K-9K]\n", "bad.yaml:2: bins: '4K-9K' is none of the bins"),
        (b"\nmatch_ratio_threshold: 1.5\n", "bad.yaml:2: match_ratio_threshold: 1.5: "),
        (b"match_ratio_threshold: {2: .nan}\n", "bad.yaml:1: match_ratio_threshold: "),
        (b"num_samples: -1\n", "bad.yaml:1: num_samples: -1: expected a whole number >= 1"),
        (b"num_sample: 4\n", "bad.yaml:1: num_sample: unknown key; did you mean num_samples?"),
    ],
)
def test_a_file_that_is_no_configuration(mrcr: Mrcr, content: bytes, message: str) -> None:
    (mrcr.cwd / "bad.yaml").write_bytes(content)

    assert_one_line(mrcr("run", "bad.yaml"), message)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--threshold", "nan"], "--match-ratio-threshold: "),
        (["--threshold", ".nan"], "--match-ratio-threshold: "),
        (["--tolerance", "-0.1"], "--tolerance: -0.1: expected a number >= 0"),
        (["--base-url", "127.0.0.1:8000"], "expected an address such as http://127.0.0.1:8000"),
        (["--base-url", "http://[::1"], "expected an address such as http://127.0.0.1:8000"),
        (["--base-url", "http://h:99999"], "expected an address such as http://127.0.0.1:8000"),
        (["--api-key", "schlüssel"], "--api-key: a key holds printable ASCII characters only"),
        (["gone.yaml"], "gone.yaml: no such file"),
        ([], "nothing says which model to test"),
    ],
)
def test_a_command_line_that_cannot_be_meant(mrcr: Mrcr, flags: list[str], message: str) -> None:
    address = [] if "--base-url" in flags or not flags else ["--port", "9"]

    assert_one_line(mrcr("run", *flags, *address), message)


def test_a_list_with_a_missing_entry(mrcr: Mrcr) -> None:
    listed = mrcr.list_of(mrcr.config("one"), mrcr.cwd / "gone.yaml")

    assert_one_line(mrcr("run", listed), f"{listed}:2: gone.yaml: no such file")


@pytest.mark.parametrize("flag", ["--output-dir", "--save-results"])
def test_an_output_that_cannot_be_written_is_found_before_the_run(mrcr: Mrcr, flag: str) -> None:
    (mrcr.cwd / "taken").write_text("a file")

    ended = mrcr("run", "--base-url", "http://127.0.0.1:9", flag, "taken/below")

    assert_one_line(ended, "taken", code=3)
    assert "cannot be written" in ended.stderr


def test_debug_shows_the_traceback_and_keeps_the_exit_code(mrcr: Mrcr) -> None:
    ended = mrcr("run", "--debug", "gone.yaml")

    assert ended.code == 2
    assert ended.stderr.startswith("Traceback")
    assert "mrcr: error: gone.yaml: no such file" in ended.stderr


def test_a_fault_of_the_program_itself_is_called_one_and_exits_3(mrcr: Mrcr) -> None:
    code = (
        "import sys; from mrcr_action import cli;"
        "cli.COMMANDS['schema'] = lambda options: 1 / 0; sys.exit(cli.main(sys.argv[1:]))"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "schema", "result", *arguments],
            env=mrcr.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    plain, debug = run(), run("--debug")

    assert plain.returncode == debug.returncode == 3
    assert plain.stderr.startswith("mrcr: internal error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in plain.stderr
    assert debug.stderr.startswith("Traceback")


def test_a_reader_that_leaves_early_gets_no_traceback(mrcr: Mrcr) -> None:
    command = f"{sys.executable} -m mrcr_action schema result | head -c 1"

    ended = subprocess.run(
        ["/bin/bash", "-c", command],
        env=mrcr.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.stdout, ended.stderr) == ("{", "")


def test_several_configurations_cannot_save_to_one_file(mrcr: Mrcr) -> None:
    configs = [mrcr.config(name, model_name="m") for name in ("a", "b")]
    ended = mrcr("run", *configs, "--base-url", "http://127.0.0.1:9", "--save-results", "all.json")
    assert ended.code == 2
    assert ended.stderr.startswith("mrcr: error: --save-results: several configurations would")
