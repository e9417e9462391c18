"""Means and counts of a run's buckets and cells. Pure; no I/O."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.bins import ALL_BINS
from mrcr_action.config.thresholds import place_of
from mrcr_action.coverage import Coverage, Spread, in_bin
from mrcr_action.intervals import bounded_interval, mean_interval
from mrcr_action.looks import confidence, counted
from mrcr_action.plan import Cell
from mrcr_action.result import Bucket, Record
from mrcr_action.rounds import Round

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mrcr_action.config.keys import Protocol
    from mrcr_action.plan import Ask, Plan


def buckets_of(
    records: Sequence[Record],
    quotas: Mapping[int, int],
    *,
    protocol: Protocol = "vllm",
    cells: Sequence[Cell] = (),
    plan: Plan | None = None,
    bounded: Collection[str] = (),
    stopped: bool = False,
) -> tuple[Bucket, ...]:
    """The bucket of all samples, then one per needle count, then one per cell that was planned.

    Then the same of every further round that asks the same samples, of its cells only those that
    are bounded; and one bucket for each other round.

    Args:
        records: finished asks, in the order of the plan (the order decides a mean's last bit).
        quotas: samples wanted, by needle count.
        protocol: whose match ratio is gated and has an interval.
        cells: of the plan; none where samples are not chosen by cell.
        plan: tells the rounds; without it there is one.
        bounded: names of buckets with a threshold.
        stopped: the run ended early because its verdict was certain, so that what has no record
            was skipped.
    """
    asks = plan.asks if plan is not None and stopped else ()
    found = []
    for bucket in empty_buckets(quotas, cells=cells, plan=plan, bounded=bounded):
        own = [record for record in records if bucket.holds(record)]
        if plan is not None and plan.schedule and (bucket.round is None or bucket.base):
            found.append(_at_a_look(bucket, own, plan, protocol))
            continue
        skipped = sum(map(bucket.holds, asks)) - len(own) if asks else 0
        interval = mean_interval(ratios_of(own, protocol))
        full = filled(bucket, own)
        found.append(msgspec.structs.replace(full, interval=interval, skipped=skipped))
    return tuple(found)


def _at_a_look(bucket: Bucket, own: Sequence[Record], plan: Plan, protocol: Protocol) -> Bucket:
    """A bucket of a run that may look at its thresholds several times; see `mrcr_action.looks`."""
    rows = counted(plan, place_of(bucket.base or bucket.name))
    own = [record for record in own if (record.shard, record.row) in rows]
    interval = bounded_interval(ratios_of(own, protocol), confidence(plan))
    return msgspec.structs.replace(filled(bucket, own), wanted=len(rows), interval=interval)


def empty_buckets(
    quotas: Mapping[int, int],
    *,
    cells: Sequence[Cell] = (),
    plan: Plan | None = None,
    bounded: Collection[str] = (),
) -> tuple[Bucket, ...]:
    """The buckets of a run before its first answer; see `buckets_of`."""
    rounds = (Round(),) if plan is None else plan.rounds
    found: list[Bucket] = []
    for round_ in rounds:
        if round_.is_first:
            found += _buckets(quotas, cells)
        elif round_.has_same_samples:
            known = [cell for cell in cells if cell.name in bounded]
            found += (_of_round(b, round_, base=b.name) for b in _buckets(quotas, known))
        elif plan is not None:
            wanted = sum(ask.pass_name == round_.name for ask in plan.asks)
            found.append(_of_round(_bucket("all", None, wanted), round_, base=None))
    return tuple(found)


def _of_round(bucket: Bucket, round_: Round, *, base: str | None) -> Bucket:
    name = f"{bucket.name}@{round_.name}"
    return msgspec.structs.replace(bucket, name=name, round=round_.name, base=base)


def _buckets(quotas: Mapping[int, int], cells: Sequence[Cell]) -> list[Bucket]:
    """The buckets of one round."""
    found = [_bucket("all", None, sum(quotas.values()))]
    found += [_bucket(f"n{n}", n, wanted) for n, wanted in quotas.items()]
    for cell in cells:
        if cell.planned:
            bucket = _bucket(cell.name, cell.n_needles, cell.planned)
            found.append(msgspec.structs.replace(bucket, low=cell.low, high=cell.high))
    return found


def _bucket(name: str, n_needles: int | None, wanted: int) -> Bucket:
    return Bucket(
        name=name,
        n_needles=n_needles,
        wanted=wanted,
        asked=0,
        scored=0,
        truncated=0,
        rejected=0,
        failed=0,
        match_ratio_openai=None,
        match_ratio_vllm=None,
        prefix_hit_rate=None,
        exact_rate=None,
    )


def filled(bucket: Bucket, records: Sequence[Record]) -> Bucket:
    """A bucket with the counts and the means of all its records; it has no interval yet."""
    outcomes = [r.outcome for r in records]
    grades = [r.grade for r in records if r.grade is not None]
    return msgspec.structs.replace(
        bucket,
        unasked=sum(r.outcome == "failed" and not r.attempts for r in records),
        asked=len(records),
        scored=outcomes.count("scored"),
        truncated=outcomes.count("truncated"),
        rejected=outcomes.count("rejected"),
        failed=outcomes.count("failed"),
        match_ratio_openai=mean([g.match_ratio_openai for g in grades]),
        match_ratio_vllm=mean([g.match_ratio_vllm for g in grades]),
        prefix_hit_rate=mean([float(g.nonce_hit) for g in grades]),
        exact_rate=mean([float(g.exact) for g in grades]),
    )


def ratios_of(records: Sequence[Record], protocol: Protocol) -> list[float]:
    """The gated match ratio of every graded record."""
    return [r.grade.match_ratio(protocol) for r in records if r.grade is not None]


def coverage_of(plan: Plan | None, records: Sequence[Record]) -> tuple[Coverage, ...]:
    """Every cell of the plan, planned or not, by needle count and length.

    Args:
        plan: what was to be asked; without one, nothing is covered.
        records: finished asks.
    """
    if plan is None:
        return ()
    by_ask = {record.ask: record for record in records}
    samples = plan.samples
    cells = plan.cells or _cells_of(samples)
    found = []
    for cell in cells:
        asks = [a for a in samples if a.n_needles == cell.n_needles and in_bin(a, cell.bin)]
        own = [by_ask[ask.index] for ask in asks if ask.index in by_ask]
        outcomes = [record.outcome for record in own]
        grades = [record.grade for record in own if record.grade is not None]
        lengths = [
            (by_ask[a.index].prompt_tokens if a.index in by_ask else None) or a.prompt_tokens
            for a in asks
        ]
        found.append(
            Coverage(
                name=cell.name,
                n_needles=cell.n_needles,
                low=cell.low,
                high=cell.high,
                rows=cell.rows if plan.cells else None,
                fitting=cell.fitting if plan.cells else None,
                planned=len(asks),
                asked=sum(record.attempts > 0 for record in own),
                scored=outcomes.count("scored"),
                truncated=outcomes.count("truncated"),
                rejected=outcomes.count("rejected"),
                failed=outcomes.count("failed"),
                match_ratio_openai=mean([g.match_ratio_openai for g in grades]),
                match_ratio_vllm=mean([g.match_ratio_vllm for g in grades]),
                requested=cell.requested,
                dropped=cell.dropped,
                o200k_tokens=_spread(ask.o200k_tokens for ask in asks),
                prompt_tokens=_spread(lengths),
            )
        )
    return tuple(found)


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, summed as numpy does, so that it equals vLLM's to the last bit."""
    import numpy as np

    return float(np.array(values).mean()) if values else None


def _cells_of(asks: Sequence[Ask]) -> list[Cell]:
    """The cells that the asks of a plan without cells happen to lie in."""
    needles = dict.fromkeys(ask.n_needles for ask in asks)
    return [
        Cell(n_needles=n, low=b.low, high=b.high, rows=0, fitting=0, planned=0)
        for n in needles
        for b in ALL_BINS
        if any(ask.n_needles == n and in_bin(ask, b) for ask in asks)
    ]


def _spread(lengths: Iterable[int]) -> Spread | None:
    values = list(lengths)
    return Spread(min(values), statistics.median(values), max(values)) if values else None
