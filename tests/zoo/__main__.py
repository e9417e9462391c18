"""Break real vLLM in every way of the table, and see which plan of asks sees it.

    python -m tests.zoo [NAME…] [--plan standard|stopped|cold40] [--list] [--table]

A server runs for all faults that can be switched on while it does, and another one for each of the
others. What was found is printed and written to .cache/zoo/: the reports of each run, and zoo.md
and zoo.json, which keep what was found before of the faults that are not tried again. Ends with 1
if the plan ``standard`` misses a fault that it has to see, or is red where nothing is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.zoo.faults import ALL, FAULTS, HEALTHY
from tests.zoo.found import Found
from tests.zoo.server import Workplace, ZooServer
from tests.zoo.table import cells
from tests.zoo.trial import PLANS, attached, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.zoo.faults import ZooFault
    from tests.zoo.trial import PlanName, Trial

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "tests/vllm/environment/install.sh"
OUTPUT = ROOT / ".cache/zoo"

KNOWN = {fault.name: fault for fault in ALL}


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and try what it names."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.zoo", description="See which plan of asks sees which fault of vLLM."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; default: all")
    parser.add_argument("--plan", choices=PLANS, action="append", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the faults and try nothing")
    parser.add_argument("--table", action="store_true", help="print what was found, try nothing")
    options = parser.parse_args(argv)
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name:18} {fault.group:18} {fault.what}")
        return 0
    if options.table:
        print(Found.read(OUTPUT).page())
        return 0
    if unknown := [name for name in options.names if name not in KNOWN]:
        parser.error(f"{', '.join(unknown)}: no such fault; --list names them")
    chosen = [KNOWN[name] for name in options.names] or list(KNOWN.values())
    plans: list[PlanName] = options.plan or list(PLANS)
    done = subprocess.run([INSTALL], stdout=subprocess.PIPE, text=True, check=True)
    place = Workplace.make(OUTPUT, str(Path(done.stdout.strip()) / "vllm"))
    found = Found.read(OUTPUT)
    for fault, plan, trial in trials(place, chosen, plans):
        found.add(fault, plan, trial)
        print(f"{fault.name:18} {plan:9}", *cells(fault, trial), flush=True)
    print(found.page())
    return found.exit_code(chosen)


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
    return plan != "cold40" and (fault.needs_small_pool or fault is HEALTHY)


def _output(fault: ZooFault, plan: PlanName) -> Path:
    return OUTPUT / "runs" / f"{fault.name}-{plan}"


if __name__ == "__main__":
    # So that a call that is terminated stops its server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
