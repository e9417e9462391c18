"""The head of the page: the verdict in words, and by how much each bucket missed what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.html.markup import element, foreign, scrolling
from mrcr_action.report.rows import MARKS, bucket_title, number

if TYPE_CHECKING:
    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Bucket, Check, Result

WORDS = {
    "pass": ("✓", "MRCR passed"),
    "fail": ("✗", "MRCR failed"),
    "inconclusive": ("?", "MRCR is inconclusive"),
    "measured": ("·", "MRCR measured, nothing gated"),
}

AT_MOST = frozenset({"truncation_rate", "failure_rate"})

MOST_MISSED = 12
"""Lines of the table at the top; the others are in the table of buckets."""


def head(result: Result, state: str) -> Element:
    """The verdict and what it rests on.

    Args:
        result: what was found.
        state: its conclusion, or ``measured`` where nothing was gated.
    """
    sign, words = WORDS[state]
    missed = [c for c in result.verdict.checks if c.state in {"fail", "inconclusive"}]
    missed.sort(key=lambda check: (check.state != "fail", _gap(check)))
    return element(
        "header",
        element("p", "MRCR report · ", element("bdi", foreign(result.name, 200)), class_="over"),
        element(
            "h1",
            element("span", sign, class_="sign", aria_hidden="true"),
            words,
        ),
        element("p", foreign(result.verdict.summary), class_="summary"),
        _stopped(result),
        _problem(result),
        _missed(missed, result) if missed else None,
        element("p", *_facts(result), class_="facts"),
        class_=f"head {state}",
    )


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
    names = ("bucket", "verdict", "measured", "needed", "off by", "graded")
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
        return element(
            "tr",
            element("th", title, scope="row"),
            mark,
            element("td", foreign(check.message, 600), colspan=4, class_="words"),
        )
    what = check.metric.replace("_", " ")
    sign = "≤" if check.metric in AT_MOST else "≥"
    gap = abs(check.measured - bound)
    measured = f"{what} {number(check.measured)}"
    return element(
        "tr",
        element("th", _opener(title, bucket), scope="row"),
        mark,
        element("td", measured, class_="figure"),
        element("td", f"{sign} {number(bound)}", class_="figure"),
        element("td", element("strong", number(gap)), class_="figure"),
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
