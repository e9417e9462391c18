"""Records counted by needles, length, depth and kind: what the charts show. Pure; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import Bin, bin_of
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.result import Record

TENTHS = 10

RIGHT_NEEDLE = frozenset(
    {
        "exact",
        "near copy",
        "no nonce",
        "other nonce",
        "nonce not first",
        "stopped early",
        "ran on",
    }
)
"""Forms whose text is that of the wanted needle, or its beginning."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some samples of one kind."""

    n: int
    """Those that were graded."""
    mean: float | None
    """Of the gated match ratio; None without any."""
    lost: int


def group(records: Sequence[Record], protocol: str) -> Group:
    """Count records and take the mean of their ratios."""
    ratios = [r.grade.match_ratio(protocol) for r in records if r.grade is not None]
    mean = sum(ratios) / len(ratios) if ratios else None
    return Group(len(ratios), mean, len(records) - len(ratios))


def first_round(records: Iterable[Record]) -> list[Record]:
    """The records of every sample's first ask, with which nothing else is mixed."""
    return [record for record in records if record.pass_name == FIRST]


def by_cell(records: Iterable[Record], protocol: str) -> dict[tuple[int, Bin], Group]:
    """The cells that anything was asked of, by needles and length."""
    found: dict[tuple[int, Bin], list[Record]] = {}
    for record in records:
        length = bin_of(record.o200k_tokens)
        if length is not None:
            found.setdefault((record.n_needles, length), []).append(record)
    return {cell: group(found[cell], protocol) for cell in sorted(found)}


def by_length(records: Iterable[Record], protocol: str) -> dict[Bin, Group]:
    """Samples by length, whatever their needles, the shortest first."""
    found: dict[Bin, list[Record]] = {}
    for record in records:
        length = bin_of(record.o200k_tokens)
        if length is not None:
            found.setdefault(length, []).append(record)
    return {length: group(found[length], protocol) for length in sorted(found)}


def by_depth(records: Iterable[Record], protocol: str) -> dict[int, Group]:
    """Samples by the tenth of the conversation in which the wanted needle begins, from 0.

    Empty where nothing is known of that.
    """
    found: dict[int, list[Record]] = {}
    for record in records:
        if record.diagnosis is not None and record.diagnosis.wanted is not None:
            found.setdefault(record.diagnosis.wanted.tenth, []).append(record)
    return {tenth: group(found[tenth], protocol) for tenth in sorted(found)}


def kind_of(record: Record) -> str:
    """What a response is: as it was diagnosed or, without that, as far as the grade tells."""
    if record.diagnosis is not None:
        return record.diagnosis.form
    if record.grade is None or record.outcome == "truncated":
        return record.outcome
    if record.grade.exact:
        return "exact"
    return "inexact" if record.grade.nonce_hit else "no nonce"


def by_kind(records: Iterable[Record]) -> dict[str, dict[int, int]]:
    """How many responses there are of each kind and needle count; the most frequent kind first."""
    found: dict[str, dict[int, int]] = {}
    for record in records:
        of = found.setdefault(kind_of(record), {})
        of[record.n_needles] = of.get(record.n_needles, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0])))


def confusion(records: Iterable[Record], n_needles: int) -> list[list[int]] | None:
    """Which needle came back, for each that was wanted.

    Returns:
        A row for each ordinal that was wanted, with a count for each that came back and, last, of
        the responses that are none of them. None where that is not known.
    """
    rows = [[0] * (n_needles + 1) for _ in range(n_needles)]
    known = False
    for record in records:
        seen = record.diagnosis
        if record.n_needles != n_needles or seen is None or seen.wanted is None:
            continue
        if record.grade is None or not 1 <= seen.wanted.ordinal <= n_needles:
            continue
        known = True
        came = seen.wanted.ordinal if seen.form in RIGHT_NEEDLE else None
        if came is None and seen.form == "wrong needle" and seen.source is not None:
            came = seen.source.ordinal
        column = came - 1 if came is not None and 1 <= came <= n_needles else n_needles
        rows[seen.wanted.ordinal - 1][column] += 1
    return rows if known else None
