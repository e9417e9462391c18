import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from mrcr_action.config import RunConfig
from mrcr_action.report.junit import BODY_LIMIT, render_junit
from mrcr_action.result import (
    Check,
    DataInfo,
    Problem,
    Record,
    Result,
    ServerInfo,
    Timeline,
    Verdict,
)

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]

GOLDEN = """\
<?xml version='1.0' encoding='utf-8'?>
<testsuites errors="1" failures="1" tests="4" time="56.251" name="mrcr">
  <testsuite errors="1" failures="1" name="mrcr Qwen3.5-4B" skipped="0" tests="4" time="56.251" \
timestamp="2026-01-02T03:04:05">
    <properties>
      <property name="conclusion" value="fail" />
      <property name="protocol" value="openai" />
      <property name="model" value="org/model" />
      <property name="dataset" value="openai/mrcr" />
      <property name="revision" value="f4c69fae7cf8" />
      <property name="samples" value="2" />
      <property name="tolerance" value="0.05" />
      <property name="max_prompt_tokens" value="30464" />
      <property name="server_version" value="0.33.0" />
      <property name="tool_version" value="0.1.0" />
      <property name="seconds" value="60.000" />
      <property name="start_up_seconds" value="50.000" />
    </properties>
    <testcase name="run" time="55.000" classname="mrcr.Qwen3_5-4B">
      <system-out>protocol openai, prompts of 8,000 to 8,002 tokens, limit 30,464, window \
32,768</system-out>
    </testcase>
    <testcase name="all samples" time="0.000" classname="mrcr.Qwen3_5-4B">
      <system-out>match_ratio: 0.7000
2 of 3 samples graded, lost or cut: 1 refused, 1 truncated
openai ratio 0.7000, vllm ratio 0.7000, nonce rate 1.0000, exact rate 0.0000
95 % interval –, step of one sample 0.5000
protocol openai, prompts of 8,000 to 8,002 tokens, limit 30,464, window 32,768
1 x HTTP 400: &lt;too&gt; long</system-out>
    </testcase>
    <testcase name="4 needles" time="1.250" classname="mrcr.Qwen3_5-4B">
      <failure type="threshold" message="match_ratio_n4: 0.5000 &lt; 0.9900 - 0.0500">\
match_ratio_n4: 0.5000 &lt; 0.9900 - 0.0500
1 of 2 samples graded, lost or cut: 1 refused, 1 truncated
openai ratio 0.5000, vllm ratio 0.5000, nonce rate 1.0000, exact rate 0.0000
95 % interval –, step of one sample 1.0000
protocol openai, prompts of 8,000 to 8,002 tokens, limit 30,464, window 32,768
1 x HTTP 400: &lt;too&gt; long</failure>
    </testcase>
    <testcase name="8 needles" time="0.000" classname="mrcr.Qwen3_5-4B">
      <error type="inconclusive" message="match_ratio_n8: no samples collected">\
match_ratio_n8: no samples collected
0 of 1 samples graded, lost or cut: 0
openai ratio –, vllm ratio –, nonce rate –, exact rate –
95 % interval –, step of one sample –
protocol openai, prompts of 8,000 to 8,002 tokens, limit 30,464, window 32,768</error>
    </testcase>
  </testsuite>
</testsuites>
"""


@pytest.fixture
def mixed(make_result: MakeResult, make_record: MakeRecord) -> Result:
    """A failed, an inconclusive and a measured bucket."""
    config = RunConfig(
        needles=(4, 8),
        num_samples=3,
        match_ratio_threshold={4: 0.99},
        protocol="openai",
        max_failures=1,
    )
    refused = "HTTP 400: <too> long"
    records = [
        make_record(0, 0.5, n_needles=4, outcome="truncated"),
        make_record(
            1, None, n_needles=4, outcome="rejected", reason=refused, prompt_tokens=8002, seconds=0
        ),
        make_record(2, 0.9, n_needles=2),
    ]
    return make_result(config=config, records=records, name="Qwen3.5-4B")


def parsed(*results: Result) -> list[TestSuite]:
    return list(JUnitXml.fromstring(render_junit(results)))


def cases_of(*results: Result) -> list[TestCase]:
    return [case for suite in parsed(*results) for case in suite]


def elements(*results: Result) -> Iterator[ET.Element]:
    return ET.fromstring(render_junit(results)).iter()  # noqa: S314 - made here


def test_the_document_is_flat_and_says_what_happened(mixed: Result) -> None:
    assert render_junit([mixed]).decode() == GOLDEN


def test_readers_find_a_failure_for_the_threshold_and_an_error_for_the_rest(mixed: Result) -> None:
    found = {
        case.name: [(type(r), r.type, r.message) for r in case.result] for case in cases_of(mixed)
    }
    assert found == {
        "run": [],
        "all samples": [],
        "4 needles": [(Failure, "threshold", "match_ratio_n4: 0.5000 < 0.9900 - 0.0500")],
        "8 needles": [(Error, "inconclusive", "match_ratio_n8: no samples collected")],
    }


