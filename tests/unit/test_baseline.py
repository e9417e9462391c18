from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.seen import SEEN

from mrcr_action.baseline import (
    MOST_FLIPS,
    Baseline,
    check_of,
    check_place,
    check_plan,
    compared,
    read_baseline,
)
from mrcr_action.comparison.document import Against
from mrcr_action.config import RunConfig
from mrcr_action.errors import CannotJudge, UsageError
from mrcr_action.gate import judge
from mrcr_action.result import Problem, Record, Result, decode_result, encode_result

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]
Against20 = Callable[..., Against]


@pytest.fixture
def of_ratios(make_result: MakeResult, make_record: MakeRecord) -> MakeResult:
    """A result by its ratios; a sample lost is None."""

    def make(ratios: Sequence[float | None], **config: Any) -> Result:
        settings = RunConfig(needles=(2,), num_samples=len(ratios), **config)
        records = [make_record(i, ratio) for i, ratio in enumerate(ratios)]
        return make_result(config=settings, records=records)

    return make


@pytest.fixture
def against(of_ratios: MakeResult) -> Against20:
    """What became of samples that were all right."""

    def make(ratios: Sequence[float | None], **config: Any) -> Against:
        baseline = Baseline(Path("base/result.json"), of_ratios([1.0] * len(ratios)))
        return compared(baseline, of_ratios(ratios, baseline="base", **config))

    return make


@pytest.fixture
def written(tmp_path: Path, of_ratios: MakeResult) -> Callable[..., Path]:
    """Writes a result of files of one's own."""

    def write(ratios: Sequence[float | None] = (1.0,), **config: Any) -> Path:
        (tmp_path / "rows").mkdir(exist_ok=True)
        result = of_ratios(ratios, dataset=str(tmp_path / "rows"), **config)
        data = msgspec.structs.replace(result.data, revision=None, kind="folder")
        path = tmp_path / "result.json"
        path.write_bytes(encode_result(msgspec.structs.replace(result, data=data)))
        return path

    return write


def test_without_a_baseline_there_is_nothing_to_read() -> None:
    assert read_baseline(RunConfig()) is None


@pytest.mark.parametrize("by_folder", [True, False])
def test_a_baseline_is_read_by_its_file_or_its_folder(
    written: Callable[..., Path], *, by_folder: bool
) -> None:
    path = written()
    config = RunConfig(
        needles=(2,),
        num_samples=5,
        dataset=str(path.parent / "rows"),
        baseline=str(path.parent if by_folder else path),
    )
    found = read_baseline(config)
    assert found is not None
    assert (found.path, found.result.num_samples) == (path, 1)


@pytest.mark.parametrize("name", ["absent", "x" * 5_000, "a\0b"])
def test_a_name_that_leads_to_no_file_is_an_error_of_the_configuration(name: str) -> None:
    with pytest.raises(UsageError, match=r"^baseline: .*: cannot be read: "):
        read_baseline(RunConfig(baseline=name))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("protocol", "openai", "protocol: vllm in the baseline, openai in this run"),
        ("needles", (2, 4), "needles: [2] in the baseline, [2, 4] in this run"),
        ("max_tokens", 5, "max_tokens: 2048 in the baseline, 5 in this run"),
        ("temperature", 1.0, "temperature: 0.0 in the baseline, 1.0 in this run"),
        ("extra_body", {"a": 1}, "extra_body.a: none in the baseline, 1 in this run"),
        (
            "merge_leading_user_turns",
            True,
            "merge_leading_user_turns: false in the baseline, true in this run",
        ),
        (
            "dataset",
            "openai/mrcr",
            "dataset: files of one's own in the baseline, openai/mrcr at f4c69fae",
        ),
    ],
)
def test_another_question_or_grade_is_refused_before_a_run(
    written: Callable[..., Path], key: str, value: object, said: str
) -> None:
    path = written()
    same = {"needles": (2,), "dataset": str(path.parent / "rows"), "baseline": str(path)}
    with pytest.raises(UsageError) as caught:
        read_baseline(RunConfig(**{**same, key: value}))  # type: ignore[arg-type]
    assert said in f"{caught.value} {caught.value.details}"
    assert str(caught.value).startswith(f"baseline: {path}: the baseline and this run cannot be")


def test_a_secret_that_a_baseline_holds_masked_is_no_difference(
    written: Callable[..., Path],
) -> None:
    path = written(extra_body={"api_key": "***"})
    config = RunConfig(
        needles=(2,),
        dataset=str(path.parent / "rows"),
        baseline=str(path),
        extra_body={"api_key": "the-secret"},
    )
    assert read_baseline(config) is not None


@pytest.mark.parametrize(
    ("ratios", "config", "state", "said"),
    [
        ([1.0] * 8, {}, "pass", "baseline: no regression: no sample changed (8 compared)"),
        ([0.0] * 8, {}, "fail", "baseline: regression: all samples fell by 1.0000"),
        ([1.0] * 7 + [0.0], {}, "inconclusive", "baseline: no verdict: all samples fell by 0.125"),
        ([1.0] * 7 + [None], {}, "inconclusive", "baseline: no verdict: 1 of 8 samples graded in"),
        ([1.0] * 7 + [None], {"max_failures": 1}, "pass", "baseline: no regression"),
        ([0.9] * 8, {"max_regression": 0.05}, "fail", "baseline: regression of more than 0.05"),
        ([0.9] * 8, {"max_regression": 0.2}, "pass", "baseline: no regression of more than 0.2"),
        ([None] * 8, {}, "inconclusive", "baseline: no sample is graded in both: 8 of 8 in the"),
    ],
)
def test_a_comparison_decides_as_mrcr_compare_does(
    against: Against20, ratios: list[float | None], config: dict[str, Any], state: str, said: str
) -> None:
    check = check_of(against(ratios, **config))
    assert (check.state, check.against) == (state, "base/result.json")
    assert check.message.startswith(said)


