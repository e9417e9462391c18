"""``make images``: pictures of report.html and summary.md for the documentation, into docs/images.

Two real runs against the stand-in server: a healthy one, which becomes the baseline, and one whose
server sees only so much of a prompt and now and then goes wrong in other ways.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from tests.browser.conftest import HERE, QUIET
from tests.browser.markdown_page import page_of

from mrcr_action.bins import parse_bin
from mrcr_action.config import RunConfig
from mrcr_action.config.resolve import Resolved
from mrcr_action.data.writer import write_synthetic
from mrcr_action.server.port import free_port
from mrcr_action.server.process import ProcessServer
from mrcr_action.suite import Job, run_suite

IMAGES = HERE.parent.parent / "docs" / "images"

BINS = ("2K-4K", "4K-8K", "8K-16K", "16K-32K")
NEEDLES = (2, 4, 8)
PER_CELL = 6
FAULTS = ("window=11000", "drop-nonce@7,41", "truncate=60@12,55", "garble@19,23,60")
NOTE = (
    "A stand-in answered, not a model, with faults that were switched on: these figures say"
    " nothing about any model."
)

PICTURES = {
    "report-light": ("light", 1000, 1060, ""),
    "report-dark": ("dark", 1000, 1060, ""),
    "report-sample": ("light", 1000, 860, "wrong needle"),
    "report-narrow": ("light", 400, 860, ""),
}
"""By name: colours, width and height in pixels, and the kind of the sample that is shown."""

SUMMARIES = {
    "summary-light": ("light", 1000, 1020),
    "summary-dark": ("dark", 1000, 1020),
    "summary-narrow": ("light", 400, 860),
}
"""The same of the summary."""

MOST_BYTES = 150_000


def run(folder: Path, faults: tuple[str, ...], baseline: Path | None) -> Path:
    """Run against a stand-in with faults; returns the report."""
    output = folder / ("broken" if faults else "healthy")
    config = RunConfig(
        model_name="stand-in",
        protocol="openai",
        dataset=str(folder / "samples"),
        samples_per_cell=PER_CELL,
        concurrency=1,  # so that a fault hits the same request in every run
        thresholds={
            **{f"n{n}": 0.95 for n in NEEDLES},
            **{f"n8/{bin_}": 0.9 for bin_ in BINS},
        },
        baseline=None if baseline is None else str(baseline),
        output_dir=str(output),
    )

    def server(to: Path) -> ProcessServer:
        port = free_port()
        command = [sys.executable, "-m", "mrcr_action.standin", "stand-in", "--port", str(port)]
        for fault in faults:
            command += ["--fault", fault]
        return ProcessServer(command, port=port, log=to / "server.log", grace=3.0)

    resolved = Resolved(config=config, name=output.name, path=None, given=frozenset())
    run_suite([Job(resolved=resolved, make_server=server, notes=(NOTE,))], output)
    return output / "report.html"


def take(browser: Browser, report: Path, name: str, folder: Path) -> Path:
    """Take one picture."""
    colours, width, height, kind = PICTURES[name]
    viewport = {"width": width, "height": height}
    page = browser.new_page(viewport=viewport, color_scheme=colours, offline=True)  # type: ignore[arg-type]
    page.goto(report.as_uri())
    page.locator("#list tr").first.wait_for()
    if kind:
        page.get_by_label("kind", exact=True).select_option(kind)
        page.locator("#list button").nth(1).click()
        page.locator(".texts[data-ask]").wait_for()
        page.evaluate("document.querySelector('#viewer').scrollIntoView()")
        page.wait_for_timeout(500)
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    page.close()
    return path


def take_summary(browser: Browser, page_file: Path, name: str, folder: Path) -> Path:
    """Take one picture of the summary's beginning, about as GitHub shows it."""
    colours, width, height = SUMMARIES[name]
    viewport = {"width": width, "height": height}
    page = browser.new_page(viewport=viewport, color_scheme=colours, offline=True)  # type: ignore[arg-type]
    page.goto(page_file.as_uri())
    page.wait_for_timeout(500)  # for diagrams, where they are drawn
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    page.close()
    return path


def main() -> int:
    """Take all pictures; 1 where one is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder for the runs; a temporary one otherwise")
    parser.add_argument(
        "--mermaid", type=Path, help="Mermaid's script, which draws diagrams; they are code without"
    )
    given = parser.parse_args()
    install = HERE / "environment" / "install.sh"
    found = subprocess.run([install], stdout=subprocess.PIPE, text=True, check=True)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        bins = [parse_bin(text) for text in BINS]
        write_synthetic(
            folder / "samples", needles=NEEDLES, bins=bins, per_cell=PER_CELL, seed=0, progress=None
        )
        healthy = run(folder, (), None)
        report = run(folder, FAULTS, healthy.parent)
        summary = (report.parent / "summary.md").read_text()
        mermaid = given.mermaid.read_text() if given.mermaid else ""
        summary_page = folder / "summary.html"
        summary_page.write_text(page_of(summary, mermaid))
        with sync_playwright() as playwright:  # which runs a loop of its own from here on
            browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=QUIET)
            sizes = {name: take(browser, report, name, IMAGES).stat().st_size for name in PICTURES}
            for name in SUMMARIES:
                sizes[name] = take_summary(browser, summary_page, name, IMAGES).stat().st_size
            browser.close()
    for name, size in sizes.items():
        print(f"{name}: {size:,} bytes")
    return int(max(sizes.values()) > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
