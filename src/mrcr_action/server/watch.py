"""Waiting for anything with the server watched beside the wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from mrcr_action.client import ApiError
from mrcr_action.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mrcr_action.server import Server

T = TypeVar("T")

LATE_SECONDS = 6.0
"""A vLLM whose engine was lost answers with errors first and ends within some 3 seconds."""


async def watched(work: Awaitable[T], server: Server, *, late: bool = True) -> T:
    """Await work that needs the server.

    Args:
        work: what to wait for.
        server: the server, entered.
        late: whether a death that comes soon after a failure of the work is waited for.

    Raises:
        ServerError: the server died meanwhile; or the work failed for want of an answer, and the
            server died soon after, which is then the better explanation.
        Exception: whatever the work raises otherwise.
    """
    working, death = asyncio.ensure_future(work), asyncio.ensure_future(server.died())
    try:
        await asyncio.wait({working, death}, return_when=asyncio.FIRST_COMPLETED)
        if death.done() and not working.done():
            raise death.result()
        try:
            return working.result()
        except (ApiError, ServerError):
            if late and (death_after := await death_soon(server)):
                raise death_after from None
            raise
    finally:
        for task in (working, death):
            task.cancel()
        await asyncio.gather(working, death, return_exceptions=True)


async def death_soon(server: Server) -> ServerError | None:
    """The death of a server started here, if it comes within `LATE_SECONDS`; else None."""
    if not server.command:
        return None
    try:
        return await asyncio.wait_for(server.died(), LATE_SECONDS)
    except TimeoutError:
        return None
