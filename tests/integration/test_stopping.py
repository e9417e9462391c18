"""A run that stops as soon as its verdict is certain, and responses that are cut, over HTTP."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StandIn, StartStandIn

    from mrcr_action.result import Bucket

SAMPLES = 27


@pytest.fixture
def run(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> Callable[..., tuple[Ended, StandIn]]:
    """Runs the command against a stand-in that is slow enough to be left in the middle."""

    def body(name: str, *faults: str, **keys: Any) -> tuple[Ended, StandIn]:
        arguments = [word for fault in (*faults, "slow=400") for word in ("--fault", fault)]
        standin = start_standin(*arguments)
        config = mrcr.config(
            name,
            base_url=standin.url,
            dataset=str(dataset),
            protocol="openai",
            match_ratio_threshold=0.8,
            **{"num_samples": SAMPLES, **keys},
        )
        folder = f"mrcr-results/{name}"
        ended = mrcr("run", config, "--output-dir", folder)
        moved = type(ended)(
            code=ended.code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            folder=mrcr.cwd / folder,
            seconds=ended.seconds,
        )
        return moved, standin

    return body


def metric(standin: StandIn, name: str) -> int:
    """A counter of the stand-in's /metrics, by its name or by a pattern with its labels."""
    text = httpx.get(f"{standin.url}/metrics", trust_env=False).text
    found = re.search(rf"^vllm:{name}.* ([0-9.]+)$", text, re.MULTILINE)
    assert found, text
    return int(float(found[1]))


def ended_by(standin: StandIn, reason: str, least: int = 0) -> int:
    """How many requests ended so, once there are so many: a server may hear of it a bit later."""
    name = f'request_success_total{{.*finished_reason="{reason}"}}'
    deadline = time.monotonic() + 20
    while (count := metric(standin, name)) < least and time.monotonic() < deadline:
        time.sleep(0.01)
    return count


def measured(bucket: Bucket) -> tuple[Any, ...]:
    """What a bucket says of the model."""
    return (
        bucket.name,
        bucket.scored,
        bucket.lost,
        bucket.match_ratio_openai,
        bucket.match_ratio_vllm,
        bucket.prefix_hit_rate,
        bucket.exact_rate,
        bucket.interval,
    )


@pytest.mark.parametrize("decision", ["point", "confident"])
def test_a_broken_server_is_known_to_be_broken_after_a_few_samples(run: Any, decision: str) -> None:
    ended, standin = run(
        "early", "drop-nonce", stop_when="failed", decision=decision, concurrency=2
    )
    result = ended.result

    assert ended.code == 1
    assert result.verdict.conclusion == "fail"
    assert result.stopped is not None
    assert (result.stopped.planned, result.stopped.asked) == (SAMPLES, len(result.records))
    assert 6 < result.stopped.asked < SAMPLES
    assert result.problem is None
    assert {record.outcome for record in result.records} == {"scored"}
    assert len(ended.records()) == result.stopped.asked
    assert (result.buckets[0].lost, result.buckets[0].skipped) == (0, result.stopped.skipped)
    assert f"Stopped after {result.stopped.asked} of {SAMPLES} requests: " in ended.stdout
    assert "others were exact: < 0.8000 - 0.0500" in result.verdict.summary
    assert ended_by(standin, "stop") + ended_by(standin, "abort") < SAMPLES


def test_what_is_in_flight_is_let_go_and_the_server_hears_of_it(run: Any) -> None:
    ended, standin = run(
        "stuck", "drop-nonce", "stall-mid=600@2", stop_when="failed", concurrency=2
    )
    result = ended.result

    assert ended.code == 1
    assert result.stopped is not None
    assert result.stopped.skipped == SAMPLES - len(result.records)
    assert {record.outcome for record in result.records} == {"scored"}
    assert ended_by(standin, "abort", least=1) >= 1


def test_a_healthy_server_is_asked_until_no_threshold_can_be_missed(run: Any) -> None:
    ended, _ = run("healthy", stop_when="decided", concurrency=1)
    result = ended.result

    assert ended.code == 0
    assert result.stopped is not None
    assert result.stopped.asked < SAMPLES
    assert result.stopped.why == "no threshold can be missed any more"
    assert result.verdict.summary.startswith("MRCR passed: match_ratio: at least 0.7")
    assert result.verdict.state_of("n8") == "measured"


def test_where_nothing_is_certain_before_the_end_everything_is_asked(run: Any) -> None:
    ended, _ = run("whole", stop_when="failed", num_samples=6)

    assert ended.code == 0
    assert ended.result.stopped is None
    assert ended.result.buckets[0].graded == 6


def test_a_result_that_stopped_is_compared_in_what_it_asked(run: Any, mrcr: Mrcr) -> None:
    before, _ = run("before", stop_when="decided")
    after, _ = run("after", "drop-nonce", stop_when="failed", baseline=str(before.folder))

    assert (before.code, after.code) == (0, 1)
    against = after.result.baseline
    assert against is not None
    assert against.comparison is not None
    assert against.comparison.conclusion == "regression"
    assert any("since its verdict was certain then" in n for n in against.comparison.notes)
    assert {sample.outcome_b for sample in against.comparison.lost} <= {"scored", "not asked"}

    compared = mrcr("compare", after.folder, before.folder)
    assert "A asked only" in compared.stdout
    assert "B asked only" in compared.stdout


@pytest.mark.parametrize(
    ("fault", "cut"), [("drop-nonce", 6), ("think-aloud=2000", 6), ("garble", 0), ("crlf", 0)]
)
def test_cutting_what_missed_the_nonce_changes_no_score(run: Any, fault: str, cut: int) -> None:
    whole, whole_server = run("whole", fault, num_samples=6)
    short, short_server = run("short", fault, num_samples=6, cut_without_nonce=True)

    assert short.code == whole.code
    assert short.result.verdict == whole.result.verdict
    assert list(map(measured, short.result.buckets)) == list(map(measured, whole.result.buckets))
    assert [r.grade for r in short.records()] == [r.grade for r in whole.records()]
    assert [r.finish_reason for r in short.records()].count("cut") == cut
    told = [note for note in short.result.notes if "responses were cut" in note]
    assert len(told) == bool(cut)
    if cut:
        assert told[0].startswith("6 of 6 responses were cut")
        assert {record.digest for record in short.records()} == {None}
        # The server heard that the connections were closed, and went on with none of them.
        assert ended_by(short_server, "abort", least=cut) >= cut
        tokens = [metric(s, "generation_tokens_total") for s in (short_server, whole_server)]
        assert tokens[0] < tokens[1]
