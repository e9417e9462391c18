"""A bundle: the part of the dataset that a configuration can use, for machines without a network.

A folder with ``bundle.json``, a licence note, and for each shard an index of all its rows and the
texts of those that were selected (`mrcr_action.data.store`). A run reads it in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action import __version__
from mrcr_action.cache import sha256_of
from mrcr_action.data.paths import PARTS, shard_path
from mrcr_action.data.selection import Selection, bundle_key
from mrcr_action.data.source import BUNDLE_FILE
from mrcr_action.data.store import STORE_FORMAT, ShardIndex, ShardStore
from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_SHARDS = frozenset(shard_path(n, part) for n in range(1, 17) for part in range(PARTS))
"""The names that a shard may have."""


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
    for shard in bundle.shards:
        if shard.path not in _SHARDS:
            raise DataError(
                f"{path}: {shard.path!r} is no shard of MRCR, such as {shard_path(2, 0)}",
                hint="Fetch it again.",
            )
    return bundle


def check_bundle(folder: Path) -> list[str]:
    """Read all of a bundle; every fault is a line, none means that it is whole.

    Raises:
        DataError: ``bundle.json`` cannot be read.
    """
    bundle = read_bundle(folder)
    faults = [f"{folder / BUNDLE_FILE}: {fault}" for fault in _contradictions(bundle)]
    for shard in bundle.shards:
        store = ShardStore(folder, shard.path.removesuffix(".parquet"))
        damage = [*_damage(store.index_path, shard.index_sha256)]
        faults += [*damage, *_damage(store.rows_path, shard.rows_sha256)]
        if damage:
            continue  # what it says of texts leads nowhere
        try:
            index = store.index
        except DataError as error:
            faults.append(str(error))
            continue
        faults += [
            f"{folder / BUNDLE_FILE}: {shard.path}: {fault}" for fault in _differences(shard, index)
        ]
        faults += _faulty_rows(store)
    return faults


def _damage(path: Path, expected: str) -> Iterator[str]:
    try:
        found = sha256_of(path)
    except OSError as error:
        yield f"{path}: cannot be read: {error.strerror}"
    else:
        if found != expected:
            yield f"{path}: expected SHA-256 {expected}, found {found}"


def _contradictions(bundle: Bundle) -> Iterator[str]:
    """What ``bundle.json`` says that cannot be, as far as it alone tells."""
    shards = [shard.path for shard in bundle.shards]
    if shards != bundle.selection.shards():
        yield f"expected the shards {', '.join(bundle.selection.shards())}, found" + (
            f" {', '.join(shards)}" if shards else " none"
        )
    key = bundle_key(bundle.dataset, bundle.revision, bundle.selection)
    if bundle.key != key:
        yield f"expected the key {key} for this selection, found {bundle.key}"


def _differences(shard: BundledShard, index: ShardIndex) -> Iterator[str]:
    """What ``bundle.json`` says otherwise than the index of a shard."""
    for name, said, found in (
        ("path", shard.path, index.shard),
        ("rows", shard.rows, len(index.rows)),
        ("texts", shard.texts, sum(row.offset is not None for row in index.rows)),
        ("rows_bytes", shard.rows_bytes, index.bytes),
        ("source_sha256", shard.source_sha256, index.source_sha256),
        ("verified", shard.verified, index.verified),
    ):
        if said != found:
            yield f"{name} is {said}, but {found} in the index"


def _faulty_rows(store: ShardStore) -> Iterable[str]:
    faults: list[str] = []
    for number, row in enumerate(store.index.rows):
        if row.offset is None:
            continue
        try:
            violations = store.load(number).violations()
        except DataError as error:
            faults.append(str(error))
            continue
        if not row.fault:
            # What the index tells is no news: the vllm protocol takes such rows as they are.
            faults += [f"{store.index.shard}, row {number}: {fault}" for fault in violations]
    return faults
