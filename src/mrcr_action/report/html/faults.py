"""What kind of fault: the forms of the responses by needle count, and which needle came back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.diagnosis.breakdown import breakdowns
from mrcr_action.report.diagnosis import MOST_GROUPS, suspicions
from mrcr_action.report.html.groups import by_kind, confusion
from mrcr_action.report.html.markup import element, folded, foreign, scrolling, section, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Record, Result

MEANINGS = {
    "exact": "the answer, character for character",
    "near copy": "the answer, with edits",
    "inexact": "begins with the nonce, and is not the answer",
    "wrong needle": "the reply to another of the identical requests",
    "distractor": "another piece of the conversation",
    "no nonce": "the answer or another text, without the nonce in front",
    "other nonce": "the answer behind another nonce",
    "nonce not first": "the answer, with text before the nonce",
    "truncated": "cut at max_tokens",
    "stopped early": "ended by itself within the answer",
    "ran on": "the answer, and more behind it",
    "garbled": "right up to some character, unrelated from there on",
    "degenerate": "one piece over and over, or no text",
    "refusal": "it declines",
    "empty": "nothing came",
    "cut": "ended by this program, as it could not start with the nonce any more",
    "unrelated": "none of the other kinds",
    "rejected": "the server refused the request",
    "failed": "no answer, by the network or the server",
}

WIDTH = 100
"""Of the bar of a kind that every response is of, in units of the drawing."""


def faults(result: Result) -> Element | None:
    """The table of kinds and the matrices; None without records."""
    if not result.records:
        return None
    counts = sorted({record.n_needles for record in result.records})
    return section(
        "faults",
        "What kind of fault",
        suspected(suspicions(result)),
        _kinds(result.records, counts),
        _matrices(result.records, counts),
        _where(result),
    )


def suspected(lines: Sequence[str]) -> Element | None:
    """What the wrong answers look like, as a list; None where nothing can be told."""
    if not lines:
        return None
    return element("ul", (element("li", foreign(line)) for line in lines), class_="clues")


def _where(result: Result) -> Element | None:
    """The table of responses divided by place, order and pass, folded."""
    found = breakdowns(result.records, result.plan)
    rows: list[tuple[str, ...]] = [("by", "", "asked", "exact", "not exact")]
    for breakdown in found:
        by = breakdown.by
        for group in breakdown.groups[:MOST_GROUPS]:
            others = ", ".join(f"{count} {form}" for form, count in group.forms) or "–"
            rows.append((by, group.label, f"{group.asked:,}", f"{group.exact:,}", others))
            by = ""
    if not found:
        return None
    return folded(
        "Where it breaks",
        table(rows, caption="Responses, divided one way after another", words=2, last_is_word=True),
    )


def _kinds(records: Sequence[Record], counts: list[int]) -> Element:
    label = "Responses by kind, all passes"
    names = ("kind", "share", "all", *(f"{needles} needles" for needles in counts), "what it is")
    made = element(
        "table",
        element("caption", label),
        element(
            "thead",
            element(
                "tr",
                (
                    element(
                        "th", name, scope="col", class_="figure" if 1 < i < len(names) - 1 else None
                    )
                    for i, name in enumerate(names)
                ),
            ),
        ),
        element(
            "tbody",
            (_kind(kind, of, counts, len(records)) for kind, of in by_kind(records).items()),
        ),
        class_="kinds",
    )
    return scrolling(made, label)


def _kind(kind: str, of: dict[int, int], counts: list[int], total: int) -> Element:
    n = sum(of.values())
    bar = element(
        "svg",
        element("rect", width=WIDTH, height=10, rx=2, class_="track"),
        element("rect", width=max(1.0, WIDTH * n / total), height=10, rx=2, class_="bar"),
        viewBox=f"0 0 {WIDTH} 10",
        class_="share",
        aria_hidden="true",
    )
    return element(
        "tr",
        element(
            "th",
            element("button", kind, type="button", class_="opener", data_kind=kind),
            scope="row",
        ),
        element("td", bar, element("span", f"{n / total:.0%}", class_="percent")),
        element("td", f"{n:,}", class_="figure"),
        (element("td", f"{of.get(needles, 0):,}", class_="figure") for needles in counts),
        element("td", MEANINGS.get(kind, "")),
        class_="good" if kind == "exact" else None,
    )


def _matrices(records: Sequence[Record], counts: list[int]) -> Element | None:
    found = [(needles, confusion(records, needles)) for needles in counts]
    made = [_matrix(needles, rows) for needles, rows in found if rows is not None]
    if not made:
        return None
    return element(
        "div",
        element("h3", "Which needle came back"),
        element(
            "p",
            "A row for each needle that was asked for, a column for each that came back. On the"
            " diagonal the right one came, whole or not.",
            class_="note",
        ),
        element("div", made, class_="matrices"),
    )


def _matrix(needles: int, rows: list[list[int]]) -> Element:
    title = f"{needles} needles: wanted and returned"
    most = max(max(row) for row in rows) or 1
    names = [str(at + 1) for at in range(needles)] + ["none"]
    made = element(
        "table",
        element("caption", title),
        element(
            "thead",
            element(
                "tr",
                element("th", "wanted ↓ returned →", scope="col"),
                (element("th", name, scope="col", class_="figure") for name in names),
            ),
        ),
        element(
            "tbody",
            (
                element(
                    "tr",
                    element("th", str(wanted + 1), scope="row"),
                    (_count(count, most, right=came == wanted) for came, count in enumerate(row)),
                )
                for wanted, row in enumerate(rows)
            ),
        ),
        class_="matrix",
    )
    return scrolling(made, title)


def _count(count: int, most: int, *, right: bool) -> Element:
    depth = 0 if not count else 1 + min(3, 4 * count // (most + 1))
    kind = "right" if right else "wrong"
    return element("td", str(count) if count else "·", class_=f"{kind} depth{depth}")
