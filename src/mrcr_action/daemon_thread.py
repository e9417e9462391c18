"""Slow work off the event loop, in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Run in a daemon thread: unlike for a pool's, neither a cancelled run nor exit waits."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def body() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (future.set_result, work())
        except BaseException as error:
            # Carried over to the waiting task.
            outcome = (future.set_exception, error)
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            return

    threading.Thread(target=body, daemon=True, name="mrcr-work").start()
    return await future
