"""A server process that does not want to go."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from mrcr_action.errors import OutputError, ServerError
from mrcr_action.server import guard, process
from mrcr_action.server.process import ProcessServer

if TYPE_CHECKING:
    from pathlib import Path

DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "601"])
subprocess.Popen(["setsid", "sleep", "602"])
print("deaf to SIGTERM", flush=True)
time.sleep(600)
"""
"""A server that ignores SIGTERM, with a child in its group and another in a session of its own."""


async def wait_for(log: Path, text: str) -> None:
    async with asyncio.timeout(20):
        while not log.exists() or text not in log.read_text():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)


def processes_of(server: ProcessServer) -> list[psutil.Process]:
    return guard.marked(server._mark)


def test_a_server_deaf_to_sigterm_is_killed_after_the_grace_with_all_its_children(
    tmp_path: Path,
) -> None:
    log = tmp_path / "server.log"

    async def body() -> float:
        server = ProcessServer([sys.executable, "-c", DEAF], port=1, log=log, grace=0.7)
        async with server:
            await wait_for(log, "deaf")
            assert len(processes_of(server)) == 3
            begin = time.monotonic()
        assert processes_of(server) == []
        return time.monotonic() - begin

    assert 0.7 < asyncio.run(body()) < 5


def test_the_log_is_a_new_file_where_there_was_a_link(tmp_path: Path) -> None:
    log, precious = tmp_path / "server.log", tmp_path / "precious"
    precious.write_text("precious")
    log.symlink_to(precious)

    async def body() -> None:
        async with ProcessServer([sys.executable, "-c", DEAF], port=1, log=log, grace=0.7):
            await wait_for(log, "deaf")

    asyncio.run(body())

    assert precious.read_text() == "precious"


def test_a_cancelled_stop_is_finished_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "server.log"

    async def body() -> None:
        server = ProcessServer([sys.executable, "-c", DEAF], port=1, log=log, grace=0.7)

        async def serve() -> None:
            async with server:
                await wait_for(log, "deaf")

        serving = asyncio.create_task(serve())
        await wait_for(log, "deaf")
        for _ in range(3):
            await asyncio.sleep(0.1)
            serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert processes_of(server) == []

    asyncio.run(body())


def test_a_killed_guard_is_stood_in_for(tmp_path: Path) -> None:
    log = tmp_path / "server.log"

    async def body() -> None:
        server = ProcessServer([sys.executable, "-c", DEAF], port=1, log=log)
        async with server:
            await wait_for(log, "deaf")
            assert server._guard is not None
            server._guard.kill()
            assert "exit code -9 (SIGKILL)" in str(await server.died())
        assert processes_of(server) == []

    asyncio.run(body())


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        (["/nowhere/vllm"], "exit code 127: /nowhere/vllm: No such file or directory"),
        (["sh", "-c", "kill -SEGV $$"], "exit code 139 (SIGSEGV)"),
        (["true"], "exit code 0"),
    ],
)
def test_every_end_is_an_error_and_told_in_words(
    tmp_path: Path, command: list[str], ending: str
) -> None:
    async def body() -> ServerError:
        async with ProcessServer(command, port=1, log=tmp_path / "server.log") as server:
            with pytest.raises(ServerError) as caught:
                await server.ready(20)
        return caught.value

    assert str(asyncio.run(body())) == f"the server ended by itself with {ending}"


def test_a_log_that_cannot_be_written_starts_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with ProcessServer(["true"], port=1, log=tmp_path / "missing" / "server.log"):
            raise AssertionError

    with pytest.raises(OutputError, match=r"server\.log: cannot be written"):
        asyncio.run(body())


ENGINE = """
import os, signal, subprocess, sys, time
engine = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('deaf', flush=True); time.sleep(600)"
)
child = subprocess.Popen([sys.executable, "-c", engine], env={}, start_new_session=ELSEWHERE)
print("engine", child.pid, flush=True)
time.sleep(LIFE)
"""
"""A server whose engine is deaf and carries no mark, as after a change of its process title."""


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("life", [0.5, 600])
def test_an_engine_without_a_mark_goes_with_its_server(
    tmp_path: Path, life: float, *, elsewhere: bool
) -> None:
    log = tmp_path / "server.log"
    script = ENGINE.replace("ELSEWHERE", str(elsewhere)).replace("LIFE", str(life))

    async def body() -> int:
        server = ProcessServer([sys.executable, "-c", script], port=1, log=log, grace=0.5)
        async with server:
            await wait_for(log, "deaf")
            if life < 1:
                assert "exit code 0" in str(await server.died())
        return int(log.read_text().split("engine ")[1].split()[0])

    engine = asyncio.run(body())
    assert not psutil.pid_exists(engine)


def test_a_cancelled_run_shortens_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    monkeypatch.setattr(process, "CANCELLED_GRACE_SECONDS", 0.3)

    async def body() -> float:
        server = ProcessServer([sys.executable, "-c", DEAF], port=1, log=log, grace=60)
        begin = time.monotonic()
        with contextlib.suppress(asyncio.CancelledError):
            async with server:
                await wait_for(log, "deaf")
                begin = time.monotonic()
                raise asyncio.CancelledError
        assert processes_of(server) == []
        return time.monotonic() - begin

    assert asyncio.run(body()) < 10
