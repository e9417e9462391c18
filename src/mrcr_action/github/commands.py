"""Workflow commands: what a runner reads from the lines that an action prints.

A line ``::name property=value::data`` is a command, and so is what follows ``##[`` anywhere in a
line. So that no text of a model, a log or a configuration can be one, everything is printed while
commands are stopped, and they are resumed by a random token for as long as it takes to say one.
"""

from __future__ import annotations

import secrets
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

STOP = "stop-commands"

LONGEST_MESSAGE = 4_000
"""Characters of an annotation's message; the runner cuts at 4,096."""

SHORTEST_MASKED = 4
"""Characters of a line of a secret that is masked; a shorter one is part of many a word."""


def escape_data(text: str) -> str:
    """Text as the data of a command: ``%``, CR and LF as hexadecimal digits."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Text as a property of a command, in which ``:`` and ``,`` mean something too."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, data: str = "", **properties: str | None) -> str:
    """A command as a line, without its end; a property without a value is left out."""
    given = ",".join(
        f"{key}={escape_property(value)}" for key, value in properties.items() if value
    )
    return f"::{name}{' ' + given if given else ''}::{escape_data(data)}"


class Commands:
    """Says commands on a stream on which everything else is no command."""

    def __init__(self, stream: IO[str]) -> None:
        """Stop the runner from reading commands; see `close`."""
        self._stream = stream
        self._token = ""
        self._lock = threading.Lock()
        self._grouped = False
        self._masked: set[str] = set()
        with self._lock:
            self._stop()

    def mask(self, secrets: Iterable[str]) -> None:
        """Have secrets replaced in everything that is printed from now on, each line of them."""
        # The bracket that a key in JSON ends with, masked, would spoil the log and later outputs.
        found = {
            line
            for secret in secrets
            for line in secret.splitlines()
            if len(line.strip()) >= SHORTEST_MASKED
        }
        new = sorted(found - self._masked)
        self._masked |= found
        if new:
            self._say(*(command("add-mask", line) for line in new))

    def group(self, title: str) -> None:
        """Fold what is printed from now on; ends the group before."""
        self.end_group()
        self._say(command("group", title))
        self._grouped = True

    def end_group(self) -> None:
        """End the group, if there is one."""
        if self._grouped:
            self._say(command("endgroup"))
            self._grouped = False

    def annotate(self, level: str, title: str, message: str, *, file: str | None = None) -> None:
        """Put a message on the check: ``error``, ``warning`` or ``notice``."""
        self._say(command(level, message[:LONGEST_MESSAGE], title=title, file=file))

    def close(self) -> None:
        """Let the runner read commands again, as for the steps behind this one it does anyway."""
        self.end_group()
        with self._lock:
            self._write([f"::{self._token}::"])

    def _say(self, *lines: str) -> None:
        with self._lock:
            # In one piece, so that no other thread's line is printed while commands are read.
            self._stop(f"::{self._token}::", *lines)

    def _stop(self, *before: str) -> None:
        # A new one every time: the last one has been printed, and could be repeated.
        token = secrets.token_hex(16)
        self._write([*before, command(STOP, token)])
        # Known only once it counts: a signal may come in between.
        self._token = token

    def _write(self, lines: list[str]) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
