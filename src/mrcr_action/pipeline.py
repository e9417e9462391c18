"""One run, from a configuration to a verdict.

The server is started, and while it loads, the dataset is fetched and opened, and rows are chosen as
far as that goes without it. Once it is healthy, a tiny request shows whether its chat template
takes MRCR's turns, samples are chosen by the server's own token count, asked, graded as they
arrive, and the server is stopped. What was found becomes a `Result`, which the reports render.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import traceback
from functools import partial
from typing import TYPE_CHECKING

from mrcr_action.choice import Choice
from mrcr_action.errors import ExitCode, OutOfTime
from mrcr_action.findings import Findings, problem_of, result_of
from mrcr_action.gate import EXIT_CODES
from mrcr_action.journal import JOURNAL_FILE, Journal
from mrcr_action.margins import toothless
from mrcr_action.publish import scrub, secrets_of
from mrcr_action.result import Problem, Result
from mrcr_action.steps import Steps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from mrcr_action.baseline import Baseline
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.report.progress import Progress
    from mrcr_action.sample import Sample
    from mrcr_action.server import Server


log = logging.getLogger(__name__)


async def run(
    resolved: Resolved,
    *,
    server: Server,
    output: Path,
    progress: Progress,
    notes: tuple[str, ...] = (),
    invocation: tuple[str, ...] = (),
    baseline: Baseline | None = None,
    second: Callable[[Sequence[str]], Server] | None = None,
    cannot_read: Callable[[Sample], str | None] | None = None,
) -> Result:
    """Run one configuration against one server.

    Args:
        resolved: the configuration and its name.
        server: not yet entered; it is entered and left here.
        output: existing folder for the journal and the server's log.
        progress: told what happens.
        notes: sentences that every report shall carry.
        invocation: command line that repeats the run, for the reports.
        baseline: what the run is compared with when it is over.
        second: makes another server with further arguments, once the first is gone; None where
            none can be started.
        cannot_read: tells why the model cannot answer a sample, as far as that is known of it.

    Returns:
        The result. A server that dies, a dataset that cannot be read and the like end in a
        result with a ``problem``; so does a cancelled run.

    Raises:
        OutputError: the journal cannot be written at all.
    """
    found = Findings(notes=list(notes), baseline=baseline)
    if "--trust-remote-code" in (word.replace("_", "-") for word in server.command):
        found.notes.append("The model's repository may run its own code (trust_remote_code).")
    found.notes.extend(toothless(resolved.config))
    # A server's log and its error messages may quote what it was started or asked with.
    hidden = secrets_of(resolved.config, api_key=server.api_key, environ=os.environ)
    hide = partial(scrub, secrets=hidden)
    with Journal(output / JOURNAL_FILE) as journal:
        try:
            async with _limited(resolved.config.time_limit_seconds):
                steps = Steps(
                    resolved,
                    found,
                    journal,
                    progress,
                    hide,
                    Choice(resolved.config, report=progress.fetching, cannot_read=cannot_read),
                )
                await steps.find(server, second)
        except Exception as error:
            # A fault of this program, too, must not cost the reports of what was found before it.
            log.debug("%s", hide("".join(traceback.format_exception(error))))
            found.problem = problem_of(error, hide)
        except asyncio.CancelledError:
            found.problem = Problem(
                kind="Cancelled",
                message="the run was cancelled",
                exit_code=ExitCode.CANCELLED,
            )
    return result_of(found, resolved, server, invocation=invocation)


def exit_code(result: Result) -> int:
    """What the process reports for a result; see errors.py."""
    if result.verdict.conclusion == "inconclusive" and result.problem is not None:
        return result.problem.exit_code
    return EXIT_CODES[result.verdict.conclusion]


@contextlib.asynccontextmanager
async def _limited(seconds: float | None) -> AsyncIterator[None]:
    """Give the block so many seconds; the server is stopped on top of that.

    Raises:
        OutOfTime: they are over.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise OutOfTime(
            f"the run was not done within {seconds:g} s",
            hint="Raise time_limit_seconds, or ask for fewer samples.",
        ) from None
