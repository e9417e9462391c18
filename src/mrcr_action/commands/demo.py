"""``mrcr demo``: the whole pipeline on an embedded default, without a GPU or a network."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mrcr_action.bins import parse_bin
from mrcr_action.config import RunConfig
from mrcr_action.config.resolve import Resolved
from mrcr_action.data.writer import write_synthetic
from mrcr_action.errors import UsageError
from mrcr_action.report.files import prepare_folder
from mrcr_action.server.port import free_port
from mrcr_action.server.process import ProcessServer
from mrcr_action.standin.faults import parse_fault
from mrcr_action.suite import Job, run_suite, worst_exit_code

if TYPE_CHECKING:
    from pathlib import Path

PER_CELL = 2
BINS = ("2K-4K", "4K-8K", "8K-16K")
NEEDLES = (2, 4, 8)
THRESHOLD = 0.95
"""A stand-in that answers perfectly scores 1; anything below this is a fault that was asked for."""

FAULTS = {
    "window": "window=3000",
    "truncate": "truncate=20",
}
"""Faults that need a value, with one that suits these samples."""

NOTE = (
    "A stand-in answered, not a model: it finds the wanted text by parsing the conversation."
    " These figures say nothing about any model."
)


def demo_command(folder: Path, broken: str | None) -> int:
    """Run the demo; the exit code is the verdict's, as in a real run."""
    fault = FAULTS.get(broken, broken) if broken else None
    if fault:
        try:
            parse_fault(fault)
        except ValueError as error:
            what, _, known = str(error).partition("\n")
            raise UsageError(f"--break {what.removeprefix('fault ')}", details=known) from error
    prepare_folder(folder)
    data = folder / "samples"
    write_synthetic(
        data,
        needles=NEEDLES,
        bins=[parse_bin(text) for text in BINS],
        per_cell=PER_CELL,
        seed=0,
        progress=None,
    )
    config = RunConfig(
        model_name="stand-in",
        protocol="openai",
        dataset=str(data),
        num_samples=PER_CELL * len(BINS) * len(NEEDLES),
        match_ratio_threshold={2: THRESHOLD, 4: THRESHOLD, 8: THRESHOLD},
        output_dir=str(folder),
    )
    print(f"{NOTE}" + (f" Its fault: {fault}." if fault else ""))
    job = Job(
        resolved=Resolved(
            config=config,
            name="demo" if fault is None else f"demo --break {broken}",
            path=None,
            given=frozenset(),
        ),
        make_server=lambda output: stand_in(output, fault),
        invocation=("mrcr", "demo", *(["--break", broken] if broken else [])),
        notes=(NOTE, *([f"The fault {fault} was switched on."] if fault else [])),
    )
    return worst_exit_code(run_suite([job], folder))


def stand_in(output: Path, fault: str | None) -> ProcessServer:
    """The stand-in server as a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "mrcr_action.standin", "stand-in", "--port", str(port)]
    if fault:
        command += ["--fault", fault]
    return ProcessServer(command, port=port, log=output / "server.log", grace=3.0)
