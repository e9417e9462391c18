"""One shard from the Hugging Face hub: in the hub library's own cache, and known to be right.

The cache, the address, the token and offline mode are the library's (``HF_HOME``, ``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_HUB_OFFLINE``), so that it and ``datasets`` find what is fetched here, and the
other way round. The bytes are fetched by `mrcr_action.hub.download`, which says why.
"""

from __future__ import annotations

import contextlib
import errno
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.cache import sha256_of
from mrcr_action.config.keys import DATASET, REVISION
from mrcr_action.errors import DataError
from mrcr_action.hub.cache import HubCache, check_room, size_of
from mrcr_action.hub.client import hub_client, hub_url, load_library
from mrcr_action.hub.download import Download, in_mib
from mrcr_action.hub.errors import OFFLINE_HINT, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.hub.download import Remote

PINNED: dict[str, str] = {
    "2needle/2needle_0.parquet": "1c297b254bf64a31856b74918cd7db889a214503e0b67daa834e84f20df6aa93",
    "2needle/2needle_1.parquet": "a5a1dc9ccc945623253d04d33c03d89aee2d676c88955ce368da2ab16a0ce94d",
    "4needle/4needle_0.parquet": "4d4fa3d11ce064749de3cd039eef1a621e30a81c2c9b3e64f1df37f8afeaf312",
    "4needle/4needle_1.parquet": "8dfdb94a208cf3eee73c4e7ac6ee8a5ccb7236c6934c13c6c5f67c0a9928cdf3",
    "8needle/8needle_0.parquet": "65df601a2e0ae4a3cfb56920a6ef99f26c0de37c6b1018695e8aed684e6a94c1",
    "8needle/8needle_1.parquet": "c80b19573bff1d38e1c157d6a0bdf9cfd1a8ab6372296174c9a7015e164189e3",
}
"""SHA-256 of every shard of openai/mrcr at the pinned revision, by its path in the dataset."""

_SHA256 = re.compile("[0-9a-f]{64}")
_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A shard on this machine."""

    path: Path
    """Where it lies in the hub library's cache."""

    sha256: str
    """SHA-256 of the file as it lies there, in hexadecimal digits."""

    verified: bool
    """Whether that is a hash known beforehand, from `PINNED`."""


def fetch_shard(
    dataset: str,
    revision: str,
    shard: str,
    *,
    allow_unverified: bool,
    report: Callable[[str], None] | None = None,
) -> HubFile:
    """A shard from the cache, or else from the hub, checked.

    Args:
        dataset: name on the hub, such as ``openai/mrcr``.
        revision: commit, tag or branch. What is cached of a commit is taken without a network.
        shard: path within the dataset, such as ``2needle/2needle_0.parquet``.
        allow_unverified: also take a file whose hash is not known beforehand, or another one.
        report: told one line for what is fetched, each pause before another try, and progress.

    Raises:
        DataError: the hash is unknown or another; the hub cannot be reached, refuses or is in
            trouble for too long; the cache cannot be written. Its hint says what to do.
    """
    known = PINNED.get(shard) if (dataset, revision) == (DATASET, REVISION) else None
    if known is None and not allow_unverified:
        raise DataError(
            f"{dataset}: {shard}: no SHA-256 is known for it at revision {revision}",
            hint=f"Known is {DATASET} at {REVISION}; --allow-unverified takes other data as it is.",
        )
    load_library()
    from huggingface_hub import constants

    cache = HubCache(Path(constants.HF_HUB_CACHE).expanduser(), dataset)
    url = hub_url(constants.ENDPOINT, dataset, revision, shard)
    say = report or _say_nothing
    try:
        return _Fetch(cache, url, revision, shard, known, allow_unverified, say).file()
    except OSError as error:
        raise _disk_error(f"{dataset}: {shard}", cache.root, error) from error