def test_counts_are_whole_numbers_that_agree_with_the_cases(mixed: Result) -> None:
    root, suite = list(elements(mixed))[:2]
    for element in (root, suite):
        assert [element.get(k) for k in ("tests", "failures", "errors")] == ["4", "1", "1"]
    assert suite.get("skipped") == "0"


def test_a_pass_has_neither_failure_nor_error(make_result: MakeResult) -> None:
    config = RunConfig(num_samples=3, match_ratio_threshold={2: 0.9, 4: 0.8, 8: 0.7})
    cases = cases_of(make_result(config=config))
    assert [case.name for case in cases] == [
        *("run", "all samples", "2 needles", "4 needles", "8 needles")
    ]
    assert all(case.is_passed for case in cases)
    assert "match_ratio_n8: 0.7000 >= 0.7000 - 0.0500" in (cases[-1].system_out or "")


def test_what_stopped_the_run_is_an_error_of_the_run(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="it died", hint="look", details="a\nb\n")
    run, *buckets = cases_of(make_result(records=[], problem=problem))
    (error,) = run.result
    assert (error.type, error.message, error.text) == (
        *("ServerError", "it died", "it died\nlook\na\nb"),
    )
    assert all(isinstance(case.result[0], Error) for case in buckets)


@pytest.mark.parametrize("message", ["", "\x1b\x00", " \n "])
def test_a_problem_without_words_is_an_error_nevertheless(
    make_result: MakeResult, message: str
) -> None:
    run = cases_of(make_result(problem=Problem(kind="OSError", message=message)))[0]
    (error,) = run.result
    assert isinstance(error, Error)
    assert error.message == "OSError"


def test_every_case_has_a_name_a_class_and_a_time(mixed: Result, make_result: MakeResult) -> None:
    for element in elements(mixed, make_result(records=[])):
        if element.tag == "testcase":
            assert element.get("name")
            assert element.get("classname")
        if element.tag in {"testcase", "testsuite", "testsuites"}:
            assert re.fullmatch(r"\d+\.\d{3}", element.get("time", ""))
        assert "disabled" not in element.attrib


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.1 + 0.2, 1 / 3, 123_456.789_012])
def test_times_have_three_decimals(make_result: MakeResult, seconds: float) -> None:
    result = make_result(timeline=Timeline(start_up=seconds))
    run = next(e for e in elements(result) if e.tag == "testcase")
    assert run.get("time") == f"{seconds:.3f}"


def test_a_dot_in_a_name_does_not_reach_the_class(make_result: MakeResult) -> None:
    (suite,) = parsed(make_result(name="Qwen3.5-4B.v2"))
    assert suite.name == "mrcr Qwen3.5-4B.v2"
    assert {case.classname for case in suite} == {"mrcr.Qwen3_5-4B_v2"}
    assert not [case.name for case in suite if "." in (case.name or "")]


def test_cases_are_unique_over_configurations_of_the_same_name(make_result: MakeResult) -> None:
    names = ["model", "model", "model-2", "a.b", "a_b", "a.b"]
    results = [make_result(name=name) for name in names]
    suites = parsed(*results)
    assert [suite.name for suite in suites] == [
        *("mrcr model", "mrcr model-2", "mrcr model-2-2", "mrcr a.b", "mrcr a_b", "mrcr a.b-2")
    ]
    keys = [(case.classname, case.name) for suite in suites for case in suite]
    assert len(set(keys)) == len(keys) == 6 * 5


def test_the_time_stamp_has_no_zone(make_result: MakeResult) -> None:
    (suite,) = parsed(make_result())
    assert suite.timestamp == "2026-01-02T03:04:05"


def test_no_result_is_an_empty_document() -> None:
    root = ET.fromstring(render_junit([]))  # noqa: S314 - made here
    assert (root.tag, list(root)) == ("testsuites", [])


def test_a_long_log_is_cut(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="died", details="some line of a log\n" * 5_000)
    (error,) = cases_of(make_result(problem=problem))[0].result
    assert len(error.text or "") <= BODY_LIMIT
    assert len(error.message or "") <= 1_000


