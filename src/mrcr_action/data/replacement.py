"""A folder written whole or not at all: filled beside another, and then put in its place."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_replaceable(folder: Path, *, is_ours: bool) -> None:
    """See that what lies at a place may be replaced, before anything is made for it.

    Args:
        folder: there already.
        is_ours: whether it holds what will be written anew.

    Raises:
        OutputError: it may not.
        OSError: it cannot be looked at.
    """
    target = folder.resolve()
    if not target.is_dir():
        raise OutputError(f"{folder}: is no folder", hint="Name another folder with --to.")
    if not is_ours and any(target.iterdir()):
        raise OutputError(
            f"{folder}: holds other files and no bundle", hint="Name an empty folder with --to."
        )
    if target.is_mount() or target == Path.cwd():
        # Neither can be renamed, or not without pulling it from under whoever works in it.
        raise OutputError(
            f"{folder}: is a mount or the working folder, which cannot be replaced",
            hint="Name a folder within it with --to.",
        )


@contextlib.contextmanager
def partial_folder(target: Path) -> Iterator[Path]:
    """A folder beside another, to be filled and then put in its place; removed otherwise.

    It is locked, so that the next fetch knows what a killed one has left behind.

    Raises:
        OSError: it cannot be made.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        with contextlib.suppress(OSError), _locked(stale):
            shutil.rmtree(stale)
    folder = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    folder.mkdir()
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder.

    Raises:
        OSError: somebody else does.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def swap(new: Path, folder: Path) -> None:
    """Put a folder in another's place; when that fails, the other is still there."""
    old = new.with_suffix(".old")
    replaced = folder.exists()
    if replaced:
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if replaced:
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