@pytest.mark.parametrize(
    ("threshold", "ratios", "conclusion", "said"),
    [
        (0.5, [1.0] * 8, "pass", "MRCR passed: match_ratio: 1.0000 >= 0.5000 - 0.0500; baseline: "),
        (None, [1.0] * 8, "pass", "MRCR passed: baseline: no regression"),
        (None, [0.8] * 8, "fail", "MRCR failed: baseline: regression: all samples fell by 0.2"),
        (0.5, [0.8] * 8, "fail", "MRCR failed: baseline: regression: all samples fell by 0.2"),
        (0.9, [0.8] * 8, "fail", "MRCR thresholds failed: match_ratio: 0.8000 < 0.9000 - 0.0500;"),
        (0.5, [1.0] * 7 + [0.0], "inconclusive", "MRCR is inconclusive: baseline: no verdict"),
        (1.0, [1.0] * 7 + [0.0], "fail", "MRCR thresholds failed: match_ratio: 0.8750 < 1.0000"),
    ],
)
def test_a_baseline_counts_beside_the_thresholds(
    against: Against20,
    of_ratios: MakeResult,
    *,
    threshold: float | None,
    ratios: list[float | None],
    conclusion: str,
    said: str,
) -> None:
    result = of_ratios(ratios, match_ratio_threshold=threshold)
    verdict = judge(result.buckets, result.config, (), (check_of(against(ratios)),))
    assert verdict.conclusion == conclusion
    assert verdict.summary.startswith(said)


def test_a_result_lists_ten_flipped_samples_and_counts_all(against: Against20) -> None:
    found = against([0.0] * 12 + [1.0]).comparison
    assert found is not None
    assert (len(found.flips), found.flipped_down, found.flipped_up) == (MOST_FLIPS, 12, 0)


def test_what_changed_survives_the_file(against: Against20, of_ratios: MakeResult) -> None:
    found = against([0.0] * 8)
    result = msgspec.structs.replace(of_ratios([0.0] * 8), baseline=found)
    assert decode_result(encode_result(result)).baseline == found


def test_settings_that_differ_after_all_leave_no_verdict(of_ratios: MakeResult) -> None:
    baseline = Baseline(Path("base"), of_ratios([1.0]))
    found = compared(baseline, of_ratios([1.0], max_tokens=5))
    assert found.comparison is None
    assert check_of(found).state == "inconclusive"
    assert "max_tokens: 2048 in the baseline, 5 in this run" in found.problem


def test_a_cancelled_run_is_not_compared_but_reported(of_ratios: MakeResult) -> None:
    problem = Problem(kind="Cancelled", message="the run was cancelled", exit_code=130)
    result = msgspec.structs.replace(of_ratios([0.0] * 8), problem=problem)
    found = compared(Baseline(Path("base"), of_ratios([1.0] * 8)), result)
    assert (found.comparison, found.problem) == (None, "the run was cancelled")
    assert check_of(found).state == "inconclusive"


def test_a_fault_of_the_comparison_costs_no_result(
    of_ratios: MakeResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("x")

    monkeypatch.setattr("mrcr_action.baseline.compare", broken)
    found = compared(Baseline(Path("base"), of_ratios([1.0])), of_ratios([1.0]))
    assert check_of(found).state == "inconclusive"
    assert found.problem.startswith("internal error: ZeroDivisionError: x")


def test_a_plan_that_a_baseline_knows_in_part_is_asked(of_ratios: MakeResult) -> None:
    result = of_ratios([1.0, 1.0])
    assert result.plan is not None
    check_plan(Baseline(Path("base"), of_ratios([1.0])), None, result.plan)


def test_a_plan_that_a_baseline_does_not_know_is_not_asked(
    of_ratios: MakeResult, make_record: MakeRecord, make_result: MakeResult
) -> None:
    other = make_result(records=[make_record(5), make_record(6)])
    assert other.plan is not None
    with pytest.raises(CannotJudge, match="none of the 2 samples of this run was graded in it"):
        check_plan(Baseline(Path("base"), of_ratios([1.0])), None, other.plan)


def test_another_chat_template_is_not_asked(of_ratios: MakeResult) -> None:
    result = msgspec.structs.replace(of_ratios([1.0]), preflight=SEEN)
    assert result.plan is not None
    baseline = Baseline(Path("base"), result)
    check_plan(baseline, SEEN, result.plan)
    check_plan(baseline, None, result.plan)
    other = msgspec.structs.replace(SEEN, fingerprint="b" * 64)
    with pytest.raises(CannotJudge, match="chat template and tokenizer: aaaaaaaaaaaa in the"):
        check_plan(baseline, other, result.plan)


@pytest.mark.parametrize("place", ["out/result.json", "out/one/result.json", "saved.json"])
def test_no_report_takes_the_place_of_a_baseline(
    of_ratios: MakeResult, tmp_path: Path, place: str
) -> None:
    folders = (tmp_path / "out", tmp_path / "out/one")
    baseline = Baseline(tmp_path / place, of_ratios([1.0]))
    with pytest.raises(UsageError, match="this run writes its own report there"):
        check_place(baseline, folders, str(tmp_path / "saved.json"))


@pytest.mark.parametrize("place", ["out/base/result.json", "out/baseline.json", "result.json"])
def test_a_baseline_beside_the_reports_is_taken(
    of_ratios: MakeResult, tmp_path: Path, place: str
) -> None:
    check_place(Baseline(tmp_path / place, of_ratios([1.0])), (tmp_path / "out",), None)
