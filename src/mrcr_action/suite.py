"""Several configurations, one server after the other, and the reports of them all."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mrcr_action.baseline import check_place, read_baseline
from mrcr_action.config.listing import unique_names
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.errors import ExitCode, OutputError
from mrcr_action.pipeline import exit_code, run
from mrcr_action.report.console import print_result
from mrcr_action.report.files import (
    locked,
    prepare_file,
    prepare_folder,
    remove_reports,
    write_overview,
    write_pages,
    write_result,
)
from mrcr_action.report.progress import Progress, make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mrcr_action.baseline import Baseline
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.result import Result
    from mrcr_action.sample import Sample
    from mrcr_action.server import Server

SEVERITY = (ExitCode.CANCELLED, ExitCode.FAIL, ExitCode.USAGE, ExitCode.CANNOT_JUDGE, ExitCode.PASS)
"""Which of several exit codes is reported: the first of these that occurs."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One configuration with the server that it will be run against."""

    resolved: Resolved
    make_server: Callable[[Path], Server]
    """Makes the server, not yet started, given the folder for its log."""
    make_second: Callable[[Path, Sequence[str]], Server] | None = None
    """Makes another one with further arguments, once the first is gone; None where it is not ours
    to start."""
    cannot_read: Callable[[Sample], str | None] | None = None
    """Tells why the model cannot answer a sample; None for a model of which that is not known."""
    notes: tuple[str, ...] = ()
    invocation: tuple[str, ...] = ()
    """Command line that repeats the job, without secrets."""


def run_suite(
    jobs: Sequence[Job],
    folder: Path,
    *,
    begins: Callable[[str], None] = lambda _name: None,
    show: Callable[[Result, Sequence[Path]], None] = print_result,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[Result]:
    """Run every job, write and print every report.

    Args:
        jobs: in their order.
        folder: for the reports.
        begins: told the name of every job before it starts.
        show: given every result, with the files that were written of it.
        cancelled: whether a signal had come before those that come here were heeded.

    The reports of one job lie in the folder itself, those of several in a subfolder each; the
    JUnit file, the summary and a page above cover all and are written anew after every job, so that
    a job that is cut off loses nothing of those before it.

    Raises:
        UsageError: a baseline cannot serve as one; nothing was run or removed then.
        OutputError: the folder cannot be written; or, once all is done and printed, a report
            could not be.
    """
    names = unique_names([job.resolved.name for job in jobs])
    folders = (folder, *(folder / name for name in names))
    baselines = _baselines(jobs, folders)
    prepare_folder(folder)
    unwritten: OutputError | None = None
    results: list[Result] = []
    with locked(folder), _Signals() as signals:
        if cancelled():
            signals.receive(0, None)
        # All of them now: were this run cut off, older reports would pass for its own.
        for own in folders:
            remove_reports(own)
        for job in jobs:
            if job.resolved.config.save_results:
                # Said now, not once the server has worked for an hour.
                prepare_file(Path(job.resolved.config.save_results), beside=folder)
        places = [folder] if len(jobs) == 1 else [folder / name for name in names]
        for job, name, own, baseline in zip(jobs, names, places, baselines, strict=True):
            prepare_folder(own)
            begins(name)
            shown = make_progress()
            try:
                result = _run_one(job, own, shown, signals, baseline)
            finally:
                shown.close()
            results.append(result)
            files: list[Path] = []
            try:
                files += write_result(result, own)
                files += write_overview(results, folder)
                files += write_pages(results, places[: len(results)], folder)
            except OutputError as error:
                # The verdict is known: it is printed, and the next configuration has its turn.
                unwritten = unwritten or error
            show(result, files)
            if exit_code(result) == ExitCode.CANCELLED:
                break
    if unwritten is not None:
        raise unwritten
    return results


def _baselines(jobs: Sequence[Job], folders: Sequence[Path]) -> list[Baseline | None]:
    """What each job is compared with, read before any report is removed."""
    baselines = [read_baseline(job.resolved.config) for job in jobs]
    for job in jobs:
        for named in filter(None, baselines):
            check_place(named, folders, job.resolved.config.save_results)
    return baselines


def worst_exit_code(results: Sequence[Result]) -> ExitCode:
    """The exit code of a command that ran these."""
    codes = {exit_code(result) for result in results}
    return next((code for code in SEVERITY if code in codes), ExitCode.CANNOT_JUDGE)


class _Signals:
    """SIGINT, SIGTERM and SIGHUP cancel the job that runs, and never cut off its reports.

    A job that starts after a signal is cancelled at once. Once a signal has come, further ones
    change nothing any more, up to the exit of the process, which then lies ahead: a runner that
    grows impatient must not turn 130 into another exit code. Does nothing outside the main thread,
    where no handler may be set.
    """

    def __init__(self) -> None:
        self._received = False
        self._cancel: Callable[[], object] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):
                self._before[number] = signal.signal(number, self.receive)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._received else handler)

    @contextlib.contextmanager
    def cancelling(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """Cancel a task, while the block lasts, for every signal and for one that came before."""
        loop = task.get_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._received:
            self._cancel()
        try:
            yield
        finally:
            self._cancel = None

    def receive(self, number: int, frame: object) -> None:  # noqa: ARG002 - signal's interface
        """Take note of a signal."""
        self._received = True
        if self._cancel is not None:
            self._cancel()


def _run_one(
    job: Job, output: Path, progress: Progress, signals: _Signals, baseline: Baseline | None
) -> Result:
    """Run a job on an event loop of its own; a signal cancels it in good order."""

    async def body() -> Result:
        task = asyncio.current_task()
        assert task is not None
        with signals.cancelling(task):
            return await run(
                job.resolved,
                server=job.make_server(output),
                output=output,
                progress=progress,
                notes=job.notes,
                invocation=job.invocation,
                baseline=baseline,
                second=partial(job.make_second, output) if job.make_second else None,
                cannot_read=job.cannot_read,
            )

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(body())


class _Loop(asyncio.SelectorEventLoop):
    """Looks names up in threads that nobody waits for.

    A resolver may be silent for a minute, and the threads of asyncio's own pool are waited for, in
    a cancelled run as well.
    """

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio's interface
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """See `socket.getaddrinfo`."""
        return await in_daemon_thread(
            partial(socket.getaddrinfo, host, port, family, type, proto, flags)
        )
