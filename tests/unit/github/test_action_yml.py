"""action.yml, the README and the code name the same inputs and outputs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrcr_action.errors import ExitCode
from mrcr_action.github.inputs import KEYS, OTHERS, PREFIX, read_inputs
from mrcr_action.github.outputs import outputs_of

ROOT = Path(__file__).parents[3]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
README = (ROOT / "README.md").read_text()


def table(title: str) -> dict[str, list[str]]:
    """The cells of a section's table behind the first one, by the name in the first one."""
    section = README.partition(f"\n### {title}\n")[2].partition("\n#")[0]
    rows = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_the_inputs_are_those_of_the_code() -> None:
    assert set(ACTION["inputs"]) == {*KEYS, *OTHERS}


def test_the_outputs_are_those_of_the_code() -> None:
    assert list(ACTION["outputs"]) == list(outputs_of([], ExitCode.PASS, None, ROOT))


def test_the_readme_lists_every_input_with_its_default_and_meaning() -> None:
    described = {
        name: [f"`{of['default']}`" if "default" in of else "", of["description"]]
        for name, of in ACTION["inputs"].items()
    }

    assert table("Inputs") == described


def test_the_readme_lists_every_output() -> None:
    assert table("Outputs") == {n: [of["description"]] for n, of in ACTION["outputs"].items()}


@pytest.mark.parametrize("section", ["inputs", "outputs"])
def test_every_description_is_one_sentence(section: str) -> None:
    for of in ACTION[section].values():
        assert of["description"].endswith(".")
        assert len(of["description"].splitlines()) == 1


def test_the_defaults_are_those_of_the_code() -> None:
    given = {f"{PREFIX}{n.upper()}": of.get("default", "") for n, of in ACTION["inputs"].items()}

    assert read_inputs(given) == read_inputs({})


def test_the_quick_start_in_the_readme_is_the_file_that_is_run() -> None:
    example = (ROOT / "docs/examples/quickstart.yml").read_text()
    shown = README.partition("## The Action")[2].partition("```yaml\n")[2].partition("```")[0]

    assert len(shown.splitlines()) <= 10
    assert shown in example


def test_the_entry_points_are_those_of_the_image() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()

    assert ACTION["runs"]["entrypoint"] == "/entrypoint"
    assert 'ENTRYPOINT ["/entrypoint"]' in dockerfile
    assert f"ln -s /entrypoint {ACTION['runs']['post-entrypoint']}" in dockerfile
