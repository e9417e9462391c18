from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from mrcr_action.daemon_thread import in_daemon_thread

SCRIPT = """
import asyncio, time
from mrcr_action.daemon_thread import in_daemon_thread, leave_work_behind

async def body():
    asyncio.ensure_future(in_daemon_thread(lambda: time.sleep({seconds})))
    await asyncio.sleep(0)

asyncio.run(body())
leave_work_behind(7)
print("went on")
"""


@pytest.mark.parametrize(
    ("seconds", "code", "said"), [("0.02", 0, "went on\n"), ("60", 7, "")], ids=["ends", "works"]
)
def test_only_work_that_goes_on_ends_the_process_at_once(
    seconds: str, code: int, said: str
) -> None:
    script = SCRIPT.format(seconds=seconds)

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (code, said), done.stderr


def failing(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [KeyError("k"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_error_of_the_work_is_that_of_the_task_that_waits(error: BaseException) -> None:
    async def waits() -> BaseException | None:
        try:
            await in_daemon_thread(lambda: failing(error))
        except BaseException as raised:
            return raised
        return None

    assert asyncio.run(waits()) is error


def test_exhausted_iterator_in_the_work_is_an_error_and_no_endless_wait() -> None:
    async def waits() -> None:
        await asyncio.wait_for(in_daemon_thread(lambda: next(iter(()))), 10)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(waits())
