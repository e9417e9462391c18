"""Break real vLLM in every way of the table, and see which plan of asks sees it.

    python -m tests.zoo [NAMES…] [--plan standard|cold40] [--list]

A server runs for all faults that can be switched on while it does, and another one for each of the
others. What was found is printed and written to .cache/zoo/: zoo.md, zoo.json, and each run's
reports. Ends with 1 if the plan ``standard`` misses a fault that it has to see, or is red on the
healthy server.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.zoo.faults import FAULTS, HEALTHY, ZooFault
from tests.zoo.server import Workplace, ZooServer
from tests.zoo.table import cells, summary, table
from tests.zoo.trial import PLANS, attached, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.zoo.trial import PlanName, Trial

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "tests/vllm/environment/install.sh"
OUTPUT = ROOT / ".cache/zoo"

KNOWN = {fault.name: fault for fault in (HEALTHY, *FAULTS)}


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and try what it names."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.zoo", description="See which plan of asks sees which fault of vLLM."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; default: all")
    parser.add_argument("--plan", choices=PLANS, action="append", help="default: both")
    parser.add_argument("--list", action="store_true", help="list the faults and try nothing")
    options = parser.parse_args(argv)
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:18} {fault.group:18} {fault.what}")
        return 0
    if unknown := [name for name in options.names if name not in KNOWN]:
        parser.error(f"{', '.join(unknown)}: no such fault; --list names them")
    chosen = [KNOWN[name] for name in options.names] or list(KNOWN.values())
    plans: list[PlanName] = options.plan or list(PLANS)
    done = subprocess.run([INSTALL], stdout=subprocess.PIPE, text=True, check=True)
    place = Workplace.make(OUTPUT, str(Path(done.stdout.strip()) / "vllm"))
    found: dict[str, dict[PlanName, Trial]] = {fault.name: {} for fault in chosen}
    for fault, plan, trial in trials(place, chosen, plans):
        found[fault.name][plan] = trial
        print(f"{fault.name:18} {plan:9}", *cells(fault, trial), flush=True)
        _write(chosen, plans, found)
    print((OUTPUT / "zoo.md").read_text())
    return _is_wanted(found)


def trials(
    place: Workplace, chosen: Sequence[ZooFault], plans: Sequence[PlanName]
) -> Iterator[tuple[ZooFault, PlanName, Trial]]:
    """Try every plan on every fault, with as few servers as it takes."""
    place.folder.joinpath("runs").mkdir(exist_ok=True)
    switched = [fault for fault in chosen if not (fault.flags or fault.template)]
    attachable = [(p, f) for p in plans for f in switched if not _needs_start(f, p)]
    if attachable:
        with ZooServer(place, HEALTHY) as server:
            for plan, fault in attachable:
                server.switch(fault)
                trial = attached(place, server.url, PLANS[plan], _output(fault, plan))
                yield fault, plan, trial
    for plan, fault in itertools.product(plans, switched):
        if _needs_start(fault, plan):
            place.switch(fault)
            yield fault, plan, started(place, PLANS[plan], _output(fault, plan))
    for fault in chosen:
        if fault not in switched:
            with ZooServer(place, fault) as server:
                for plan in plans:
                    server.switch(HEALTHY)
                    trial = attached(place, server.url, PLANS[plan], _output(fault, plan))
                    yield fault, plan, trial


def _needs_start(fault: ZooFault, plan: PlanName) -> bool:
    """Whether the command has to start the server itself: only then it can make the cache small."""
    return plan == "standard" and (fault.needs_small_pool or fault is HEALTHY)


def _output(fault: ZooFault, plan: PlanName) -> Path:
    return OUTPUT / "runs" / f"{fault.name}-{plan}"


def _write(
    chosen: Sequence[ZooFault],
    plans: Sequence[PlanName],
    found: dict[str, dict[PlanName, Trial]],
) -> None:
    rows = [(fault, found[fault.name]) for fault in chosen]
    lines = [table(rows, plans), *(summary(rows, plan) + "\n" for plan in plans)]
    (OUTPUT / "zoo.md").write_text("\n".join(lines))
    content = {
        name: {plan: dataclasses.asdict(trial) for plan, trial in by_plan.items()}
        for name, by_plan in found.items()
    }
    (OUTPUT / "zoo.json").write_text(json.dumps(content, indent=2) + "\n")


def _is_wanted(found: dict[str, dict[PlanName, Trial]]) -> int:
    """0 if the plan ``standard`` saw what it has to see, and nothing where nothing is."""
    for name, by_plan in found.items():
        fault, trial = KNOWN[name], by_plan.get("standard")
        if trial is None:
            continue
        if (fault.must_be_red and not trial.exit_code) or (fault.is_harmless and trial.exit_code):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
