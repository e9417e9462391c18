"""Where the rows of a dataset come from: the hub, local parquet, or a bundle; and their store.

A bundle is its own store. For parquet there is one in the cache, named by what identifies the file.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mrcr_action.cache import entry, locked, sha256_of
from mrcr_action.data.paths import needles_of
from mrcr_action.data.store import Row, ShardIndex, ShardStore
from mrcr_action.errors import DataError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["hub", "folder", "bundle"]

BUNDLE_FILE = "bundle.json"
"""What makes a folder a bundle."""


class Source:
    """The origin of a dataset's shards; nothing is fetched before it is needed."""

    def __init__(
        self,
        dataset: str,
        revision: str,
        *,
        allow_unverified: bool,
        report: Callable[[str], None] | None,
    ) -> None:
        """Point at a dataset; the arguments are those of `mrcr_action.data.shards.Shards`."""
        self.dataset = dataset
        self.kind, self.folder = kind_of(dataset)
        self.revision = revision if self.kind == "hub" else None
        self._allow_unverified = allow_unverified
        self._report = report
        self._files: dict[str, Path] = {}
        self._hashes: dict[str, tuple[str, bool]] = {}

    def open(self, shard: str) -> ShardStore:
        """The store of a shard, with an index at least.

        Raises:
            DataError: the shard cannot be had or read.
        """
        if self.kind == "bundle":
            assert self.folder is not None
            store = ShardStore(self.folder, shard.removesuffix(".parquet"))
            if not store.exists:
                raise DataError(
                    f"{self.dataset}: {shard} is not in this bundle",
                    hint="Fetch a bundle for this configuration: mrcr data fetch CONFIG --to DIR.",
                )
            self._check_index(shard, store)
            return store
        name = shard.rpartition("/")[2].removesuffix(".parquet")
        store = ShardStore(entry("rows", self._key(shard)), name)
        if not self._is_of_use(store):
            first = self._index(shard)
            try:
                with locked(store.index_path):
                    # Another run may have begun, and learned, in the meantime.
                    if not self._is_of_use(store):
                        store.begin(first)
            except OSError as error:
                raise OutputError(
                    f"{store.index_path}: cannot be written: {error.strerror}",
                    hint="Make room, or name another folder in MRCR_CACHE.",
                ) from error
        return store

    def _check_index(self, shard: str, store: ShardStore) -> None:
        """See that a bundle's index is the one it was written with: it says what is right."""
        from mrcr_action.data.bundle import read_bundle

        assert self.folder is not None
        _ = store.index  # one that cannot be read, or of another version, says so itself
        expected = {s.path: s.index_sha256 for s in read_bundle(self.folder).shards}.get(shard)
        try:
            found = sha256_of(store.index_path)
        except OSError as error:
            raise DataError(f"{store.index_path}: cannot be read: {error.strerror}") from error
        if found != expected:
            raise DataError(
                f"{store.index_path}: is damaged: expected SHA-256 {expected}, found {found}",
                hint="Fetch the bundle again.",
            )

    def file(self, shard: str) -> Path:
        """The shard's parquet file on this machine.

        Raises:
            DataError: it cannot be fetched.
        """
        if self.folder is not None:
            return self.folder / shard
        if shard not in self._files:
            from mrcr_action.hub import fetch_shard

            assert self.revision is not None
            found = fetch_shard(
                self.dataset,
                self.revision,
                shard,
                allow_unverified=self._allow_unverified,
                report=self._report,
            )
            self._files[shard] = found.path
            self._hashes[shard] = (found.sha256, found.verified)
        return self._files[shard]

    def size(self, shard: str) -> int:
        """Rows of a local shard, which is checked unless an earlier run has read it."""
        assert self.folder is not None
        path = self.folder / shard
        if path.is_file():
            store = ShardStore(entry("rows", self._key(shard)), path.stem)
            if self._is_of_use(store):
                return len(store.index.rows)
        from mrcr_action.data.parquet import check_parquet

        return check_parquet(path)

    def _is_of_use(self, store: ShardStore) -> bool:
        """Whether an earlier run left a store that this one may trust."""
        if not store.exists:
            return False
        store.refresh()
        try:
            index = store.index
        except DataError:
            # Damaged, or another version's: what the cache held is found out once more.
            return False
        if not store.is_whole:
            return False
        return self.kind != "hub" or self._allow_unverified or index.verified is True

    def _key(self, shard: str) -> str:
        """What the cached rows of a shard stand for; another file has another key."""
        if self.folder is not None:
            path = (self.folder / shard).resolve()
            try:
                stat = path.stat()
            except OSError as error:
                raise DataError(f"{path}: cannot be read: {error.strerror}") from error
            identity = f"{path}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ino}"
        elif re.fullmatch("[0-9a-f]{40}", str(self.revision)):
            identity = f"{self.dataset}@{self.revision}:{shard}"
        else:
            # A branch moves on, so that only the file itself tells what it holds.
            identity = str(self.file(shard))
        return hashlib.sha256(identity.encode()).hexdigest()[:32]

    def _index(self, shard: str) -> ShardIndex:
        """An index without texts, from the short columns of the parquet file."""
        from mrcr_action.data.parquet import read_short

        columns = read_short(self.file(shard))
        expected = needles_of(shard)
        rows = [
            Row(
                n_needles=n_needles,
                n_chars=n_chars,
                total_messages=total,
                desired_msg_index=desired,
                nonce=nonce,
                answer_chars=len(answer),
                fault=""
                if n_needles == expected
                else f"n_needles is {n_needles} in the file of {expected} needles",
            )
            for n_needles, n_chars, total, desired, nonce, answer in zip(
                columns["n_needles"],
                columns["n_chars"],
                columns["total_messages"],
                columns["desired_msg_index"],
                columns["random_string_to_prepend"],
                columns["answer"],
                strict=True,
            )
        ]
        sha256, verified = self._hashes.get(shard, (None, None))
        return ShardIndex(shard=shard, rows=rows, source_sha256=sha256, verified=verified)


def kind_of(dataset: str) -> tuple[Kind, Path | None]:
    """What a dataset is, and its folder if it is local.

    Raises:
        DataError: a name that cannot be looked up, such as one that is too long.
    """
    path = Path(dataset)
    try:
        if (path / BUNDLE_FILE).is_file():
            return "bundle", path
        if path.exists() or _looks_local(dataset):
            return "folder", path
    except OSError as error:
        raise DataError(f"{dataset}: cannot be read: {error.strerror}") from error
    return "hub", None


def _looks_local(dataset: str) -> bool:
    return dataset.startswith(("/", "./", "../", "~")) or dataset.count("/") != 1
