"""Several configurations, one server after the other, and the reports of them all."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.errors import ExitCode
from mrcr_action.pipeline import exit_code, run
from mrcr_action.report.console import print_result
from mrcr_action.report.files import prepare_folder, write_overview, write_result
from mrcr_action.report.progress import Progress, make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mrcr_action.config.resolve import Resolved
    from mrcr_action.result import Result
    from mrcr_action.server import Server

SEVERITY = (ExitCode.CANCELLED, ExitCode.FAIL, ExitCode.USAGE, ExitCode.CANNOT_JUDGE, ExitCode.PASS)
"""Which of several exit codes is reported: the first of these that occurs."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One configuration with the server that it will be run against."""

    resolved: Resolved
    make_server: Callable[[Path], Server]
    """Makes the server, not yet started, given the folder for its log."""
    notes: tuple[str, ...] = ()
    invocation: tuple[str, ...] = ()
    """Command line that repeats the job, without secrets."""


def run_suite(
    jobs: Sequence[Job],
    folder: Path,
    *,
    progress: Callable[[], Progress] = make_progress,
) -> list[Result]:
    """Run every job, write and print every report.

    The reports of one job lie in the folder itself, those of several in a subfolder each; the
    JUnit file and the summary cover all and are written anew after every job, so that a job that
    is cut off loses nothing of those before it.

    Raises:
        OutputError: the folder cannot be written.
    """
    prepare_folder(folder)
    results: list[Result] = []
    names = _unique([job.resolved.name for job in jobs])
    for job, name in zip(jobs, names, strict=True):
        own = folder if len(jobs) == 1 else folder / name
        prepare_folder(own)
        shown = progress()
        try:
            result = _run_one(job, own, shown)
        finally:
            shown.close()
        results.append(result)
        files = write_result(result, own) + write_overview(results, folder)
        print_result(result, files)
        if exit_code(result) == ExitCode.CANCELLED:
            break
    return results


def worst_exit_code(results: Sequence[Result]) -> int:
    """The exit code of a command that ran these."""
    codes = {exit_code(result) for result in results}
    return next((code for code in SEVERITY if code in codes), ExitCode.CANNOT_JUDGE)


def _run_one(job: Job, output: Path, progress: Progress) -> Result:
    """Run a job on an event loop of its own; SIGINT and SIGTERM cancel it in good order."""

    async def body() -> Result:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Only the main thread may, and other platforms than POSIX cannot.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, task.cancel)
        return await run(
            job.resolved,
            server=job.make_server(output),
            output=output,
            progress=progress,
            notes=job.notes,
            invocation=job.invocation,
        )

    return asyncio.run(body())


def _unique(names: Sequence[str]) -> list[str]:
    """Folder names: those that occur twice get a number."""
    found: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in found:
            candidate, number = f"{name}-{number}", number + 1
        found.append(candidate)
    return found