def test_reasons_are_counted_and_not_repeated(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [make_record(i, None, reason="reset") for i in range(3)]
    records += [make_record(3 + i, None, reason=f"reason {i}") for i in range(20)]
    config = RunConfig(needles=(2,), num_samples=23)
    body = cases_of(make_result(config=config, records=records))[2].result[0].text or ""
    assert "3 x reset\n1 x reason 0" in body
    assert body.count(" x reason") == 9


def test_hostile_text_anywhere_is_inert(
    make_result: MakeResult, make_record: MakeRecord, hostile: str
) -> None:
    config = RunConfig(num_samples=1, needles=(2,))
    result = make_result(
        config=config,
        records=[make_record(0, None, reason=hostile)],
        problem=Problem(kind="ServerError", message=hostile, hint=hostile, details=hostile),
        name=hostile,
        model=hostile,
        data=DataInfo(dataset=hostile, revision=hostile),
        server=ServerInfo(route="external", base_url=hostile, version=hostile),
        verdict=Verdict(
            conclusion="inconclusive",
            summary=hostile,
            checks=(
                Check(bucket="all", state="inconclusive", message=f"x {hostile}"),
                Check(bucket="n2", state="fail", message=f"x {hostile}"),
            ),
        ),
    )
    document = render_junit([result])
    cases = cases_of(result)
    assert [case.name for case in cases] == ["run", "all samples", "2 needles"]
    assert [type(case.result[0]) for case in cases] == [Error, Error, Failure]
    for element in elements(result):
        assert element.tag in {
            *("testsuites", "testsuite", "properties", "property", "testcase"),
            *("system-out", "error", "failure"),
        }
        for text in [element.text or "", *element.attrib.values()]:
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u202e\ufffe\uffff]", text)
            assert not re.search(r"(?m)^\s*::|##\[", text)
    assert b"<script" not in document
    assert b"<!" not in document


def test_what_is_not_known_is_no_property(make_result: MakeResult) -> None:
    result = make_result(
        model=None,
        max_prompt_tokens=None,
        data=DataInfo(dataset="rows"),
        server=ServerInfo(route="external", base_url="http://h"),
    )
    assert [e.get("name") for e in elements(result) if e.tag == "property"] == [
        *("conclusion", "protocol", "dataset", "samples", "tolerance", "tool_version"),
        *("seconds", "start_up_seconds"),
    ]


def test_a_cell_that_was_named_in_vain_is_a_case_of_its_own(by_cell: Result) -> None:
    cases = {case.name: case for case in cases_of(by_cell)}
    assert list(cases) == ["run", "all samples", "2 needles", "n2/8K-16K", "n2/64K-128K"]
    (error,) = cases["n2/64K-128K"].result
    assert (type(error), error.type) == (Error, "inconclusive")
    assert error.message == (
        "n2/64K-128K: no row to ask: 100 of 100 too long (exclude leaves the cell out)"
    )
    assert cases["all samples"].is_passed
    (suite,) = parsed(by_cell)
    assert (suite.tests, suite.errors, suite.failures) == (5, 1, 0)


def test_scores_that_are_not_comparable_are_said_to_be_so(
    merged: Result, make_result: MakeResult
) -> None:
    def comparable(result: Result) -> list[str | None]:
        found = [e for e in elements(result) if e.tag == "property"]
        return [e.get("value") for e in found if e.get("name") == "comparable"]

    assert comparable(merged) == ["no: merge_leading_user_turns changes what is asked"]
    assert comparable(make_result()) == []
    assert merged.notes[0] in (cases_of(merged)[0].system_out or "")


def test_several_missed_bounds_of_a_bucket_are_one_failure(bounded: Result) -> None:
    cases = {case.name: case for case in cases_of(bounded)}
    assert list(cases) == [
        *("run", "all samples", "2 needles", "n2/4K-8K", "n2/8K-16K", "n2/16K-32K")
    ]
    (failure,) = cases["n2/4K-8K"].result
    assert (type(failure), failure.type) == (Failure, "threshold")
    assert failure.message == (
        "match_ratio_n2/4K-8K: 0.4500 < 0.9500 - 0.0500; exact_rate_n2/4K-8K: 0.0000 < 0.5000;"
        " truncation_rate_n2/4K-8K: 0.5000 > 0.2500"
    )
    assert "95 % interval 0.29–0.61, step of one sample 0.1250" in (failure.text or "")
    assert [name for name, case in cases.items() if not case.is_passed] == ["n2/4K-8K"]


def test_a_cell_gives_the_reasons_of_its_own_losses_and_no_time_of_its_own(
    bounded: Result,
) -> None:
    cases = {case.name: case for case in cases_of(bounded)}
    assert "1 x the connection broke" in (cases["n2/16K-32K"].system_out or "")
    assert "connection" not in (cases["n2/8K-16K"].system_out or "")
    assert [cases[name].time for name in ("all samples", "n2/4K-8K", "n2/16K-32K")] == [0.0] * 3
    assert cases["2 needles"].time == 18 * 1.25


def test_a_bucket_that_never_came_about_is_an_error(make_result: MakeResult) -> None:
    config = RunConfig(
        protocol="openai",
        num_samples=3,
        thresholds={"n8/4K-8K": {"match_ratio": 0.5, "nonce_rate": 0.5}},
    )
    case = cases_of(make_result(config=config))[-1]
    assert case.name == "n8/4K-8K"
    assert [(type(r), r.message) for r in case.result] == [
        (
            Error,
            (
                "match_ratio_n8/4K-8K: nothing of it was asked; nonce_rate_n8/4K-8K: nothing of"
                " it was asked"
            ),
        )
    ]
