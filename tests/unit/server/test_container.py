"""The life of a server's container: in which order, and that nothing is left on any way out."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from tests.unit.server.engines import FakeEngine, container

from mrcr_action.errors import MrcrError, OutputError, ServerError, UsageError
from mrcr_action.server import container as module
from mrcr_action.server.container import ContainerServer
from mrcr_action.server.engine import EngineLost, Plan
from mrcr_action.server.port import free_port
from mrcr_action.server.sweep import Owner, labels_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mrcr_action.server.engine import Engine

PLAN = Plan(
    name="mrcr-server-1",
    image="org/x:1",
    command=("vllm", "serve", "m"),
    environment={},
    labels={},
    network=None,
    published=None,
    gpus="none",
    shm_size="1g",
)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(images={"org/x:1"}, said=b"INFO loading\n")


@pytest.fixture
def make(engine: FakeEngine, tmp_path: Path) -> Callable[..., ContainerServer]:
    def server(grace: float = 5.0, connect: Callable[[], Engine] | None = None) -> ContainerServer:
        return ContainerServer(
            PLAN,
            connect=connect or engine.as_engine,
            port=free_port(),
            log=tmp_path / "server.log",
            image="org/x:1",
            grace=grace,
        )

    return server


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return None


@contextlib.asynccontextmanager
async def healthy(server: ContainerServer) -> AsyncIterator[None]:
    """Something that says it is well at the server's address."""
    with ThreadingHTTPServer(("127.0.0.1", server._port), Healthy) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            http.shutdown()
            thread.join()


async def in_thread(work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


def failure_of(work: Awaitable[None]) -> MrcrError:
    async def body() -> None:
        await work

    with pytest.raises(MrcrError) as caught:
        asyncio.run(body())
    return caught.value


def test_a_server_is_attached_to_before_it_starts_and_removed_after_it_ends(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    server = make()

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(body())

    assert [call for call in engine.calls if call != "wait"] == [
        *("create", "output", "start", "terminate", "remove", "close")
    ]
    assert engine.known == {}
    assert server.log.read_bytes() == b"INFO loading\n"


def test_the_log_is_a_new_file_where_there_was_a_link(
    make: Callable[..., ContainerServer], tmp_path: Path
) -> None:
    server = make()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    server.log.symlink_to(precious)

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)

    asyncio.run(body())

    assert precious.read_text() == "precious"
    assert server.log.read_bytes() == b"INFO loading\n"


def test_a_server_cannot_have_its_output_written_elsewhere(
    make: Callable[..., ContainerServer], tmp_path: Path
) -> None:
    server = make()
    precious = tmp_path / "precious"
    precious.write_text("precious")

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)
            server.log.unlink()
            server.log.symlink_to(precious)
            server._write(b"what the server says next")

    asyncio.run(body())

    assert precious.read_text() == "precious"


def test_an_image_that_is_not_there_is_pulled_and_the_log_says_so(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    engine.images.clear()
    engine.events = ({"status": "Pulling from org/x"}, {"status": "Status: Downloaded"})
    server = make()

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)

    asyncio.run(body())

    assert engine.calls[:2] == ["pull", "create"]
    assert server.log.read_text().splitlines() == [
        "mrcr: pulling the image org/x:1",
        "mrcr: Pulling from org/x",
        "mrcr: Status: Downloaded",
        "INFO loading",
    ]


