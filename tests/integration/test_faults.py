"""What every fault of a server becomes in the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StartStandIn

BAD_READING = {
    "window=300": 0,
    "drop-nonce": 0,
    "wrong-needle": 0,
    "garble": 0,
    "truncate=5": 6,
    "stop-early=5": 0,
    "null-content": 6,
}
"""Faults that are the model's, each with how many of its six answers are cut."""

LOST = {
    "abort": "ended the answer",
    "cut": "the stream ended without a finish reason",
    "reset-mid": "the connection broke mid-answer",
    "error-event": "the stream carried an error: Internal server error",
    "empty": "not an event stream",
    "html": "not an event stream",
    "status=500": "HTTP 500: The server had an error while processing your request.",
    "status=502": "HTTP 502",
    "no-done": "the stream was cut off before its end",
    "stall=60": "no complete answer within 1 s",
    "stall-mid=60": "no complete answer within 1 s",
}
"""Faults that lose an answer, with the reason that is told."""

RETRIED = {"status=429@1-2": 2, "status=503@1-2": 2, "retry-after=1@1": 1, "reset@1": 1}
"""Faults that are safe to try again, with how many requests they hit."""

HARMLESS = ("think=400", "think-old=400", "keepalive", "crlf", "no-usage")


def name_of(fault: str) -> str:
    return fault.replace("=", "_").replace("@", "_at_")


@pytest.fixture(scope="module")
def run_all(
    shared_mrcr: Mrcr, start_shared_standin: StartStandIn, dataset: Path
) -> Callable[..., Ended]:
    """Runs the command once over a list of configurations, one for each fault."""

    def run(name: str, faults: list[str], **keys: Any) -> Ended:
        configs = [
            shared_mrcr.config(
                name_of(fault),
                base_url=start_shared_standin("--fault", fault).url,
                dataset=str(dataset),
                protocol="openai",
                match_ratio_threshold=0.95,
                **{"num_samples": 6, **keys},
            )
            for fault in faults
        ]
        listed = shared_mrcr.list_of(*configs, name=f"{name}.txt")
        ended = shared_mrcr("run", listed, "--output-dir", f"mrcr-results/{name}")
        return type(ended)(
            code=ended.code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            folder=ended.folder / name,
            seconds=ended.seconds,
        )

    return run


@pytest.fixture(scope="module")
def bad_reading(run_all: Callable[..., Ended]) -> Ended:
    return run_all("bad-reading", list(BAD_READING))


@pytest.fixture(scope="module")
def lost(run_all: Callable[..., Ended]) -> Ended:
    faults = [f"{fault}@1" for fault in [*LOST, "status=400"]]
    return run_all("lost", faults, num_samples=3, request_timeout_seconds=1)


@pytest.fixture(scope="module")
def harmless(run_all: Callable[..., Ended]) -> Ended:
    return run_all("harmless", [*RETRIED, *HARMLESS], num_samples=3)


def test_a_model_that_reads_badly_exits_1(bad_reading: Ended) -> None:
    assert bad_reading.code == 1


@pytest.mark.parametrize("fault", BAD_READING)
def test_bad_reading_fails_the_threshold(bad_reading: Ended, fault: str) -> None:
    result = bad_reading.result_of(name_of(fault))

    assert result.verdict.conclusion == "fail"
    assert result.verdict.summary.startswith("MRCR thresholds failed: match_ratio: 0.")
    assert (result.buckets[0].graded, result.buckets[0].lost) == (6, 0)
    assert result.buckets[0].truncated == BAD_READING[fault]


def test_a_dropped_nonce_is_worth_0_however_good_the_rest(bad_reading: Ended) -> None:
    result = bad_reading.result_of("drop-nonce")

    assert (result.match_ratio, result.prefix_hit_rate) == (0.0, 0.0)


def test_a_truncated_answer_is_graded_as_far_as_it_goes(bad_reading: Ended) -> None:
    result = bad_reading.result_of(name_of("truncate=5"))

    assert {record.outcome for record in result.records} == {"truncated"}
    assert {record.finish_reason for record in result.records} == {"length"}
    assert result.prefix_hit_rate == 1.0
    assert 0 < (result.match_ratio or 0) < 0.5


