"""Where things that cost time to find out are kept between runs; a run without it passes too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CACHE_VARIABLE = "MRCR_CACHE"
"""Names another folder than ``mrcr-action`` in the user's own cache folder."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder; it need not exist."""
    if given := environ.get(CACHE_VARIABLE, "").strip():
        return Path(given).expanduser()
    base = environ.get("XDG_CACHE_HOME", "").strip()
    # The specification of XDG takes a relative path for none at all.
    home = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return home / "mrcr-action"


def usable(folder: Path) -> Path:
    """A folder of the cache, made if need be; one that ends with the process if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        # Removed when the interpreter exits, which keeps a reference to it until then.
        temporary = tempfile.TemporaryDirectory(prefix="mrcr-")
        _TEMPORARY.append(temporary)
        return Path(temporary.name)


_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a file of the cache for oneself, waiting for others; the lock lies beside it."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace(path: Path, content: bytes) -> None:
    """Put a file in its place whole; whoever reads at the same time sees the old or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
