"""Real vLLM on this machine's CPU, the probe, and the command that is tested with them."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from tests.vllm.cpu import all_cores, fast_dtype
from tests.vllm.rows import rows
from tests.vllm.running import START_SECONDS, Running, free_port, healthy

from mrcr_action.data.writer import write_parquet
from mrcr_action.probe import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Serve = Callable[..., AbstractContextManager[str]]

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def vllm() -> str:
    """Path of the real ``vllm``; installed on first use."""
    done = subprocess.run(
        [HERE / "environment" / "install.sh"], stdout=subprocess.PIPE, text=True, check=True
    )
    return str(Path(done.stdout.strip()) / "vllm")


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the probe and its rows, to run configurations in."""
    folder = tmp_path_factory.mktemp("vllm")
    build(folder / "probe", max_len=32768)
    write_parquet(rows(), folder / "rows")
    return folder


@pytest.fixture(scope="session")
def environment(vllm: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``mrcr`` is started with: this machine's environment, its vLLM, caches of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MRCR_", "HF_", "VLLM_"))}
    return {
        **kept,
        **all_cores(),
        "MRCR_VLLM": str(_fast(vllm, tmp_path_factory.mktemp("bin") / "vllm")),
        "MRCR_CACHE": str(tmp_path_factory.mktemp("cache")),
        "HF_HOME": str(tmp_path_factory.mktemp("hub")),
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_NO_USAGE_STATS": "1",
    }


@pytest.fixture
def start(
    workplace: Path, environment: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., Running]]:
    """Start a command, ``mrcr run``, in a folder that sees the probe and its rows."""
    for name in ("probe", "rows"):
        (tmp_path / name).symlink_to(workplace / name)
    started: list[Running] = []

    def starter(*arguments: str, command: str = "run") -> Running:
        started.append(Running(arguments, tmp_path, environment, command=command))
        return started[-1]

    yield starter
    for running in started:
        running.stop()


@pytest.fixture(scope="session")
def serve(workplace: Path, environment: dict[str, str]) -> Serve:
    """Start vLLM by hand, with arguments: a context that gives its address."""
    return lambda *arguments: _served(workplace, environment, arguments)


@pytest.fixture
def small_server(serve: Serve) -> Iterator[str]:
    """Address of a running vLLM with a window of 1,024 tokens."""
    with serve("--max-model-len", "1024") as url:
        yield url


def _fast(vllm: str, path: Path) -> Path:
    """Write a command that is vLLM's and computes in the fast dtype, unless it is told another.

    vLLM itself computes in bfloat16 even where a model is stored in float32.
    """
    words = f'{shlex.quote(vllm)} serve "$2" --dtype {fast_dtype()} "${{@:3}}"'
    path.write_text(
        f'#!/bin/bash\n[ "$1" = serve ] && exec {words}\nexec {shlex.quote(vllm)} "$@"\n'
    )
    path.chmod(0o755)
    return path


@contextmanager
def _served(
    workplace: Path, environment: dict[str, str], arguments: tuple[str, ...]
) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    log_path = workplace / f"server-{port}.log"
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [environment["MRCR_VLLM"], "serve", "probe", "--served-model-name", "probe",
             "--enforce-eager", *arguments, "--port", str(port)],
            cwd=workplace,
            env=environment,
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not healthy(url):
            assert process.poll() is None, log_path.read_text()[-2000:]
            assert time.monotonic() < deadline, log_path.read_text()[-2000:]
            time.sleep(0.5)
        yield url
    finally:
        tree = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for left in psutil.wait_procs(tree, timeout=5)[1]:
            left.kill()
