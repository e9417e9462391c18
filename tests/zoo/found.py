"""What was found of all faults, on disk from one call to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import msgspec
from tests.zoo.faults import ALL
from tests.zoo.table import summary, table
from tests.zoo.trial import PLANS, PlanName, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.zoo.faults import ZooFault

STANDARD: tuple[PlanName, ...] = ("standard", "stopped")


@dataclass(frozen=True)
class Found:
    """Trials by fault and plan."""

    folder: Path
    trials: dict[str, dict[PlanName, Trial]]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What an earlier call wrote; nothing without one."""
        file = folder / "zoo.json"
        if not file.exists():
            return cls(folder, {})
        return cls(
            folder, msgspec.json.decode(file.read_bytes(), type=dict[str, dict[PlanName, Trial]])
        )

    def add(self, fault: ZooFault, plan: PlanName, trial: Trial) -> None:
        """Note one more, on disk as well."""
        self.trials.setdefault(fault.name, {})[plan] = trial
        content = msgspec.json.format(msgspec.json.encode(self.trials))
        (self.folder / "zoo.json").write_bytes(content + b"\n")
        (self.folder / "zoo.md").write_text(self.page())

    def page(self) -> str:
        """All of it as Markdown, in the order of the table of faults."""
        rows = [(fault, self.trials[fault.name]) for fault in ALL if fault.name in self.trials]
        lines = [table(rows, list(PLANS)), *(summary(rows, plan) + "\n" for plan in PLANS)]
        return "\n".join(lines)

    def exit_code(self, chosen: Sequence[ZooFault]) -> int:
        """0 if the standard plan, whole or stopped, saw what it has to see, and no more."""
        for fault in chosen:
            tried = self.trials.get(fault.name, {})
            for trial in (tried[plan] for plan in STANDARD if plan in tried):
                is_red = trial.exit_code == 1
                if (fault.must_be_red and not is_red) or (fault.is_harmless and trial.exit_code):
                    return 1
        return 0
