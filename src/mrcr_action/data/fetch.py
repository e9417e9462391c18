"""Taking from a dataset what a configuration can use: how a bundle comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action import __version__
from mrcr_action.cache import sha256_of
from mrcr_action.config.keys import DATASET
from mrcr_action.data.bundle import Bundle, BundledShard
from mrcr_action.data.order import order_name, shuffled
from mrcr_action.data.paths import needles_of
from mrcr_action.data.replacement import check_replaceable, partial_folder, swap
from mrcr_action.data.selection import Selection, bundle_key
from mrcr_action.data.source import BUNDLE_FILE
from mrcr_action.data.store import Row, ShardIndex, ShardStore
from mrcr_action.errors import DataError, OutputError
from mrcr_action.report.text import one_line
from mrcr_action.result import encode_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mrcr_action.data.shards import Shards

NOTE_FILE = "README.md"

_NOTE = """\
# MRCR samples

Samples of {dataset}{revision}, put together by mrcr-action {version} for reading without a network:

    mrcr run CONFIG.yaml --dataset THIS_FOLDER

{licence}
`{bundle}` says which rows it holds, and the SHA-256 of every file.
"""


_LICENCES = {
    "MIT": "OpenAI publishes openai/mrcr under the MIT licence, which this copy is under too.",
    "the dataset's own": "This copy is under the licence of the dataset that it was taken from.",
}


def write_bundle(
    shards: Shards,
    folder: Path,
    selection: Selection,
    *,
    seed: int | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Bundle:
    """Write a bundle, whole or not at all; one that is there already is replaced.

    Args:
        shards: the dataset.
        folder: where to; empty, a bundle, or not there yet.
        selection: which rows.
        seed: under the vllm protocol, which order of the rows to keep with them; a run with another
            seed finds its own.
        report: told a line after each shard.

    Raises:
        DataError: the dataset cannot be had or read, or no row is selected.
        OutputError: the folder holds something else, or cannot be written.
    """
    try:
        # A link stays a link: what it leads to is replaced.
        target = folder.resolve()
        if target.exists():
            check_replaceable(folder, is_ours=(target / BUNDLE_FILE).is_file())
        with partial_folder(target) as partial:
            found = [
                _write_shard(shards, shard, partial, selection, seed=seed, report=report)
                for shard in selection.shards()
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
                dataset=one_line(bundle.dataset),
                revision=f" at {one_line(bundle.revision)}" if bundle.revision else "",
                version=__version__,
                licence=_LICENCES[bundle.licence],
                bundle=BUNDLE_FILE,
            )
            (partial / NOTE_FILE).write_text(note, encoding="utf-8")
            (partial / BUNDLE_FILE).write_bytes(encode_document(bundle))
            swap(partial, target)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written: {error.strerror}", hint="Name another folder with --to."
        ) from error
    return bundle


def _write_shard(
    shards: Shards,
    shard: str,
    folder: Path,
    selection: Selection,
    *,
    seed: int | None,
    report: Callable[[str], None],
) -> BundledShard:
    known = shards.index(shard)
    orders: dict[str, list[int]] = {}
    if selection.protocol == "vllm" and seed is not None:
        own = seed + needles_of(shard)
        orders[order_name(own)] = shuffled(len(known.rows), own)
    store = ShardStore(folder, shard.removesuffix(".parquet"))
    store.begin(
        ShardIndex(
            shard=shard,
            rows=[_without_text(row) for row in known.rows],
            source_sha256=known.source_sha256,
            verified=known.verified,
            orders=orders,
        )
    )
    store.rows_path.touch()
    for wave in shards.read(shard):
        store.learn(
            [(number, _without_text(row)) for number, row, _ in wave],
            [(number, text) for number, row, text in wave if row in selection],
        )
    store.index_path.with_name(store.index_path.name + ".lock").unlink(missing_ok=True)
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
