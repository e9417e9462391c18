"""What leaving a server that was started here takes, whichever way it was started."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

GRACE_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""

CANCELLED_GRACE_SECONDS = 1.0
"""The same in a run that was cancelled: GitHub's runner kills after 10 s, reports included."""

SIGNAL_BASE = 128
"""A shell's exit code for a command that signal N ended is 128 + N."""


def was_cancelled(error: Sequence[object]) -> bool:
    """Whether the arguments of an ``__aexit__`` say that the block was cancelled."""
    return isinstance(error[1] if len(error) > 1 else None, asyncio.CancelledError)


async def uninterrupted(stop: Coroutine[None, None, None], hurry: Callable[[], None]) -> None:
    """Await a stop to its end: a second Ctrl-C must not leave a server behind.

    Args:
        stop: stops the server.
        hurry: called for every cancellation that comes meanwhile.

    Raises:
        CancelledError: one came; raised once the stop is done.
    """
    stopping = asyncio.create_task(stop)
    cancelled = False
    while not stopping.done():
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            cancelled = True
            hurry()
    stopping.result()
    if cancelled:
        raise asyncio.CancelledError


def exit_text(code: int) -> str:
    """An exit code in words, with the signal that it stands for."""
    number = code - SIGNAL_BASE if code > SIGNAL_BASE else max(0, -code)
    try:
        return f"exit code {code}" + (f" ({signal.Signals(number).name})" if number else "")
    except ValueError:
        return f"exit code {code}"
