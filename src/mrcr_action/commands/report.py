"""``mrcr report``: the reports of results that were written before, made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.config.listing import unique_names
from mrcr_action.errors import ExitCode, UsageError
from mrcr_action.journal import JOURNAL_FILE
from mrcr_action.report.console import print_progress, print_result
from mrcr_action.report.files import (
    locked,
    prepare_folder,
    write_html,
    write_junit,
    write_overview_page,
    write_summary,
)
from mrcr_action.stored import files_in, read_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.result import Result


def report_command(
    names: Sequence[str], folder: str | None, *, files: Mapping[str, str | None]
) -> int:
    """Write and print the reports of some results; none is changed, and no server is asked.

    Args:
        names: results or folders of them; of a run of several configurations, the folder that
            holds theirs.
        folder: for the reports; None for that of the result.
        files: places of single reports, by ``html``, ``junit`` and ``summary``; where one is named,
            only those that are named are written.

    Returns:
        0: the reports are written, whatever the verdicts say.

    Raises:
        UsageError: nothing says where the reports are to go, or one would take a result's place.
        DataError: a result cannot be read.
        OutputError: a report cannot be written.
    """
    found = [of for name in names for of in files_in(name)]
    results = [read_result(path) for _, path in found]
    journals = [path.with_name(JOURNAL_FILE) for _, path in found]
    for journal in journals:
        _say_if_gone(journal)
    if any(files.values()):
        if folder is not None:
            raise UsageError(
                f"--output-dir {folder}: a single report is named too",
                hint="Name files, or a folder for all reports.",
            )
        _spare([path for _, path in found] + journals, files)
        written = _single(results, journals, files)
    else:
        written = _all(names, found, results, journals, folder)
    for result in results:
        print_result(result, written if result is results[-1] else [])
    return ExitCode.PASS


def _say_if_gone(journal: Path) -> None:
    if not journal.is_file():
        print_progress(f"{journal}: not there; the report for a browser lacks the texts of answers")


def _spare(sources: Sequence[Path], files: Mapping[str, str | None]) -> None:
    """See that no report takes the place of what it is made from, nor of another one.

    Raises:
        UsageError: one would.
    """
    taken = {path.resolve() for path in sources}
    for flag, name in files.items():
        if not name:
            continue
        if (place := Path(name).resolve()) in taken:
            raise UsageError(
                f"--{flag} {name}: holds a result, its answers, or another report",
                hint=f"Name another file with --{flag}.",
            )
        taken.add(place)


def _single(
    results: Sequence[Result], journals: Sequence[Path], files: Mapping[str, str | None]
) -> list[Path]:
    written = []
    if junit := files["junit"]:
        written.append(write_junit(results, _place(junit, "junit")))
    if summary := files["summary"]:
        written.append(write_summary(results, _place(summary, "summary")))
    if html := files["html"]:
        if len(results) > 1:
            raise UsageError(
                f"--html {html}: {len(results)} results have a page each",
                hint="Name a folder for all of them with --output-dir.",
            )
        written.append(write_html(results[0], journals[0], _place(html, "html")))
    return written


def _place(name: str, flag: str) -> Path:
    path = Path(name)
    hint = f"Name another file with --{flag}."
    if path.is_dir():
        raise UsageError(f"--{flag} {path}: is a folder", hint=f"Name a file in it: {path}/…")
    prepare_folder(path.parent, hint=hint)
    return path


def _all(
    names: Sequence[str],
    found: Sequence[tuple[str, Path]],
    results: Sequence[Result],
    journals: Sequence[Path],
    folder: str | None,
) -> list[Path]:
    """Every report, laid out as a run lays them out."""
    if folder is None and len(names) > 1:
        raise UsageError(
            f"{len(names)} results are named, and no folder for their reports",
            hint="Name one with --output-dir.",
        )
    # Those of one folder go back to where they come from: itself, and its subfolders.
    inside = len(names) == 1 and bool(found[0][0])
    home = found[0][1].parent.parent if inside else found[0][1].parent
    target = home if folder is None else Path(folder)
    if len(results) == 1 and not inside:
        owns = [target]
    elif inside:
        owns = [target / subfolder for subfolder, _ in found]
    else:
        owns = [target / name for name in unique_names([_folder_of(r) for r in results])]
    prepare_folder(target)
    written = []
    with locked(target):
        written.append(write_junit(results, target / "junit.xml"))
        written.append(write_summary(results, target / "summary.md"))
        for result, journal, own in zip(results, journals, owns, strict=True):
            prepare_folder(own)
            written.append(write_html(result, journal, own / "report.html"))
        if owns != [target]:
            subfolders = [own.relative_to(target).as_posix() for own in owns]
            written.append(write_overview_page(results, subfolders, target / "report.html"))
    return written


def _folder_of(result: Result) -> str:
    """A result's name as that of a folder; it may come from anywhere."""
    kept = "".join(char if char.isalnum() or char in "-_.+" else "-" for char in result.name)
    return kept.strip(".")[:100] or "result"
