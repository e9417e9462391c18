"""What the integration tests share: the stand-in and the command as processes of their own."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_synthetic
from mrcr_action.journal import read_journal
from mrcr_action.result import Record, Result, decode_result

READY_SECONDS = 20
"""Far more than a start takes: a machine under load must not fail a test."""

COMMAND_SECONDS = 90
"""Longest time for one command, on a machine under load."""

MRCR = Path(sys.executable).with_name("mrcr")

MARK = "TESTED_MRCR_PROCESS"
"""Variable that every process below a command under test carries, so that none is overlooked."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A stand-in that is ready."""

    url: str
    """Where its routes start, without a slash at the end."""
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        """What it has printed so far, stdout and stderr together."""
        return self.log_path.read_text()

    @property
    def port(self) -> str:
        return self.url.split(":")[2].partition("/")[0]


StartStandIn = Callable[..., StandIn]
"""Called with the arguments of ``python -m mrcr_action.standin``."""


@contextlib.contextmanager
def standin(*arguments: str, log_path: Path) -> Iterator[StandIn]:
    """Run a stand-in for as long as the block lasts."""
    command = [sys.executable, "-m", "mrcr_action.standin", *arguments]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while "Application startup complete" not in (text := log_path.read_text()):
            assert process.poll() is None, f"exit code {process.returncode}:\n{text}"
            assert time.monotonic() < deadline, f"not ready in time:\n{text}"
            time.sleep(0.005)
        found = re.search(r"stand-in listening on (\S+)", text)
        assert found, text
        yield StandIn(found[1], process, log_path)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def standins(folder: Path) -> Iterator[StartStandIn]:
    """Start as many as asked for, and stop them all at the end."""
    numbers = itertools.count(1)
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> StandIn:
            log_path = folder / f"standin-{next(numbers)}.log"
            return stack.enter_context(standin(*arguments, log_path=log_path))

        yield start


@pytest.fixture
def start_standin(tmp_path: Path) -> Iterator[StartStandIn]:
    """Starts stand-ins, as many as the test likes, and stops them when it ends."""
    with standins(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared_standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartStandIn]:
    """The same for a whole module."""
    with standins(tmp_path_factory.mktemp("standins")) as start:
        yield start


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    folder: Path
    """The output folder, where there is one."""
    seconds: float

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    @property
    def result(self) -> Result:
        return self.result_of("")

    def result_of(self, name: str) -> Result:
        """The result of one configuration of several."""
        return decode_result((self.folder / name / "result.json").read_bytes())

    def records(self, name: str = "") -> list[Record]:
        """The journal, in the order of the plan."""
        records = read_journal(self.folder / name / "samples.jsonl")
        return sorted(records, key=lambda record: record.ask)

    @property
    def written(self) -> bytes:
        """All that was printed and all files of the output folder, to look for what must not be."""
        files = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        return b"\n".join([self.said.encode(), *files])


@dataclass(slots=True)
class Running:
    """A command that runs."""

    process: subprocess.Popen[bytes]
    cwd: Path
    mark: str
    begin: float = field(default_factory=time.monotonic)

    @property
    def stderr(self) -> str:
        return (self.cwd / ".stderr").read_text(errors="replace")

    def wait_for(self, text: str, seconds: float = 30) -> None:
        """Wait until it has said something on stderr."""
        deadline = time.monotonic() + seconds
        while text not in self.stderr:
            assert self.process.poll() is None, f"exit code {self.process.poll()}: {self.stderr}"
            assert time.monotonic() < deadline, self.stderr
            time.sleep(0.01)

    def wait(self, seconds: float = COMMAND_SECONDS) -> Ended:
        code = self.process.wait(seconds)
        return Ended(
            code=code,
            stdout=(self.cwd / ".stdout").read_text(errors="replace"),
            stderr=self.stderr,
            folder=self.cwd / "mrcr-results",
            seconds=time.monotonic() - self.begin,
        )

    def descendants(self) -> list[psutil.Process]:
        """Live processes that the command started, at any remove, and that are still there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                marked = process.environ().get(MARK) == self.mark
                if marked and process.pid != self.process.pid and process.status() != "zombie":
                    found.append(process)
        return found

    def gone(self, seconds: float = 5) -> bool:
        """Whether nothing that the command started is left, or is soon."""
        deadline = time.monotonic() + seconds
        while self.descendants():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def clean_up(self) -> None:
        """Kill what a failed test leaves behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            for process in self.descendants():
                with contextlib.suppress(psutil.Error):
                    process.kill()


