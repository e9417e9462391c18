"""The reports that are files, each written beside its place and then moved there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import OutputError
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import render_summary
from mrcr_action.result import Measured, Result, encode_document, encode_result

if TYPE_CHECKING:
    from collections.abc import Sequence


def prepare_folder(folder: Path) -> None:
    """Make an output folder, and see that it can be written.

    Raises:
        OutputError: it cannot.
    """
    probe = folder / ".mrcr-write-check"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written: {error.strerror}",
            hint="Choose another folder with --output-dir.",
        ) from error


def prepare_file(path: Path) -> None:
    """See that a file can be written, in a folder that is made if need be.

    Raises:
        OutputError: it cannot.
    """
    prepare_folder(path.parent)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder", hint="Name a file for --save-results.")


REPORTS = ("result.json", "samples.jsonl", "junit.xml", "summary.md")
"""What a run leaves in a folder. A server started here writes its log anew; others have theirs."""


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
    """Write one run's own reports; returns their paths.

    Raises:
        OutputError: one of them cannot be written.
    """
    paths = [write(folder / "result.json", encode_result(result))]
    if result.config.save_results:
        fields = {name: getattr(result, name) for name in Measured.__struct_fields__}
        paths.append(write(Path(result.config.save_results), encode_document(fields)))
    return paths


def write_overview(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write the reports that cover every run of a command; returns their paths.

    Raises:
        OutputError: one of them cannot be written.
    """
    return [
        write(folder / "junit.xml", render_junit(results)),
        write(folder / "summary.md", render_summary(results).encode("utf-8", "replace")),
    ]


def write(path: Path, content: bytes) -> Path:
    """Put a file in its place whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    return path
