"""A server in a container of its own, beside this process, that is gone when the run is."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.errors import MrcrError, OutputError, ServerError
from mrcr_action.report.text import one_line
from mrcr_action.server.engine.errors import EngineLost
from mrcr_action.server.health import wait_for_own
from mrcr_action.server.leave import (
    CANCELLED_GRACE_SECONDS,
    GRACE_SECONDS,
    exit_text,
    uninterrupted,
    was_cancelled,
)
from mrcr_action.server.log import explain
from mrcr_action.server.port import check_port_free
from mrcr_action.server.pull import PullLog
from mrcr_action.server.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import RawIOBase
    from pathlib import Path

    from mrcr_action.server import RouteName
    from mrcr_action.server.engine import Engine, Plan

REMOVE_SECONDS = 30.0
"""Longest wait for the engine to kill and remove; a GPU's memory takes a while to be freed."""

CANCELLED_REMOVE_SECONDS = 3.0
"""The same in a cancelled run; the engine goes on by itself."""

POLL_SECONDS = 0.05
LAST_LINES_SECONDS = 2.0
"""For the end of the output to arrive once the container has ended."""

RECONNECTS = 5
RECONNECT_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class End:
    """How a container ended."""

    exit_code: int | None = None
    """None if nobody knows any more."""
    out_of_memory: bool = False
    lost: str = ""
    """Why the engine could not be asked, if so."""


