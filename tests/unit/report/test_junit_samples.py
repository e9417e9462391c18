from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase
from tests.unit.conftest import build_record

from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis, Excerpt, Source, Wanted
from mrcr_action.grade import Grade
from mrcr_action.report.junit import render_junit
from mrcr_action.report.junit_samples import sample_cases
from mrcr_action.result import Record, Result

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]
MakeGrade = Callable[..., Grade]


def by_samples(**keys: Any) -> RunConfig:
    return RunConfig(junit="samples", protocol="openai", needles=(2,), **keys)


def cases_of(result: Result) -> list[TestCase]:
    return [case for suite in JUnitXml.fromstring(render_junit([result])) for case in suite]


def colours(result: Result) -> list[str]:
    return [case.colour for case in sample_cases(result)]


GOLDEN = """\
    <testcase name="2needle/2needle_0#100" time="1.250" classname="mrcr.Qwen3_5.n2/8K-16K">
      <system-out>exact
kind: exact
openai ratio 1.0000, vllm ratio 0.9950, starts with the nonce
scored, 8,000 prompt tokens, 100 output tokens</system-out>
    </testcase>
    <testcase name="2needle/2needle_0#101" time="1.250" classname="mrcr.Qwen3_5.n2/8K-16K">
      <failure type="sample" message="needle 1 of 2 instead of 2 (turn 4, ratio 0.98); match_ratio \
of all allows no such sample">needle 1 of 2 instead of 2 (turn 4, ratio 0.98)
match_ratio of all allows no such sample
kind: wrong needle
openai ratio 0.0200, vllm ratio 0.0200, starts with the nonce
scored, 8,001 prompt tokens, 100 output tokens
wanted, from character 0: x &lt;b&gt; y
returned, from character 0: x z</failure>
    </testcase>
    <testcase name="2needle/2needle_0#102, warm" time="1.250" classname="mrcr.Qwen3_5.n2/8K-16K">
      <skipped type="skipped" message="the connection broke" />
    </testcase>
  </testsuite>
</testsuites>
"""


def wrong_needle(*, wanted: str = "x <b> y", returned: str = "x z") -> Diagnosis:
    return Diagnosis(
        form="wrong needle",
        wanted=Wanted(ordinal=2, of=2, turn=8, depth=0.5),
        source=Source(turn=4, ordinal=1, ratio=0.98),
        excerpt=Excerpt(offset=0, wanted=wanted, returned=returned),
    )


def test_the_cases_of_samples_follow_those_of_buckets(
    make_result: MakeResult, make_record: MakeRecord, make_grade: MakeGrade
) -> None:
    exact = make_grade(1.0, exact=True, match_ratio_vllm=0.995)
    records = [
        make_record(0, grade=exact, diagnosis=Diagnosis(form="exact")),
        make_record(1, 0.02, diagnosis=wrong_needle()),
        make_record(2, None, pass_name="warm"),
    ]
    config = by_samples(num_samples=2, thresholds=1.0, tolerance=0.0)
    text = render_junit([make_result(config=config, records=records, name="Qwen3.5")]).decode()
    buckets, _, samples = text.partition('    <testcase name="2needle/2needle_0#100"')
    assert f'    <testcase name="2needle/2needle_0#100"{samples}' == GOLDEN
    assert buckets.count("<testcase") == 3


def test_by_default_there_is_none(make_result: MakeResult) -> None:
    assert RunConfig().junit == "buckets"
    assert [case.name for case in cases_of(make_result())] == [
        *("run", "all samples", "2 needles", "4 needles", "8 needles")
    ]


def test_an_inexact_sample_of_a_bucket_that_can_bear_it_is_no_failure(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [make_record(i, 0.1 * i) for i in range(10)]
    for threshold in (0.4, 0.9):
        config = by_samples(num_samples=10, thresholds=threshold)
        assert colours(make_result(config=config, records=records)) == ["passed"] * 10


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"match_ratio": 1.0}, ["passed", "failure", "failure", "failure", "skipped"]),
        ({"exact_rate": 1.0}, ["passed", "failure", "failure", "failure", "skipped"]),
        ({"exact_rate": 0.9}, ["passed", "passed", "passed", "passed", "skipped"]),
        ({"nonce_rate": 1.0}, ["passed", "passed", "failure", "passed", "skipped"]),
        ({"truncation_rate": 0.0}, ["passed", "passed", "passed", "failure", "skipped"]),
        ({"failure_rate": 0.0}, ["passed", "passed", "passed", "passed", "failure"]),
        ({"failure_rate": 0.5}, ["passed", "passed", "passed", "passed", "skipped"]),
    ],
)
def test_a_sample_is_a_failure_where_its_threshold_leaves_no_room_for_it(
    make_result: MakeResult,
    make_record: MakeRecord,
    make_grade: MakeGrade,
    bounds: dict[str, float],
    expected: list[str],
) -> None:
    records = [
        make_record(0, grade=make_grade(1.0, exact=True)),
        make_record(1, 0.9),
        make_record(2, grade=make_grade(0.0, nonce_hit=False)),
        make_record(3, 0.5, outcome="truncated"),
        make_record(4, None),
    ]
    config = by_samples(
        num_samples=5, thresholds={"n2": bounds}, tolerance=0.0, min_samples=4, max_failures=1
    )
    result = make_result(config=config, records=records)
    assert colours(result) == expected


