"""Which configuration files a command line means: YAML files, and lists of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def expand(arguments: Sequence[str]) -> list[Path]:
    """Configurations of the command line: ``.yaml`` and ``.yml`` as they are, others as lists."""
    paths: list[Path] = []
    for argument in arguments:
        path = Path(argument)
        try:
            path.stat()
        except (OSError, ValueError) as error:
            missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
            reason = "no such file" if missing else getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{path}: {reason}") from error
        if path.suffix.lower() in {".yaml", ".yml"}:
            paths.append(path)
        else:
            paths.extend(read_list(path))
    return paths


def read_list(path: Path) -> list[Path]:
    """The YAML files that a list file names, one a line, relative to the list itself.

    Raises:
        UsageError: the list cannot be read, names a missing file, or names none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise UsageError(f"{path}: {reason}") from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        target = path.parent / entry
        if not target.is_file():
            raise UsageError(
                f"{path}:{number}: {entry}: no such file",
                hint=f"Entries are relative to {path.parent}; remove or correct the line.",
            )
        found.append(target)
    if not found:
        raise UsageError(f"{path}: names no configuration")
    return found


def unique_names(names: Sequence[str]) -> list[str]:
    """The names of configurations, with a number after those that occurred before."""
    found: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in found:
            candidate, number = f"{name}-{number}", number + 1
        found.append(candidate)
    return found
