"""Waiting for anything with the server watched beside the wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from mrcr_action.client import ApiError
from mrcr_action.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mrcr_action.server import Server

T = TypeVar("T")

LATE_SECONDS = 6.0
"""A vLLM whose engine was lost answers with errors first and ends within some 3 seconds."""


async def raced(work: Awaitable[T], died: Callable[[], Awaitable[ServerError]]) -> T:
    """Await work, unless the server dies first; neither is left running.

    Raises:
        ServerError: the server died meanwhile.
        Exception: whatever the work raises otherwise.
    """
    working, death = asyncio.ensure_future(work), asyncio.ensure_future(died())
    try:
        await asyncio.wait({working, death}, return_when=asyncio.FIRST_COMPLETED)
        if death.done() and not working.done():
            raise death.result()
        return working.result()
    finally:
        working.cancel()
        death.cancel()
        await asyncio.gather(working, death, return_exceptions=True)


async def watched(work: Awaitable[T], server: Server) -> T:
    """Await work that needs the server's answers.

    Raises:
        ServerError: the server died meanwhile; or the work failed for want of an answer, and the
            server died soon after, which is then the better explanation.
        Exception: whatever the work raises otherwise.
    """
    try:
        return await raced(work, server.died)
    except (ApiError, ServerError):
        if late := await death_soon(server):
            raise late from None
        raise


async def death_soon(server: Server) -> ServerError | None:
    """The death of a server started here, if it comes within `LATE_SECONDS`; else None."""
    if not server.command:
        return None
    try:
        return await asyncio.wait_for(server.died(), LATE_SECONDS)
    except TimeoutError:
        return None
