"""The parts of one plan as the result of one run. Pure.

Everything that a run makes of its answers is made anew of all answers, by what a run makes it with
(`mrcr_action.findings`): so the verdict is the one that a run of the whole plan with these answers
would have. What is no answer adds up: seconds and tokens are sums, peaks the highest of any part.
The run begins with the first part and ends with the last.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mrcr_action.client import ModelEntry
from mrcr_action.config.resolve import Resolved
from mrcr_action.errors import ExitCode
from mrcr_action.findings import Findings, result_of
from mrcr_action.parts import key_of
from mrcr_action.result import CacheInfo, Problem, Timeline
from mrcr_action.telemetry.cost import telemetry_of
from mrcr_action.telemetry.document import Counted, Peaks, ServerTelemetry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mrcr_action.baseline import Baseline
    from mrcr_action.merging.mergeable import Missing, Piece
    from mrcr_action.plan import Plan
    from mrcr_action.result import DataInfo, Record, Result

N = TypeVar("N", int, float)

MISSING = "PartMissing"


def joined(
    pieces: Sequence[Piece],
    missing: Sequence[Missing],
    *,
    output: str,
    baseline: Baseline | None = None,
) -> Result:
    """What one run with the answers of all parts would have found.

    Args:
        pieces: the parts of one plan, in their order, at least one; see `check_pieces`.
        missing: parts that there is nothing of; without a verdict to fail for, it is inconclusive.
        output: folder of the reports.
        baseline: what the configuration has it compared with.
    """
    results = [piece.result for piece in pieces]
    first = results[0]
    assert first.part is not None
    whole = first.part.whole
    places = places_in(whole)
    records = [
        record
        for result in results
        for record in replaced(result.records, moves_of(result.plan, places))
    ]
    config = msgspec.structs.replace(first.config, shard=None, output_dir=output, save_results=None)
    found = Findings(
        baseline=baseline,
        model=ModelEntry(
            id=first.server.model, root=first.server.root, max_model_len=first.server.max_model_len
        )
        if first.server.model is not None
        else None,
        version=first.server.version,
        data=_data(results),
        preflight=first.preflight,
        plan=whole,
        cache=_cache(results),
        problem=_problem(results, missing),
        records=sorted(records, key=lambda record: record.ask),
        notes=[*_notes(results), _told(results, missing)],
        start_up=sum(result.timeline.start_up for result in results),
        planning=sum(result.timeline.plan for result in results),
        asking=sum(result.timeline.ask for result in results),
    )
    resolved = Resolved(
        config=config,
        name=first.name,
        path=Path(first.config_path) if first.config_path else None,
        given=frozenset(),
        is_probe=first.is_probe,
    )
    addresses = dict.fromkeys(result.server.base_url for result in results)
    server = msgspec.structs.replace(first.server, base_url=", ".join(addresses))
    made = result_of(found, resolved, server, invocation=_invocation(first, output))
    return msgspec.structs.replace(
        made,
        started=min(result.started for result in results),
        finished=max(result.finished for result in results),
        timeline=Timeline(
            start_up=found.start_up,
            plan=found.planning,
            ask=found.asking,
            total=sum(result.timeline.total for result in results),
        ),
        telemetry=telemetry_of(
            found.records,
            whole.rounds,
            servers=_servers(results),
            gpus=[gpu for r in results if r.telemetry for gpu in r.telemetry.gpus],
        ),
    )


def places_in(whole: Plan) -> dict[tuple[object, ...], int]:
    """Where in a plan each ask stands."""
    return {key_of(ask): ask.index for ask in whole.asks}


def moves_of(plan: Plan | None, places: Mapping[tuple[object, ...], int]) -> dict[int, int]:
    """Where each ask of a part stands in the plan that the parts are put together in.

    Mostly where it stood: but two machines may have put the same asks in different orders.
    """
    return {ask.index: places[key_of(ask)] for ask in plan.asks} if plan else {}


def replaced(records: Iterable[Record], moves: Mapping[int, int]) -> list[Record]:
    """Records at their places in the merged plan; those of asks that no plan has are left out."""
    return [
        msgspec.structs.replace(record, ask=moves[record.ask])
        for record in records
        if record.ask in moves
    ]


def _problem(results: Sequence[Result], missing: Sequence[Missing]) -> Problem | None:
    """What kept a part from its end, or from being there."""
    stopped = [(r.part, r.problem) for r in results if r.part is not None and r.problem is not None]
    told = [f"{part}: {problem.message}" for part, problem in stopped]
    told += [f"part {part.number} {part.why}" for part in missing]
    if not told:
        return None
    own = stopped[0][1] if stopped else None
    return Problem(
        kind=own.kind if own else MISSING,
        message="; ".join(told),
        hint="Run these parts again, and merge once more.",
        details=own.details if own else "",
        # Whatever stopped a part: of the whole nothing can be said.
        exit_code=ExitCode.CANNOT_JUDGE,
    )


def _told(results: Sequence[Result], missing: Sequence[Missing]) -> str:
    count = len(results) + len(missing)
    return (
        f"Merged of {len(results)} of {count} parts (shard): seconds and tokens are the sums of all"
        " parts, peaks the highest of any."
    )


def _notes(results: Sequence[Result]) -> list[str]:
    """Every sentence that a part was given, once."""
    notes = (note for result in results if result.part for note in result.part.notes)
    return list(dict.fromkeys(notes))


def _invocation(result: Result, output: str) -> tuple[str, ...]:
    """What runs the whole plan at once, and leaves the folders of the parts alone."""
    words = [word for word in result.invocation if not word.startswith("--shard=")]
    if words and len(words) == len(result.invocation):
        words.append("--shard=null")  # A file or a variable says which part.
    flag = "--output-dir="
    return tuple(f"{flag}{output}" if word.startswith(flag) else word for word in words)


def _data(results: Sequence[Result]) -> DataInfo:
    """The same samples; verified only where all were."""
    known = {result.data.verified for result in results}
    verified = False if False in known else None if None in known else True
    return msgspec.structs.replace(results[0].data, verified=verified)


def _cache(results: Sequence[Result]) -> CacheInfo | None:
    caches = [result.cache for result in results if result.cache is not None]
    if not caches:
        return None
    return msgspec.structs.replace(
        caches[0],
        queried_tokens=_total([cache.queried_tokens for cache in caches]),
        hit_tokens=_total([cache.hit_tokens for cache in caches]),
    )


def _servers(results: Sequence[Result]) -> list[ServerTelemetry]:
    """The servers of all parts as one."""
    servers = [s for r in results if r.telemetry for s in r.telemetry.servers]
    if not servers:
        return []
    counted = [server.counted for server in servers if server.counted is not None]
    peaks = [server.peaks for server in servers if server.peaks is not None]
    whole = len(counted) == len(servers)
    return [
        ServerTelemetry(
            counted=_counted(counted) if whole else None,
            gap="" if whole else next(server.gap for server in servers if not server.counted),
            peaks=_peaks(peaks) if peaks else None,
        )
    ]


def _counted(all_: Sequence[Counted]) -> Counted:
    finished: Counter[str] = Counter()
    for one in all_:
        finished.update(one.finished)
    return Counted(
        prompt_tokens=_total([one.prompt_tokens for one in all_]),
        output_tokens=_total([one.output_tokens for one in all_]),
        prefix_cache_queries=_total([one.prefix_cache_queries for one in all_]),
        prefix_cache_hits=_total([one.prefix_cache_hits for one in all_]),
        preemptions=_total([one.preemptions for one in all_]),
        finished=dict(finished),
        http_errors=_total([one.http_errors for one in all_]),
    )


def _peaks(all_: Sequence[Peaks]) -> Peaks:
    return Peaks(
        samples=sum(one.samples for one in all_),
        kv_cache_usage=_most([one.kv_cache_usage for one in all_]),
        running=_most([one.running for one in all_]),
        waiting=_most([one.waiting for one in all_]),
    )


def _total(values: Sequence[N | None]) -> N | None:
    """The sum; None where one is unknown."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    total = known[0]
    for value in known[1:]:
        total += value
    return total


def _most(values: Sequence[N | None]) -> N | None:
    return max((value for value in values if value is not None), default=None)
