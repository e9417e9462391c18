"""Thresholds of every kind, against a server with the fault that each one is there for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StartStandIn

    from mrcr_action.result import Result

SHORT, LONG = "n2/512-1K", "n2/2K-4K"


@dataclass(frozen=True)
class Case:
    """A run, and what it must come to."""

    fault: str
    thresholds: Any
    conclusion: str
    says: str = ""
    """Part of the verdict's summary."""
    keys: tuple[tuple[str, Any], ...] = ()


def confident(**keys: Any) -> tuple[tuple[str, Any], ...]:
    return tuple({"decision": "confident", "tolerance": 0, "num_samples": 12, **keys}.items())


CASES = {
    "short-cell-within-the-window": Case("window=1100", {SHORT: 0.95}, "pass"),
    "long-cell-beyond-the-window": Case(
        "window=1100", {LONG: 0.95}, "fail", f"failed: match_ratio_{LONG}: 0."
    ),
    "only-the-cell-beyond-fails": Case(
        "window=1100", {SHORT: 0.95, LONG: 0.95}, "fail", f"failed: match_ratio_{LONG}: 0."
    ),
    "long-cell-within-the-window": Case("window=5000", {LONG: 0.95}, "pass"),
    "cell-that-the-dataset-lacks": Case(
        "crlf", {"n2/64K-128K": 0.5}, "inconclusive", "n2/64K-128K: no row to ask: the dataset has"
    ),
    "nonce-missed": Case(
        "drop-nonce@1", {"all": {"nonce_rate": 1}}, "fail", "failed: nonce_rate: 0.8333 < 1.0000"
    ),
    "nonce-reached": Case("drop-nonce@1", {"all": {"nonce_rate": 0.8}}, "pass"),
    "exact-missed": Case(
        "garble@1-2", {"all": {"exact_rate": 0.9, "nonce_rate": 1}}, "fail", "exact_rate: 0.6667 <"
    ),
    "too-much-truncated": Case(
        "truncate=5@1-2", {"all": {"truncation_rate": 0.3}}, "fail", "truncation_rate: 0.3333 > 0.3"
    ),
    "little-truncated": Case("truncate=5@1-2", {"all": {"truncation_rate": 0.5}}, "pass"),
    "too-much-lost": Case(
        "status=500@1",
        {"all": {"match_ratio": 0.95, "failure_rate": 0.1}},
        "fail",
        "failed: failure_rate: 0.1667 > 0.1000",
    ),
    "little-lost": Case(
        "status=500@1", {"all": {"match_ratio": 0.95, "failure_rate": 0.2}}, "pass"
    ),
    "lost-beside-another-budget": Case(
        "status=500@1-6", {"n2": {"failure_rate": 1}}, "inconclusive", "max_failures is 0"
    ),
    "point": Case(
        "drop-nonce@1-2",
        0.9,
        "fail",
        "match_ratio: 0.8333 < 0.9000 - 0.0000",
        confident(decision="point"),
    ),
    "confident-between": Case(
        "drop-nonce@1-2", 0.9, "inconclusive", "more samples might tell", confident()
    ),
    "confident-below": Case(
        "drop-nonce@1-11", 0.9, "fail", "match_ratio: 0.0833 (95 %: 0.0000 to 0.2", confident()
    ),
    "confident-above": Case("drop-nonce@1", 0.5, "pass", "(95 %: 0.", confident()),
    "confident-without-spread": Case(
        "drop-nonce", 0.9, "fail", "match_ratio: 0.0000 < 0.9000", confident()
    ),
    "confident-of-few": Case(
        "crlf", 0.9, "inconclusive", "too few for an interval", confident(num_samples=5)
    ),
}


@pytest.fixture(scope="module")
def ended(shared_mrcr: Mrcr, start_shared_standin: StartStandIn, dataset: Path) -> Ended:
    """One command over all cases, each with a server and a configuration of its own."""
    configs = []
    for name, case in CASES.items():
        by_cell = isinstance(case.thresholds, dict) and "/" in next(iter(case.thresholds))
        samples: dict[str, Any] = {"samples_per_cell": 3} if by_cell else {"num_samples": 6}
        needles = {} if samples.get("num_samples") is None else {"needles": [2, 4, 8]}
        configs.append(
            shared_mrcr.config(
                name,
                base_url=start_shared_standin("--fault", case.fault).url,
                dataset=str(dataset),
                thresholds=case.thresholds,
                **{
                    "protocol": "openai",
                    "needles": [2],
                    "concurrency": 1,
                    **samples,
                    **needles,
                    **dict(case.keys),
                },
            )
        )
    return shared_mrcr("run", shared_mrcr.list_of(*configs))


