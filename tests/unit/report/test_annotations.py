from collections.abc import Callable
from dataclasses import astuple, replace

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.report.annotations import Annotation, FailOn, annotations_of
from mrcr_action.report.text import one_line
from mrcr_action.result import DataInfo, Problem, Record, Result, ServerInfo

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]

ALL_MISSED = RunConfig(num_samples=3, match_ratio_threshold={2: 0.96, 4: 0.95, 8: 0.81})
"""By 0.01, 0.10 and 0.06; the tolerance is 0.05."""
DIED = Problem(kind="ServerError", message="the server died", hint="Read server.log.")


def titles(annotations: list[Annotation]) -> list[str]:
    return [annotation.title for annotation in annotations]


def levels(annotations: list[Annotation]) -> list[str]:
    return [annotation.level for annotation in annotations]


def test_a_failed_bucket_is_an_error_that_says_how_far_it_is_off_and_over_what(
    make_result: MakeResult,
) -> None:
    config = RunConfig(num_samples=3, match_ratio_threshold={2: 0.5, 4: 0.5, 8: 0.81})
    assert annotations_of([make_result(name="Qwen3", config=config)]) == [
        Annotation(
            level="error",
            title="MRCR n8 of Qwen3: 0.70 < 0.76",
            message=(
                "match_ratio_n8: 0.7000 < 0.8100 - 0.0500. 1 of 1 samples graded."
                " nonce rate 1.0000, exact rate 0.0000. protocol vllm, prompts of 8,000 to 8,002"
                " tokens, limit 30,464, window 32,768."
            ),
            file="configs/model.yaml",
        )
    ]


def test_a_bucket_of_all_samples_needs_no_name(make_result: MakeResult) -> None:
    config = RunConfig(num_samples=3, match_ratio_threshold=0.9)
    assert titles(annotations_of([make_result(config=config)])) == ["MRCR of model: 0.80 < 0.85"]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(0.8499, "0.8499 < 0.8500"), (0.849, "0.849 < 0.850"), (0.8, "0.80 < 0.85")],
)
def test_two_numbers_have_as_many_decimals_as_tell_them_apart(
    make_result: MakeResult, make_record: MakeRecord, ratio: float, expected: str
) -> None:
    config = RunConfig(needles=(2,), num_samples=1, match_ratio_threshold={2: 0.9})
    result = make_result(config=config, records=[make_record(0, ratio)])
    assert titles(annotations_of([result])) == [f"MRCR n2 of model: {expected}"]


def test_what_was_lost_or_cut_and_what_stopped_a_failed_run_are_said(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    config = RunConfig(needles=(2,), num_samples=2, match_ratio_threshold=0.9, max_failures=1)
    records = [make_record(0, 0.3, outcome="truncated"), make_record(1, None)]
    result = make_result(config=config, records=records)
    stopped = make_result(
        config=config, records=records, problem=DIED, verdict=result.verdict, config_path=None
    )
    (annotation,) = annotations_of([stopped])
    assert "1 of 2 samples graded, 1 failed, 1 truncated." in annotation.message
    assert annotation.message.endswith("What stopped the run: the server died.")
    assert annotation.file is None


def test_the_worst_bucket_of_all_configurations_comes_first(make_result: MakeResult) -> None:
    mild = RunConfig(num_samples=3, match_ratio_threshold={2: 0.5, 4: 0.5, 8: 0.83})
    results = [make_result(name="mild", config=mild), make_result(name="bad", config=ALL_MISSED)]
    assert titles(annotations_of(results)) == [
        "MRCR n4 of bad: 0.80 < 0.90",
        "MRCR n8 of mild: 0.70 < 0.78",
        "MRCR n8 of bad: 0.70 < 0.76",
        "MRCR n2 of bad: 0.90 < 0.91",
    ]


def test_a_run_without_a_verdict_is_one_error_with_what_stopped_it_and_what_to_do(
    make_result: MakeResult,
) -> None:
    results = [
        make_result(name="dead", records=[], problem=DIED),
        make_result(name="bad", config=ALL_MISSED),
    ]
    *failed, dead = annotations_of(results)
    assert len(failed) == 3
    assert dead == Annotation(
        level="error",
        title="MRCR of dead is inconclusive",
        message="the server died. Read server.log.",
        file="configs/model.yaml",
    )


def test_what_left_a_verdict_open_is_said_where_nothing_stopped_the_run(by_cell: Result) -> None:
    (annotation,) = annotations_of([by_cell])
    assert annotation.message == (
        "n2/64K-128K: no row to ask: 100 of 100 too long (exclude leaves the cell out)."
    )


def test_a_problem_without_words_is_called_by_its_kind(make_result: MakeResult) -> None:
    result = make_result(records=[], problem=Problem(kind="ServerError", message=" "))
    assert annotations_of([result])[0].message == "ServerError."


def test_what_passed_and_what_was_only_measured_is_not_worth_a_line(
    make_result: MakeResult,
) -> None:
    passed = RunConfig(num_samples=3, match_ratio_threshold=0.5)
    assert annotations_of([make_result(config=passed), make_result()]) == []


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [
        ("inconclusive", ["error", "error", "error", "error"]),
        ("fail", ["error", "error", "error", "warning"]),
        ("never", ["warning", "warning", "warning", "warning"]),
    ],
)
def test_what_does_not_fail_the_job_is_a_warning(
    make_result: MakeResult, fail_on: FailOn, expected: list[str]
) -> None:
    results = [make_result(config=ALL_MISSED), make_result(records=[], problem=DIED)]
    assert levels(annotations_of(results, fail_on=fail_on)) == expected


