"""What every page has: its head, its style and scripts, and the policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from mrcr_action.report.html.markup import element, serialized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.report.html.markup import Child, Element

DIFF_NOTICE = "/* jsdiff 9.0.0, Copyright (c) 2009-2015 Kevin Decker, BSD-3-Clause:\n{licence}*/\n"


def document(title: str, body: Sequence[Child], *, scripts: Sequence[str] = ()) -> bytes:
    """A page in UTF-8.

    Args:
        title: of the browser's tab.
        body: what it shows.
        scripts: programs that run once all of that is there.
    """
    style = asset("style.css")
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=_policy(style, scripts)),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", title),
            element("style", style),
        ),
        element("body", body, (element("script", script) for script in scripts)),
        lang="en",
    )
    return f"<!doctype html>\n{serialized(page)}\n".encode("utf-8", "replace")


def footer(version: str) -> Element:
    """The line at the end of a page."""
    return element("footer", f"mrcr-action {version}. This file is complete: it loads nothing.")


def asset(name: str) -> str:
    """One of this package's own files for the browser."""
    folder = resources.files("mrcr_action.report.html") / "assets"
    return (folder / name).read_text(encoding="utf-8")


def viewer_scripts() -> tuple[str, ...]:
    """The comparison of texts, which is others' code with its licence in front, and the viewer."""
    diff = DIFF_NOTICE.format(licence=asset("diff.LICENSE.txt")) + asset("diff.min.js")
    return diff, asset("conversation.js"), asset("viewer.js")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """What the page may do: apply this style and run these scripts."""
    hashes = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; base-uri 'none';"
        " form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
