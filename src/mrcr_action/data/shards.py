"""The dataset's rows by shard and index: from the hub, from local parquet, or from a bundle.

What is read of a parquet file is kept in the cache in the form of a bundle
(`mrcr_action.data.store`), so that the same rows cost one read the next time.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from mrcr_action import tokens
from mrcr_action.data.source import Source
from mrcr_action.data.store import Row, ShardIndex, ShardStore, Text, sample_of
from mrcr_action.errors import DataError
from mrcr_action.plan import Candidate
from mrcr_action.result import DataInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from mrcr_action.sample import Sample

_COUNTERS = 4
"""Rows counted at a time."""

_FAULT_CHARS = 300
"""Of a fault's text, which a hostile row can make as long as it likes."""

_WAVE_BYTES = 64 * 1024 * 1024
"""Prompts held at a time while they are counted and kept."""


class Shards:
    """A dataset; nothing is fetched or opened before it is needed. Safe from several threads."""

    def __init__(
        self,
        dataset: str,
        revision: str,
        *,
        allow_unverified: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Point at a dataset.

        Args:
            dataset: name on the hub; a folder with the dataset's layout; or a bundle.
            revision: commit, tag or branch on the hub; unused for a folder.
            allow_unverified: take files of the hub whose hash is not known.
            report: told of a fetch's progress, a line each.
        """
        self._source = Source(dataset, revision, allow_unverified=allow_unverified, report=report)
        self.dataset = dataset
        self.kind, self.folder = self._source.kind, self._source.folder
        self.revision = self._source.revision
        self._stores: dict[str, ShardStore] = {}
        self._opening = threading.Lock()
        self._reading = threading.Lock()

    def check(self, shards: Iterable[str]) -> None:
        """Whether local shards are there and hold MRCR's columns; nothing for the hub's.

        One of them may be empty, as the second of a single row is, but not all.

        Raises:
            DataError: one is missing, no parquet, without MRCR's columns, or not in the bundle; or
                there is not one row.
        """
        shards = list(shards)
        if self.folder is None:
            return
        if self.kind == "bundle":
            sizes = [len(self._store(shard).index.rows) for shard in shards]
        else:
            sizes = [self._source.size(shard) for shard in shards]
        if not sum(sizes):
            raise DataError(
                f"{' and '.join(str(self.folder / shard) for shard in shards)}: no rows",
                hint="Leave its needle count out of --needles, or write samples with `mrcr synth`.",
            )

    def index(self, shard: str) -> ShardIndex:
        """What is known of every row of a shard.

        Raises:
            DataError: the shard cannot be had or read.
        """
        return self._store(shard).index

    @property
    def verified(self) -> bool | None:
        """Whether the hash of every file opened is the known one; None for files of one's own."""
        known = [store.index.verified for store in self._stores.values()]
        return None if not known or None in known else all(known)

    def info(self) -> DataInfo:
        """What the result says of the dataset, as far as it was opened."""
        origin, revision = None, self.revision
        if self.kind == "bundle":
            from mrcr_action.data.bundle import read_bundle

            assert self.folder is not None
            bundle = read_bundle(self.folder)
            origin, revision = bundle.dataset, bundle.revision
        return DataInfo(
            dataset=self.dataset,
            origin=origin,
            revision=revision,
            library=metadata.version("datasets"),
            kind=self.kind,
            verified=self.verified,
        )

    def candidates(self, shard: str) -> list[Candidate]:
        """Every row of a shard in the shard's order, without its text.

        Raises:
            DataError: as `index`.
        """
        return [
            Candidate(
                shard=shard,
                row=row,
                n_needles=entry.n_needles,
                n_chars=entry.n_chars,
                total_messages=entry.total_messages,
            )
            for row, entry in enumerate(self.index(shard).rows)
        ]

    def has_text(self, candidate: Candidate) -> bool:
        """Whether the text can be had: always, but for a row that a bundle leaves out."""
        if self.kind != "bundle":
            return True
        return self.index(candidate.shard).rows[candidate.row].offset is not None

    def load(self, shard: str, row: int) -> Sample:
        """Read one row.

        Raises:
            DataError: it cannot be read, is damaged, or its prompt is not a list of messages.
        """
        self.keep({shard: [row]}, count=False)
        return self._store(shard).load(row)

    def keep(self, wanted: Mapping[str, Collection[int]], *, count: bool = True) -> None:
        """See that the texts of some rows are kept, so that each is read at once from now on.

        Args:
            wanted: row numbers by shard.
            count: whether to count their tokens in passing, and to look for faults.

        Raises:
            DataError: a shard cannot be had or read; or a row is not in the bundle.
        """
        self._visit(
            wanted,
            missing=lambda entry: entry.offset is None or (count and entry.prompt_tokens is None),
            keep=True,
            count=count,
        )

    def count(self, wanted: Mapping[str, Collection[int]]) -> None:
        """See that the tokens of some rows are known; their texts are not kept.

        Raises:
            DataError: as `keep`.
        """
        self._visit(
            wanted, missing=lambda entry: entry.prompt_tokens is None, keep=False, count=True
        )

    def read(self, shard: str) -> Iterator[list[tuple[int, Row, Text]]]:
        """Every row of a shard with its text, counted, some at a time; nothing is kept.

        Raises:
            DataError: as `keep`.
        """
        store = self._store(shard)
        index = store.index
        numbers = list(range(len(index.rows)))
        if self.kind == "bundle":
            numbers = [number for number in numbers if index.rows[number].offset is not None]
        for wave in self._waves(shard, store, numbers):
            facts = self._facts(index, wave, count=True)
            yield [
                (number, row, text) for (number, row), (_, text) in zip(facts, wave, strict=True)
            ]

    def _visit(
        self,
        wanted: Mapping[str, Collection[int]],
        *,
        missing: Callable[[Row], bool],
        keep: bool,
        count: bool,
    ) -> None:
        """Read rows that lack something, in one pass a shard, and keep what is found out."""
        for shard, rows in wanted.items():
            with self._reading:
                store = self._store(shard)
                lacking = sorted(row for row in set(rows) if missing(store.index.rows[row]))
                if not lacking:
                    continue
                if self.kind == "bundle":
                    raise DataError(
                        f"{self.dataset}: {shard}, row {lacking[0]} is not in this bundle",
                        hint="Fetch a bundle for this configuration: mrcr data fetch CONFIG --to"
                        " DIR.",
                    )
                seen = 0
                for wave in self._waves(shard, store, lacking):
                    seen += len(wave)
                    facts = self._facts(store.index, wave, count=count)
                    store.learn(facts, wave if keep else ())
                if seen < len(lacking):
                    raise DataError(
                        f"{self.dataset}: {shard}: has fewer rows than before: was it changed while"
                        " it was read?",
                        hint="Run again.",
                    )

    def _waves(
        self, shard: str, store: ShardStore, rows: list[int]
    ) -> Iterator[list[tuple[int, Text]]]:
        """The texts of some rows, so many at a time that they are small together."""
        kept = [row for row in rows if store.index.rows[row].offset is not None]
        wave: list[tuple[int, Text]] = []
        size = 0
        for row, text in self._texts(shard, store, kept, [row for row in rows if row not in kept]):
            wave.append((row, text))
            size += len(text.prompt)
            if size >= _WAVE_BYTES:
                yield wave
                wave, size = [], 0
        if wave:
            yield wave

    def _texts(
        self, shard: str, store: ShardStore, kept: list[int], others: list[int]
    ) -> Iterator[tuple[int, Text]]:
        from mrcr_action.data.parquet import read_texts

        for row in kept:
            text = store.read(row)
            if text.sha256 != store.index.rows[row].sha256:
                raise DataError(
                    f"{store.rows_path}: row {row} is damaged",
                    hint="Remove this file from the cache, or fetch the bundle again.",
                )
            yield row, text
        if others:
            yield from read_texts(self._source.file(shard), others)

    def _facts(
        self, index: ShardIndex, wave: list[tuple[int, Text]], *, count: bool
    ) -> list[tuple[int, Row]]:
        """What the texts tell of their rows."""
        if not count:
            return [
                (row, msgspec.structs.replace(index.rows[row], sha256=text.sha256))
                for row, text in wave
            ]

        def look(found: tuple[int, Text]) -> tuple[int, Row]:
            row, text = found
            return row, _counted(index, row, text)

        with ThreadPoolExecutor(_COUNTERS) as pool:
            return list(pool.map(look, wave))

    def _store(self, shard: str) -> ShardStore:
        # Without a lock where it is open: the event loop must not wait for a pass over a file.
        if (known := self._stores.get(shard)) is not None:
            return known
        with self._opening:
            if shard not in self._stores:
                self._stores[shard] = self._source.open(shard)
            return self._stores[shard]


def _counted(index: ShardIndex, row: int, text: Text) -> Row:
    """What a text tells of its row: tokens, hash, and the invariant that it breaks, if any."""
    entry = index.rows[row]
    try:
        sample = sample_of(entry, text, shard=index.shard, row=row)
    except DataError as error:
        # Counted and left out like every row that is not as it should be.
        fault = str(error).partition(": ")[2][:_FAULT_CHARS]
        return msgspec.structs.replace(
            entry, prompt_tokens=0, answer_tokens=0, sha256=text.sha256, fault=fault
        )
    violations = sample.violations()
    prompt, answer = tokens.count_sample_parts(sample)
    if not prompt:
        violations = ["the prompt holds no text", *violations]
    return msgspec.structs.replace(
        entry,
        prompt_tokens=prompt,
        answer_tokens=answer,
        sha256=sample.id.sha256,
        fault=violations[0] if violations else entry.fault,
    )
