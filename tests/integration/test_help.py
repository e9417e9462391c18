"""Help, version and schemas come at once and from light imports."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mrcr_action import __version__
from mrcr_action.config.values import TYPES

if TYPE_CHECKING:
    from tests.integration.conftest import Mrcr

HEAVY = {"httpx", "datasets", "pyarrow", "numpy", "rich", "tiktoken", "asyncio"}

LOADED = """
import json, sys
from mrcr_action.cli import main
try:
    main(sys.argv[1:])
finally:
    print("\\0" + json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["compare", "--help"], ["--version"]]
)
def test_help_loads_nothing_heavy(mrcr: Mrcr, arguments: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env=mrcr.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    text, _, loaded = ended.stdout.partition("\0")
    assert text.strip()
    assert HEAVY & set(json.loads(loaded)) == set()


def test_help_names_every_command_and_exit_code(mrcr: Mrcr) -> None:
    ended = mrcr("--help")

    assert ended.code == 0
    named = ("  run ", "  compare ", "  demo ", "  synth ", "  schema ")
    for words in (*named, "0  pass", "130  cancelled"):
        assert words in ended.stdout


def test_every_key_of_a_configuration_has_a_flag(mrcr: Mrcr) -> None:
    text = mrcr("run", "--help").stdout

    for key in set(TYPES) - {"model_name"}:
        assert f"--{key.replace('_', '-')}" in text
    assert "--model NAME" in text
    assert "MRCR_API_KEY" in text


def test_the_version_is_told(mrcr: Mrcr) -> None:
    assert mrcr("--version").stdout == f"mrcr {__version__}\n"


def test_no_command_is_a_mistake(mrcr: Mrcr) -> None:
    ended = mrcr()

    assert ended.code == 2
    assert "usage: mrcr" in ended.stderr


@pytest.mark.parametrize("document", ["config", "result"])
def test_schemas_are_printed(mrcr: Mrcr, document: str) -> None:
    schema = json.loads(mrcr("schema", document).stdout)

    assert schema["$schema"].startswith("https://json-schema.org/")
