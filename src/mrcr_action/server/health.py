"""Waiting until a server is well."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mrcr_action.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
