"""Waiting for /health, with the server watched beside the wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mrcr_action.errors import ServerError
from mrcr_action.publish import without_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mrcr_action.client import Client

POLL_SECONDS = 0.25


async def wait_healthy(
    client: Client, *, limit: float, died: Callable[[], Awaitable[ServerError]], hint: str
) -> None:
    """Poll /health until it answers 200.

    Args:
        client: the server.
        limit: seconds in all.
        died: see `mrcr_action.server.Server`.
        hint: what to do when the time is up.

    Raises:
        ServerError: the server died meanwhile, or the time is up.
    """

    async def poll() -> None:
        while not await client.healthy():  # noqa: ASYNC110 - another process, no event to await
            await asyncio.sleep(POLL_SECONDS)

    polling = asyncio.create_task(poll())
    death = asyncio.ensure_future(died())
    try:
        await asyncio.wait({polling, death}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if death.done():
            raise death.result()
        if not polling.done():
            address = without_password(client.base_url)
            raise ServerError(
                f"the server at {address} was not healthy within {limit:g} s", hint=hint
            )
        polling.result()
    finally:
        polling.cancel()
        death.cancel()
        await asyncio.gather(polling, death, return_exceptions=True)
