"""The reports that are files, each written beside its place and then moved there."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.errors import INTERNAL_HINT, OutputError
from mrcr_action.journal import JOURNAL_FILE, read_journal
from mrcr_action.report.html import render_html, render_overview, texts_of
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import render_summary
from mrcr_action.result import Measured, Result, encode_document, encode_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mrcr_action.report.html.samples import Texts


def prepare_folder(folder: Path, *, hint: str = "Choose another folder with --output-dir.") -> None:
    """Make an output folder, and see that it can be written; ``hint`` says what to do otherwise.

    Raises:
        OutputError: it cannot.
    """
    probe = folder / ".mrcr-write-check"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A link of that name in somebody's checkout must not have another file emptied.
        probe.unlink(missing_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}", hint=hint) from error


REPORTS = ("result.json", JOURNAL_FILE, "report.html", "junit.xml", "summary.md")
"""What a run leaves in a folder. A server started here writes its log anew; others have theirs."""


def prepare_file(path: Path, *, beside: Path) -> None:
    """Make way for a further file, in a folder that is made if need be.

    Args:
        path: the file; what an earlier run left there is removed.
        beside: folder with the reports, none of which it may be.

    Raises:
        OutputError: it cannot be written.
    """
    hint = "Name another file for --save-results."
    prepare_folder(path.parent, hint=hint)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder", hint=hint)
    if path.exists() and not path.is_file():
        # Such as /dev/null, which root could well remove.
        raise OutputError(f"{path}: is no ordinary file", hint=hint)
    if path.resolve() in {(beside / name).resolve() for name in REPORTS}:
        raise OutputError(f"{path}: is a report of the run itself", hint=hint)
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a folder for oneself; two runs would mix their reports.

    Raises:
        OutputError: another run has it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise OutputError(
            f"{folder}: another run writes its reports there",
            hint="Choose another folder with --output-dir.",
        ) from error
    finally:
        os.close(handle)


def remove_reports(folder: Path) -> None:
    """Remove what an earlier run left: were this one killed, its predecessor's would pass for its.

    Raises:
        OutputError: a file cannot be removed.
    """
    for name in REPORTS:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{folder / name}: cannot be removed: {error.strerror}") from error


def write_result(result: Result, folder: Path) -> list[Path]:
    """Write one run's own reports for programs; returns their paths.

    Raises:
        OutputError: one of them cannot be written.
    """
    paths = [write(folder / "result.json", encode_result(result))]
    if result.config.save_results:
        fields = {name: getattr(result, name) for name in Measured.__struct_fields__}
        paths.append(write(Path(result.config.save_results), encode_document(fields)))
    return paths


def write_pages(results: Sequence[Result], folders: Sequence[Path], folder: Path) -> list[Path]:
    """Write the HTML report of the last run and, where there are several, one above them.

    Args:
        results: of every configuration so far.
        folders: of each of them.
        folder: of the command.

    Raises:
        OutputError: one cannot be made or written.
    """
    paths = [write_page(results[-1], folders[-1])]
    if folders[-1] != folder:
        names = [own.relative_to(folder).as_posix() for own in folders]
        paths.append(write_overview_page(results, names, folder / "report.html"))
    return paths


def write_overview_page(results: Sequence[Result], names: Sequence[str], path: Path) -> Path:
    """Write the page above those of several results; returns its path.

    Args:
        results: in the order in which they were run.
        names: folders of their pages, relative to that of this one.
        path: to write.

    Raises:
        OutputError: it cannot be made or written.
    """
    return write(path, _made(path, lambda: render_overview(results, names)))


def write_page(result: Result, folder: Path) -> Path:
    """Write one run's HTML report, with the texts of its journal; returns its path.

    It comes after all others: a fault of this program in it must not cost them.

    Raises:
        OutputError: it cannot be made or written.
    """
    return write_html(result, folder / JOURNAL_FILE, folder / "report.html")


def write_html(result: Result, journal: Path, path: Path) -> Path:
    """Write one result's page, with the texts of a journal that lies anywhere; returns its path.

    Raises:
        OutputError: it cannot be made or written.
    """
    texts = _texts(journal)
    return write(path, _made(path, lambda: render_html(result, texts)))


def _made(path: Path, render: Callable[[], bytes]) -> bytes:
    try:
        return render()
    except Exception as error:  # see write_page
        raise OutputError(
            f"{path}: internal error: {type(error).__name__}: {error}", hint=INTERNAL_HINT
        ) from error


def _texts(journal: Path) -> Mapping[int, Texts]:
    """The texts of a run's journal; none where it cannot be read, which costs nothing but them."""
    try:
        return texts_of(read_journal(journal))
    except (OSError, ValueError, msgspec.MsgspecError):
        return {}


def write_overview(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write the reports that cover every run of a command; returns their paths.

    Raises:
        OutputError: one of them cannot be written.
    """
    return [
        write_junit(results, folder / "junit.xml"),
        write_summary(results, folder / "summary.md"),
    ]


def write_junit(results: Sequence[Result], path: Path) -> Path:
    """Write the JUnit file of some results; returns its path.

    Raises:
        OutputError: it cannot be written.
    """
    return write(path, render_junit(results))


def write_summary(results: Sequence[Result], path: Path) -> Path:
    """Write the whole summary of some results; returns its path.

    Raises:
        OutputError: it cannot be written.
    """
    return write(path, render_summary(results).encode("utf-8", "replace"))


def write(path: Path, content: bytes) -> Path:
    """Put a file in its place whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    beside = path.with_name(path.name + ".part")
    try:
        # What lies there may be a link, and is not written through.
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    return path
