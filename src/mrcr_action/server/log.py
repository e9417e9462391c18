"""Reading a server's log: its last lines, and the first line that names the root cause."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL_LINES = 20
TAIL_BYTES = 64_000
SCAN_BYTES = 20_000_000
"""As much of a log's head is searched for the cause; the cause comes before the noise."""

_NAMED = re.compile(
    r"No available memory for the cache blocks"
    r"|Free memory on device"
    r"|To serve at least one request"
    r"|Address already in use|address already in use"
    r"|error: (unrecognized arguments|argument |the following arguments)"
    r"|CUDA out of memory|OutOfMemoryError"
    r"|is not a local folder and is not a valid model identifier"
    r"|[Cc]an't load the configuration of"
    r"|No such file or directory"
    r"|^\s*Value error, \S"
)
"""What vLLM says when it knows exactly what is wrong."""

_EXCEPTION = re.compile(r"(?:^|\s)(?:[a-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt): \S")
_CONSEQUENCE = re.compile(r"See root cause above|EngineCore failed to start|Engine core init")
"""Lines that only report that something else failed."""

_HARMLESS = re.compile(r"^(?:\([^)]*\)\s*)?(?:DEBUG|INFO|WARNING)\b")
"""Lines that the server itself does not call an error, such as a library that it can do without."""

_PREFIX = re.compile(
    r"^(?:\([^)]*\)\s*)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+[\d\-/]+ [\d:.,]+\s*)?"
    r"(?:\[[^\]]*\]\s*)?"
)


@dataclass(frozen=True)
class Explanation:
    """What a log tells about a failure."""

    cause: str
    """One line, or empty when no line names a cause."""
    details: str
    """The last lines of the log."""


def explain(path: Path) -> Explanation:
    """Look for the root cause in a log; a missing log explains nothing."""
    try:
        with os.fdopen(_open_itself(path), "rb") as file:
            head = file.read(SCAN_BYTES)
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            end = file.read()
    except OSError:
        return Explanation("", "")
    lines = end.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
    details = "\n".join(["The end of the server's log:", *(f"  {line}" for line in lines)])
    return Explanation(root_cause(head.decode("utf-8", "replace")), details if lines else "")


def _open_itself(path: Path) -> int:
    """Open a file that its server may have replaced: no link, and no pipe to wait for.

    A link would lead to what only this process can read, such as its own environment.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    return handle


def root_cause(text: str) -> str:
    """The first line that names a cause: a known sentence of vLLM, else the first exception."""
    lines = [line for line in text.splitlines() if not _HARMLESS.search(line)]
    for pattern in (_NAMED, _EXCEPTION):
        for line in lines:
            if pattern.search(line) and not _CONSEQUENCE.search(line):
                return " ".join(_PREFIX.sub("", line).split())[:300]
    return ""
