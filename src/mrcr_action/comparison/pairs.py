"""The samples that two results have in common, and what became of each in both. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.bins import bin_of
from mrcr_action.comparison.comparable import NAMES
from mrcr_action.comparison.document import Lost
from mrcr_action.errors import CannotJudge, DataError, UsageError
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from mrcr_action.comparison.comparable import Names
    from mrcr_action.comparison.document import Fate
    from mrcr_action.grade import Grade
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record, Result

Key = tuple[str, int, str, str]
"""Shard, row, content hash and pass: the same question, asked in the same round."""

Samples = dict[Key, "Record | None"]
"""Every sample that a result planned, in the order of the plan; None was not asked. Of several
rounds it is the first one: the others say the same of the same samples once more, and are compared
within their run."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sample graded in both."""

    a: Record
    b: Record
    grade_a: Grade
    grade_b: Grade
    ratios: tuple[float, float]
    """By the protocol of the results."""

    @property
    def cell(self) -> str | None:
        """Such as ``n8/64K-128K``; None beyond the longest bin."""
        return cell_of(self.a)


@dataclass(frozen=True, kw_only=True)
class SharedSamples:
    """What two results have in common."""

    a: Samples
    b: Samples
    asked: tuple[tuple[Record | None, Record | None], ...]
    """Of every sample in both."""
    graded: tuple[Pair, ...]
    lost: tuple[Lost, ...]
    """In both, and not graded in both."""

    @property
    def missed(self) -> int:
        """Samples that A graded and B, which planned them too, did not."""
        return sum(sample.outcome_a in {"scored", "truncated"} for sample in self.lost)

    @property
    def gaps(self) -> list[str]:
        """Cells of which A graded samples and none is graded in both."""
        tested = {pair.cell for pair in self.graded}
        in_a = [record for record in self.a.values() if record is not None and record.grade]
        in_a.sort(key=lambda record: (record.n_needles, record.o200k_tokens))
        cells = dict.fromkeys(cell_of(record) for record in in_a)
        return [cell for cell in cells if cell is not None and cell not in tested]

    def notes(self, names: Names = NAMES) -> list[str]:
        """What a reader has to know of the samples that are not shared, each a sentence."""
        n = len(self.asked)
        alone_a, alone_b = self.a.keys() - self.b.keys(), self.b.keys() - self.a.keys()
        if not alone_a and not alone_b:
            return []
        told = (
            f"Only {n} samples are in both; {len(alone_a)} are in {names[0]} alone and"
            f" {len(alone_b)} in {names[1]} alone, and say nothing here."
        )
        notes = [told]
        if same := {key[:2] for key in alone_a} & {key[:2] for key in alone_b}:
            notes.append(
                f"{len(same)} of them have the same place in the dataset and another text: its"
                " files differ."
            )
        return notes


def shared_samples(a: Result, b: Result, names: Names = NAMES) -> SharedSamples:
    """Pair the samples of two results.

    Raises:
        UsageError: both have samples, and none is in both.
        CannotJudge: none was graded in both.
        DataError: a result holds a sample twice, or a ratio that is none.
    """
    in_a, in_b = samples_of(a, names[0]), samples_of(b, names[1])
    shared = [key for key in in_a if key in in_b]
    if in_a and in_b and not shared:
        raise UsageError(
            f"{' and '.join(names)} cannot be compared: samples: {len(in_a)} in {names[0]},"
            f" {len(in_b)} in {names[1]}, none in both",
            hint="Compare two runs of one plan: the same dataset, seed and choice of samples.",
        )
    graded: list[Pair] = []
    lost: list[Lost] = []
    for key in shared:
        pair = _pair(in_a[key], in_b[key], a.config.protocol, names)
        if pair is None:
            lost.append(_lost(key, in_a[key], in_b[key]))
        else:
            graded.append(pair)
    if not graded:
        raise CannotJudge(
            f"no sample is graded in both: {graded_in(in_a)} of {len(in_a)} in {names[0]},"
            f" {graded_in(in_b)} of {len(in_b)} in {names[1]}",
            hint="The two runs' own reports say why.",
        )
    return SharedSamples(
        a=in_a,
        b=in_b,
        asked=tuple((in_a[key], in_b[key]) for key in shared),
        graded=tuple(graded),
        lost=tuple(lost),
    )


def samples_of(result: Result, side: str) -> Samples:
    """Every sample of a result.

    Args:
        result: whole, or cut off.
        side: what an error calls it.

    Raises:
        DataError: a sample is in it twice.
    """
    found: Samples = {}
    if result.plan is not None:
        found = dict.fromkeys(planned(result.plan))
    for record in result.records:
        if record.pass_name != FIRST:
            continue
        key = (record.shard, record.row, record.sha256, record.pass_name)
        if found.get(key) is not None:
            raise DataError(
                f"{side}: {record.shard} row {record.row} is in it twice",
                hint="Compare results as they were written.",
            )
        found[key] = record
    return found


def planned(plan: Plan) -> list[Key]:
    """The samples of a plan, in its order."""
    return [(ask.shard, ask.row, ask.sha256, ask.pass_name) for ask in plan.samples]


def cell_of(record: Record) -> str | None:
    """The cell that a sample lies in; None beyond the longest bin."""
    found = bin_of(record.o200k_tokens)
    return None if found is None else f"n{record.n_needles}/{found}"


def graded_in(samples: Samples) -> int:
    """How many of them were graded."""
    return sum(record is not None and record.grade is not None for record in samples.values())


def _pair(a: Record | None, b: Record | None, protocol: str, names: Names) -> Pair | None:
    if a is None or b is None or a.grade is None or b.grade is None:
        return None
    ratios = a.grade.match_ratio(protocol), b.grade.match_ratio(protocol)
    for side, ratio in zip(names, ratios, strict=True):
        if not 0 <= ratio <= 1:
            raise DataError(
                f"{side}: {a.shard} row {a.row}: {ratio:g} is no ratio",
                hint="Compare results as they were written.",
            )
    return Pair(a, b, a.grade, b.grade, ratios)


def _lost(key: Key, a: Record | None, b: Record | None) -> Lost:
    shard, row, sha256, pass_name = key
    reasons = [record.reason for record in (b, a) if record is not None and record.reason]
    return Lost(
        shard=shard,
        row=row,
        sha256=sha256,
        pass_name=pass_name,
        outcome_a=_fate(a),
        outcome_b=_fate(b),
        reason=reasons[0] if reasons else "",
    )


def _fate(record: Record | None) -> Fate:
    return "not asked" if record is None else record.outcome