@pytest.fixture
def result_of(ended: Ended) -> Callable[[str], Result]:
    return ended.result_of


@pytest.mark.parametrize("name", CASES)
def test_a_threshold_is_missed_by_its_fault_and_by_no_other(
    result_of: Callable[[str], Result], name: str
) -> None:
    verdict = result_of(name).verdict
    assert verdict.conclusion == CASES[name].conclusion, verdict.summary
    assert CASES[name].says in verdict.summary


def test_a_missed_threshold_exits_1_whatever_else_is_inconclusive(ended: Ended) -> None:
    assert ended.code == 1, ended.said


def test_only_the_cell_beyond_the_window_fails(result_of: Callable[[str], Result]) -> None:
    result = result_of("only-the-cell-beyond-fails")
    states = {check.bucket: check.state for check in result.verdict.checks}
    assert states == {
        "all": "measured",
        "n2": "measured",
        SHORT: "pass",
        "n2/1K-2K": "measured",
        LONG: "fail",
    }


def test_every_bucket_has_its_samples_its_mean_and_its_interval(
    result_of: Callable[[str], Result],
) -> None:
    result = result_of("confident-between")
    check = result.verdict.checks[0]
    bucket = result.buckets[0]
    assert (check.samples, check.measured) == (12, bucket.match_ratio_openai)
    assert check.interval == bucket.interval
    assert bucket.interval is not None
    assert bucket.interval.low < 10 / 12 < bucket.interval.high
    cells = [b for b in result.buckets if b.bin is not None]
    assert sum(cell.graded for cell in cells) == 12
    assert {cell.interval for cell in cells} == {None}  # of fewer than six samples each


def test_a_cell_that_is_missing_ends_the_run_before_a_sample_is_asked(
    result_of: Callable[[str], Result],
) -> None:
    result = result_of("cell-that-the-dataset-lacks")
    assert result.records == ()
    assert result.problem is not None
    assert result.problem.kind == "CellMissing"


def test_the_note_on_thin_samples_is_one_sentence(result_of: Callable[[str], Result]) -> None:
    notes = [n for n in result_of("little-lost").notes if n.startswith("One sample decides")]
    assert notes == [
        (
            "One sample decides: it can move the match ratio by more than the tolerance of 0.05 in"
            " all (0.2000). Ask for more samples, or set decision: confident."
        )
    ]
    assert not any("One sample" in note for note in result_of("confident-below").notes)


def test_the_reports_of_a_cell_say_what_it_missed(ended: Ended) -> None:
    name = "only-the-cell-beyond-fails"
    root = ET.parse(ended.folder / "junit.xml").getroot()  # noqa: S314 - written by the command
    cases = [case for case in root.iter("testcase") if case.get("classname") == f"mrcr.{name}"]
    failed = {case.get("name"): case.find("failure") for case in cases}
    assert [name for name, failure in failed.items() if failure is not None] == [LONG]
    assert f"| {LONG} | ✗ FAIL |" in (ended.folder / "summary.md").read_text()
    assert f"  {LONG}" in ended.stdout


def test_both_keys_lead_to_the_same_verdict(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    said = []
    for key in ("match_ratio_threshold", "thresholds"):
        server = start_standin("--fault", "drop-nonce@1")
        config = mrcr.config(
            key,
            base_url=server.url,
            dataset=str(dataset),
            num_samples=6,
            concurrency=1,
            **{key: {"2": 0.99, "4": 0.84, "8": 0.76}},
        )
        ended = mrcr("run", config)
        said.append((ended.code, ended.result.verdict))
    assert said[0] == said[1]
    assert said[0][0] == 1


def test_what_a_dead_server_was_not_asked_is_no_missed_failure_rate(
    mrcr: Mrcr, fake_vllm: Callable[..., dict[str, str]], dataset: Path
) -> None:
    config = mrcr.config(
        "dead",
        model_name="m",
        dataset=str(dataset),
        num_samples=9,
        concurrency=1,
        thresholds={"all": {"failure_rate": 0.5}},
        server_args="--fault die=1@3",
    )
    ended = mrcr("run", config, env=fake_vllm())
    assert ended.code == 3, ended.said
    assert ended.result.buckets[0].failed == 7
    states = {(check.bucket, check.metric): check.state for check in ended.result.verdict.checks}
    assert states["all", "failure_rate"] == "inconclusive"
    assert "fail" not in states.values()