class ContainerServer:
    """A server whose container is pulled, made and started while `ready` waits."""

    route: RouteName = "container"

    def __init__(
        self,
        plan: Plan,
        *,
        connect: Callable[[], Engine],
        port: int,
        log: Path,
        image: str,
        api_key: str | None = None,
        grace: float = GRACE_SECONDS,
        why: str = "",
    ) -> None:
        """Prepare a server; nothing is started yet.

        Args:
            plan: the container.
            connect: connects to the engine; called once, when the server is entered.
            port: where it will be reachable, on 127.0.0.1.
            log: file for its output, and before it for what goes on until it starts.
            image: name of its image, for people.
            api_key: the key that it asks for.
            grace: seconds between SIGTERM and SIGKILL.
            why: what decided for this route.
        """
        self.why = why
        self.image: str | None = image
        self.command = plan.command
        self.base_url = f"http://127.0.0.1:{port}"
        self.api_key = api_key
        self.log = log
        self._plan = plan
        self._connect = connect
        self._engine: Engine | None = None
        self._port = port
        self._grace = grace
        self._hurried = False
        self._halt = threading.Event()
        self._pulling = False
        self._output: RawIOBase | None = None
        self._reader: threading.Thread | None = None
        self._starting: asyncio.Task[None] | None = None
        self._life: asyncio.Task[End] | None = None

    async def __aenter__(self) -> Self:
        check_port_free(self._port)
        try:
            # A new file, and none that a link of this name leads to. It stays open, since the
            # server, to which the folder belongs too, may put a link into its place.
            self.log.unlink(missing_ok=True)
            self._output = self.log.open("xb", buffering=0)
        except OSError as error:
            raise OutputError(f"{self.log}: cannot be written: {error.strerror}") from error
        self._starting = asyncio.create_task(in_daemon_thread(self._start))
        self._life = asyncio.create_task(self._live(self._starting))
        return self

    async def __aexit__(self, *error: object) -> None:
        if was_cancelled(error):
            self._hurry()
        await uninterrupted(self._stop(), self._hurry)

    async def ready(self, limit: float) -> None:
        """See `mrcr_action.server.Server`; pulling the image counts."""
        assert self._starting is not None
        begin = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                await asyncio.shield(self._starting)
        except TimeoutError:
            what = "image was not pulled" if self._pulling else "container was not started"
            raise ServerError(
                f"the server's {what} within {limit:g} s",
                hint="Raise startup_max_wait_seconds, or pull the image beforehand (docker pull"
                f" {self.image}).",
                details=explain(self.log).details,
            ) from None
        left = limit - (time.monotonic() - begin)
        await wait_for_own(self, self.log, limit=max(1.0, round(left, 1)))

    async def died(self) -> ServerError:
        """See `mrcr_action.server.Server`; one that never started has not died: `ready` tells."""
        assert self._life is not None
        try:
            end = await asyncio.shield(self._life)
        except MrcrError:
            await asyncio.Event().wait()
            raise
        await self._last_lines()
        found = explain(self.log)
        hint = f"Its whole log is in {self.log}."
        if end.lost:
            what = f"the container engine was lost while the server ran: {end.lost}"
            hint = f"Was the engine restarted? {hint}"
        elif end.exit_code is None:
            what = "the server's container was removed by somebody else"
        elif end.out_of_memory:
            what = f"the server was killed for want of memory, with {exit_text(end.exit_code)}"
            hint = f"Give the machine or the engine more memory. {hint}"
        else:
            cause = f": {found.cause}" if found.cause else ""
            what = f"the server's container ended by itself with {exit_text(end.exit_code)}{cause}"
        return ServerError(what, hint=hint, details=found.details)

    def _start(self) -> None:
        """Connect, sweep, pull, create, attach, start; in a thread. Ends early if told to halt."""
        engine, plan = self._connect(), self._plan
        self._engine = engine
        try:
            for name in sweep(engine):
                self._note(f"removed {name}, which a run had left behind")
        except ServerError as error:
            self._note(f"could not look for what other runs have left behind: {error}")
        if not self._halt.is_set() and not engine.has_image(plan.image):
            self._pull(engine)
        if self._halt.is_set():
            return
        engine.create(plan)
        try:
            if self._halt.is_set():
                return
            # Attached before the start, so that no output is missed, whatever logs are kept.
            self._reader = threading.Thread(
                target=self._read, args=(engine.output(plan.name),), daemon=True
            )
            self._reader.start()
            engine.start(plan)
        finally:
            # Whoever leaves removes it, too, but may have been too early for it.
            if self._halt.is_set():
                engine.remove(plan.name)

    def _pull(self, engine: Engine) -> None:
        self._pulling = True
        try:
            self._note(f"pulling the image {self._plan.image}")
            lines = PullLog(self._note)
            for event in engine.pull(self._plan.image):
                if self._halt.is_set():
                    return
                lines.event(event)
        finally:
            self._pulling = False

    def _note(self, text: str) -> None:
        self._write(f"mrcr: {one_line(text, 1_000)}\n".encode())

    def _read(self, output: Iterator[bytes]) -> None:
        try:
            for chunk in output:
                self._write(chunk)
        except MrcrError as error:
            if not self._halt.is_set():
                self._note(str(error))

    def _write(self, text: bytes) -> None:
        assert self._output is not None
        try:
            self._output.write(text)
        except (OSError, ValueError) as error:
            # Reading goes on: a server whose output nobody takes comes to a halt.
            log.debug("%s: %s", self.log, error)

    async def _live(self, starting: asyncio.Task[None]) -> End:
        await asyncio.shield(starting)
        assert self._engine is not None
        return await in_daemon_thread(partial(self._await_end, self._engine))

    def _await_end(self, engine: Engine) -> End:
        """Wait for the container's end, in a thread; a lost connection alone is no end."""
        reason = ""
        for _ in range(RECONNECTS):
            try:
                code = engine.wait(self._plan.name)
                # Gone between its end and this look at it, it still has an exit code.
                seen = engine.container(self._plan.name)
                return End(code, out_of_memory=seen is not None and seen.out_of_memory)
            except EngineLost as error:
                reason = str(error)
            except ServerError as error:
                return End(lost=str(error))
            if self._halt.wait(RECONNECT_SECONDS):
                break
        return End(lost=reason)

    async def _last_lines(self) -> None:
        if self._reader is not None:
            await in_daemon_thread(partial(self._reader.join, LAST_LINES_SECONDS))

    def _hurry(self) -> None:
        """Shorten every wait: who cancels waits, and a runner waits for seconds only."""
        self._hurried = True
        self._grace = min(self._grace, CANCELLED_GRACE_SECONDS)

    async def _stop(self) -> None:
        if self._starting is None or self._life is None:
            return
        begin = time.monotonic()
        self._halt.set()
        # Nothing is created any more by a thread that still pulls: it looks at the halt first.
        while not self._starting.done() and not self._pulling and self._within(begin):
            await asyncio.wait({self._starting}, timeout=POLL_SECONDS)
        if self._engine is not None and await self._clear_away(self._engine, begin):
            await self._last_lines()
        for task in (self._starting, self._life):
            task.cancel()
        await asyncio.gather(self._starting, self._life, return_exceptions=True)
        if self._engine is not None:
            self._engine.close()
        if self._output is not None:
            self._output.close()

    async def _clear_away(self, engine: Engine, begin: float) -> bool:
        """Stop and remove the container; whether the engine has done it."""
        name = self._plan.name
        try:
            if self._is_up():
                await self._terminate(engine, begin)
            limit = CANCELLED_REMOVE_SECONDS if self._hurried else REMOVE_SECONDS
            await asyncio.wait_for(in_daemon_thread(partial(engine.remove, name)), limit)
        except (MrcrError, TimeoutError) as error:
            reason = str(error) or "the container engine did not answer in time"
            what = f"mrcr: the server's container may still run: {reason}"
            remedy = f"Remove it with: docker rm --force --volumes {name}"
            log.warning("%s", one_line(f"{what}. {remedy}", 1_000))
            return False
        return True

    def _is_up(self) -> bool:
        assert self._starting is not None
        assert self._life is not None
        started = self._starting.done() and not self._starting.cancelled()
        return started and self._starting.exception() is None and not self._life.done()

    async def _terminate(self, engine: Engine, begin: float) -> None:
        assert self._life is not None
        asked = asyncio.create_task(in_daemon_thread(partial(engine.terminate, self._plan.name)))
        while not self._life.done() and self._within(begin):
            await asyncio.wait({self._life}, timeout=POLL_SECONDS)
            if asked.done():
                asked.result()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    def _within(self, begin: float) -> bool:
        return time.monotonic() - begin < self._grace
