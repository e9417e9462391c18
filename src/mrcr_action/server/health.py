"""Waiting until a server is well, with its death watched beside the wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mrcr_action.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.25


async def wait_healthy(
    look: Callable[[], Awaitable[str]],
    *,
    address: str,
    limit: float,
    died: Callable[[], Awaitable[ServerError]],
    hint: str,
) -> None:
    """Look until nothing is wrong.

    Args:
        look: returns what is wrong with the server, or nothing.
        address: what to call the server.
        limit: seconds in all.
        died: see `mrcr_action.server.Server`.
        hint: what to do when the time is up.

    Raises:
        ServerError: the server died meanwhile, or the time is up; says what was wrong last.
    """
    trouble = ""

    async def poll() -> None:
        nonlocal trouble
        while found := await look():
            trouble = found
            await asyncio.sleep(POLL_SECONDS)

    polling = asyncio.create_task(poll())
    death = asyncio.ensure_future(died())
    try:
        await asyncio.wait({polling, death}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if death.done():
            raise death.result()
        if not polling.done():
            why = f" ({trouble})" if trouble else ""
            raise ServerError(
                f"the server at {address} was not healthy within {limit:g} s{why}", hint=hint
            )
        polling.result()
    finally:
        polling.cancel()
        death.cancel()
        await asyncio.gather(polling, death, return_exceptions=True)
