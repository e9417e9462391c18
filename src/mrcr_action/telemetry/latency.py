"""How soon the answers of a run came: quantiles by round. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.telemetry.document import Latency, Quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.result import Record
    from mrcr_action.rounds import Kind, Round

UNCACHED: frozenset[Kind] = frozenset({"cold", "block", "chunk", "straddle"})
"""Rounds whose prompts are meant to be read whole."""


def latencies(records: Sequence[Record], rounds: Sequence[Round]) -> tuple[Latency, ...]:
    """Of all answers, then of each round where several rounds were answered.

    Args:
        records: finished asks, answered or not.
        rounds: of the plan, which tell how many requests were in flight.
    """
    timed = [r for r in records if r.grade is not None and r.seconds_to_first_token is not None]
    by_round = {round_.name: [r for r in timed if r.pass_name == round_.name] for round_ in rounds}
    by_round = {name: own for name, own in by_round.items() if own}
    if not by_round:
        return ()
    alone = {r.name for r in rounds if r.concurrency == 1 and r.kind in UNCACHED}
    if len(by_round) == 1:
        return tuple(_latency(name, own, alone) for name, own in by_round.items())
    groups = [(None, timed), *by_round.items()]
    return tuple(_latency(name, own, alone) for name, own in groups)


def quantiles(values: Sequence[float]) -> Quantiles:
    """Of at least one value; between two neighbours by linear interpolation, as NumPy does it."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return Quantiles(p50=at(0.5), p95=at(0.95), max=ordered[-1])


def _latency(name: str | None, records: Sequence[Record], alone: set[str]) -> Latency:
    first = [r.seconds_to_first_token for r in records if r.seconds_to_first_token is not None]
    between = [r.inter_token_seconds for r in records if r.inter_token_seconds is not None]
    return Latency(
        round=name,
        answers=len(first),
        first_token=quantiles(first),
        inter_token=quantiles(between) if between else None,
        prefill_tokens_per_second=_prefill([r for r in records if r.pass_name in alone]),
    )


def _prefill(records: Sequence[Record]) -> float | None:
    """Tokens a second, of requests that were alone.

    With others in flight, a prompt waits for theirs, and the quotient says nothing about either.
    """
    tokens, seconds = 0, 0.0
    for record in records:
        if record.prompt_tokens and record.seconds_to_first_token:
            tokens += max(record.prompt_tokens - (record.cached_tokens or 0), 0)
            seconds += record.seconds_to_first_token
    return tokens / seconds if tokens and seconds else None
