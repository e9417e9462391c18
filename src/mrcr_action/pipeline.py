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
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING

from mrcr_action.baseline import check_plan
from mrcr_action.choice import Choice
from mrcr_action.client import ApiError, Client, Denied, ModelEntry
from mrcr_action.collect import Collector
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.errors import ExitCode, OutOfTime, ServerError, UsageError
from mrcr_action.findings import Findings, problem_of, result_of
from mrcr_action.gate import EXIT_CODES, check_cells
from mrcr_action.journal import Journal
from mrcr_action.margins import toothless
from mrcr_action.preflight import preflight
from mrcr_action.publish import scrub, secrets_of, without_password
from mrcr_action.result import Problem, Result
from mrcr_action.server.external import ANSWER_SECONDS
from mrcr_action.server.watch import death_soon, raced, watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mrcr_action.baseline import Baseline
    from mrcr_action.config import RunConfig
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.report.progress import Progress
    from mrcr_action.server import Server

HEARTBEAT_SECONDS = 30.0

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
    secrets = secrets_of(resolved.config, api_key=server.api_key, environ=os.environ)
    hide = partial(scrub, secrets=secrets)
    with Journal(output / "samples.jsonl") as journal:
        try:
            async with _limited(resolved.config.time_limit_seconds):
                await _find(
                    found, resolved, server=server, journal=journal, progress=progress, hide=hide
                )
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


async def _find(
    found: Findings,
    resolved: Resolved,
    *,
    server: Server,
    journal: Journal,
    progress: Progress,
    hide: Callable[[str], str],
) -> None:
    config = resolved.config
    choice = Choice(config, report=progress.fetching)
    choice.check()
    found.data = choice.shards.info()
    if server.why:
        progress.stage("route", f"{server.route}, since {server.why}")
    begin = time.perf_counter()
    async with server:
        address = without_password(server.base_url)
        progress.stage("starting" if server.command else "connecting", address)
        patient = server.command or "startup_max_wait_seconds" in resolved.given
        heartbeat = asyncio.create_task(_heartbeat(progress))
        try:
            limit = config.startup_max_wait_seconds if patient else ANSWER_SECONDS
            prepared = in_daemon_thread(choice.prepare)
            await raced(_both(server.ready(limit), prepared), server.died)
        finally:
            heartbeat.cancel()
        found.start_up = time.perf_counter() - begin
        async with Client(
            server.base_url,
            api_key=server.api_key,
            request_timeout=config.request_timeout_seconds,
            connections=config.concurrency,
        ) as client:
            begin = time.perf_counter()
            try:
                await watched(_plan(found, choice, client, server, progress), server)
            except ApiError as error:
                raise ServerError(f"{without_password(client.base_url)}: {error}") from error
            finally:
                found.planning = time.perf_counter() - begin
                found.data = choice.shards.info()
            assert found.plan is not None
            assert found.model is not None
            # Without every cell that was asked for by name, or a baseline that knows some of the
            # samples, there is no verdict: why ask for hours.
            check_cells(found.plan)
            if found.baseline is not None:
                check_plan(found.baseline, found.preflight, found.plan)
            begin = time.perf_counter()
            collector = Collector(
                config=config,
                client=client,
                model=found.model.id,
                shards=choice.shards,
                journal=journal,
                died=server.died,
                hide=hide,
                progress=progress.answered,
            )
            try:
                stopped_by = await collector.collect(found.plan)
            finally:
                found.asking = time.perf_counter() - begin
                found.records = [collector.done[index] for index in sorted(collector.done)]
            if stopped_by is None and any(r.outcome == "failed" for r in found.records):
                stopped_by = await death_soon(server)
            if stopped_by is not None:
                raise stopped_by
        progress.stage("stopping" if server.command else "done", address)


async def _plan(
    found: Findings,
    choice: Choice,
    client: Client,
    server: Server,
    progress: Progress,
) -> None:
    config = choice.config
    found.model = await find_model(client, config.model_name, ours=bool(server.command))
    found.version = await client.version()
    limit = prompt_limit(config, found.model)
    progress.stage("choosing", found.model.id)
    found.preflight = await preflight(
        client, config=config, model=found.model.id, merge=config.merge_leading_user_turns
    )
    found.notes.extend(found.preflight.notes)
    found.plan = await choice.choose(
        limit=limit,
        client=client,
        model=found.model,
        seen=found.preflight,
        progress=progress.chosen,
    )
    found.notes.extend(found.plan.notes)
    progress.planned(found.plan)


async def find_model(client: Client, wanted: str | None, *, ours: bool) -> ModelEntry:
    """The entry of /v1/models to ask.

    Args:
        client: the server.
        wanted: a served name, or the model that an entry was loaded from.
        ours: whether the server was started for this model.

    Raises:
        UsageError: the key is wrong, or the server serves other models only.
        ServerError: the server serves nothing, or does not answer, or cannot be the one that
            was started here.
    """
    address = without_password(client.base_url)
    try:
        entries = await client.models()
    except Denied as error:
        key = "Pass the server's key in MRCR_API_KEY or with --api-key."
        path = "Is the path of --base-url right? /v1 and what lies behind it are added to it."
        raise UsageError(
            f"{address}: {error}",
            hint=key if error.status in {401, 403} else path,
        ) from error
    except ApiError as error:
        raise ServerError(f"{address}: {error}") from error
    if not entries:
        raise ServerError(f"{address}: /v1/models lists no model")
    for entry in entries:
        if wanted is None or wanted in {entry.id, entry.root}:
            return entry
    served = ", ".join(entry.id for entry in entries[:10])
    if ours:
        raise ServerError(
            f"another server answers at {address}: it serves {served}, not {wanted}",
            hint="Leave --port out to have a free one chosen.",
        )
    raise UsageError(f"--model {wanted}: not served there; /v1/models lists {served}")


def prompt_limit(config: RunConfig, model: ModelEntry) -> int:
    """Longest prompt of the run, in the server's tokens.

    Raises:
        UsageError: neither the configuration nor the server tells; or an answer may fill it all.
    """
    check_window(config, model.max_model_len)
    limit = config.prompt_limit(model.max_model_len)
    if limit is None:
        raise UsageError(
            f"the server does not tell the context length of {model.id}",
            hint="Pass --max-prompt-tokens N: the context length less max_tokens and a margin.",
        )
    return limit


def check_window(config: RunConfig, window: int | None) -> None:
    """See that a window, in tokens, has room for more than an answer.

    Raises:
        UsageError: it has not.
    """
    if window is not None and config.max_tokens >= window:
        raise UsageError(
            f"max_tokens {config.max_tokens:,}: the server's window has {window:,} tokens for"
            " prompt and answer together",
            hint="Lower --max-tokens, or serve with a longer --max-model-len.",
        )


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


async def _both(first: Awaitable[None], second: Awaitable[None]) -> None:
    """Wait for both; the first error ends the other."""
    tasks = {asyncio.ensure_future(first), asyncio.ensure_future(second)}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _heartbeat(progress: Progress) -> None:
    """Show that a start, which can take minutes, is still waited for."""
    begin = time.perf_counter()
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        progress.waiting(time.perf_counter() - begin)
