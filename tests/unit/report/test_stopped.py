"""What the reports say of a run that stopped early."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.gate import judge
from mrcr_action.report.annotations import annotations_of
from mrcr_action.report.console import print_result
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import render_summary
from mrcr_action.result import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Bucket, Record, Result

WHY = "match_ratio: at most 0.4000 if all 3 others were exact: < 0.8000 - 0.0500"
SENTENCE = f"Stopped after 7 of 10 requests: {WHY}"


@pytest.fixture
def stopped(
    make_result: Callable[..., Result],
    make_bucket: Callable[..., Bucket],
    make_record: Callable[..., Record],
) -> Result:
    config = RunConfig(protocol="openai", match_ratio_threshold=0.8, needles=(2,), num_samples=10)
    buckets = tuple(
        make_bucket(n, 1 / 7, asked=7, scored=7, skipped=3, exact_rate=1 / 7) for n in (None, 2)
    )
    return make_result(
        config=config,
        records=[make_record(i, float(i == 0)) for i in range(7)],
        buckets=buckets,
        verdict=judge(buckets, config),
        stopped=Stopped(why=WHY, asked=7, planned=10, skipped=3),
    )


def test_the_verdict_tells_what_was_certain(stopped: Result) -> None:
    assert stopped.verdict.summary == f"MRCR thresholds failed: {WHY}"
    assert stopped.verdict.state_of("n2") == "measured"


def test_the_console_says_it_in_a_sentence(stopped: Result) -> None:
    stream = io.StringIO()
    print_result(stopped, [], stream)
    said = stream.getvalue().splitlines()
    assert SENTENCE in said
    (row,) = [line for line in said if line.startswith("  all samples")]
    assert row.endswith("7/10    3 not asked")


def test_the_summary_says_it_in_a_sentence(stopped: Result) -> None:
    text = render_summary([stopped])
    assert "Stopped after 7 of 10 requests: match\\_ratio: at most 0.4000" in text
    assert "| 3 not asked |" in text


def test_junit_has_it_as_a_property_and_in_the_text(stopped: Result) -> None:
    root = ET.fromstring(render_junit([stopped]))  # noqa: S314 - written a moment ago
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert properties["stopped"] == SENTENCE
    run, overall, _ = root.iter("testcase")
    assert run.findtext("system-out", "").startswith(SENTENCE)
    failure = overall.find("failure")
    assert failure is not None
    assert failure.get("message") == WHY
    assert "7 of 10 samples graded, lost or cut: 3 not asked" in (failure.text or "")


def test_an_annotation_says_how_far_the_run_came(stopped: Result) -> None:
    (annotation,) = annotations_of([stopped])
    assert "7 of 10 samples graded, 3 not asked." in annotation.message
    assert "Stopped after 7 of 10 requests." in annotation.message


def test_a_whole_run_says_nothing_of_it(make_result: Callable[..., Result]) -> None:
    result = make_result()
    stream = io.StringIO()
    print_result(result, [], stream)
    assert "Stopped after" not in stream.getvalue() + render_summary([result])
    assert b"Stopped after" not in render_junit([result])
    assert b'name="stopped"' not in render_junit([result])
