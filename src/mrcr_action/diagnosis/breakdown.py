"""Where in a run the responses are wrong: counts by needles, place, order and round. Pure; no I/O.

Counts only, with no word about a cause; `mrcr_action.diagnosis.clues` has those.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import bin_of
from mrcr_action.diagnosis.evidence import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mrcr_action.diagnosis.evidence import Form
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record

NEAREST = 512
"""Tokens; the first of the distances, each of which is twice the one before."""

PARTS = 4
"""Into so many parts the order of the requests is divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The responses that have something in common."""

    label: str
    asked: int
    exact: int
    forms: tuple[tuple[Form, int], ...]
    """What the others are, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """All responses, divided one way; those of which the place is unknown are in none."""

    by: str
    groups: tuple[Group, ...]


def breakdowns(records: Sequence[Record], plan: Plan | None) -> tuple[Breakdown, ...]:
    """The responses of a run, divided in every way that makes more than one group.

    Args:
        records: finished asks, in the order of the plan.
        plan: tells the concurrency of each round.
    """
    known = [record for record in records if record.diagnosis is not None and record.attempts]
    ways: tuple[tuple[str, Callable[[Record], tuple[float, str] | None]], ...] = (
        ("needles and length", _cell),
        ("which one was asked for", _ordinal),
        ("place of the needle in the prompt", _depth),
        ("tokens from the needle to the end", _distance),
        ("order of the requests", _order(known)),
        ("round", _round(plan)),
    )
    made = (Breakdown(by=by, groups=_groups(known, key)) for by, key in ways)
    return tuple(breakdown for breakdown in made if len(breakdown.groups) > 1)


def forms_of(records: Iterable[Record]) -> Counter[Form]:
    """How often each form occurs, the most frequent first."""
    found = Counter(record.diagnosis.form for record in records if record.diagnosis is not None)
    return Counter(dict(found.most_common()))


def is_wrong(record: Record) -> bool:
    """Whether there is a response, and it is not the answer."""
    form = record.diagnosis.form if record.diagnosis is not None else None
    return form is not None and form != "exact" and form not in LOST


def _groups(
    records: Iterable[Record], key: Callable[[Record], tuple[float, str] | None]
) -> tuple[Group, ...]:
    found: dict[tuple[float, str], list[Record]] = {}
    for record in records:
        if (place := key(record)) is not None:
            found.setdefault(place, []).append(record)
    return tuple(_group(label, found[at, label]) for at, label in sorted(found))


def _group(label: str, records: Sequence[Record]) -> Group:
    forms = forms_of(records)
    exact = forms.pop("exact", 0)
    return Group(label=label, asked=len(records), exact=exact, forms=tuple(forms.most_common()))


def _cell(record: Record) -> tuple[float, str] | None:
    found = bin_of(record.o200k_tokens)
    if found is None:
        return None
    return record.n_needles * 2.0**24 + found.low, f"n{record.n_needles}/{found}"


def _ordinal(record: Record) -> tuple[float, str] | None:
    wanted = record.diagnosis.wanted if record.diagnosis else None
    return None if wanted is None else (wanted.ordinal, f"number {wanted.ordinal}")


def _depth(record: Record) -> tuple[float, str] | None:
    wanted = record.diagnosis.wanted if record.diagnosis else None
    if wanted is None:
        return None
    return wanted.tenth, f"{wanted.tenth * 10}–{wanted.tenth * 10 + 10} %"


def _distance(record: Record) -> tuple[float, str] | None:
    wanted = record.diagnosis.wanted if record.diagnosis else None
    if wanted is None or wanted.distance is None:
        return None
    high = NEAREST
    while high < wanted.distance:
        high *= 2
    low = 0 if high == NEAREST else high // 2
    return high, f"{low:,}–{high:,}"


def _order(records: Sequence[Record]) -> Callable[[Record], tuple[float, str]]:
    places = {record.ask: at for at, record in enumerate(records)}

    def part(record: Record) -> tuple[float, str]:
        found = places[record.ask] * PARTS // len(records)
        return found, f"part {found + 1} of {PARTS}"

    return part


def _round(plan: Plan | None) -> Callable[[Record], tuple[float, str]]:
    rounds = plan.rounds if plan is not None else ()
    known = {round_.name: (at, round_.concurrency) for at, round_ in enumerate(rounds)}

    def named(record: Record) -> tuple[float, str]:
        at, concurrency = known.get(record.pass_name, (len(known), 0))
        return at, f"{record.pass_name}, {concurrency} at a time" if concurrency else (
            record.pass_name
        )

    return named
