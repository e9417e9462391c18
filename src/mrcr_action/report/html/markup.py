"""Elements of the page, as trees of the standard library's: whatever is text is escaped by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree as ET

from mrcr_action.report.text import one_line, unprintable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Element: TypeAlias = ET.Element
Child: TypeAlias = "Element | str | Iterable[Child] | None"
Value: TypeAlias = "str | int | float | bool | None"

CODE = frozenset({"script", "style"})
"""Elements whose text is a program's own, or data that is escaped where it is made."""

LONGEST = 2_000
"""Characters of a foreign text that the page itself shows."""


def element(tag: str, *children: Child, **attributes: Value) -> Element:
    """An element of HTML or SVG.

    Args:
        tag: its name.
        children: elements and texts, in their order; nothing for None.
        attributes: ``class_`` and ``for_`` for the names that Python keeps for itself,
            ``aria_label`` for ``aria-label``; left out for None and False, without a value for
            True.
    """
    made = ET.Element(tag)
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        text = "" if value is True else _number(value) if isinstance(value, float) else str(value)
        made.set(name.rstrip("_").replace("_", "-"), _seen(text))
    _append(made, children)
    return made


def _append(parent: Element, children: Iterable[Child]) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            text = child if parent.tag in CODE else _seen(child)
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + text
            else:
                parent.text = (parent.text or "") + text
        elif isinstance(child, ET.Element):
            parent.append(child)
        else:
            _append(parent, child)


def _seen(text: str) -> str:
    """The text without characters that nobody sees, wherever it comes from; lines stay."""
    if text.isprintable():
        return text
    return "".join(char if char == "\n" or not unprintable(char) else " " for char in text)


def foreign(text: str, limit: int = LONGEST) -> str:
    """Text of others on one line, without characters that change direction or are not seen."""
    return one_line(text, limit)


def serialized(root: Element) -> str:
    """The element in HTML."""
    return ET.tostring(root, encoding="unicode", method="html")


def table(
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    words: int = 1,
    last_is_word: bool = False,
    row_class: Sequence[str | None] | None = None,
) -> Element:
    """A table in a box of its own that scrolls sideways where there is no room.

    Args:
        rows: a header, then one row a thing; its first column names the thing.
        caption: what it shows, for people and for screen readers.
        words: how many of the first columns are words; the others are figures, set to the right.
        last_is_word: the last one is words as well.
        row_class: a class for each row behind the header.
    """
    head, *body = rows
    last = len(head) - 1

    def kind(column: int) -> str | None:
        is_word = column < words or (last_is_word and column == last)
        return None if is_word else "figure"

    made = element(
        "table",
        element("caption", caption),
        element(
            "thead",
            element(
                "tr",
                (element("th", t, scope="col", class_=kind(i)) for i, t in enumerate(head)),
            ),
        ),
        element(
            "tbody",
            (
                element(
                    "tr",
                    element("th", foreign(row[0]), scope="row"),
                    (element("td", foreign(t), class_=kind(i)) for i, t in enumerate(row) if i),
                    class_=row_class[at] if row_class else None,
                )
                for at, row in enumerate(body)
            ),
        ),
    )
    return scrolling(made, caption)


def scrolling(content: Element, label: str) -> Element:
    """A box that scrolls sideways, by the keyboard too."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def section(name: str, title: str, *children: Child) -> Element:
    """A part of the page with a heading, a landmark by its name."""
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        *children,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def folded(title: str, *children: Child) -> Element:
    """What only some want to see."""
    return element("details", element("summary", title), *children)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
