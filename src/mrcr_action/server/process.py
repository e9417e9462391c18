"""A server started here as a process of its own, and stopped again without leftovers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from typing import TYPE_CHECKING, Self

from mrcr_action.errors import OutputError, ServerError
from mrcr_action.server import guard
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mrcr_action.server import RouteName


class ProcessServer:
    """A command that serves the API on a port of this machine."""

    route: RouteName = "process"
    image: str | None = None

    def __init__(
        self,
        command: Sequence[str],
        *,
        port: int,
        log: Path,
        env: Mapping[str, str] | None = None,
        api_key: str | None = None,
        grace: float = GRACE_SECONDS,
        why: str = "",
    ) -> None:
        """Prepare a server; nothing is started yet.

        Args:
            command: program and arguments.
            port: where it will listen, on 127.0.0.1.
            log: file for its output.
            env: variables on top of this process's own.
            api_key: passed in the environment (VLLM_API_KEY), where `ps` does not show it.
            grace: seconds between SIGTERM and SIGKILL.
            why: what decided for this route.
        """
        self.why = why
        self.command = tuple(command)
        self._port = port
        self.base_url = f"http://127.0.0.1:{port}"
        self.api_key = api_key
        self.log = log
        self._env = dict(env or {})
        self._grace = grace
        self._mark = uuid.uuid4().hex
        self._guard: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        check_port_free(self._port)
        environment = {**os.environ, "NO_COLOR": "1", **self._env}
        if self.api_key:
            environment["VLLM_API_KEY"] = self.api_key
        try:
            # A new file, and none that a link of this name leads to.
            self.log.unlink(missing_ok=True)
            output = self.log.open("xb")
        except OSError as error:
            raise OutputError(f"{self.log}: cannot be written: {error.strerror}") from error
        with output:
            try:
                self._guard = await asyncio.create_subprocess_exec(
                    sys.executable,
                    # A job's PYTHONPATH must not lend the guard its modules.
                    "-I" if sys.flags.isolated else "-P",
                    guard.__file__,
                    self._mark,
                    str(self._grace),
                    *self.command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
            except asyncio.CancelledError:
                # Cancelled between the start of the guard and the knowledge of it.
                guard.kill_marked(self._mark)
                raise
        return self

    async def __aexit__(self, *error: object) -> None:
        if was_cancelled(error):
            self._hurry()
        await uninterrupted(self._stop(), self._hurry)

    async def ready(self, limit: float) -> None:
        """See `mrcr_action.server.Server`."""
        await wait_for_own(self, self.log, limit=limit)

    async def died(self) -> ServerError:
        """See `mrcr_action.server.Server`; whatever its exit code, a dead server is an error."""
        assert self._guard is not None
        code = await self._guard.wait()
        found = explain(self.log)
        cause = f": {found.cause}" if found.cause else ""
        return ServerError(
            f"the server ended by itself with {exit_text(code)}{cause}",
            hint=f"Its whole log is in {self.log}.",
            details=found.details,
        )

    def _hurry(self) -> None:
        """Shorten the grace: who cancels waits, and a runner waits for seconds only."""
        self._grace = min(self._grace, CANCELLED_GRACE_SECONDS)
        self._say(f"{self._grace}")

    def _say(self, word: str) -> None:
        """Tell the guard something; a guard that is gone hears nothing."""
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.write(f"{word}\n".encode())

    async def _stop(self) -> None:
        if self._guard is None:
            return
        self._say("stop")
        try:
            await asyncio.wait_for(self._guard.wait(), self._grace + 12.0)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._guard.kill()
            await self._guard.wait()
        # The guard has done this; it is done again in case the guard itself was killed.
        await asyncio.to_thread(guard.kill_marked, self._mark)
