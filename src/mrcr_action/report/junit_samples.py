"""One request as a case of JUnit (``junit: samples``): what it is called, and whether it is red.

A reader of JUnit files fails a job over any red case, so that a sample may only be red where its
bucket is: a threshold that was missed and leaves room for no such sample (a ratio or an exact rate
of 1, a failure rate of 0), or a lost sample of a bucket without a verdict. Whatever else is wrong
with a sample is told and counts as passed; one without an answer is skipped. Pure; no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mrcr_action.bins import bin_of
from mrcr_action.config.listing import unique_names
from mrcr_action.config.thresholds import AT_MOST
from mrcr_action.diagnosis.lines import told
from mrcr_action.report.rows import number
from mrcr_action.report.text import one_line
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mrcr_action.result import Check, Record, Result

Colour = Literal["failure", "error", "skipped", "passed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCase:
    """One request, ready to be written; every text in it is harmless but for XML's own rules."""

    cell: str
    """Its needle count and length, such as ``n8/64K-128K``."""
    name: str
    """The row that it asks, and the pass; the same from run to run, and without a dot."""
    colour: Colour
    message: str
    """What happened, in a line."""
    body: str
    seconds: float


def sample_cases(result: Result) -> list[SampleCase]:
    """A case for each request of a run, in the order of the plan."""
    turns = {ask.index: ask.turn for ask in result.plan.asks} if result.plan is not None else {}
    names = unique_names([_name(record, turns.get(record.ask)) for record in result.records])
    return [_case(result, record, name) for record, name in zip(result.records, names, strict=True)]


def _case(result: Result, record: Record, name: str) -> SampleCase:
    length = bin_of(record.o200k_tokens)
    colour, why = _colour(result, record)
    happened = one_line(told(record), 500) or record.outcome
    return SampleCase(
        cell=f"n{record.n_needles}" + ("" if length is None else f"/{length}"),
        name=name,
        colour=colour,
        message=happened + (f"; {why}" if why else ""),
        body="\n".join([happened, *([why] if why else []), *_facts(record)]),
        seconds=record.seconds,
    )


def _name(record: Record, turn: int | None) -> str:
    """Without a dot, at which some readers would split it."""
    shard = one_line(record.shard, 200).removesuffix(".parquet").replace(".", "_")
    parts = [f"{shard}#{record.row}"]
    if record.pass_name != FIRST:
        parts.append(one_line(record.pass_name, 80).replace(".", "_"))
    if turn is not None:
        parts.append(f"turn {turn}")
    return ", ".join(parts)


def _colour(result: Result, record: Record) -> tuple[Colour, str]:
    """How a sample is shown, and which threshold made it red."""
    own = {bucket.name for bucket in result.buckets if bucket.holds(record)}
    checks = [check for check in result.verdict.checks if check.bucket in own]
    for check in checks:
        if check.state == "fail" and check.is_of_threshold and _has_no_room(check, record, result):
            return "failure", f"{check.metric} of {check.bucket} allows no such sample"
    if record.grade is not None:
        return "passed", ""
    unclear = [bucket for bucket in own if result.verdict.state_of(bucket) == "inconclusive"]
    return ("error", "") if unclear else ("skipped", "")


def _has_no_room(check: Check, record: Record, result: Result) -> bool:
    """Whether this one sample is enough to miss a threshold, however many others there are."""
    if check.threshold is None:
        return False
    if check.metric in AT_MOST:
        bad = record.grade is None
        if check.metric == "truncation_rate":
            bad = record.outcome == "truncated"
        return bad and check.threshold == 0
    if record.grade is None or check.threshold - (check.tolerance or 0.0) < 1:
        return False
    worth = {
        "match_ratio": record.grade.match_ratio(result.config.protocol),
        "nonce_rate": float(record.grade.nonce_hit),
        "exact_rate": float(record.grade.exact),
    }
    return worth[check.metric] < 1


def _facts(record: Record) -> Iterator[str]:
    grade, found = record.grade, record.diagnosis
    if found is not None:
        yield f"kind: {found.form}"
    if grade is not None:
        yield (
            f"openai ratio {number(grade.match_ratio_openai)},"
            f" vllm ratio {number(grade.match_ratio_vllm)},"
            f" {'starts' if grade.nonce_hit else 'does not start'} with the nonce"
        )
    counts = [f"{record.prompt_tokens:,} prompt tokens"] if record.prompt_tokens else []
    if record.completion_tokens is not None:
        counts.append(f"{record.completion_tokens:,} output tokens")
    yield ", ".join([record.outcome, *counts])
    if found is not None and found.excerpt is not None:
        excerpt = found.excerpt
        yield f"wanted, from character {excerpt.offset:,}: {one_line(excerpt.wanted)}"
        yield f"returned, from character {excerpt.offset:,}: {one_line(excerpt.returned)}"