def test_with_a_tolerance_a_threshold_of_1_has_room(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    config = by_samples(num_samples=1, thresholds=1.0, tolerance=0.05)
    result = make_result(config=config, records=[make_record(0, 0.5)])
    assert result.verdict.conclusion == "fail"
    assert colours(result) == ["passed"]


def test_a_lost_sample_is_an_error_only_where_its_bucket_is(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [make_record(0), make_record(1, None), make_record(2, None, outcome="rejected")]
    for allowed, expected in ((0, "error"), (2, "skipped")):
        config = by_samples(num_samples=3, max_failures=allowed)
        result = make_result(config=config, records=records)
        assert colours(result) == ["passed", expected, expected]


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (1.0, 0.5), (0.2, None), (None, None)])
@pytest.mark.parametrize("threshold", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("max_failures", [0, 2])
def test_no_sample_is_red_in_a_run_that_is_not(
    make_result: MakeResult,
    ratios: tuple[float | None, ...],
    threshold: float | None,
    max_failures: int,
) -> None:
    records = [build_record(i, None if r is None else r) for i, r in enumerate(ratios)]
    config = by_samples(
        num_samples=2, thresholds=threshold, tolerance=0.0, max_failures=max_failures
    )
    result = make_result(config=config, records=records)
    red = [case for case in cases_of(result) if isinstance_of(case, (Failure, Error))]
    of_samples = [case for case in red if "#" in (case.name or "")]
    assert bool(red) == (result.verdict.conclusion != "pass")
    assert not of_samples or len(red) > len(of_samples)


def isinstance_of(case: TestCase, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(result, kinds) for result in case.result)


def test_a_skipped_sample_counts_as_skipped(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    config = by_samples(num_samples=2, max_failures=1)
    result = make_result(config=config, records=[make_record(0), make_record(1, None)])
    (suite,) = JUnitXml.fromstring(render_junit([result]))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 0, 0, 1)
    (reason,) = [case.result[0] for case in suite if isinstance_of(case, (Skipped,))]
    assert reason.message == "the connection broke"


def test_names_are_unique_and_hold_no_dot(make_result: MakeResult, make_record: MakeRecord) -> None:
    records = [
        make_record(0, row=7),
        make_record(1, row=7, pass_name="warm 1.5"),
        make_record(2, row=7, pass_name="sweep"),
        make_record(3, row=7, pass_name="sweep"),
        make_record(4, row=7, shard="a.b/c.parquet"),
    ]
    result = make_result(config=by_samples(num_samples=5), records=records)
    assert result.plan is not None
    asks = tuple(
        msgspec.structs.replace(ask, turn=4 if ask.index == 3 else None) for ask in result.plan.asks
    )
    plan = msgspec.structs.replace(result.plan, asks=asks)
    result = msgspec.structs.replace(result, plan=plan)
    assert [case.name for case in sample_cases(result)] == [
        "2needle/2needle_0#7",
        "2needle/2needle_0#7, warm 1_5",
        "2needle/2needle_0#7, sweep",
        "2needle/2needle_0#7, sweep, turn 4",
        "a_b/c#7",
    ]


def test_the_time_of_a_suite_counts_no_sample_twice(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [make_record(i) for i in range(4)]
    times = []
    for junit in ("buckets", "samples"):
        config = msgspec.structs.replace(by_samples(num_samples=4), junit=junit)
        (suite,) = JUnitXml.fromstring(render_junit([make_result(config=config, records=records)]))
        times.append(suite.time)
    assert times[0] == pytest.approx(times[1], abs=0.01)
    assert times[0] > 4 * 1.25


def test_a_sample_of_no_bin_has_its_needles_as_its_cell(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    config = by_samples(num_samples=1)
    (case,) = sample_cases(make_result(config=config, records=[make_record(0, o200k_tokens=0)]))
    assert case.cell == "n2"


def test_hostile_text_in_a_sample_is_inert(
    make_result: MakeResult, make_record: MakeRecord, hostile: str
) -> None:
    records = [
        make_record(
            0, 0.1, shard=hostile, diagnosis=wrong_needle(wanted=hostile, returned=hostile)
        ),
        make_record(1, None, reason=hostile),
    ]
    config = by_samples(num_samples=2, thresholds=1.0, tolerance=0.0, max_failures=1)
    result = make_result(config=config, records=records)
    first, second = cases_of(result)[-2:]
    assert isinstance(first.result[0], Failure)
    assert isinstance(second.result[0], Skipped)
    document = render_junit([result])
    assert b"<script" not in document
    assert b"<!" not in document
    assert not [line for line in document.splitlines() if line.lstrip().startswith(b"::")]
