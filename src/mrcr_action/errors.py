"""Every error this program raises on purpose, and the exit code each one ends in.

::

    MrcrError
    ├── UsageError          2   the command line or a configuration is wrong
    │   └── ConfigError     2   … in a file, named with its line and key
    └── CannotJudge         3   no verdict could be reached
        ├── DataError       3   the samples cannot be read
        │   ├── NothingFits 3   … or none of them fits
        │   ├── NothingReadable 3 … or the model is known to be unable to read any
        │   └── CellMissing 3   … or none of a part of them that was asked for by name
        ├── ServerError     3   the server did not start, died or cannot be reached
        │   └── TemplateError 3 … or its chat template refuses MRCR's conversations
        ├── OutOfTime       3   the run took longer than it may
        └── OutputError     3   a report cannot be written

Exit codes: 0 pass, 1 a threshold was missed or the run is worse than its baseline, 2 usage or
configuration, 3 cannot judge (inconclusive), 130 cancelled. An error's text is one line that says
what is wrong; ``hint`` says what to do next; ``details`` may hold further lines, such as the end of
a server's log.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller; documented in the README."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    CANNOT_JUDGE = 3
    CANCELLED = 130


INTERNAL_HINT = "This is a fault of mrcr. Run again with --debug and report what it prints."
"""What to do about an error that is none of the above."""


class MrcrError(Exception):
    """Root of the tree; ``str(error)`` is one line without a traceback."""

    exit_code: ExitCode = ExitCode.CANNOT_JUDGE

    def __init__(self, message: str, *, hint: str = "", details: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.details = details


class UsageError(MrcrError):
    """The command line, the environment or a list file asks for something impossible."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A configuration holds an unknown key or a value that cannot be used."""


class CannotJudge(MrcrError):
    """The run ended without evidence for or against the server."""


class DataError(CannotJudge):
    """The samples cannot be read, or are not MRCR rows."""


class NothingFits(DataError):
    """Not one sample fits into the server's window."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"no sample fits into {limit:,} prompt tokens",
            hint="Serve with a longer --max-model-len, or set --max-prompt-tokens.",
        )


class NothingReadable(DataError):
    """The model is known to be unable to answer a single sample."""


class CellMissing(DataError):
    """A cell that the configuration names has no row to ask, so that no run can pass."""


class ServerError(CannotJudge):
    """The server did not start, died, cannot be reached or does not speak the API."""


class TemplateError(ServerError):
    """The model's chat template refuses the two user turns that every row begins with."""


class OutOfTime(CannotJudge):
    """The run took longer than the configuration allows."""


class OutputError(CannotJudge):
    """A report or the journal cannot be written."""
