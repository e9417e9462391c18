"""What a job says beside the files of a change: one annotation for each thing that went wrong.

GitHub shows ten of a kind for a step and no more, so that the last one counts those it stands for.
How they are sent is not said here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mrcr_action.errors import ExitCode
from mrcr_action.report.diagnosis import suspicions
from mrcr_action.report.rows import lost, number, tested
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.result import Bucket, Check, Result

FailOn = Literal["fail", "inconclusive", "never"]
"""What ends a job in red: a missed threshold; also a run without a verdict; nothing."""

LONGEST_MESSAGE = 1_000
"""Characters; GitHub cuts at 4,096 bytes."""

ROOM_FOR_REST = 400
"""Characters of the last message that are left for what it stands for."""

LONGEST_NAME = 60
LONGEST_PATH = 4_096


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One line on the page of a run; harmless text, not yet escaped for a workflow command."""

    level: Literal["error", "warning", "notice"]
    title: str
    message: str
    file: str | None = None
    """The configuration, as it was named; None without one."""


@dataclass(frozen=True, kw_only=True)
class _Miss:
    """A bucket that failed."""

    result: Result
    bucket: Bucket
    checks: tuple[Check, ...]
    """Its missed thresholds, the worst first."""
    looks: Sequence[str]
    """What the wrong answers of the whole run look like, at most one line."""


def annotations_of(
    results: Sequence[Result], limit: int = 10, *, fail_on: FailOn = "inconclusive"
) -> list[Annotation]:
    """One for each failed bucket, the worst first, each regression, and each run without a verdict.

    Args:
        results: what was found.
        limit: most annotations; the last one names those beyond it.
        fail_on: what fails the job; of what does not, there are warnings instead of errors.
    """
    misses = [miss for result in results for miss in _misses(result)]
    misses.sort(key=lambda miss: _margin(miss.checks[0]))
    level: Literal["error", "warning"] = "warning" if fail_on == "never" else "error"
    found = [_of_miss(miss, level) for miss in misses]
    found += [_of_regression(*of, level) for result in results for of in _regressions(result)]
    for result in results:
        if result.verdict.conclusion == "inconclusive":
            forgiven = fail_on != "inconclusive" and _could_not_judge(result)
            found.append(_of_unclear(result, "warning" if forgiven else "error"))
    return _counted(found, max(0, limit))


def _could_not_judge(result: Result) -> bool:
    """Whether that is all; a wrong configuration and a cancelled run are never forgiven."""
    problem = result.problem
    return problem is None or problem.exit_code == ExitCode.CANNOT_JUDGE


def _counted(found: Sequence[Annotation], limit: int) -> list[Annotation]:
    """The first ones, the last of which names the others."""
    shown = list(found[:limit])
    rest = found[limit:]
    if shown and rest:
        own = _clean(shown[-1].message, LONGEST_MESSAGE - ROOM_FOR_REST)
        titles = "; ".join(annotation.title for annotation in rest)
        message = f"{own} (and {len(rest):,} more: {titles})"
        shown[-1] = replace(shown[-1], message=_clean(message, LONGEST_MESSAGE))
    return shown


def _misses(result: Result) -> Iterator[_Miss]:
    if result.verdict.conclusion != "fail":
        return
    looks = suspicions(result)[:1]  # over all records, and so once for all buckets
    for bucket in result.buckets:
        failed = [c for c in result.verdict.of(bucket.name) if c.state == "fail"]
        if failed:
            checks = tuple(sorted(failed, key=_margin))
            yield _Miss(result=result, bucket=bucket, checks=checks, looks=looks)


def _regressions(result: Result) -> Iterator[tuple[Result, Check]]:
    if result.verdict.conclusion == "fail":
        for check in result.verdict.checks:
            if not check.is_of_threshold and check.state == "fail":
                yield result, check


def _of_regression(result: Result, check: Check, level: Literal["error", "warning"]) -> Annotation:
    against = [] if check.against is None else [f"Compared with {check.against}"]
    said = [check.message, *against, tested(result), *_stop(result)]
    same = _clean(check.bucket, LONGEST_NAME)
    worse = same if check.against is None else "worse than the baseline"
    return Annotation(
        level=level,
        title=f"MRCR of {_name(result)}: {worse}",
        message=_sentences(said),
        file=_file(result),
    )


def _sides(check: Check) -> tuple[float, float]:
    """What was measured of a missed threshold, and what was needed."""
    assert check.measured is not None
    assert check.threshold is not None
    return check.measured, check.threshold - (check.tolerance or 0.0)


def _margin(check: Check) -> float:
    """How far a missed threshold was missed, as a number below zero."""
    measured, needed = _sides(check)
    return -abs(measured - needed)


def _of_miss(miss: _Miss, level: Literal["error", "warning"]) -> Annotation:
    result, bucket, worst = miss.result, miss.bucket, miss.checks[0]
    label = "" if bucket.name == "all" else f" {_clean(bucket.name, LONGEST_NAME)}"
    metric = "" if worst.metric == "match_ratio" else f"{worst.metric.replace('_', ' ')} "
    others = f" (and {len(miss.checks) - 1} more)" if len(miss.checks) > 1 else ""
    graded = f"{bucket.graded} of {bucket.wanted} samples graded"
    said = [
        *(check.message for check in miss.checks),
        *(f"Looks like: {line}" for line in miss.looks),
        graded if lost(bucket) == "0" else f"{graded}, {lost(bucket)}",
        f"nonce rate {number(bucket.prefix_hit_rate)}, exact rate {number(bucket.exact_rate)}",
        tested(result),
        *_stop(result),
    ]
    return Annotation(
        level=level,
        title=f"MRCR{label} of {_name(result)}: {metric}{_apart(*_sides(worst))}{others}",
        message=_sentences(said),
        file=_file(result),
    )


def _of_unclear(result: Result, level: Literal["error", "warning"]) -> Annotation:
    problem = result.problem
    if problem is not None:
        said = [problem.message.strip() or problem.kind, problem.hint]
    else:
        said = [check.message for check in result.verdict.checks if check.state == "inconclusive"]
    return Annotation(
        level=level,
        title=f"MRCR of {_name(result)} is inconclusive",
        message=_sentences(said) or _clean(result.verdict.summary, LONGEST_MESSAGE),
        file=_file(result),
    )


def _stop(result: Result) -> list[str]:
    """What ended a run before all was asked, if something did."""
    stopped = [] if result.stopped is None else [result.stopped.after]
    if result.problem is None:
        return stopped
    return [*stopped, f"What stopped the run: {result.problem.message}"]


def _apart(measured: float, needed: float) -> str:
    """Two numbers with as many decimals, two at least, as it takes to tell them apart."""
    for digits in range(2, 18):
        texts = f"{measured:.{digits}f}", f"{needed:.{digits}f}"
        if texts[0] != texts[1]:
            break
    return (" < " if measured < needed else " > ").join(texts)


def _name(result: Result) -> str:
    return _clean(result.name, LONGEST_NAME) or "?"


def _file(result: Result) -> str | None:
    """The path of the configuration, unless it is none that GitHub could show."""
    path = result.config_path
    return path if path and one_line(path, LONGEST_PATH) == path else None


def _sentences(said: Sequence[str]) -> str:
    texts = [one_line(text, LONGEST_MESSAGE) for text in said]
    ended = [text if text.endswith((".", "!", "?", "…")) else f"{text}." for text in texts if text]
    return _clean(" ".join(ended), LONGEST_MESSAGE)


def _clean(text: str, limit: int) -> str:
    # Breaking up a command makes the text longer again, and there is none left to break up then.
    return one_line(one_line(text, limit), limit)
