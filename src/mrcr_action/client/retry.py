"""Sending again what a server did not take on: bounded, with pauses that grow and vary."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, TypeVar

from mrcr_action.client.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

ATTEMPTS = 4
"""How often a request that the server did not take on is sent in all."""

FIRST_PAUSE = 0.5
"""Seconds before the second attempt; doubled each time, with up to half as much jitter."""

LONGEST_PAUSE = 30.0
"""Seconds; a longer Retry-After is not waited for."""


async def retried(send: Callable[[], Awaitable[T]]) -> T:
    """Send until the server takes the request on.

    Raises:
        Unavailable: it did not, `ATTEMPTS` times or for longer than may be waited.
        ApiError: every other end, at once.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return await send()
        except Unavailable as error:
            pause = max(error.retry_after, FIRST_PAUSE * 2 ** (attempt - 1))
            if attempt >= ATTEMPTS or pause > LONGEST_PAUSE:
                raise
            await asyncio.sleep(pause * random.uniform(1, 1.5))  # noqa: S311 - jitter