class _Damaged(DataError):
    """A file is not what it is called; fetched anew it may be."""


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One call of `fetch_shard`."""

    cache: HubCache
    url: str
    revision: str
    shard: str
    known: str | None
    allow_unverified: bool
    report: Callable[[str], None]

    def file(self) -> HubFile:
        damage = None
        if _COMMIT.fullmatch(self.revision) and (cached := self.cached()):
            # What lies at a commit never changes, so that nobody has to be asked.
            try:
                return self.checked_in_cache(cached)
            except _Damaged as error:
                damage = error
                self.say("the file in the cache is damaged; fetching it anew")
                self.cache.remove(cached)
        try:
            return self.from_hub()
        except Unreachable as error:
            if damage is not None:
                raise DataError(
                    f"{damage}; it was removed, and {error}", hint=error.hint
                ) from error
            # Of a branch, what it was the last time.
            if cached := self.cached():
                return self.checked_in_cache(cached)
            raise

    @property
    def name(self) -> str:
        return f"{self.cache.dataset}: {self.shard}"

    def say(self, line: str) -> None:
        self.report(f"{self.name}: {line}")

    def cached(self) -> Path | None:
        return self.cache.find(self.revision, self.shard)

    def checked_in_cache(self, path: Path) -> HubFile:
        # A link of the cache leads to what bears the hub's own name for it.
        named = path.resolve().name if path.is_symlink() else ""
        return self.checked(path, named, what=str(path))

    def from_hub(self) -> HubFile:
        with hub_client(self.name, self.url) as client:
            download = Download(client, self.url, name=self.name, report=self.report)
            remote = download.describe()
            if self.known and not self.allow_unverified and _SHA256.fullmatch(remote.etag):
                # Found out before a byte has come.
                self.check_known(remote.etag, "the hub's file")
            pointer = self.cache.pointer(remote.commit, self.shard)
            with self.cache.locked(
                remote.etag, lambda: self.say("another process is fetching it; waiting for that")
            ):
                good = self.into_cache(download, remote, pointer)
            if self.revision != remote.commit:
                self.cache.remember(self.revision, remote.commit)
            return replace(good, path=pointer)

    def into_cache(self, download: Download, remote: Remote, pointer: Path) -> HubFile:
        for there in (pointer, self.cache.blob(remote.etag)):
            # Of another revision, or fetched by another process in the meantime.
            with contextlib.suppress(_Damaged, FileNotFoundError):
                good = self.checked(there, remote.etag, remote.size)
                if there != pointer:
                    self.cache.link(there, pointer)
                return good
        partial = self.cache.partial(remote.etag)
        try:
            good = self.complete(download, remote, partial)
        except _Damaged:
            self.say("what came is not the file that was promised; fetching it once more")
            good = self.complete(download, remote, partial)
        self.cache.add(partial, remote.etag, pointer)
        return good

    def complete(self, download: Download, remote: Remote, partial: Path) -> HubFile:
        check_room(partial, remote.size)
        here = size_of(partial)
        already = f", of which {in_mib(here)} are here" if here else ""
        self.say(f"fetching {in_mib(remote.size)}{already}")
        download.fetch(partial, remote.size)
        try:
            return self.checked(partial, remote.etag, remote.size)
        except DataError:
            partial.unlink()
            raise

    def checked(
        self, path: Path, named: str, size: int | None = None, what: str = "what the hub sent"
    ) -> HubFile:
        """The file, if it is good.

        Args:
            path: where it lies.
            named: how the hub calls it, which is its SHA-256 for every large file.
            size: bytes that it must have.
            what: what messages call it.

        Raises:
            _Damaged: it is not what the hub calls it.
            DataError: it is, but not the file that is known.
            OSError: it cannot be read.
        """
        found = sha256_of(path)
        if found == self.known:
            return HubFile(path, found, verified=True)
        promised = named if _SHA256.fullmatch(named) else None
        expected = promised or (None if self.allow_unverified else self.known)
        if expected and found != expected:
            raise _Damaged(self.other_hash(what, found, expected), hint=_DAMAGED_HINT)
        if size is not None and size_of(path) != size:
            raise _Damaged(
                f"{self.name}: {what} has {size_of(path)} bytes instead of {size}",
                hint=_DAMAGED_HINT,
            )
        if not self.allow_unverified:
            self.check_known(found, what)
        return HubFile(path, found, verified=False)

    def check_known(self, found: str, what: str) -> None:
        if self.known is not None and found != self.known:
            raise DataError(
                self.other_hash(what, found, self.known),
                hint="Remove the file and try again. If it comes again, it is not the data that"
                " results are compared with: --allow-unverified is for forks only.",
            )

    def other_hash(self, what: str, found: str, expected: str) -> str:
        return f"{self.name}: {what} has the SHA-256 {found}, expected was {expected}"


_DAMAGED_HINT = "Remove the file, if it is there, and try again. " + OFFLINE_HINT


def _say_nothing(_: str) -> None:
    return


def _disk_error(name: str, cache: Path, error: OSError) -> DataError:
    why = error.strerror or type(error).__name__
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return DataError(
            f"{name}: no room in {cache}: {why}",
            hint="A shard has up to 400 MB. Make room there, or set HF_HOME to a folder on a disk"
            " that has it.",
        )
    return DataError(
        f"{name}: the hub library's cache {cache} cannot be used: {why}",
        hint="Set HF_HOME to a folder that can be written.",
    )
