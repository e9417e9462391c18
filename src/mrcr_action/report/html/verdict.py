"""The head of the page: the verdict in words, and by how much each bucket missed what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.config.thresholds import AT_MOST
from mrcr_action.report.diagnosis import suspicions
from mrcr_action.report.html.faults import suspected
from mrcr_action.report.html.groups import by_kind
from mrcr_action.report.html.markup import element, foreign, scrolling
from mrcr_action.report.rows import MARKS, bucket_title, number
from mrcr_action.report.state import NOT_JUDGED, is_unjudged, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Bucket, Check, Result

WORDS = {
    "pass": ("✓", "MRCR passed"),
    "fail": ("✗", "MRCR failed"),
    "inconclusive": ("?", "MRCR is inconclusive"),
    "measured": ("·", "MRCR measured, nothing gated"),
}

MOST_KINDS = 3
"""Kinds of fault that the head names, the most frequent ones."""

MOST_MISSED = 12
"""Lines of the table at the top; the others are in the table of buckets."""


def headline(result: Result) -> str:
    """The conclusion in two words or three."""
    return NOT_JUDGED if is_unjudged(result) else WORDS[state_of(result)][1]


def head(result: Result, state: str) -> Element:
    """The verdict and what it rests on.

    Args:
        result: what was found.
        state: its conclusion, or ``measured`` where nothing was gated.
    """
    sign, words = WORDS[state][0], headline(result)
    missed = missed_in(result)
    return element(
        "header",
        element("p", "MRCR report · ", element("bdi", foreign(result.name, 200)), class_="over"),
        element(
            "h1",
            element("span", sign, class_="sign", aria_hidden="true"),
            words,
        ),
        element("p", foreign(in_words(result, missed)), class_="summary"),
        _kinds(result),
        suspected(suspicions(result)[:1]),
        _stopped(result),
        _problem(result),
        _missed(missed, result) if missed else None,
        element("p", *_facts(result), class_="facts"),
        class_=f"head {state}",
    )


def missed_in(result: Result) -> list[Check]:
    """The checks that were not kept, the worst first."""
    missed = [c for c in result.verdict.checks if c.state in {"fail", "inconclusive"}]
    return sorted(missed, key=lambda check: (check.state != "fail", _gap(check)))


def failed_in(missed: Sequence[Check]) -> list[Check]:
    """Those of the checks that were not kept whose threshold was missed."""
    return [check for check in missed if check.state == "fail" and check.is_of_threshold]


def in_words(result: Result, missed: Sequence[Check]) -> str:
    """One or two sentences: how many thresholds were missed, and which one by how much.

    Args:
        result: what was found.
        missed: the checks that were not kept, the worst first.
    """
    failed = failed_in(missed)
    if result.verdict.conclusion != "fail" or not failed:
        return result.verdict.summary
    held = [c for c in result.verdict.checks if c.is_of_threshold and c.threshold is not None]
    worst, bound = failed[0], needed(failed[0])
    assert bound is not None
    buckets = {bucket.name: bucket for bucket in result.buckets}
    bucket = buckets.get(worst.bucket)
    name = worst.bucket if bucket is None else bucket_title(bucket)
    rule = "at most" if worst.metric in AT_MOST else "at least"
    many = "1 threshold was" if len(held) == 1 else f"{len(failed)} of {len(held)} thresholds were"
    text = (
        f"{many} missed, that of {name} by most: {worst.metric.replace('_', ' ')}"
        f" {number(worst.measured)} where {rule} {number(bound)} is needed."
    )
    others = [_called(c) for c in missed if c.state == "fail" and not c.is_of_threshold]
    return text + (f" Failed as well: {', '.join(others)}." if others else "")


def _called(check: Check) -> str:
    """What a check is of that no threshold is."""
    if check.against is not None:
        return "the comparison with the baseline"
    return f"the pass {check.round}" if check.round is not None else "the logit margin"


def _kinds(result: Result) -> Element | None:
    """What most of the responses are that are not right."""
    kinds = {kind: sum(of.values()) for kind, of in by_kind(result.records).items()}
    exact = kinds.pop("exact", 0)
    if not kinds or result.verdict.conclusion == "pass":
        return None
    told = ", ".join(f"{n:,} {kind}" for kind, n in list(kinds.items())[:MOST_KINDS])
    rest = sum(list(kinds.values())[MOST_KINDS:])
    more = f", {rest:,} others" if rest else ""
    total = exact + sum(kinds.values())
    return element("p", f"Of {total:,} responses, {exact:,} are exact, {told}{more}.")


def _facts(result: Result) -> list[Element]:
    server = result.server
    parts = [f"model {result.model or '?'}"]
    parts += [f"server {server.version}"] if server.version else []
    parts.append(f"protocol {result.config.protocol}")
    parts.append(f"{result.num_samples:,} samples graded")
    parts.append(f"{result.started}")
    return [element("span", element("bdi", foreign(part, 200))) for part in parts]


def _stopped(result: Result) -> Element | None:
    stopped = result.stopped
    return None if stopped is None else element("p", foreign(stopped.sentence))


def _problem(result: Result) -> Element | None:
    problem = result.problem
    if problem is None:
        return None
    lines = [element("span", foreign(line)) for line in problem.details.splitlines()]
    return element(
        "div",
        element("p", element("strong", "What stopped it: "), foreign(problem.message)),
        element("p", foreign(problem.hint)) if problem.hint else None,
        element(
            "details",
            element("summary", "The end of the log"),
            element("pre", ([line, "\n"] for line in lines), tabindex=0, aria_label="log"),
        )
        if lines
        else None,
        class_="problem",
    )


def needed(check: Check) -> float | None:
    """The bound that a check has to keep; None for what is no threshold."""
    if check.threshold is None:
        return None
    return check.threshold - (check.tolerance or 0.0)


def _gap(check: Check) -> float:
    """How far a check is from what it needs; below 0 it misses it."""
    bound = needed(check)
    if bound is None or check.measured is None:
        return 0.0
    gap = check.measured - bound
    return -gap if check.metric in AT_MOST else gap


def _missed(missed: list[Check], result: Result) -> Element:
    buckets = {bucket.name: bucket for bucket in result.buckets}
    rows = [_line(check, buckets.get(check.bucket)) for check in missed[:MOST_MISSED]]
    more = len(missed) - len(rows)
    label = "What was missed, and by how much"
    names = ("bucket", "verdict", "off by", "measured", "needed", "graded")
    made = element(
        "table",
        element("caption", label),
        element(
            "thead",
            element(
                "tr",
                (
                    element("th", name, scope="col", class_="figure" if i > 1 else None)
                    for i, name in enumerate(names)
                ),
            ),
        ),
        element("tbody", rows),
        class_="missed",
    )
    note = f"and {more} more, in the table of buckets below" if more > 0 else ""
    return element("div", scrolling(made, label), element("p", note) if note else None)


def _line(check: Check, bucket: Bucket | None) -> Element:
    mark = element("td", MARKS[check.state], class_=f"mark {check.state}")
    title = foreign(check.bucket if bucket is None else bucket_title(bucket), 100)
    bound = needed(check)
    if bound is None or check.measured is None or not check.is_of_threshold:
        message = check.message.removeprefix(f"{check.bucket}: ")
        return element(
            "tr",
            element("th", title, scope="row"),
            mark,
            element("td", foreign(message, 600), colspan=4, class_="words"),
        )
    what = "" if check.metric == "match_ratio" else check.metric.replace("_", " ") + " "
    sign = "≤" if check.metric in AT_MOST else "≥"
    gap = abs(check.measured - bound)
    measured = f"{what}{number(check.measured)}"
    return element(
        "tr",
        element("th", _opener(title, bucket), scope="row"),
        mark,
        element("td", element("strong", number(gap)), class_="figure"),
        element("td", measured, class_="figure"),
        element("td", f"{sign} {number(bound)}", class_="figure"),
        element("td", f"{check.samples:,}", class_="figure"),
    )


def _opener(title: str, bucket: Bucket | None) -> Element | str:
    """A button that lists a bucket's samples, where the page can tell them apart."""
    if bucket is None:
        return title
    return element(
        "button",
        title,
        type="button",
        class_="opener",
        data_needles=bucket.n_needles,
        data_bin=None if bucket.bin is None else str(bucket.bin),
        data_pass=bucket.round or "cold",
    )
