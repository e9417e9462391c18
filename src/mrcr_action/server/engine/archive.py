"""A folder as one file, which is how an engine takes it."""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mrcr_action.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def archive(folder: str) -> Iterator[BinaryIO]:
    """The contents of a folder, by their absolute paths below ``/``, as an open tar file on disk.

    Links are followed: in a cache of the hub's library, files are links to elsewhere. Owners are
    dropped, since the container's users are not those of this machine.

    Raises:
        OutputError: the folder cannot be read, or there is no room for a copy of it.
    """
    with tempfile.TemporaryFile() as file:
        try:
            with tarfile.open(fileobj=file, mode="w", dereference=True) as tar:
                tar.add(Path(folder).resolve(), arcname=folder.lstrip("/"), filter=_anybodys)
            file.seek(0)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be copied: {error.strerror}") from error
        yield file


def _anybodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry
