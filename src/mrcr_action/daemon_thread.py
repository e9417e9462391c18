"""Slow work off the event loop, in a thread that nobody has to wait for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, TypeVar, cast

from mrcr_action.cache import remove_temporary

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

T = TypeVar("T")

ENDING_SECONDS = 0.1
"""For a thread to end that has nothing left to do."""


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Run in a daemon thread: unlike for a pool's, neither a cancelled run nor exit waits."""
    # Imported here: the command line imports this module, and its help needs none of it.
    import asyncio

    loop = asyncio.get_running_loop()
    # An error is handed over as a value: a future that is given StopIteration is never done.
    future: asyncio.Future[tuple[T, None] | tuple[None, BaseException]] = loop.create_future()

    def settle(outcome: tuple[T, None] | tuple[None, BaseException]) -> None:
        if not future.done():
            future.set_result(outcome)

    def body() -> None:
        outcome: tuple[T, None] | tuple[None, BaseException]
        try:
            outcome = (work(), None)
        except BaseException as error:
            # Carried over to the waiting task.
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            return

    threading.Thread(target=body, daemon=True, name=_NAME).start()
    value, error = await future
    if error is not None:
        raise error
    return cast("T", value)


def leave_work_behind(code: int) -> None:
    """End the process at once if work is still being done that nobody waits for any more.

    An interpreter that ends in good order under a thread inside a C++ library, such as one that
    unpacks 400 MB, ends in an abort: the thread is unwound where nothing may be.

    Args:
        code: exit code of the process.
    """
    working = [thread for thread in threading.enumerate() if thread.name == _NAME]
    for thread in working:
        # One that has just handed its result over is about to end, and no reason to go like this.
        thread.join(ENDING_SECONDS)
    if any(thread.is_alive() for thread in working):
        remove_temporary()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


_NAME = "mrcr-work"