@dataclass(slots=True)
class Mrcr:
    """The installed command, in a folder and an environment of its own."""

    cwd: Path
    environment: dict[str, str]
    started: list[Running] = field(default_factory=list)

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Running:
        mark = uuid.uuid4().hex
        with (self.cwd / ".stdout").open("wb") as out, (self.cwd / ".stderr").open("wb") as err:
            process = subprocess.Popen(
                [MRCR, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.cwd,
                env={**self.environment, MARK: mark, **(env or {})},
            )
        running = Running(process, self.cwd, mark)
        self.started.append(running)
        return running

    def __call__(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ended:
        return self.start(*arguments, env=env).wait()

    def config(self, name: str, **keys: Any) -> Path:
        """Write a configuration (YAML reads JSON) and return its path."""
        path = self.cwd / f"{name}.yaml"
        path.write_text(json.dumps(keys))
        return path

    def list_of(self, *paths: Path, name: str = "list.txt") -> Path:
        """Write a list file."""
        path = self.cwd / name
        path.write_text("".join(f"{entry.relative_to(self.cwd)}\n" for entry in paths))
        return path


@contextlib.contextmanager
def commands(cwd: Path, environment: Mapping[str, str]) -> Iterator[Mrcr]:
    cwd.mkdir()
    made = Mrcr(cwd, dict(environment))
    try:
        yield made
    finally:
        for running in made.started:
            running.clean_up()


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """This process's environment without settings of the program, with caches of its own.

    The program's own cache is one for the whole session, unlike a dataset's files, whose rows are
    kept under what identifies them; a test of the cache names another folder.
    """
    cache = tmp_path_factory.mktemp("cache")
    foreign = re.compile(r"(MRCR|VLLM|HF|PYTEST|GITHUB)_|.*_proxy$", re.IGNORECASE)
    kept = {key: value for key, value in os.environ.items() if not foreign.match(key)}
    return {
        **kept,
        "HF_HOME": str(cache / "home"),
        "HF_DATASETS_CACHE": str(cache / "datasets"),
        "HF_HUB_OFFLINE": "1",
        "MRCR_CACHE": str(cache / "mrcr"),
    }


@pytest.fixture
def mrcr(tmp_path: Path, clean_environment: dict[str, str]) -> Iterator[Mrcr]:
    """Runs the installed command."""
    with commands(tmp_path / "work", clean_environment) as made:
        yield made


@pytest.fixture(scope="module")
def shared_mrcr(
    tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]
) -> Iterator[Mrcr]:
    """The same for a run that several tests of a module look at."""
    with commands(tmp_path_factory.mktemp("shared") / "work", clean_environment) as made:
        yield made


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of short synthetic samples, three of each length and needle count."""
    folder = tmp_path_factory.mktemp("dataset")
    bins = [parse_bin(text) for text in ("512-1K", "1K-2K", "2K-4K")]
    write_synthetic(folder, needles=(2, 4, 8), bins=bins, per_cell=3, seed=0)
    return folder


@pytest.fixture
def fake_vllm(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Puts a script in vLLM's place; returns the environment that has it started.

    The script is started as ``vllm serve MODEL …``; by default it becomes a stand-in that is given
    all the arguments behind ``serve``.
    """

    def write(body: str = "become_stand_in()") -> dict[str, str]:
        script = tmp_path / "vllm"
        script.write_text(
            f"#!{sys.executable}\n"
            "import os, signal, subprocess, sys, time\n"
            "def become_stand_in(*more):\n"
            "    assert sys.argv[1] == 'serve'\n"
            "    module = ['-m', 'mrcr_action.standin', *sys.argv[2:], *more]\n"
            "    os.execv(sys.executable, [sys.executable, *module])\n"
            f"{body}\n"
        )
        script.chmod(0o755)
        return {"MRCR_VLLM": str(script)}

    return write


@dataclass(slots=True)
class Recorder:
    """A server that answers in the plainest way and keeps every body that it is sent."""

    url: str
    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By path, in order of arrival."""
    stalled: set[str] = field(default_factory=set)
    """Paths that are not answered before the test ends."""
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """Type and text of the answer."""
        self.bodies.setdefault(path, []).append(body)
        if path in self.stalled:
            self.released.wait(COMMAND_SECONDS)
        if path == "/v1/models":
            return "application/json", '{"data": [{"id": "plain", "max_model_len": 131072}]}'
        if path == "/tokenize":
            return "application/json", '{"count": 100}'
        choice = {"index": 0, "delta": {"content": "No."}, "finish_reason": "stop"}
        return "text/event-stream", f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A `Recorder`, listening on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _reply(self, body: dict[str, Any]) -> None:
            kind, text = made.answer(self.path, body)
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Recorder(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield made
        finally:
            made.released.set()
            server.shutdown()
            thread.join()