def test_a_pull_that_stalls_is_left_when_the_start_up_is_over(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    engine.images.clear()
    engine.blocks["pull"] = threading.Event()
    server = make()

    async def body() -> None:
        async with server:
            await server.ready(0.2)

    error = failure_of(body())
    engine.blocks["pull"].set()

    assert str(error) == "the server's image was not pulled within 0.2 s"
    assert "startup_max_wait_seconds" in error.hint
    assert "pulling the image org/x:1" in error.details
    assert "create" not in engine.calls


@pytest.mark.parametrize("step", ["create", "output", "start"])
def test_a_start_that_fails_leaves_nothing_behind(
    make: Callable[..., ContainerServer], engine: FakeEngine, step: str
) -> None:
    engine.fails[step] = UsageError(f"no {step}", hint="h")
    server = make()

    async def body() -> None:
        async with server:
            await server.ready(20)

    error = failure_of(body())

    assert (type(error), str(error), error.hint) == (UsageError, f"no {step}", "h")
    assert engine.calls[-2:] == ["remove", "close"]
    assert engine.known == {}


def test_an_engine_that_cannot_be_connected_to_ends_the_start(
    make: Callable[..., ContainerServer],
) -> None:
    def connect() -> Engine:
        raise EngineLost("cannot connect")

    server = make(connect=connect)

    async def body() -> None:
        async with server:
            await server.ready(20)

    assert str(failure_of(body())) == "cannot connect"


@pytest.mark.parametrize("step", ["create", "output", "start", "wait"])
def test_a_run_that_is_cancelled_at_any_step_leaves_nothing_behind(
    make: Callable[..., ContainerServer], engine: FakeEngine, step: str
) -> None:
    gate = threading.Event()
    if step != "wait":
        engine.blocks[step] = gate
    server = make(grace=60)

    async def serve() -> None:
        async with server:
            await server.ready(60)

    async def body() -> None:
        serving = asyncio.create_task(serve())
        await in_thread(lambda: engine.wait_for(step))
        serving.cancel()
        await asyncio.sleep(0.05)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(body())

    assert engine.known == {}
    assert engine.calls[-1] == "close"


def test_a_container_that_was_made_too_late_is_removed_by_its_maker(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    gate = engine.blocks["create"] = threading.Event()
    server = make(grace=0.1)

    async def body() -> None:
        async with server:
            await in_thread(lambda: engine.wait_for("create"))
        assert engine.calls == ["create", "remove", "close"]
        gate.set()
        while engine.calls.count("remove") < 2:  # noqa: ASYNC110 - a thread does it
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(body(), 20))

    assert engine.known == {}
    assert "start" not in engine.calls


def test_a_deaf_server_is_killed_after_the_grace_and_sooner_when_cancelled(
    make: Callable[..., ContainerServer], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANCELLED_GRACE_SECONDS", 0.1)
    engine.heeds = False
    server = make(grace=3600)

    async def serve() -> None:
        async with server, healthy(server):
            await server.ready(20)

    async def body() -> None:
        serving = asyncio.create_task(serve())
        await in_thread(lambda: engine.wait_for("terminate"))
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(asyncio.wait_for(body(), 20))

    assert [call for call in engine.calls if call != "wait"][-3:] == [
        *("terminate", "remove", "close")
    ]


def test_an_engine_that_is_lost_while_stopping_is_said_and_not_waited_for(
    make: Callable[..., ContainerServer], engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    server = make()

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)
            lost = EngineLost("cannot remove: Connection refused\n::error::x")
            engine.fails = {"terminate": lost, "remove": lost}

    asyncio.run(body())
    engine.ended.set()

    (said,) = [record.getMessage() for record in caplog.records]
    assert "may still run: cannot remove: Connection refused ::error::x" in said
    assert f"docker rm --force --volumes {PLAN.name}" in said
    assert "\n" not in said


async def death_of(server: ContainerServer, engine: FakeEngine) -> ServerError:
    async with server, healthy(server):
        await server.ready(20)
        engine.ended.set()
        return await server.died()


@pytest.mark.parametrize(
    ("code", "said", "message"),
    [
        (0, b"fine\n", "the server's container ended by itself with exit code 0"),
        (
            1,
            b"RuntimeError: CUDA error: x\n",
            "the server's container ended by itself with exit code 1: RuntimeError: CUDA error: x",
        ),
        (139, b"", "the server's container ended by itself with exit code 139 (SIGSEGV)"),
    ],
)
def test_a_death_is_told_with_its_exit_code_and_its_cause(
    make: Callable[..., ContainerServer],
    engine: FakeEngine,
    code: int,
    said: bytes,
    message: str,
) -> None:
    engine.exit_code, engine.said = code, said

    error = asyncio.run(death_of(make(), engine))

    assert str(error) == message
    assert "server.log" in error.hint
    assert (said.decode().strip() in error.details) if said else not error.details


def test_a_server_that_the_kernel_killed_for_its_memory_is_said_to_be_so(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    engine.exit_code = 137

    async def body() -> ServerError:
        server = make()
        async with server, healthy(server):
            await server.ready(20)
            engine.known[PLAN.name] = container(PLAN.name, out_of_memory=True)
            engine.ended.set()
            return await server.died()

    error = asyncio.run(body())

    assert str(error) == "the server was killed for want of memory, with exit code 137 (SIGKILL)"
    assert "more memory" in error.hint


def test_a_container_that_somebody_else_removed_is_said_to_be_gone(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    async def body() -> ServerError:
        server = make()
        async with server, healthy(server):
            await server.ready(20)
            del engine.known[PLAN.name]
            engine.ended.set()
            return await server.died()

    assert str(asyncio.run(body())) == "the server's container was removed by somebody else"


def test_a_connection_that_is_lost_and_comes_back_is_no_death(
    make: Callable[..., ContainerServer], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", 0.01)
    engine.exit_code = 3
    engine.fails["wait"] = EngineLost("reset")
    server = make()

    async def body() -> ServerError:
        async with server, healthy(server):
            await server.ready(20)
            await in_thread(lambda: engine.wait_for("wait"))
            engine.fails.clear()
            engine.ended.set()
            return await server.died()

    assert "exit code 3" in str(asyncio.run(body()))


def test_an_engine_that_stays_away_is_the_end_of_the_server(
    make: Callable[..., ContainerServer], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", 0.01)
    engine.fails["wait"] = EngineLost("Connection refused")

    error = asyncio.run(death_of(make(), engine))

    assert str(error) == ("the container engine was lost while the server ran: Connection refused")


def test_a_death_during_the_start_up_ends_the_wait(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    engine.exit_code, engine.said = 2, b"vllm: error: unrecognized arguments: --x\n"
    engine.ended.set()
    server = make()

    async def body() -> None:
        async with server:
            await server.ready(60)

    error = failure_of(body())

    assert "exit code 2 (SIGINT)" not in str(error)
    assert str(error).endswith("exit code 2: vllm: error: unrecognized arguments: --x")
    assert engine.known == {}


def test_what_other_runs_have_left_is_swept_first_and_named_in_the_log(
    make: Callable[..., ContainerServer], engine: FakeEngine
) -> None:
    over = replace(Owner.here(None), container="gone")
    engine.known["left"] = container("left", labels=labels_of(over, {}))
    server = make()

    async def body() -> None:
        async with server, healthy(server):
            await server.ready(20)

    asyncio.run(body())

    assert engine.calls[:2] == ["remove", "create"]
    assert "mrcr: removed left, which a run had left behind" in server.log.read_text()


def test_a_log_that_cannot_be_written_starts_nothing(engine: FakeEngine, tmp_path: Path) -> None:
    server = ContainerServer(
        PLAN,
        connect=engine.as_engine,
        port=free_port(),
        log=tmp_path / "missing" / "server.log",
        image="i",
    )

    async def body() -> None:
        async with server:
            raise AssertionError

    with pytest.raises(OutputError, match=r"server\.log: cannot be written"):
        asyncio.run(body())
    assert engine.calls == []
