"""The steps of a run: serve, choose, ask; and once more on a second server where that is wanted."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.baseline import check_plan
from mrcr_action.client import ApiError, Client
from mrcr_action.collect import Collector
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.errors import ServerError
from mrcr_action.extension import extended, more_wanted
from mrcr_action.findings import buckets_in
from mrcr_action.gate import check_cells
from mrcr_action.parts import split
from mrcr_action.preflight import preflight
from mrcr_action.proxies import is_loopback
from mrcr_action.publish import without_password
from mrcr_action.rounds import with_rounds
from mrcr_action.rounds.boundary import Boundaries
from mrcr_action.rounds.kv_cache import look, since
from mrcr_action.rounds.pool import pool_arguments, with_pool
from mrcr_action.rounds.sweep import with_sweep
from mrcr_action.served import find_model, prompt_limit
from mrcr_action.server.external import ANSWER_SECONDS
from mrcr_action.server.gpu import visible_gpus
from mrcr_action.server.watch import death_soon, raced, watched
from mrcr_action.stopping import Stopping
from mrcr_action.telemetry.gpu import read_gpus
from mrcr_action.telemetry.sampler import observed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from mrcr_action.choice import Choice
    from mrcr_action.config import RunConfig
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.extension import More
    from mrcr_action.findings import Findings
    from mrcr_action.journal import Journal
    from mrcr_action.plan import Ask
    from mrcr_action.report.progress import Progress
    from mrcr_action.result import Record
    from mrcr_action.server import Server
    from mrcr_action.telemetry.document import Of

HEARTBEAT_SECONDS = 30.0


@dataclass(frozen=True)
class Steps:
    """What every step of a run needs, and what they have found."""

    resolved: Resolved
    found: Findings
    journal: Journal
    progress: Progress
    hide: Callable[[str], str]
    choice: Choice
    done: dict[int, Record] = field(default_factory=dict)
    salt: str = field(default_factory=lambda: f"mrcr-{secrets.token_hex(8)}")

    @property
    def config(self) -> RunConfig:
        """The configuration."""
        return self.resolved.config

    async def find(self, server: Server, second: Callable[[Sequence[str]], Server] | None) -> None:
        """Everything, from the dataset's names to the last answer.

        Raises:
            MrcrError: what stopped it; what was found before is in ``found``.
        """
        self.choice.check()
        self.found.data = self.choice.shards.info()
        if server.why:
            self.progress.stage("route", f"{server.route}, since {server.why}")
        async with self._serving(server, self.choice.prepare) as client:
            await self._choose(client, server, can_restart=second is not None)
            before = self.found.cache
            assert before is not None
            async with self._observed(server, client, "run"):
                await self._ask(server, client, self._asks(of_pool=False))
                await self._ask_more(server, client)
            self.found.cache = since(before, await look(client, server.command, server.log))
        plan = self.found.plan
        assert plan is not None
        if any(round_.is_of_pool for round_ in plan.rounds) and not self.found.stopped:
            assert second is not None
            other = second(pool_arguments(plan, self.config, self.found.cache, self.done.values()))
            try:
                async with (
                    self._serving(other, _nothing) as client,
                    self._observed(other, client, "small pool"),
                ):
                    await self._ask(other, client, self._asks(of_pool=True), may_stop=False)
            except ServerError as error:
                told = f"the second server, with a small KV cache: {error}"
                hint = f"{error.hint} Without small_pool there is no second server.".strip()
                raise ServerError(told, hint=hint, details=error.details) from error

    @contextlib.asynccontextmanager
    async def _serving(
        self, server: Server, meanwhile: Callable[[], None]
    ) -> AsyncIterator[Client]:
        """A healthy server and a client of it, while the block lasts.

        Args:
            server: not yet entered.
            meanwhile: done in a thread while it starts.
        """
        config, found, begin = self.config, self.found, time.perf_counter()
        async with server:
            address = without_password(server.base_url)
            self.progress.stage("starting" if server.command else "connecting", address)
            patient = server.command or "startup_max_wait_seconds" in self.resolved.given
            heartbeat = asyncio.create_task(_heartbeat(self.progress))
            try:
                limit = config.startup_max_wait_seconds if patient else ANSWER_SECONDS
                prepared = in_daemon_thread(meanwhile)
                await raced(_both(server.ready(limit), prepared), server.died)
            finally:
                heartbeat.cancel()
            found.start_up += time.perf_counter() - begin
            async with Client(
                server.base_url,
                api_key=server.api_key,
                request_timeout=config.request_timeout_seconds,
                connections=max(config.concurrencies),
            ) as client:
                yield client
            self.progress.stage("stopping" if server.command else "done", address)

    def _observed(
        self, server: Server, client: Client, of: Of
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Have a server observed while the block asks it."""
        # The GPUs seen here are those of a server elsewhere only by chance.
        sees = is_loopback(server.base_url) and "NVIDIA" in visible_gpus()
        return observed(
            client,
            self.found.servers,
            of=of,
            meter=self.found.gpus,
            read=read_gpus if sees else None,
        )

    async def _choose(self, client: Client, server: Server, *, can_restart: bool) -> None:
        found, begin = self.found, time.perf_counter()
        try:
            await watched(self._plan(client, server, can_restart=can_restart), server)
        except ApiError as error:
            raise ServerError(f"{without_password(client.base_url)}: {error}") from error
        finally:
            found.planning = time.perf_counter() - begin
            found.data = self.choice.shards.info()
        assert found.plan is not None
        # Without every cell that was asked for by name, or a baseline that knows some of the
        # samples, there is no verdict: why ask for hours.
        check_cells(found.plan)
        if found.baseline is not None:
            check_plan(found.baseline, found.preflight, found.plan)
        if self.config.shard_of is not None:
            found.part, found.plan = split(found.plan, *self.config.shard_of)
            asks = len(found.part.whole.asks)
            self.progress.stage("part", f"{found.part}, of a plan of {asks} requests")
            self.progress.planned(found.plan)

    async def _plan(self, client: Client, server: Server, *, can_restart: bool) -> None:
        config, found = self.config, self.found
        found.model = await find_model(client, config.model_name, ours=bool(server.command))
        found.version = await client.version()
        limit = prompt_limit(config, found.model)
        self.progress.stage("choosing", found.model.id)
        found.preflight = await preflight(
            client, config=config, model=found.model.id, merge=config.merge_leading_user_turns
        )
        found.notes.extend(found.preflight.notes)
        plan = await self.choice.choose(
            limit=limit,
            client=client,
            model=found.model,
            seen=found.preflight,
            progress=self.progress.chosen,
        )
        plan = with_rounds(plan, config)
        found.cache = cache = await look(client, server.command, server.log)
        if config.boundaries:
            boundaries = Boundaries(
                config=config, client=client, model=found.model.id, shards=self.choice.shards
            )
            plan = await boundaries.add(plan, cache)
        if config.sweep:
            plan = await with_sweep(
                plan, config, self.choice.shards, cannot_read=self.choice.cannot_read
            )
        if config.small_pool:
            window = found.model.max_model_len
            plan = with_pool(plan, config, cache, own=can_restart, window=window)
        found.plan = plan
        found.notes.extend(plan.notes)
        if config.shard is None:
            self.progress.planned(plan)

    def _asks(self, *, of_pool: bool) -> list[Ask]:
        """What is meant for a server."""
        assert self.found.plan is not None
        pool = {round_.name for round_ in self.found.plan.rounds if round_.is_of_pool}
        return [ask for ask in self.found.plan.asks if (ask.pass_name in pool) is of_pool]

    async def _ask_more(self, server: Server, client: Client) -> None:
        """Ask further samples as long as a threshold is undecided and there are any.

        Raises:
            MrcrError: what stopped it.
        """
        while (more := await in_daemon_thread(self._more)) is not None:
            begin = time.perf_counter()
            assert self.found.plan is not None
            try:
                chosen = await watched(
                    self.choice.more(more.levels, progress=self.progress.chosen), server
                )
            except ApiError as error:
                raise ServerError(f"{without_password(client.base_url)}: {error}") from error
            finally:
                self.found.planning += time.perf_counter() - begin
            self.found.plan, asks = extended(self.found.plan, chosen, more, self.config)
            if asks:
                self.progress.extended(self.found.plan, len(asks))
                await self._ask(server, client, asks)

    def _more(self) -> More | None:
        plan = self.found.plan
        assert plan is not None
        if not plan.schedule:
            return None
        # What is asked of a second server comes last, and is held to no threshold.
        rounds = tuple(round_ for round_ in plan.rounds if not round_.is_of_pool)
        now = msgspec.structs.replace(plan, rounds=rounds)
        return more_wanted(plan, buckets_in(now, self.found.records, self.config), self.config)

    async def _ask(
        self, server: Server, client: Client, asks: Sequence[Ask], *, may_stop: bool = True
    ) -> None:
        """Ask some of the plan of a server.

        Args:
            server: alive.
            client: of it.
            asks: what is meant for it.
            may_stop: not of the second server, of which nothing is decided that could end that.

        Raises:
            MrcrError: what stopped it.
        """
        found, begin = self.found, time.perf_counter()
        assert found.plan is not None
        assert found.model is not None
        never = not may_stop or self.config.stop_when == "never"
        stopping = None if never else Stopping(self.config, found.plan)
        collector = Collector(
            config=self.config,
            client=client,
            model=found.model.id,
            shards=self.choice.shards,
            journal=self.journal,
            died=server.died,
            hide=self.hide,
            progress=self.progress.answered,
            salt=self.salt if len(found.plan.rounds) > 1 else None,
            stopping=stopping,
            done=self.done,
        )
        try:
            stopped_by = await collector.collect(found.plan, asks)
            if stopping is not None and stopping.is_over and len(self.done) < len(found.plan.asks):
                found.stopped = stopped_by is None
        finally:
            found.asking += time.perf_counter() - begin
            found.records = [self.done[index] for index in sorted(self.done)]
        own = [self.done[ask.index] for ask in asks if ask.index in self.done]
        if stopped_by is None and any(r.outcome == "failed" for r in own):
            stopped_by = await death_soon(server)
        if stopped_by is not None:
            raise stopped_by


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


def _nothing() -> None:
    """What there is to do while a second server starts."""
