"""Output that may go away: a verdict must not depend on somebody reading along."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class QuietStream(io.TextIOBase):
    """A text stream that falls silent once it cannot be written: a closed pipe, a full disk."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write if anybody can still read; the length either way."""
        if self._stream is not None:
            try:
                self._stream.write(text)
            except (OSError, ValueError):
                self._silence()
        return len(text)

    def flush(self) -> None:
        """Flush if anybody can still read."""
        if self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._silence()

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return self._stream is not None and self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's own encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def fileno(self) -> int:
        """The stream's descriptor, from which the width of a terminal is read."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def _silence(self) -> None:
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError, ValueError):
            # What is still buffered would fail once more at exit, and spoil the exit code.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno() if stream else -1)


@contextlib.contextmanager
def quiet_streams() -> Iterator[None]:
    """Let nothing that is printed fail, on either standard stream, while the block lasts."""
    before = sys.stdout, sys.stderr
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or log in a narrow encoding loses a sign, not the verdict.
        sys.stdout.reconfigure(errors="replace")
    sys.stdout, sys.stderr = map(QuietStream, before)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before
