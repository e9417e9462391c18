"""A process that ends while a C++ library still works in a thread that nobody waits for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.unit.handmade import row, write_rows

if TYPE_CHECKING:
    from pathlib import Path


ENDLESS = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b"

# A command whose work is given up, as a cancelled run gives up reading the dataset.
GIVEN_UP = f"""
import asyncio, sys, duckdb
from mrcr_action import cli
from mrcr_action.daemon_thread import in_daemon_thread

async def body():
    work = asyncio.create_task(in_daemon_thread(lambda: duckdb.sql({ENDLESS!r}).fetchall()))
    await asyncio.sleep(1)
    work.cancel()

def command(options):
    asyncio.run(body())
    print("done")
    return 3

cli.COMMANDS["schema"] = command
sys.exit(cli.main(["schema", "config"]))
"""

# A command that reads parquet in its own thread.
READING = f"""
import signal, sys
from mrcr_action import cli
from mrcr_action.data import parquet

def command(options):
    with parquet._opened(__import__("pathlib").Path(sys.argv[1])) as connection:
        print("reading", flush=True)
        connection.execute({ENDLESS!r}).fetchall()

# Shells let what they run in the background ignore it, and that is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.COMMANDS["schema"] = command
sys.exit(cli.main(["schema", "config"]))
"""


def test_work_left_behind_neither_holds_up_nor_changes_the_exit_code() -> None:
    begin = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", GIVEN_UP], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (3, "done\n"), ended.stderr
    assert ended.stderr == ""
    assert time.monotonic() - begin < 30


def test_an_interrupt_that_the_library_takes_is_still_one(tmp_path: Path) -> None:
    folder = write_rows(tmp_path, [row(2, 0, 500)])
    process = subprocess.Popen(
        [sys.executable, "-c", READING, str(folder / "2needle" / "2needle_0.parquet")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "reading\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert said == "mrcr: cancelled\n"
