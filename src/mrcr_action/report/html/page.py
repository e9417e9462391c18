"""``report.html``: one file that holds all that it shows and asks for nothing else.

The page is made here, so that it can be read, printed and searched without its script; that script
lists the samples and shows one of them. A policy in the page lets nothing run or load but what is
in it, known by its hash, so that a foreign text that became markup would still do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from mrcr_action.report.html import curves, details
from mrcr_action.report.html.faults import faults
from mrcr_action.report.html.heat import heat_map
from mrcr_action.report.html.markup import element, foreign, section, serialized
from mrcr_action.report.html.samples import packed
from mrcr_action.report.html.verdict import WORDS, head
from mrcr_action.report.summary import state_of
from mrcr_action.result import encode_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.report.html.markup import Element
    from mrcr_action.report.html.samples import Texts
    from mrcr_action.result import Result

DIFF_NOTICE = "/* jsdiff 9.0.0, Copyright (c) 2009-2015 Kevin Decker, BSD-3-Clause:\n{licence}*/\n"

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
FIGURES = frozenset({"ratio", "needles", "o200k tokens", "time"})


def render_html(result: Result, texts: Mapping[int, Texts] | None = None) -> bytes:
    """The page in UTF-8.

    Args:
        result: what was found.
        texts: the wanted and the returned texts, by the ask; without them the viewer shows figures
            and excerpts only.
    """
    state = state_of(result)
    style, *scripts = _asset("style.css"), _diff(), _asset("viewer.js")
    parts = [
        heat_map(result),
        faults(result),
        curves.by_length(result),
        curves.by_place(result),
        details.baseline(result),
        _samples() if result.records else None,
        details.passes(result),
        details.buckets(result),
        details.coverage(result),
        details.notes(result),
        details.about(result),
    ]
    shown = [part for part in parts if part is not None]
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element(
                "meta",
                http_equiv="Content-Security-Policy",
                content=_policy(style, scripts if result.records else []),
            ),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", f"{WORDS[state][1]}: {foreign(result.name, 100)}"),
            element("style", style),
        ),
        element(
            "body",
            element("a", "Skip to the samples", href="#samples", class_="skip"),
            head(result, state),
            _navigation(shown),
            element("main", shown),
            element(
                "footer",
                f"mrcr-action {result.tool_version}. This file is complete: it loads nothing.",
            ),
            _data(result, texts or {}),
            (element("script", script) for script in scripts) if result.records else None,
        ),
        lang="en",
    )
    return f"<!doctype html>\n{serialized(page)}\n".encode("utf-8", "replace")


def _asset(name: str) -> str:
    folder = resources.files("mrcr_action.report.html") / "assets"
    return (folder / name).read_text(encoding="utf-8")


def _diff() -> str:
    return DIFF_NOTICE.format(licence=_asset("diff.LICENSE.txt")) + _asset("diff.min.js")


def _policy(style: str, scripts: list[str]) -> str:
    """What the page may do: apply this style and run these scripts."""
    hashes = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _navigation(parts: list[Element]) -> Element:
    return element(
        "nav",
        element(
            "ul",
            (
                element("li", element("a", part[0].text, href=f"#{part.get('id')}"))
                for part in parts
            ),
        ),
        aria_label="Parts of the report",
    )


def _samples() -> Element:
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


def _data(result: Result, texts: Mapping[int, Texts]) -> list[Element]:
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
    """JSON without a character that could end its block or begin markup."""
    text = encode_line(content).decode()
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
