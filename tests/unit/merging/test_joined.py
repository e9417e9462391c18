"""Parts put together: what one run with their answers would have found."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.merging.parts_made import CONFIG, piece, records_of

from mrcr_action.errors import ExitCode
from mrcr_action.gate import judge
from mrcr_action.merging.joined import joined
from mrcr_action.merging.mergeable import Missing, Piece, check_pieces
from mrcr_action.pipeline import exit_code
from mrcr_action.result import CacheInfo, Problem, Result
from mrcr_action.stats import buckets_of
from mrcr_action.telemetry.document import Counted, Peaks, ServerTelemetry, Telemetry


def merged(*pieces: Piece) -> Result:
    return joined(*check_pieces(pieces), output="out")


@pytest.fixture
def whole() -> Result:
    return merged(piece(2), piece(3), piece(1))


def test_every_record_is_there_once_in_the_order_of_the_plan(whole: Result) -> None:
    assert list(whole.records) == records_of()
    assert whole.part is None
    assert (whole.config.shard, whole.config.output_dir) == (None, "out")


def test_means_intervals_and_verdict_are_those_of_one_run(whole: Result) -> None:
    buckets = buckets_of(records_of(), CONFIG.quotas())

    assert whole.buckets == buckets
    assert whole.verdict == judge(buckets, CONFIG, whole.coverage)
    assert whole.verdict.conclusion == "pass"


def test_a_missed_threshold_fails_although_no_part_did() -> None:
    config = msgspec.structs.replace(CONFIG, thresholds=0.9)
    pieces = [piece(n, config=config) for n in (1, 2, 3)]

    assert {p.result.verdict.conclusion for p in pieces} == {"measured"}
    assert exit_code(merged(*pieces)) == ExitCode.FAIL


def test_without_a_part_nothing_is_judged_and_it_is_named() -> None:
    result = merged(piece(1), piece(3))

    assert exit_code(result) == ExitCode.CANNOT_JUDGE
    assert result.verdict.summary == "MRCR is inconclusive: part 2 is missing"
    assert (result.buckets[0].graded, result.buckets[0].wanted) == (8, 12)


def test_a_failure_that_few_samples_are_enough_for_stands_without_a_part() -> None:
    config = msgspec.structs.replace(CONFIG, thresholds=0.95, min_samples=6)
    result = merged(piece(1, config=config), piece(3, config=config))

    assert exit_code(result) == ExitCode.FAIL
    config = msgspec.structs.replace(config, thresholds=0.1)
    passing = merged(piece(1, config=config), piece(3, config=config))
    assert exit_code(passing) == ExitCode.CANNOT_JUDGE


@pytest.mark.parametrize("code", [ExitCode.CANNOT_JUDGE, ExitCode.USAGE, ExitCode.CANCELLED])
def test_a_part_that_was_stopped_leaves_no_verdict(code: ExitCode) -> None:
    problem = Problem(kind="ServerError", message="the server died", exit_code=code)
    result = merged(piece(1), piece(2, problem=problem), piece(3))

    assert exit_code(result) == ExitCode.CANNOT_JUDGE
    assert result.problem is not None
    assert result.problem.message == "part 2 of 3: the server died"


def test_two_machines_may_have_put_the_same_asks_in_different_orders() -> None:
    second = piece(2).result
    assert second.part is not None
    assert second.plan is not None
    last = len(second.part.whole.asks) - 1

    def turned(index: int) -> int:
        return last - index

    asks = [msgspec.structs.replace(a, index=turned(a.index)) for a in second.part.whole.asks]
    own = [msgspec.structs.replace(a, index=turned(a.index)) for a in second.plan.asks]
    other = msgspec.structs.replace(
        second,
        part=msgspec.structs.replace(
            second.part, whole=msgspec.structs.replace(second.part.whole, asks=tuple(asks[::-1]))
        ),
        plan=msgspec.structs.replace(second.plan, asks=tuple(own[::-1])),
        records=tuple(msgspec.structs.replace(r, ask=turned(r.ask)) for r in second.records),
    )

    result = merged(piece(1), Piece(where="p2/result.json", result=other), piece(3))

    assert list(result.records) == records_of()


def told(prompt: int, usage: float, **changes: object) -> Telemetry:
    server = ServerTelemetry(
        counted=Counted(prompt_tokens=prompt, preemptions=1, finished={"stop": 2}),
        peaks=Peaks(samples=3, kv_cache_usage=usage, running=8),
    )
    servers = (msgspec.structs.replace(server, **changes),)
    return Telemetry(answers=4, prompt_tokens=1, output_tokens=1, servers=servers)


def test_tokens_and_seconds_are_sums_and_peaks_the_highest() -> None:
    result = merged(*(piece(n, telemetry=told(100 * n, 0.25 * n)) for n in (1, 2, 3)))

    assert result.telemetry is not None
    (server,) = result.telemetry.servers
    assert server.counted == Counted(prompt_tokens=600, preemptions=3, finished={"stop": 6})
    assert server.peaks == Peaks(samples=9, kv_cache_usage=0.75, running=8)
    assert result.telemetry.answers == 12
    assert result.timeline.total == 180.0
    assert (result.latency, result.total_output_tokens) == (12.0, 1200)


def test_counters_that_one_server_did_not_tell_are_unknown() -> None:
    unknown = told(1, 0.5, counted=None, gap="no metrics")
    parts = [piece(n, telemetry=told(1, 0.5) if n < 3 else unknown) for n in (1, 2, 3)]

    result = merged(*parts)

    assert result.telemetry is not None
    assert result.telemetry.servers[0].counted is None
    assert result.telemetry.servers[0].gap == "no metrics"


def test_hits_of_the_cache_are_sums_where_all_are_known() -> None:
    known = CacheInfo(block_size=16, queried_tokens=10.0, hit_tokens=4.0)
    unknown = CacheInfo(block_size=16)

    whole = merged(*(piece(n, cache=known) for n in (1, 2, 3)))
    assert whole.cache == CacheInfo(block_size=16, queried_tokens=30.0, hit_tokens=12.0)
    partly = merged(piece(1, cache=known), piece(2, cache=unknown), piece(3, cache=known))
    assert partly.cache == unknown


def test_it_lasts_from_the_first_begin_to_the_last_end() -> None:
    times = {1: ("10", "20"), 2: ("08", "15"), 3: ("09", "30")}
    stamp = "2026-01-02T03:04:{}Z".format
    result = merged(*(piece(n, started=stamp(a), finished=stamp(b)) for n, (a, b) in times.items()))

    assert (result.started, result.finished) == (stamp("08"), stamp("30"))


def test_the_addresses_of_all_servers_are_told_and_the_command_is_that_of_the_whole() -> None:
    def of(number: int) -> Piece:
        server = msgspec.structs.replace(
            piece(number).result.server, base_url=f"http://gpu-{number}:8000"
        )
        own = f"--shard={number}/3", f"--output-dir=part-{number}"
        invocation = ("mrcr", "run", "model.yaml", *own)
        return piece(number, server=server, invocation=invocation)

    result = merged(of(1), of(2), of(3))

    assert result.server.base_url == "http://gpu-1:8000, http://gpu-2:8000, http://gpu-3:8000"
    assert result.invocation == ("mrcr", "run", "model.yaml", "--output-dir=out")


def test_the_command_of_the_whole_overrides_a_part_that_its_file_names() -> None:
    parts = [piece(n, invocation=("mrcr", "run", f"part-{n}.yaml")) for n in (1, 2, 3)]

    assert merged(*parts).invocation == ("mrcr", "run", "part-1.yaml", "--shard=null")


def test_a_sentence_that_every_part_has_is_said_once() -> None:
    def of(number: int, *notes: str) -> Piece:
        part = piece(number).result.part
        assert part is not None
        return piece(number, part=msgspec.structs.replace(part, notes=notes))

    result = joined([of(1, "a", "b"), of(2, "a"), of(3, "a")], [], output="out")
    also = joined([of(1, "a")], [Missing(number=2, why="is missing")], output="out")

    assert result.notes[:2] == ("a", "b")
    assert "Merged of 3 of 3 parts" in result.notes[2]
    assert "Merged of 1 of 2 parts" in also.notes[1]
