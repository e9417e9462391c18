"""Waiting until a server is well."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mrcr_action.client import Client
from mrcr_action.errors import ServerError
from mrcr_action.server.log import explain
from mrcr_action.server.watch import raced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mrcr_action.server import Server

POLL_SECONDS = 0.25


async def wait_healthy(
    look: Callable[[], Awaitable[str]], *, address: str, limit: float, hint: str
) -> None:
    """Look until nothing is wrong.

    Args:
        look: returns what is wrong with the server, or nothing.
        address: what to call the server.
        limit: seconds in all.
        hint: what to do when the time is up.

    Raises:
        ServerError: the time is up; says what was wrong last.
    """
    trouble = ""
    try:
        async with asyncio.timeout(limit):
            while found := await look():
                trouble = found
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        why = f" ({trouble})" if trouble else ""
        raise ServerError(
            f"the server at {address} was not healthy within {limit:g} s{why}", hint=hint
        ) from None


async def wait_for_own(server: Server, log: Path, *, limit: float) -> None:
    """Wait for a server that was started here, unless it dies first.

    Args:
        server: with its address and key.
        log: its output, which explains a failure.
        limit: seconds in all.

    Raises:
        ServerError: it died, or the time is up.
    """
    async with Client(server.base_url, api_key=server.api_key) as client:

        async def look() -> str:
            return (await client.health()).trouble

        try:
            healthy = wait_healthy(
                look,
                address=server.base_url,
                limit=limit,
                hint="A large model needs longer: raise startup_max_wait_seconds. The server's"
                f" whole log is in {log}.",
            )
            await raced(healthy, server.died)
        except ServerError as error:
            if not error.details:
                error.details = explain(log).details
            raise
