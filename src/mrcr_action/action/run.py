"""What one start of the Action knows so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mrcr_action.github.commands import Commands
    from mrcr_action.github.inputs import Inputs
    from mrcr_action.github.workspace import Workspace
    from mrcr_action.result import Result


@dataclass
class Run:
    """Filled in as it goes on; reported whenever it ends."""

    environ: Mapping[str, str]
    commands: Commands
    workspace: Workspace
    inputs: Inputs | None = None
    folder: Path | None = None
    results: list[Result] = field(default_factory=list)
    cancelled: bool = False
    """Whether a signal has come before anything was run."""

    def cancel(self, number: int, frame: object) -> None:  # noqa: ARG002 - signal's interface
        """Take note of a signal that comes before anything is run; see `go_on`.

        Raises:
            KeyboardInterrupt: it is the second one. An import that is interrupted may be impossible
                from then on, and the reports need some, so that the first one interrupts nothing.
        """
        if self.cancelled:
            raise KeyboardInterrupt
        self.cancelled = True

    def go_on(self) -> None:
        """Stop here if a signal has come.

        Raises:
            KeyboardInterrupt: one has.
        """
        if self.cancelled:
            raise KeyboardInterrupt

    def begins(self, name: str) -> None:
        """A configuration's turn has come."""
        self.commands.group(f"MRCR: {one_line(name)}")

    def show(self, result: Result, files: Sequence[Path]) -> None:
        """A configuration is done."""
        from mrcr_action.report.console import print_result

        self.results.append(result)
        self.commands.end_group()
        print_result(result, files)
