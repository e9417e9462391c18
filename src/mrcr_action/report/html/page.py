"""``report.html``: one file that holds all that it shows and asks for nothing else.

The page is made here, so that it can be read, printed and searched without its script; that script
lists the samples and shows one of them. A policy in the page lets nothing run or load but what is
in it, known by its hash, so that a foreign text that became markup would still do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.html import curves, details
from mrcr_action.report.html.cost import cost
from mrcr_action.report.html.document import document, footer, viewer_scripts
from mrcr_action.report.html.faults import faults
from mrcr_action.report.html.heat import heat_map
from mrcr_action.report.html.markup import element, foreign
from mrcr_action.report.html.verdict import head, headline
from mrcr_action.report.html.viewer import data, viewer
from mrcr_action.report.state import state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.report.html.markup import Element
    from mrcr_action.report.html.samples import Texts
    from mrcr_action.result import Result


def render_html(result: Result, texts: Mapping[int, Texts] | None = None) -> bytes:
    """The page of one run, in UTF-8.

    Args:
        result: what was found.
        texts: the wanted and the returned texts, by the ask; without them the viewer shows figures
            and excerpts only.
    """
    state = state_of(result)
    parts = [
        heat_map(result),
        faults(result),
        curves.by_length(result),
        curves.by_place(result),
        details.baseline(result),
        viewer() if result.records else None,
        details.passes(result),
        details.buckets(result),
        details.coverage(result),
        cost(result),
        details.notes(result),
        details.about(result),
    ]
    shown = [part for part in parts if part is not None]
    body = (
        element("a", "Skip to the samples", href="#samples", class_="skip")
        if result.records
        else None,
        head(result, state),
        _navigation(shown),
        element("main", shown),
        footer(result.tool_version),
        data(result, texts or {}),
    )
    title = f"{headline(result)}: {foreign(result.name, 100)}"
    return document(title, body, scripts=viewer_scripts() if result.records else ())


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
