"""The page of a command with several configurations: a row for each, with a way to its own page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from mrcr_action import __version__
from mrcr_action.report.html.document import document, footer
from mrcr_action.report.html.markup import element, foreign, scrolling
from mrcr_action.report.html.verdict import WORDS, in_words, missed_in
from mrcr_action.report.rows import MARKS, number
from mrcr_action.report.state import STATES, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.report.html.markup import Element
    from mrcr_action.result import Result


def render_overview(results: Sequence[Result], folders: Sequence[str]) -> bytes:
    """The page in UTF-8.

    Args:
        results: of all configurations that were run, at least one.
        folders: where the pages of each lie, relative to this one.
    """
    states = [state_of(result) for result in results]
    order = list(STATES)
    worst = min(states, key=order.index)
    sign, words = WORDS[worst]
    pairs = sorted(
        zip(results, folders, states, strict=True), key=lambda pair: order.index(pair[2])
    )
    title = "Configurations, the worst first"
    names = ("configuration", "verdict", "ratio", "samples", "why")
    table = element(
        "table",
        element("caption", title),
        element("thead", element("tr", (element("th", name, scope="col") for name in names))),
        element("tbody", (_row(*pair) for pair in pairs)),
    )
    count = f"{states.count(worst):,} of {len(states):,} configurations {STATES[worst]}."
    body = (
        element(
            "header",
            element("p", "MRCR report", class_="over"),
            element("h1", element("span", sign, class_="sign", aria_hidden="true"), words),
            element("p", count, class_="summary"),
            class_=f"head {worst}",
        ),
        element("main", scrolling(table, title)),
        footer(__version__),
    )
    return document(f"{words}: {len(states):,} configurations", body)


def _row(result: Result, folder: str, state: str) -> Element:
    overall = result.buckets[0]
    # The folder is one of this program's own, but its name is a file's.
    address = f"./{quote(folder.encode('utf-8', 'surrogateescape'))}/report.html"
    return element(
        "tr",
        element("th", element("a", foreign(result.name, 200), href=address), scope="row"),
        element("td", MARKS[state], class_=f"mark {state}"),
        element("td", number(result.match_ratio), class_="figure"),
        element("td", f"{overall.graded:,}/{overall.wanted:,}", class_="figure"),
        element("td", foreign(in_words(result, missed_in(result)), 600), class_="words"),
    )
