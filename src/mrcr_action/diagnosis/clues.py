"""What the wrong responses of a run look like: at most three suspicions, with their evidence. Pure.

A suspicion ends in a question mark. Where responses of one kind are held against others, there are
a few of both, and chance alone would show the like at most twice in a hundred.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import bin_of
from mrcr_action.diagnosis.breakdown import forms_of, is_wrong
from mrcr_action.diagnosis.causes import ROUNDS, WHAT
from mrcr_action.diagnosis.chance import CHANCE, FEW, fisher
from mrcr_action.diagnosis.edge import Edge, edge_of
from mrcr_action.diagnosis.evidence import LOST
from mrcr_action.diagnosis.probe_parts import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mrcr_action.diagnosis.evidence import Form, Wanted
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record
    from mrcr_action.rounds import Kind

MOST = 3
"""Clues that are told."""

ALIKE = 0.1
"""Two lengths that differ by no more than this share are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """One suspicion; its text is made here, and holds nothing foreign."""

    told: str
    p: float | None = None
    """Chance of the like where nothing is behind it; None for what only counts."""


def clues_of(
    records: Sequence[Record], plan: Plan | None, *, is_probe: bool = False
) -> tuple[Clue, ...]:
    """The best ones, the surest first, then what most wrong responses are.

    Args:
        records: finished asks.
        plan: tells the rounds.
        is_probe: whether the model was the probe, whose answers say more (`probe_parts`).
    """
    answered = [r for r in records if r.diagnosis is not None and r.diagnosis.form not in LOST]
    wrong = [record for record in answered if is_wrong(record)]
    if not wrong:
        return ()
    found = [
        *_by_place(answered),
        *_by_round(answered, plan),
        *_by_concurrency(answered, plan),
    ]
    if not found:
        found += _by_order(answered)
    found.sort(key=lambda clue: clue.p or 0.0)
    if is_probe:
        forms = [Clue(told=line) for line in parts_of(wrong)]
    else:
        forms = _by_form(answered, wrong, is_placed=bool(found))
    return (*found[: MOST - len(forms)], *forms)[:MOST]


def _by_place(records: Sequence[Record]) -> list[Clue]:
    """Where the needle lies, or how long the prompt is: what parts best, and what parts as well."""
    tries: tuple[tuple[Callable[[Record, Wanted], int | None], str, str], ...] = (
        (
            lambda _, wanted: wanted.distance,
            "to questions whose needle begins more than about {above:,} tokens before the end",
            "an attention window, or a beginning that was cut off?",
        ),
        (
            lambda record, _: record.prompt_tokens,
            "to prompts of {above:,} tokens and more",
            "positions (rope scaling), or a limit of the context?",
        ),
        (
            lambda _, wanted: wanted.token,
            "to questions whose needle begins about {above:,} tokens into the prompt or later",
            "positions that are clamped, or KV blocks beyond a limit?",
        ),
    )
    found = []
    for value_of, where, cause in tries:
        edge = edge_of(_samples(records, value_of))
        if edge is not None:
            found.append(Clue(told=_told(edge, where, cause), p=edge.p))
    least = min((clue.p or 0.0 for clue in found), default=0.0)
    return [clue for clue in found if (clue.p or 0.0) <= least * 1.5]


def _samples(
    records: Iterable[Record], value_of: Callable[[Record, Wanted], int | None]
) -> list[tuple[int, bool]]:
    """A value of each sample, and whether it was answered wrong in any round.

    Answers to one sample depend on each other, so that it counts once.
    """
    found: dict[tuple[str, int, int], tuple[int, bool]] = {}
    for record in records:
        wanted = record.diagnosis.wanted if record.diagnosis is not None else None
        value = None if wanted is None else value_of(record, wanted)
        if wanted is None or value is None:
            continue
        key = (record.shard, record.row, wanted.turn)
        first, before = found.get(key, (value, False))
        found[key] = (first, before or is_wrong(record))
    return list(found.values())


def _told(edge: Edge, where: str, cause: str) -> str:
    beyond = f"{edge.wrong_above} of {edge.of_above} answers"
    if edge.wrong_below == 0:
        side = f"the {edge.of_below} others, up to {edge.below:,}, are all exact"
        head = f"All wrong answers are {where.format(above=edge.above)}"
        return f"{head} ({beyond} there; {side}; {_chance(edge.p)}): {cause}"
    side = f"{edge.wrong_below} of {edge.of_below} elsewhere"
    head = f"Wrong are {beyond} {where.format(above=edge.above)}"
    return f"{head} ({side}; {_chance(edge.p)}): {cause}"


def _by_round(records: Sequence[Record], plan: Plan | None) -> list[Clue]:
    """Rounds that are worse than the first one."""
    if plan is None:
        return []
    kinds = {round_.name: round_.kind for round_ in plan.rounds}
    by_kind: dict[Kind, list[Record]] = {}
    for record in records:
        by_kind.setdefault(kinds.get(record.pass_name, "cold"), []).append(record)
    cold = by_kind.pop("cold", [])
    found = []
    for kind, own in by_kind.items():
        clue = _worse(own, cold, f"{kind} requests", "cold ones", ROUNDS[kind])
        if clue is not None:
            found.append(clue)
    return found


