"""Where things that cost time to find out are kept between runs; a run without it passes too."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CACHE_VARIABLE = "MRCR_CACHE"
"""Names another folder than ``mrcr-action`` in the user's own cache folder."""

KEPT_DAYS = 30
"""How long an entry that no run uses is kept."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder; it need not exist."""
    if given := environ.get(CACHE_VARIABLE, "").strip():
        return Path(given).expanduser()
    base = environ.get("XDG_CACHE_HOME", "").strip()
    # The specification of XDG takes a relative path for none at all.
    home = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return home / "mrcr-action"


def entry(kind: str, key: str) -> Path:
    """A folder for one thing, made if need be; entries of its kind that nobody uses are removed.

    Args:
        kind: what is kept, such as ``rows``.
        key: what it depends on.

    Returns:
        The folder in the cache; one that ends with the process where the cache cannot be written.
    """
    try:
        siblings = cache_folder() / kind
        folder = siblings / key
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError):  # the latter where nobody has a home
        # Removed when the interpreter exits, which keeps a reference to it until then.
        temporary = tempfile.TemporaryDirectory(prefix="mrcr-")
        _TEMPORARY.append(temporary)
        return Path(temporary.name)
    oldest = time.time() - KEPT_DAYS * 24 * 60 * 60
    for other in siblings.iterdir():
        with contextlib.suppress(OSError):
            if other.stat().st_mtime < oldest:
                shutil.rmtree(other)
    return folder


_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []


def remove_temporary() -> None:
    """Remove the folders that took the cache's place, before a process that ends at once."""
    while _TEMPORARY:
        with contextlib.suppress(OSError):
            _TEMPORARY.pop().cleanup()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a file of the cache for oneself, waiting for others; the lock lies beside it.

    Where the file system knows no locks, two runs at once may lose what the other found out, but
    never see half of it.
    """
    with path.with_name(path.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}:
                raise
        yield


def replace(path: Path, content: bytes) -> None:
    """Put a file in its place whole; whoever reads at the same time sees the old or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
