from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.merging.parts_made import part_of

from mrcr_action.errors import ExitCode
from mrcr_action.github.outputs import outputs_of
from mrcr_action.result import Result

MakeResult = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mrcr-results"
    made.mkdir()
    for name in ("junit.xml", "summary.md", "result.json"):
        (made / name).write_text("")
    return made


def test_every_output_is_told(make_result: MakeResult, folder: Path, tmp_path: Path) -> None:
    result = make_result()

    assert outputs_of([result], ExitCode.PASS, folder, tmp_path) == {
        "passed": "true",
        "conclusion": "pass",
        "match-ratio": repr(result.match_ratio),
        "match-ratio-n2": "0.9",
        "match-ratio-n4": "0.8",
        "match-ratio-n8": "0.7",
        "junit-path": "mrcr-results/junit.xml",
        "summary-path": "mrcr-results/summary.md",
        "result-path": "mrcr-results/result.json",
    }


@pytest.mark.parametrize(
    ("code", "conclusion"),
    [
        (ExitCode.FAIL, "fail"),
        (ExitCode.USAGE, "inconclusive"),
        (ExitCode.CANNOT_JUDGE, "inconclusive"),
        (ExitCode.CANCELLED, "inconclusive"),
    ],
)
def test_only_a_pass_has_passed(code: ExitCode, conclusion: str, tmp_path: Path) -> None:
    outputs = outputs_of([], code, None, tmp_path)

    assert (outputs["passed"], outputs["conclusion"]) == ("false", conclusion)


def test_a_part_of_a_plan_has_neither_passed_nor_failed(tmp_path: Path) -> None:
    outputs = outputs_of([part_of(1)], ExitCode.PASS, None, tmp_path)

    assert (outputs["passed"], outputs["conclusion"]) == ("", "measured")


def test_a_part_that_could_not_be_measured_has_not_passed(tmp_path: Path) -> None:
    outputs = outputs_of([part_of(1)], ExitCode.CANNOT_JUDGE, None, tmp_path)

    assert (outputs["passed"], outputs["conclusion"]) == ("false", "inconclusive")


def test_a_report_that_is_not_there_has_no_path(tmp_path: Path) -> None:
    outputs = outputs_of([], ExitCode.CANCELLED, tmp_path / "never-made", tmp_path)

    assert {outputs[name] for name in ("junit-path", "summary-path", "result-path")} == {""}


def test_of_several_configurations_the_lowest_ratio_is_told(
    make_result: MakeResult, make_record: Callable[..., object], folder: Path, tmp_path: Path
) -> None:
    lower = make_result(records=[make_record(0, 0.25, n_needles=2)])
    outputs = outputs_of([make_result(), lower], ExitCode.FAIL, folder, tmp_path)

    assert outputs["match-ratio"] == "0.25"
    assert outputs["match-ratio-n2"] == "0.25"
    assert outputs["match-ratio-n4"] == "0.8"
    assert outputs["result-path"] == "mrcr-results"


def test_where_one_has_no_ratio_none_is_the_lowest(
    make_result: MakeResult, folder: Path, tmp_path: Path
) -> None:
    outputs = outputs_of(
        [make_result(), make_result(records=[])], ExitCode.CANNOT_JUDGE, folder, tmp_path
    )

    assert outputs["match-ratio"] == ""


def test_of_several_the_first_alone_lies_in_a_subfolder(
    make_result: MakeResult, folder: Path, tmp_path: Path
) -> None:
    (folder / "result.json").unlink()
    outputs = outputs_of([make_result()], ExitCode.CANCELLED, folder, tmp_path)

    assert outputs["result-path"] == "mrcr-results"
