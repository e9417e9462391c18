"""The HTML report in a real browser, from a file, without a network."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.report import made_up
from playwright.sync_api import Browser, Page, sync_playwright

from mrcr_action.report.html import render_html, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mrcr_action.result import Record, Result

HERE = Path(__file__).parent

QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
)
"""It shall ask nobody for updates while a test looks at what a page asks for; and letters without
coloured edges make smaller pictures."""

NEVER_MS = 10_000
"""After this long, what a test waits for does not come."""


@dataclass
class Opened:
    """A page with all that the browser said of it."""

    page: Page
    messages: list[str] = field(default_factory=list)
    """Of the console, of errors and of dialogs."""
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium; installed on first use.

    No longer than for a module: as long as it is there, an event loop runs in this thread, and no
    other tier's tests could start one.
    """
    done = subprocess.run(
        [HERE / "environment" / "install.sh"], stdout=subprocess.PIPE, text=True, check=True
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=done.stdout.strip(), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write the report of a result."""

    def written(result: Result, journal: Sequence[Record] = ()) -> Path:
        path = tmp_path / "report.html"
        path.write_bytes(render_html(result, texts_of(journal)))
        return path

    return written


@pytest.fixture(scope="session")
def some() -> tuple[Result, list[Record]]:
    """Six samples of each cell, and their journal."""
    return made_up(6)


@pytest.fixture
def show(browser: Browser, write: Callable[..., Path]) -> Iterator[Callable[..., Opened]]:
    """Open the report of a result; at its end, the browser must not have complained."""
    opened: list[Opened] = []

    def shown(
        result: Result,
        journal: Sequence[Record] = (),
        *,
        address: str = "",
        before: str = "",
        **context: Any,
    ) -> Opened:
        """Open it.

        Args:
            result: what is reported.
            journal: the records with texts.
            address: what stands behind the name of the file.
            before: a script that runs before the page's own.
            context: of Playwright, such as color_scheme.
        """
        options: dict[str, Any] = {
            "viewport": {"width": 1200, "height": 900},
            "offline": True,
        } | context
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(NEVER_MS)
        one = Opened(page)
        opened.append(one)
        page.on("console", lambda message: one.messages.append(message.text))
        page.on("pageerror", lambda error: one.messages.append(str(error)))
        page.on("request", lambda request: one.requests.append(request.url))

        def dismissed(dialog: Any) -> None:
            one.messages.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", dismissed)
        if before:
            page.add_init_script(before)
        page.goto(f"{write(result, journal).as_uri()}{address}")
        if result.records:
            page.locator("#list tr").first.wait_for()
        return one

    yield shown
    for one in opened:
        assert one.messages == []
        one.page.context.close()
