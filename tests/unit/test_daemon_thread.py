from __future__ import annotations

import subprocess
import sys

import pytest

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
