"""The hub library's cache: where a dataset's file lies in it, and how one gets there.

Each content lies once, in ``blobs``, under the name that the hub gives it (SHA-256 of a large
file); ``snapshots`` holds a folder for every commit, with links to them; ``refs`` says which commit
a branch was the last time. See https://huggingface.co/docs/huggingface_hub/guides/manage-cache.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import DataError
from mrcr_action.hub.download import LONGEST_SECONDS, in_mib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_AT_ONCE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class HubCache:
    """The part of the cache that belongs to one dataset."""

    root: Path
    """The library's ``HF_HUB_CACHE``."""

    dataset: str
    """Name on the hub."""

    @property
    def folder(self) -> Path:
        return self.root / f"datasets--{self.dataset.replace('/', '--')}"

    def pointer(self, commit: str, path: str) -> Path:
        """Where a file of a commit is looked for."""
        return self.folder / "snapshots" / commit / path

    def blob(self, etag: str) -> Path:
        """Where the content of that name lies."""
        return self.folder / "blobs" / etag

    def find(self, revision: str, path: str) -> Path | None:
        """A file of a commit, or of the commit that a branch or tag was the last time."""
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(
            self.dataset, path, cache_dir=self.root, revision=revision, repo_type="dataset"
        )
        return Path(found) if isinstance(found, str) else None

    def partial(self, etag: str) -> Path:
        """Where a content is gathered, of which the library knows nothing; its folder is made.

        Raises:
            OSError: the cache cannot be written.
        """
        path = self.folder / "blobs" / f"{etag}.mrcr.incomplete"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def add(self, partial: Path, etag: str, pointer: Path) -> None:
        """Put a complete file into its places.

        Raises:
            OSError: the cache cannot be written.
        """
        blob = self.blob(etag)
        partial.replace(blob)
        self.link(blob, pointer)

    def link(self, blob: Path, pointer: Path) -> None:
        """Let a commit's file lead to its content."""
        from huggingface_hub import constants

        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.unlink(missing_ok=True)
        if not constants.HF_HUB_DISABLE_SYMLINKS:
            with contextlib.suppress(OSError):
                pointer.symlink_to(os.path.relpath(blob, pointer.parent))
                return
        # As the library does where there are no links, or none are wanted.
        shutil.move(blob, pointer)

    def remove(self, pointer: Path) -> None:
        """Take a file and its content out.

        Raises:
            OSError: the cache cannot be written.
        """
        for path in (pointer.resolve(), pointer):
            path.unlink(missing_ok=True)

    def remember(self, revision: str, commit: str) -> None:
        """Note which commit a branch or tag is."""
        reference = self.folder / "refs" / revision
        if reference.is_file() and reference.read_text() == commit:
            return
        reference.parent.mkdir(parents=True, exist_ok=True)
        partial = reference.with_name(f".{reference.name}.{os.getpid()}")
        partial.write_text(commit)
        partial.replace(reference)

    @contextlib.contextmanager
    def locked(self, etag: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the library's own lock of a content, so that nobody fetches it side by side.

        ``waiting`` is called once when somebody else holds it.

        Raises:
            DataError: it is held for longer than a download may take.
        """
        from filelock import FileLock, Timeout

        path = self.root / ".locks" / self.folder.name / f"{etag}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Others of the group may use the same cache, hence the mode, which is the library's.
        lock = FileLock(path, mode=0o664)
        try:
            lock.acquire(timeout=_AT_ONCE_SECONDS)
        except Timeout:
            waiting()
            try:
                lock.acquire(timeout=LONGEST_SECONDS)
            except Timeout as error:
                raise DataError(
                    f"{self.dataset}: another process has been fetching the file for too long",
                    hint=f"If there is no such process, remove {path} and try again.",
                ) from error
        except NotImplementedError:
            # A file system without locks; what two processes mix up, the hash finds out.
            yield
            return
        try:
            yield
        finally:
            lock.release()


def check_room(partial: Path, size: int | None) -> None:
    """Whether the rest of a file fits onto the disk.

    Raises:
        OSError: ``ENOSPC``, when it does not.
    """
    if size is None:
        return
    needed = size - size_of(partial)
    free = shutil.disk_usage(partial.parent).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{in_mib(needed)} are needed, {in_mib(free)} are free")


def size_of(path: Path) -> int:
    """Bytes of a file; 0 when there is none."""
    return path.stat().st_size if path.exists() else 0
