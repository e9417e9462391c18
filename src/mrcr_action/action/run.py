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

    def begins(self, name: str) -> None:
        """A configuration's turn has come."""
        self.commands.group(f"MRCR: {one_line(name)}")

    def show(self, result: Result, files: Sequence[Path]) -> None:
        """A configuration is done."""
        from mrcr_action.report.console import print_result

        self.results.append(result)
        self.commands.end_group()
        print_result(result, files)
