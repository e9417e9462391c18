"""A server in a container of its own, with a real engine: nothing is left on any way out."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.container.images import make_wrapped_base
from tests.container.registry import Registry

from mrcr_action.client import Client
from mrcr_action.config import RunConfig
from mrcr_action.errors import ServerError, UsageError
from mrcr_action.server import container as lifetime
from mrcr_action.server import engine as library
from mrcr_action.server.container import ContainerServer
from mrcr_action.server.engine import connect
from mrcr_action.server.machine import Machine
from mrcr_action.server.route import make_server, route_of
from mrcr_action.server.sweep import SERVER_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.container.engine import Engine

MODES = """\
echo "first line"
echo "variables: $(env | cut -d= -f1 | sort | tr '\\n' ' ')"
case "$MODE" in
  deaf) trap '' TERM; echo "deaf"; while :; do sleep 0.1; done ;;
  breaks) echo "ValueError: No available memory for the cache blocks."; exit 3 ;;
  talks) while :; do date +%s%N; sleep 0.1; done ;;
esac
exec /usr/local/bin/real-vllm "$@"
"""


@dataclass
class Started:
    """What a test needs to start servers on the tier's engine."""

    engine: Engine
    image: str
    folder: Path
    address: str

    def server(
        self, address: str | None = None, *, grace: float = 5.0, **keys: Any
    ) -> ContainerServer:
        environ = {"PATH": os.environ["PATH"], "DOCKER_HOST": address or self.address}
        mode = keys.pop("mode", "")
        defaults = {"model_name": "org/M", "image": self.image, "gpus": "none", "shm_size": "64m"}
        config = RunConfig(**{**defaults, "env": {"MODE": mode}, **keys})
        machine = Machine({**environ, "HF_TOKEN": "hub", "GITHUB_TOKEN": "job"})
        chosen = route_of(config, has_file=True, machine=machine)
        server = make_server(config, chosen, machine=machine, output=self.folder, api_key="key")
        assert isinstance(server, ContainerServer)
        server._grace = grace
        return server

    @property
    def log(self) -> str:
        path = self.folder / "server.log"
        return path.read_text() if path.exists() else ""

    def servers(self) -> list[str]:
        label = f"label={SERVER_LABEL}"
        return self.engine.docker("ps", "-a", "--filter", label, "--format", "{{.Names}}").split()

    async def said(self, text: str) -> None:
        async with asyncio.timeout(60):
            while text not in self.log:  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def moody_image(engine: Engine, standin_base: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stand-in's image, with a ``vllm`` that can also misbehave."""
    context = tmp_path_factory.mktemp("moody")
    script = f"#!/bin/sh\n{MODES}"
    return make_wrapped_base(engine, standin_base, context, vllm=script, tag="moody/vllm:1")


@pytest.fixture
def started(
    engine: Engine,
    engine_url: str,
    moody_image: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Started]:
    """Whatever a test does, no container and no volume is left of it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    started = Started(engine, moody_image, tmp_path, engine_url)
    yield started
    left = started.servers()
    volumes = engine.docker("volume", "ls", "--quiet").split()
    if left:
        engine.docker("rm", "--force", "--volumes", *left)
    assert (left, volumes) == ([], [])


def inspect(started: Started, template: str) -> str:
    (name,) = started.servers()
    return started.engine.docker("inspect", "--format", template, name)


def test_a_server_is_healthy_at_this_machines_address_and_gone_afterwards(
    started: Started,
) -> None:
    async def body() -> None:
        async with started.server() as server:
            await server.ready(60)
            async with Client(server.base_url, api_key="key") as client:
                assert [model.id for model in await client.models()] == ["org/M"]
            port = server.base_url.rpartition(":")[2]
            bound = inspect(started, "{{json .NetworkSettings.Ports}}")
            assert f'{{"HostIp":"127.0.0.1","HostPort":"{port}"}}' in bound
        assert started.servers() == []

    asyncio.run(body())

    assert started.log.startswith("first line\n")


def test_a_server_is_given_no_secret_of_the_job_and_no_power_over_the_machine(
    started: Started,
) -> None:
    async def body() -> None:
        async with started.server() as server:
            await server.ready(60)
            workspace = started.folder / "workspace"
            bound = "{{range .Mounts}}{{.Type}}={{.Source}}:{{.Destination}} {{end}}"
            assert f"bind={workspace}:{workspace} " in inspect(started, bound)
            assert "docker.sock" not in inspect(started, bound)
            power = "{{.HostConfig.Privileged}} {{.HostConfig.CapAdd}} {{.HostConfig.PidMode}}"
            assert inspect(started, power) == "false [] "
            assert inspect(started, "{{.HostConfig.ShmSize}}") == str(64 << 20)

    asyncio.run(body())

    (variables,) = [line for line in started.log.splitlines() if line.startswith("variables:")]
    assert {"HF_TOKEN", "VLLM_API_KEY", "NO_COLOR"} <= set(variables.split())
    assert "GITHUB_TOKEN" not in variables


def test_a_request_for_gpus_reaches_the_engine(started: Started) -> None:
    async def body(gpus: str, asked: str) -> None:
        async with started.server(gpus=gpus) as server:
            await server.ready(60)
            assert asked in inspect(started, "{{json .HostConfig.DeviceRequests}}")

    asyncio.run(body("all", '"Count":-1,"DeviceIDs":[],"Capabilities":[["gpu"]]'))
    asyncio.run(body("0,2", '"Count":0,"DeviceIDs":["0","2"],"Capabilities":[["gpu"]]'))


def test_a_cache_is_made_on_the_host_and_kept(started: Started) -> None:
    cache = started.folder / "made" / "cache"

    async def body() -> None:
        async with started.server(cache_dir=str(cache)) as server:
            await server.ready(60)
            (name,) = started.servers()
            write = 'mkdir -p "$HF_HOME" && echo kept > "$HF_HOME/file"'
            started.engine.docker("exec", name, "sh", "-c", write)

    asyncio.run(body())

    assert [path.read_text() for path in cache.rglob("file")] == ["kept\n"]


def test_a_server_that_ends_by_itself_is_noticed_with_its_cause(started: Started) -> None:
    async def body() -> None:
        async with started.server(mode="breaks") as server:
            await server.ready(60)

    with pytest.raises(ServerError, match="exit code 3: ValueError: No available mem") as caught:
        asyncio.run(body())
    assert "first line" in caught.value.details


def test_a_server_that_is_killed_in_the_middle_is_noticed(started: Started) -> None:
    async def body() -> ServerError:
        async with started.server() as server:
            await server.ready(60)
            (name,) = started.servers()
            started.engine.docker("kill", name)
            return await asyncio.wait_for(server.died(), 30)

    assert "exit code 137 (SIGKILL)" in str(asyncio.run(body()))


def test_a_deaf_server_of_a_cancelled_run_is_removed_long_before_its_grace_is_over(
    started: Started,
) -> None:
    async def serve() -> None:
        async with started.server(mode="deaf", grace=3600) as server:
            await server.ready(60)

    async def body() -> None:
        serving = asyncio.create_task(serve())
        await started.said("deaf")
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    asyncio.run(asyncio.wait_for(body(), 60))

    assert started.servers() == []


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_start_that_is_cancelled_at_any_moment_leaves_nothing(
    started: Started, after: float
) -> None:
    async def serve() -> None:
        async with started.server() as server:
            await server.ready(60)

    async def body() -> None:
        serving = asyncio.create_task(serve())
        await asyncio.sleep(after)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    asyncio.run(body())

    assert started.servers() == []


def test_a_quiet_hour_is_no_end_of_the_connection(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "CALL_SECONDS", 1)

    async def body() -> None:
        async with started.server() as server:
            await server.ready(60)
            said = len(started.log)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(server.died(), 3)
            async with Client(server.base_url, api_key="key") as client:
                await client.models()
            (name,) = started.servers()
            started.engine.docker("exec", name, "sh", "-c", "echo after the quiet > /proc/1/fd/1")
            await started.said("after the quiet")
            assert len(started.log) > said

    asyncio.run(body())


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        ({"image": "empty/image:1"}, "there is no program vllm in it", "vllm/vllm-openai"),
        ({"image": "No Such:Image"}, "not the name of an image", "DIGEST"),
        ({"image": "127.0.0.1:1/org/x:1"}, "cannot pull the image", "docker pull"),
        ({"model_name": "/nowhere/model"}, "/nowhere/model", "the machine that the container"),
    ],
)
def test_what_stops_a_start_is_named_with_a_way_out(
    started: Started, tmp_path: Path, keys: dict[str, Any], message: str, hint: str
) -> None:
    subprocess.run(["tar", "cf", tmp_path / "empty.tar", "-T", "/dev/null"], check=True)  # noqa: S607
    started.engine.docker("import", tmp_path / "empty.tar", "empty/image:1")

    async def body() -> None:
        async with started.server(**keys) as server:
            await server.ready(60)

    with pytest.raises((UsageError, ServerError), match=message) as caught:
        asyncio.run(body())
    assert hint in caught.value.hint


def test_an_image_is_pulled_and_the_log_tells_it(started: Started) -> None:
    with Registry() as registry:

        async def body() -> None:
            async with started.server(image=registry.image) as server:
                await server.ready(60)

        with pytest.raises(UsageError, match="there is no program vllm in it"):
            asyncio.run(body())
        lines = started.log.splitlines()
        assert lines[0] == f"mrcr: pulling the image {registry.image}"
        assert any("Downloaded newer image" in line for line in lines)
        started.engine.docker("rmi", registry.image)


def test_a_pull_that_stalls_ends_with_the_start_up(started: Started) -> None:
    with Registry(stalls=True) as registry:

        async def body() -> None:
            async with started.server(image=registry.image) as server:
                await server.ready(2)

        with pytest.raises(ServerError, match="image was not pulled within 2 s"):
            asyncio.run(body())
        assert registry.asked.is_set()


LEFT = """
import asyncio, sys
from pathlib import Path
from mrcr_action.config import RunConfig
from mrcr_action.server.machine import Machine
from mrcr_action.server.route import make_server, route_of

async def main():
    config = RunConfig(model_name="m", image=sys.argv[1], gpus="none", shm_size="64m")
    machine = Machine()
    chosen = route_of(config, has_file=True, machine=machine)
    output = Path(sys.argv[2])
    async with make_server(config, chosen, machine=machine, output=output, api_key=None) as server:
        await server.ready(60)
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@contextlib.contextmanager
def another_run(started: Started, name: str) -> Iterator[subprocess.Popen[bytes]]:
    folder = started.folder / name
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", LEFT, started.image, folder],
        env={**os.environ, "DOCKER_HOST": started.address},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(30)


def test_what_a_killed_run_left_is_swept_by_the_next_and_a_live_runs_server_is_not(
    started: Started,
) -> None:
    async def body() -> list[str]:
        async with started.server() as server:
            await server.ready(60)
            return started.servers()

    with another_run(started, "lives"), another_run(started, "killed") as killed:
        living, left = started.servers()[::-1]
        killed.kill()
        killed.wait()
        assert set(started.servers()) == {living, left}

        during = asyncio.run(body())

        assert living in during
        assert left not in during
        assert f"mrcr: removed {left}, which a run had left behind" in started.log
        assert started.servers() == [living]


class Relay:
    """A socket in front of the engine's that can hang up or fall silent."""

    def __init__(self, path: Path, engine: str) -> None:
        self._path, self._engine = path, engine.removeprefix("unix://")
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.silent = threading.Event()

    @property
    def address(self) -> str:
        return f"unix://{self._path}"

    def up(self) -> None:
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def down(self) -> None:
        connections, self._open = self._open, []
        for one in [*connections, *([self._listener] if self._listener else [])]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(self._engine)
                self._open += [client, engine]
                for pair in ((client, engine), (engine, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not self.silent.is_set():
                    target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def relay(started: Started, engine_url: str) -> Iterator[Relay]:
    relay = Relay(started.folder / "relay.sock", engine_url)
    relay.up()
    yield relay
    relay.down()
    with warnings.catch_warnings():
        # The engine's library leaves sockets open whose connection failed.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def with_lost_engine(started: Started, relay: Relay, lose: Callable[[], None]) -> None:
    """Lose the engine under a healthy server; what is left is removed through the engine itself."""

    async def body() -> None:
        async with started.server(relay.address, grace=0.5) as server:
            await server.ready(60)
            lose()

    asyncio.run(body())
    (name,) = started.servers()
    with connect({"DOCKER_HOST": started.address}) as direct:
        assert direct.remove(name)


def test_an_engine_that_is_gone_when_the_server_is_to_stop_is_said_and_not_waited_for(
    started: Started, relay: Relay, caplog: pytest.LogCaptureFixture
) -> None:
    with_lost_engine(started, relay, relay.down)

    (said,) = [entry.getMessage() for entry in caplog.records if "mrcr" in entry.name]
    assert "may still run" in said
    assert "docker rm --force --volumes mrcr-server-" in said


def test_an_engine_that_falls_silent_is_not_waited_for(
    started: Started,
    relay: Relay,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifetime, "REMOVE_SECONDS", 0.5)

    with_lost_engine(started, relay, relay.silent.set)

    (said,) = [entry.getMessage() for entry in caplog.records if "mrcr" in entry.name]
    assert "the container engine did not answer in time" in said


def test_an_engine_that_comes_back_finds_the_server_alive(
    started: Started, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetime, "RECONNECT_SECONDS", 0.2)

    async def body() -> ServerError:
        async with started.server(relay.address) as server:
            await server.ready(60)
            relay.down()
            relay.up()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(server.died(), 1.5)
            started.engine.docker("kill", *started.servers())
            return await asyncio.wait_for(server.died(), 30)

    assert "exit code 137" in str(asyncio.run(body()))


def test_an_engine_that_stays_away_is_the_end_of_the_server(
    started: Started, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetime, "RECONNECT_SECONDS", 0.05)

    async def body() -> ServerError:
        async with started.server(relay.address) as server:
            await server.ready(60)
            relay.down()
            error = await asyncio.wait_for(server.died(), 30)
            relay.up()
            return error

    assert "the container engine was lost while the server ran" in str(asyncio.run(body()))