def _by_concurrency(records: Sequence[Record], plan: Plan | None) -> list[Clue]:
    """Whether requests alone fare better than those in company."""
    if plan is None:
        return []
    same = {r.name: r.concurrency for r in plan.rounds if r.has_same_samples}
    own = [r for r in records if same.get(r.pass_name, 1) > 1]
    alone = [r for r in records if same.get(r.pass_name) == 1]
    cause = "batching, or requests that are mixed up?"
    clue = _worse(own, alone, "requests in company", "those sent alone", cause)
    return [] if clue is None else [clue]


def _by_order(records: Sequence[Record]) -> list[Clue]:
    """Whether it begins at some moment, among the requests of the needle count that has most."""
    counts = Counter(record.n_needles for record in records if is_wrong(record))
    most = counts.most_common(1)[0][0]
    own = [record for record in records if record.n_needles == most]
    edge = edge_of([(record.ask + 1, is_wrong(record)) for record in own])
    if edge is None or edge.wrong_below:
        return []
    told = (
        f"Answers with {most} needles are exact up to request {edge.below:,}, and"
        f" {edge.wrong_above} of {edge.of_above} are wrong from {edge.above:,} on"
        f" ({_chance(edge.p)}): a server that gets worse as it runs?"
    )
    return [Clue(told=told, p=edge.p)]


def _worse(
    own: Sequence[Record], others: Sequence[Record], name: str, other_name: str, cause: str
) -> Clue | None:
    """One group against another."""
    if min(len(own), len(others)) < FEW:
        return None
    hits, other_hits = sum(map(is_wrong, own)), sum(map(is_wrong, others))
    p = fisher(hits, len(own), other_hits, len(others))
    if hits < FEW or p > CHANCE or other_hits * len(own) * 2 > hits * len(others):
        return None
    only = "Only" if other_hits == 0 else "Mostly"
    told = (
        f"{only} {name} are wrong ({hits} of {len(own)}; {other_hits} of {len(others)} of"
        f" {other_name}; {_chance(p)}): {cause}"
    )
    return Clue(told=told, p=p)


def _by_form(answered: Sequence[Record], wrong: Sequence[Record], *, is_placed: bool) -> list[Clue]:
    """What most wrong responses are, where there are a few.

    Where something else tells more of the cause (``is_placed``), none is named here.
    """
    form, count = forms_of(wrong).most_common(1)[0]
    if count < FEW or count * 2 < len(wrong):
        return []
    own = [r for r in wrong if r.diagnosis is not None and r.diagnosis.form == form]
    words, cause = WHAT[form]
    told = f"{count} of {len(wrong)} wrong answers of {len(answered)} are {words}"
    more = _MORE.get(form)
    evidence = more(own, answered) if more is not None else ""
    told = f"{told} ({evidence})" if evidence else told
    return [Clue(told=f"{told}." if is_placed else f"{told}: {cause}")]


def _one_length(records: Sequence[Record], _: Sequence[Record]) -> str:
    """Where they end, if all end there."""
    lengths = [r.completion_tokens for r in records if r.completion_tokens]
    if len(lengths) < len(records) or max(lengths) - min(lengths) > max(1, ALIKE * max(lengths)):
        return ""
    return f"all at {statistics.median(lengths):,.0f} tokens"


def _shift(records: Sequence[Record], _: Sequence[Record]) -> str:
    """Which needle came instead, if there is a rule."""
    shifts: Counter[int] = Counter()
    for record in records:
        found = record.diagnosis
        if found and found.source and found.source.ordinal and found.wanted:
            shifts[found.source.ordinal - found.wanted.ordinal] += 1
    shift, count = max(shifts.items(), key=lambda pair: pair[1], default=(0, 0))
    if count < FEW or count < 0.8 * len(records):
        return ""
    far = "the next one" if shift == 1 else "the one before" if shift == -1 else ""
    far = far or f"the one {abs(shift)} places {'later' if shift > 0 else 'earlier'}"
    return f"{count} times {far}"


def _spread(records: Sequence[Record], answered: Sequence[Record]) -> str:
    """How many edits there are, and in how many cells."""
    counts = [r.diagnosis.edits for r in records if r.diagnosis and r.diagnosis.edits is not None]
    many = len(records) - len(counts)
    edits = f"{many} with too many edits to count" if many else ""
    if counts:
        edits = ", ".join(filter(None, [f"{min(counts)} to {max(counts)} edits", edits]))
    hit = {(r.n_needles, bin_of(r.o200k_tokens)) for r in records}
    cells = {(r.n_needles, bin_of(r.o200k_tokens)) for r in answered}
    return f"{edits}, in {len(hit)} of {len(cells)} cells"


_MORE: dict[Form, Callable[[Sequence[Record], Sequence[Record]], str]] = {
    "stopped early": _one_length,
    "truncated": _one_length,
    "wrong needle": _shift,
    "near copy": _spread,
}
"""What else is told of a form: given its responses, and all."""


def _chance(p: float) -> str:
    return f"p {p:.2g}" if p >= 1e-6 else "p below 0.000001"  # noqa: PLR2004 - enough zeros
