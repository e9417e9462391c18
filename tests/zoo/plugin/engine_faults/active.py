"""The fault that is active in this process, and what it did.

Two variables of the environment say all: ENGINE_FAULT_FILE, a file that holds the fault's text or
nothing, read again at every engine step, so that one server can show every fault; and
ENGINE_FAULT_LOG, a file to which a line of JSON is added for each request that a fault struck.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine_faults.catalogue import fault_of
from engine_faults.fault import Fault

if TYPE_CHECKING:
    from engine_faults.request import Request

FILE = "ENGINE_FAULT_FILE"
LOG = "ENGINE_FAULT_LOG"


class Active:
    """The fault of this process; vLLM's worker and its scheduler each have their own."""

    def __init__(self, file: Path, log: Path | None) -> None:
        self.fault = Fault()
        self.requests: tuple[Request, ...] = ()
        """Those of the step that is computed; none while vLLM warms up."""
        self.hits: dict[str, int] = {}
        """Tokens that the prefix cache supplied, by request."""
        self._file = file
        self._log = log
        self._text = ""
        self._written = 0
        self._noted: set[str] = set()

    @classmethod
    def from_environment(cls) -> Active | None:
        """As the environment says; None where it names no file."""
        file, log = os.environ.get(FILE), os.environ.get(LOG)
        return cls(Path(file), Path(log) if log else None) if file else None

    def refresh(self) -> None:
        """Read the file again if it was written since.

        Raises:
            ValueError: it names a fault that there is not; a server that goes on healthy then
                would be taken for a fault that nobody saw.
        """
        try:
            written = self._file.stat().st_mtime_ns
        except FileNotFoundError:
            written = 0
        if written == self._written:
            return
        self._written = written
        self._text = self._file.read_text().strip() if written else ""
        self._noted = set()
        self.fault = fault_of(self._text, lambda request: self.note(request.id))

    def note(self, what: str) -> None:
        """Log what was struck, once."""
        if what not in self._noted and self._log is not None:
            self._noted.add(what)
            with self._log.open("a") as log:
                log.write(json.dumps({"fault": self._text, "struck": what}) + "\n")