@pytest.mark.parametrize("fail_on", ["inconclusive", "fail", "never"])
@pytest.mark.parametrize("exit_code", [2, 130])
def test_a_wrong_configuration_and_a_cancelled_run_are_always_errors(
    make_result: MakeResult, fail_on: FailOn, exit_code: int
) -> None:
    problem = Problem(kind="ConfigError", message="wrong", exit_code=exit_code)
    result = make_result(records=[], problem=problem)
    assert levels(annotations_of([result], fail_on=fail_on)) == ["error"]


def test_beyond_the_limit_the_last_one_counts_and_names_the_rest(make_result: MakeResult) -> None:
    results = [make_result(name=f"m{i}", config=ALL_MISSED) for i in range(3)]
    results.append(make_result(name="dead", records=[], problem=DIED))
    every = annotations_of(results)
    cut = annotations_of(results, limit=7)
    assert len(every) == 10
    assert "more" not in every[-1].message
    assert cut[:-1] == every[:6]
    assert cut[-1] == replace(
        every[6],
        message=f"{every[6].message} (and 3 more: {'; '.join(titles(every[7:]))})",
    )
    assert annotations_of(results, limit=0) == []


def test_the_rest_is_counted_even_where_it_cannot_be_named(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="x" * 2_000)
    results = [make_result(name="n" * 99, records=[], problem=problem) for _ in range(3_000)]
    annotations = annotations_of(results)
    assert len(annotations) == 10
    assert [len(annotation.message) for annotation in annotations] == [1_000] * 10
    assert "(and 2,990 more: MRCR of nnn" in annotations[-1].message
    assert {len(annotation.title) for annotation in annotations} == {
        len("MRCR of  is inconclusive") + 60
    }


def test_foreign_text_is_one_harmless_line(make_result: MakeResult, hostile: str) -> None:
    problem = Problem(kind="ServerError", message=hostile, hint=hostile, details=hostile)
    foreign = {
        "name": hostile,
        "model": hostile,
        "config_path": hostile,
        "data": DataInfo(dataset=hostile),
        "server": ServerInfo(route="external", base_url=hostile),
    }
    missed = make_result(config=ALL_MISSED, **foreign)
    results = [
        make_result(records=[], problem=problem, **foreign),
        make_result(config=ALL_MISSED, problem=problem, verdict=missed.verdict, **foreign),
    ]
    for limit in (2, 10):
        for annotation in annotations_of(results, limit=limit):
            texts = [text for text in astuple(annotation) if text is not None]
            assert texts == [one_line(text, 5_000) for text in texts]
            assert len(annotation.message) <= 1_000
            assert len(annotation.title) <= 100


@pytest.mark.parametrize("planted", ["##[error]" * 200, "::" * 900, ": :" * 500])
def test_breaking_up_commands_makes_no_message_too_long(
    make_result: MakeResult, planted: str
) -> None:
    result = make_result(
        name=planted, records=[], problem=Problem(kind="E", message=planted, hint=planted)
    )
    (annotation,) = annotations_of([result])
    assert len(annotation.message) <= 1_000
    assert len(annotation.title) <= len("MRCR of  is inconclusive") + 60
    assert "##[" not in annotation.title + annotation.message
    assert not annotation.message.startswith("::")


def test_a_path_that_could_not_be_shown_is_left_out(make_result: MakeResult) -> None:
    results = [
        make_result(records=[], problem=DIED, config_path=path)
        for path in ("configs/a b.yaml", "configs/a\nb.yaml", "", None)
    ]
    assert [a.file for a in annotations_of(results)] == ["configs/a b.yaml", None, None, None]


def test_several_missed_bounds_of_a_bucket_are_one_annotation_that_begins_with_the_worst(
    bounded: Result,
) -> None:
    (annotation,) = annotations_of([bounded])
    assert annotation.title == "MRCR n2/4K-8K of model: exact rate 0.00 < 0.50 (and 2 more)"
    assert annotation.message.startswith(
        "exact_rate_n2/4K-8K: 0.0000 < 0.5000. match_ratio_n2/4K-8K: 0.4500 < 0.9500 - 0.0500."
        " truncation_rate_n2/4K-8K: 0.5000 > 0.2500. 8 of 8 samples graded, 4 truncated."
    )


def test_too_much_of_something_is_annotated_the_other_way_round(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    config = RunConfig(
        needles=(2,), num_samples=2, thresholds={"all": {"truncation_rate": 0.25, "nonce_rate": 1}}
    )
    records = [make_record(0, outcome="truncated"), make_record(1)]
    (annotation,) = annotations_of([make_result(config=config, records=records)])
    assert annotation.title == "MRCR of model: truncation rate 0.50 > 0.25"
