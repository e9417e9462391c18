"""``mrcr merge``: the parts of one plan to the verdict of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.baseline import check_place, read_baseline
from mrcr_action.errors import DataError, UsageError
from mrcr_action.journal import JOURNAL_FILE, read_journal
from mrcr_action.merging.joined import joined, moves_of, places_in, replaced
from mrcr_action.merging.mergeable import Piece, check_pieces
from mrcr_action.report.console import print_progress, print_result
from mrcr_action.report.files import (
    locked,
    prepare_folder,
    remove_reports,
    write,
    write_overview,
    write_pages,
    write_result,
)
from mrcr_action.result import encode_line
from mrcr_action.stored import files_in, read_result
from mrcr_action.suite import worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.baseline import Baseline
    from mrcr_action.merging.mergeable import Missing
    from mrcr_action.result import Record, Result


def merge_command(names: Sequence[str], folder: Path, *, allow_missing: bool) -> int:
    """Merge the parts of each configuration, write and print every report.

    Args:
        names: results or folders of them; of a run of several configurations, the folder that
            holds theirs.
        folder: for the reports, laid out as by the run of the whole.
        allow_missing: report on the parts that are there; without a bucket that failed, the verdict
            is inconclusive.

    Returns:
        The exit code that a run of the whole plan with these answers would have had.

    Raises:
        UsageError: they are not the parts of one plan, each of them once; or a baseline cannot
            serve as one.
        DataError: one cannot be read, or a part is missing.
        OutputError: a report cannot be written.
    """
    groups = _groups(names)
    read = [_Read(name, *check_pieces(pieces)) for name, pieces in groups.items()]
    for one in read:
        one.check_all_there(allow_missing=allow_missing)
    several = len(groups) > 1 or "" not in groups
    places = [folder / one.name if several else folder for one in read]
    _check_places([piece.where for one in read for piece in one.pieces], [folder, *places])
    baselines = [read_baseline(one.pieces[0].result.config) for one in read]
    for named in filter(None, baselines):
        check_place(named, [folder, *places], None)
    texts = [_texts(one.pieces) for one in read]
    prepare_folder(folder)
    results: list[Result] = []
    with locked(folder):
        for own in (folder, *places):
            remove_reports(own)
        for one, own, baseline, records in zip(read, places, baselines, texts, strict=True):
            prepare_folder(own)
            results.append(one.joined(own, baseline))
            _write_texts(records, own)
            files = write_result(results[-1], own)
            files += write_overview(results, folder)
            files += write_pages(results, places[: len(results)], folder)
            print_result(results[-1], files)
    return worst_exit_code(results)


class _Read:
    """The parts of one configuration."""

    def __init__(self, name: str, pieces: list[Piece], missing: list[Missing]) -> None:
        self.name = name
        self.pieces = pieces
        self._missing = missing

    def check_all_there(self, *, allow_missing: bool) -> None:
        if not self._missing or allow_missing:
            return
        count = len(self.pieces) + len(self._missing)
        named = "; ".join(f"part {part.number} of {count} {part.why}" for part in self._missing)
        of = f"{self.name}: " if self.name else ""
        # Results in the subfolders of a folder are taken for those of several configurations.
        each = " If it is beside this one, name each part: FOLDER/*." if self.name else ""
        raise DataError(
            f"{of}{named}",
            hint="Run it again with the same configuration, or pass --allow-missing for a report"
            f" without a verdict on what there is.{each}",
        )

    def joined(self, folder: Path, baseline: Baseline | None) -> Result:
        return joined(self.pieces, self._missing, output=str(folder), baseline=baseline)


def _groups(names: Sequence[str]) -> dict[str, list[Piece]]:
    """The results by the subfolder of their configuration; "" for those that lie in none."""
    groups: dict[str, list[Piece]] = {}
    for name in names:
        for folder, path in files_in(name):
            piece = Piece(where=str(path), result=read_result(path))
            groups.setdefault(folder, []).append(piece)
    return groups


def _check_places(files: Sequence[str], folders: Sequence[Path]) -> None:
    """See that no report takes the place of a part.

    Raises:
        UsageError: one does.
    """
    taken = {folder.resolve() for folder in folders}
    for file in files:
        if Path(file).resolve().parent in taken:
            raise UsageError(
                f"{file}: the merged reports would take its place",
                hint="Choose another folder with --output-dir.",
            )


def _texts(pieces: Sequence[Piece]) -> list[Record]:
    """The journals of all parts as that of the whole plan; those that are gone are named.

    They hold the texts of the answers, which only the report for a browser shows.
    """
    part = pieces[0].part
    assert part is not None
    places = places_in(part.whole)
    found: list[Record] = []
    for piece in pieces:
        path = Path(piece.where).with_name(JOURNAL_FILE)
        try:
            records = read_journal(path)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            reason = getattr(error, "strerror", None) or error
            print_progress(f"{path}: {reason}; the reports lack the texts of {piece.part}")
            continue
        found += replaced(records, moves_of(piece.result.plan, places))
    return found


def _write_texts(records: Sequence[Record], folder: Path) -> None:
    if not records:
        return
    content = b"".join(encode_line(record) + b"\n" for record in records)
    write(folder / JOURNAL_FILE, content)
