"""The viewer of samples: what its script fills, and the data that it reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from mrcr_action.report.html.markup import element, section
from mrcr_action.report.html.samples import packed
from mrcr_action.report.text import unprintable
from mrcr_action.result import encode_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.report.html.markup import Element
    from mrcr_action.report.html.samples import Texts
    from mrcr_action.result import Result

FILTERS = {
    "kind": "kind",
    "outcome": "outcome",
    "pass": "pass",
    "needles": "needles",
    "bin": "length",
}
ORDERS = {
    "worst": "worst first",
    "plan": "as planned",
    "longest": "longest first",
    "slowest": "slowest first",
}
COLUMNS = ("sample", "kind", "ratio", "needles", "o200k tokens", "pass", "time")
_ESCAPED = re.compile(r"[<>&\x7f-\U0010ffff]")

FIGURES = frozenset({"ratio", "needles", "o200k tokens", "time"})


def viewer() -> Element:
    """The section, which the script fills: filters, list, and one sample."""
    choices = [
        _field(label, element("select", element("option", "all", value=""), id=f"filter-{name}"))
        for name, label in FILTERS.items()
    ]
    orders = (element("option", text, value=name) for name, text in ORDERS.items())
    made = section(
        "samples",
        "Samples",
        element(
            "noscript",
            element("p", "The list of samples needs JavaScript; samples.jsonl holds the same."),
        ),
        element(
            "div",
            element(
                "div",
                _field("search ( / )", element("input", id="search", type="search")),
                choices,
                _field("order", element("select", orders, id="order")),
                element("button", "Show all", id="reset", type="button", class_="plain"),
                class_="filters",
                role="search",
                aria_label="Filter the samples",
            ),
            element("output", id="count", class_="count", aria_live="polite"),
            element("div", _list(), class_="list", role="region", aria_label="List of samples"),
            element(
                "button", "Show more", id="more", type="button", class_="plain more", hidden=True
            ),
            element("div", id="viewer", class_="viewer", role="region", aria_label="One sample"),
            id="viewing",
            hidden=True,
        ),
    )
    made[0].set("tabindex", "-1")
    return made


def _field(label: str, control: Element) -> Element:
    return element("div", element("label", label, for_=control.get("id")), control, class_="field")


def _list() -> Element:
    return element(
        "table",
        element("caption", "Requests; arrow keys move, Enter opens one"),
        element(
            "thead",
            element(
                "tr",
                (
                    element("th", name, scope="col", class_="figure" if name in FIGURES else None)
                    for name in COLUMNS
                ),
            ),
        ),
        element("tbody", id="list"),
    )


def data(result: Result, texts: Mapping[int, Texts]) -> list[Element]:
    """The rows and the packed texts, in blocks that no browser runs."""
    if not result.records:
        return []
    protocol = result.config.protocol
    rows, blocks = packed(result.records, texts, protocol)
    return [
        element("script", _inert(rows), type="application/json", id="rows", data_protocol=protocol),
        *(
            element("script", block, type="text/plain", id=f"texts-{at}")
            for at, block in enumerate(blocks)
        ),
    ]


def _inert(content: object) -> str:
    """JSON without a character that could end its block or begin markup, or that is not seen."""
    return _ESCAPED.sub(_escape, encode_line(content).decode())


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char not in "<>&" and not unprintable(char):
        return char
    return json.dumps(char)[1:-1] if char > "\x7f" else f"\\u{ord(char):04x}"
