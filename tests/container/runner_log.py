"""What the runner makes of the lines that a step prints: its log, commands, annotations, masks.

After actions/runner 2.336: ActionCommand.cs, ActionCommandManager.cs, OutputManager.cs and
ExecutionContext.cs.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

Level = Literal["error", "warning", "notice"]

LEVELS: tuple[Level, ...] = ("error", "warning", "notice")

STOP = "stop-commands"

COMMANDS = frozenset(
    {
        *(*LEVELS, STOP, "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup"),
        *("group", "remove-matcher", "save-state", "set-env", "set-output"),
    }
)
"""Everything that the runner takes for a command, from whichever part of the line it reads it."""

REFUSED = {"set-env", "add-path"}
"""Commands that have been switched off: a step that says one fails."""

MOST_ANNOTATIONS = 10
"""Annotations of a level that are kept of a step; the others are only lines of the log."""

LONGEST_MESSAGE = 4_096

_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What .NET trims, which is not quite what Python strips."""

_LINE_END = re.compile(r"\r\n|\r|\n")

Codes = tuple[tuple[str, str], ...]

_ENDS: Codes = (("%0D", "\r"), ("%0A", "\n"))
_PERCENT: Codes = (("%25", "%"),)
"""Comes last, so that ``%250A`` is ``%0A`` afterwards and no line's end."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One of the two ways to write a command."""

    separator: str
    """Between properties."""
    property: Codes
    data: Codes


_CURRENT = _Form(",", (*_ENDS, ("%3A", ":"), ("%2C", ","), *_PERCENT), _ENDS + _PERCENT)
_CODES = (("%3B", ";"), *_ENDS, ("%5D", "]"), *_PERCENT)
_LEGACY = _Form(";", _CODES, _CODES)


@dataclass(frozen=True, slots=True)
class Command:
    """A line that is a command."""

    name: str
    data: str
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message on the check, as the server keeps it."""

    level: Level
    message: str
    title: str
    file: str


def parse_command(line: str, known: Collection[str] = COMMANDS) -> Command | None:
    """Read a line the way the runner does: ``::name …::data``, else ``##[name …]data`` within.

    Args:
        line: without its end.
        known: names of commands, in lower case.
    """
    text = line.lstrip(_BLANKS)
    if text.startswith("::"):
        info, found, data = text[2:].partition("::")
        if found and (parsed := _read(info, data, known, _CURRENT)):
            return parsed
    _, found, rest = line.partition("##[")
    info, closed, data = rest.partition("]")
    return _read(info, data, known, _LEGACY) if found and closed else None


def _read(info: str, data: str, known: Collection[str], form: _Form) -> Command | None:
    name, _, given = info.partition(" ")
    if name.lower() not in known:
        return None
    pairs = (entry.partition("=") for entry in given.strip(_BLANKS).split(form.separator))
    properties = {
        key.lower(): _unescaped(value, form.property) for key, _, value in pairs if key and value
    }
    return Command(name.lower(), _unescaped(data, form.data), properties)


def _unescaped(text: str, codes: Codes) -> str:
    for code, character in codes:
        text = text.replace(code, character)
    return text


def split_lines(text: str) -> list[str]:
    """Lines as .NET reads them from a stream: CR, LF and both together end one."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


@dataclass
class StepLog:
    """The log of a step as it grows; both its streams are read into one, line by line."""

    to_host: Callable[[str], str] = str
    """Translates the path of a file from the container's to the runner's."""
    show: Callable[[str], None] = lambda _: None
    """Gets each line of the log as it comes."""
    debug: bool = False
    lines: list[str] = field(default_factory=list)
    """What the log shows, masked."""
    commands: list[Command] = field(default_factory=list)
    """What was obeyed, in order."""
    annotations: list[Annotation] = field(default_factory=list)
    """Those that are kept."""
    dropped: dict[str, int] = field(default_factory=dict)
    """By level, how many annotations were too many."""
    legacy: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"set-output": {}, "save-state": {}}
    )
    """What commands, rather than files, said."""
    failed: bool = False
    """Whether a command failed, and the step with it."""
    masks: list[str] = field(default_factory=list)
    _token: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def stopped(self) -> bool:
        """Whether commands are stopped at the moment."""
        return self._token is not None

    def receive(self, line: str) -> None:
        """Take a line of either stream."""
        with self._lock:
            # The token is one more command, whichever way it is said.
            known = COMMANDS if self._token is None else COMMANDS | {self._token.lower()}
            command = parse_command(line, known)
            if command is None or not self._obey(line, command):
                self.say(line)

    def say(self, line: str) -> None:
        """Add a line to the log."""
        self.lines.append(self.masked(line))
        self.show(self.lines[-1])

    def fail(self, message: str) -> None:
        """Report a failure of the step, as an annotation too."""
        self.failed = True
        self._annotate("error", message, {})

    def masked(self, text: str) -> str:
        """A text with every secret replaced."""
        for mask in sorted(self.masks, key=len, reverse=True):
            text = text.replace(mask, "***")
        return text

    def _obey(self, line: str, command: Command) -> bool:
        """Carry a command out; false for a line that is not one at the moment."""
        if self._token is not None:
            if command.name != self._token.lower():
                return False
            self.say(line)
            self._token = None
        elif command.name == STOP:
            self._stop(line, command.data)
        else:
            self._carry_out(command)
        self.commands.append(command)
        return True

    def _stop(self, line: str, token: str) -> None:
        if not token or token.lower() in COMMANDS or token.lower() == "pause-logging":
            self.fail(f"Invoked ::stop-commands:: with token: [{token}], which cannot be used")
            return
        self.say(line)
        self._token = token

    def _carry_out(self, command: Command) -> None:
        name, data = command.name, command.data
        if name in LEVELS:
            self._annotate(
                next(level for level in LEVELS if level == name), data, command.properties
            )
        elif name == "add-mask":
            self.masks += [
                mask for mask in dict.fromkeys([data, *split_lines(data)]) if mask.strip()
            ]
        elif name in {"group", "endgroup"}:
            self.say(f"##[{name}]{data if name == 'group' else ''}")
        elif name == "debug":
            if self.debug:
                self.say(f"##[debug]{data}")
        elif name in self.legacy:
            self.legacy[name][command.properties.get("name", "")] = data
        elif name in REFUSED:
            self.fail(f"The `{name}` command is disabled.")

    def _annotate(self, level: Level, message: str, properties: Mapping[str, str]) -> None:
        self.say(f"##[{level}]{message}")
        kept = Annotation(
            level,
            self.masked(message)[:LONGEST_MESSAGE],
            self.masked(properties.get("title", "")),
            self.to_host(properties.get("file", "")),
        )
        if sum(one.level == level for one in self.annotations) < MOST_ANNOTATIONS:
            self.annotations.append(kept)
        else:
            self.dropped[level] = self.dropped.get(level, 0) + 1