def test_an_answer_without_content_is_a_truncated_0(bad_reading: Ended) -> None:
    result = bad_reading.result_of("null-content")

    assert {record.outcome for record in result.records} == {"truncated"}
    assert result.match_ratio == 0.0
    assert [record.response for record in bad_reading.records("null-content")] == [""] * 6


def test_lost_answers_alone_exit_3(lost: Ended) -> None:
    assert lost.code == 3


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_is_a_failure_and_never_a_zero(lost: Ended, fault: str) -> None:
    result = lost.result_of(name_of(f"{fault}@1"))

    (failed,) = [record for record in result.records if record.outcome == "failed"]
    assert LOST[fault] in failed.reason
    assert (failed.grade, failed.attempts) == (None, 1)
    assert (result.buckets[0].graded, result.match_ratio) == (2, 1.0)
    assert result.verdict.conclusion == "inconclusive"
    assert "1 of 3 requests were lost (1 failed, 0 refused" in result.verdict.summary


def test_a_refused_request_is_told_apart_from_a_failed_one(lost: Ended) -> None:
    result = lost.result_of(name_of("status=400@1"))

    (rejected,) = [record for record in result.records if record.grade is None]
    assert rejected.outcome == "rejected"
    assert "1 of 3 requests were lost (0 failed, 1 refused" in result.verdict.summary


def test_as_many_requests_may_be_lost_as_max_failures_allows(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    server = start_standin("--fault", "status=500@1")

    ended = mrcr(
        *("run", "--base-url", server.url, "--dataset", dataset, "--num-samples", "6"),
        *("--protocol", "openai", "--threshold", "1", "--max-failures", "1"),
    )

    assert ended.code == 0, ended.said
    assert (ended.result.buckets[0].failed, ended.result.match_ratio) == (1, 1.0)


def test_what_does_no_harm_exits_0(harmless: Ended) -> None:
    assert harmless.code == 0, harmless.said


@pytest.mark.parametrize("fault", RETRIED)
def test_a_request_that_the_server_did_not_take_on_is_sent_again(
    harmless: Ended, fault: str
) -> None:
    result = harmless.result_of(name_of(fault))

    assert result.match_ratio == 1.0
    attempts = sorted(record.attempts for record in result.records)
    assert attempts == [1] * (3 - RETRIED[fault]) + [2] * RETRIED[fault]


def test_retry_after_is_waited_for(harmless: Ended) -> None:
    assert harmless.result_of(name_of("retry-after=1@1")).timeline.ask >= 1


@pytest.mark.parametrize("fault", ["think=400", "think-old=400"])
def test_reasoning_is_counted_and_not_graded(harmless: Ended, fault: str) -> None:
    result = harmless.result_of(name_of(fault))

    assert result.match_ratio == 1.0
    assert [record.reasoning_chars for record in result.records] == [400] * 3


def test_without_usage_the_planned_length_stands_in(harmless: Ended) -> None:
    result = harmless.result_of("no-usage")

    assert result.plan is not None
    planned = [ask.prompt_tokens for ask in result.plan.asks]
    assert [record.prompt_tokens for record in result.records] == planned
    assert result.total_output_tokens == 0


@pytest.mark.parametrize("code", ["0", "1"])
def test_a_server_that_dies_while_it_is_asked_ends_the_run_at_once(
    mrcr: Mrcr, fake_vllm: Callable[..., dict[str, str]], dataset: Path, code: str
) -> None:
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--num-samples", "9"),
        *("--threshold", "0.9", "--concurrency", "1"),
        *("--server-args", f"--fault die={code}@3 --fault stall=60@4-"),
        env=fake_vllm(),
    )
    ended = running.wait()

    assert ended.code == 3
    assert f"the server ended by itself with exit code {code}" in ended.stdout
    assert "dying in the middle of an answer" in ended.stdout
    result = ended.result
    assert result.timeline.ask < 10
    assert [record.outcome for record in result.records] == ["scored"] * 2 + ["failed"] * 7
    assert result.buckets[0].match_ratio_openai == 1.0
    assert running.gone()
