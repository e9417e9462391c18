"""A bundle: the part of the dataset that a configuration can use, for machines without a network.

A folder with ``bundle.json``, a licence note, and for each shard an index of all its rows and the
texts of those that were selected (`mrcr_action.data.store`). A run reads it in place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from mrcr_action import __version__
from mrcr_action.config.keys import DATASET
from mrcr_action.data.selection import Selection, bundle_key
from mrcr_action.data.source import BUNDLE_FILE
from mrcr_action.data.store import STORE_FORMAT, Row, ShardIndex, ShardStore
from mrcr_action.errors import DataError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from mrcr_action.data.shards import Shards

NOTE_FILE = "README.md"

_NOTE = """\
# MRCR samples

Samples of {dataset}{revision}, put together by mrcr-action {version} for reading without a network:

    mrcr run CONFIG.yaml --dataset THIS_FOLDER

The dataset openai/mrcr is published by OpenAI under the MIT licence, which this copy is under too.
`{bundle}` says which rows it holds, and the SHA-256 of every file.
"""


class BundledShard(msgspec.Struct, frozen=True, kw_only=True):
    """One shard of a bundle."""

    path: str
    """Of the parquet file within the dataset."""
    rows: int
    texts: int
    """Rows whose texts are in the bundle."""
    rows_bytes: int
    rows_sha256: str
    """Of the file with the texts."""
    index_sha256: str
    source_sha256: str | None
    """Of the parquet file, where it was taken."""
    verified: bool | None
    """Whether that is the hash known for the dataset; None for files of one's own."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """``bundle.json``."""

    format: int = STORE_FORMAT
    tool_version: str = __version__
    dataset: str
    revision: str | None
    """None for local files."""
    key: str
    """What `bundle_key` gives for the configuration."""
    licence: str
    selection: Selection
    shards: tuple[BundledShard, ...]


def write_bundle(
    shards: Shards,
    folder: Path,
    selection: Selection,
    *,
    report: Callable[[str], None] = lambda _line: None,
) -> Bundle:
    """Write a bundle, whole or not at all; one that is there already is replaced.

    Args:
        shards: the dataset.
        folder: where to; empty, a bundle, or not there yet.
        selection: which rows.
        report: told a line after each shard.

    Raises:
        DataError: the dataset cannot be had or read, or no row is selected.
        OutputError: the folder holds something else, or cannot be written.
    """
    if folder.exists() and not (folder / BUNDLE_FILE).is_file() and any(folder.iterdir()):
        raise OutputError(
            f"{folder}: holds other files and no bundle", hint="Name an empty folder with --to."
        )
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        found = [
            _write_shard(shards, shard, partial, selection, report) for shard in selection.shards()
        ]
        if not sum(shard.texts for shard in found):
            raise DataError(
                "no row of the dataset is of use for this configuration",
                hint="Name other bins or needles, or a longer window.",
            )
        bundle = Bundle(
            dataset=shards.dataset,
            revision=shards.revision,
            key=bundle_key(shards.dataset, shards.revision, selection),
            licence="MIT" if shards.dataset == DATASET else "the dataset's own",
            selection=selection,
            shards=tuple(found),
        )
        note = _NOTE.format(
            dataset=bundle.dataset,
            revision=f" at {bundle.revision}" if bundle.revision else "",
            version=__version__,
            bundle=BUNDLE_FILE,
        )
        (partial / NOTE_FILE).write_text(note)
        (partial / BUNDLE_FILE).write_bytes(
            msgspec.json.format(msgspec.json.encode(bundle), indent=2) + b"\n"
        )
        _swap(partial, folder)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written: {error.strerror}", hint="Name another folder with --to."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return bundle


def read_bundle(folder: Path) -> Bundle:
    """``bundle.json`` of a folder.

    Raises:
        DataError: it is missing, damaged, or written by another version.
    """
    path = folder / BUNDLE_FILE
    try:
        bundle = msgspec.json.decode(path.read_bytes(), type=Bundle)
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: no such file", hint="`mrcr data fetch --to DIR` writes a bundle."
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{path}: cannot be read: {error}", hint="Fetch it again.") from error
    if bundle.format != STORE_FORMAT:
        raise DataError(
            f"{path}: written by another version of mrcr (format {bundle.format}, not"
            f" {STORE_FORMAT})",
            hint="Fetch it again with this version.",
        )
    return bundle


def check_bundle(folder: Path) -> list[str]:
    """Read all of a bundle; every fault is a line, none means that it is whole.

    Raises:
        DataError: ``bundle.json`` cannot be read.
    """
    faults: list[str] = []
    for shard in read_bundle(folder).shards:
        store = ShardStore(folder, shard.path.removesuffix(".parquet"))
        for path, expected in (
            (store.index_path, shard.index_sha256),
            (store.rows_path, shard.rows_sha256),
        ):
            try:
                found = sha256_of(path)
            except OSError as error:
                faults.append(f"{path}: cannot be read: {error.strerror}")
                continue
            if found != expected:
                faults.append(f"{path}: expected SHA-256 {expected}, found {found}")
        faults += _faulty_rows(store)
    return faults


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _faulty_rows(store: ShardStore) -> Iterable[str]:
    try:
        rows = store.index.rows
    except DataError as error:
        return [str(error)]
    faults: list[str] = []
    for number, row in enumerate(rows):
        if row.offset is None:
            continue
        try:
            violations = store.load(number).violations()
        except DataError as error:
            faults.append(str(error))
        else:
            faults += [f"{store.index.shard}, row {number}: {fault}" for fault in violations]
    return faults


def _write_shard(
    shards: Shards,
    shard: str,
    folder: Path,
    selection: Selection,
    report: Callable[[str], None],
) -> BundledShard:
    known = shards.index(shard)
    store = ShardStore(folder, shard.removesuffix(".parquet"))
    store.begin(
        ShardIndex(
            shard=shard,
            rows=[_without_text(row) for row in known.rows],
            source_sha256=known.source_sha256,
            verified=known.verified,
        )
    )
    store.rows_path.touch()
    for wave in shards.read(shard):
        store.learn(
            [(number, _without_text(row)) for number, row, _ in wave],
            [(number, text) for number, row, text in wave if row in selection],
        )
    store.index_path.with_name(store.index_path.name + ".lock").unlink()
    texts = sum(row.offset is not None for row in store.index.rows)
    report(f"{shard}: {texts} of {len(known.rows)} rows, {store.index.bytes / 2**20:.1f} MiB")
    return BundledShard(
        path=shard,
        rows=len(known.rows),
        texts=texts,
        rows_bytes=store.index.bytes,
        rows_sha256=sha256_of(store.rows_path),
        index_sha256=sha256_of(store.index_path),
        source_sha256=known.source_sha256,
        verified=known.verified,
    )


def _without_text(row: Row) -> Row:
    return msgspec.structs.replace(row, offset=None, prompt_bytes=0, answer_bytes=0)


def _swap(new: Path, folder: Path) -> None:
    """Put a folder in another's place."""
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
