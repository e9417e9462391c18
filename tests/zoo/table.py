"""What the zoo showed, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.text import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.zoo.faults import ZooFault
    from tests.zoo.trial import PlanName, Trial

    Row = tuple[ZooFault, dict[PlanName, Trial]]

TITLES: dict[PlanName, str] = {
    "standard": "`plan: standard`",
    "stopped": "the same, until it is wrong",
    "cold40": "40 samples, once",
}

NOTHING = "–"


def table(rows: Sequence[Row], plans: Sequence[PlanName]) -> str:
    """A table of all that was tried, a line a fault."""
    head = ["fault", "what is broken"]
    for plan in plans:
        head += [TITLES[plan], "first", "wrong of asked", "came back as", "s"]
    lines = [head, ["---"] * len(head)]
    for fault, trials in rows:
        line = [f"`{fault.name}`", markdown(fault.what)]
        for plan in plans:
            line += cells(fault, trials[plan]) if plan in trials else [NOTHING] * 5
        lines.append(line)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cells(fault: ZooFault, trial: Trial) -> list[str]:
    """One trial: its colour, after how many answers, what was wrong where, and how long it took."""
    colour = f"**{trial.colour}**" if trial.exit_code else trial.colour
    if fault.is_of_plugin and not trial.struck:
        colour += " (never struck)"
    wrong = ", ".join(
        f"{name} {found.wrong}/{found.asked}" for name, found in trial.rounds.items() if found.wrong
    )
    return [
        colour,
        NOTHING if trial.first_wrong is None else str(trial.first_wrong),
        wrong or f"0/{trial.asked}",
        ", ".join(f"{form} {count}" for form, count in trial.forms.items()) or NOTHING,
        f"{trial.seconds:.0f}",
    ]


def summary(rows: Iterable[Row], plan: PlanName) -> str:
    """How many of the faults that a cheap plan has to see one saw, and which it did not."""
    tried = [(fault, trials[plan]) for fault, trials in rows if plan in trials]
    wanted = [(fault, trial) for fault, trial in tried if fault.must_be_red]
    missed = [fault.name for fault, trial in wanted if not trial.exit_code]
    named = f" (missed: {', '.join(missed)})" if missed else ""
    return f"{TITLES[plan]}: {len(wanted) - len(missed)} of {len(wanted)} faults{named}"
