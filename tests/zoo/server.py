"""A real vLLM whose faults can be switched while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx
import psutil
from tests.vllm.cpu import all_cores, fast_dtype
from tests.vllm.running import START_SECONDS, free_port, healthy

from mrcr_action.data.writer import write_parquet
from mrcr_action.probe import build
from mrcr_action.probe.rows import rows

if TYPE_CHECKING:
    from tests.zoo.faults import ZooFault

PLUGIN = Path(__file__).parent / "plugin"

FILLERS = (60, 480)
"""Bytes of a piece that is no needle, least and most."""

WINDOW = 16384
CHUNK = 2048

FLAGS = (
    *("--served-model-name", "probe", "--enforce-eager"),
    *("--max-model-len", str(WINDOW), "--max-num-batched-tokens", str(CHUNK)),
    "--enable-prompt-tokens-details",
    *("--dtype", fast_dtype()),
)
"""Of a healthy server."""


@dataclass(frozen=True)
class Workplace:
    """A folder with the probe, its rows, and what the plugin reads and writes."""

    folder: Path
    vllm: str
    """Path of the command."""

    @classmethod
    def make(cls, folder: Path, vllm: str) -> Self:
        """Write the probe and its rows, unless they are there."""
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "probe").exists():
            build(folder / "probe", max_len=32768)
        write_parquet(rows(name="zoo", fillers=FILLERS), folder / "rows")
        return cls(folder, vllm)

    @property
    def fault(self) -> Path:
        """Names the fault that is active."""
        return self.folder / "fault.txt"

    @property
    def log(self) -> Path:
        """Has a line for each request that a fault struck."""
        return self.folder / "struck.jsonl"

    @property
    def plugin_environment(self) -> dict[str, str]:
        """What makes vLLM load the plugin."""
        return {
            "PYTHONPATH": str(PLUGIN),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ENGINE_FAULT_FILE": str(self.fault),
            "ENGINE_FAULT_LOG": str(self.log),
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_NO_USAGE_STATS": "1",
            **all_cores(),
        }

    @property
    def environment(self) -> dict[str, str]:
        """This machine's environment without settings of the programs that are tested."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MRCR_", "HF_", "VLLM_"))}
        return kept | {"MRCR_VLLM": self.vllm, "MRCR_CACHE": str(self.folder / "cache")}

    def switch(self, fault: ZooFault) -> None:
        """Break what a fault breaks from the next engine step on, and nothing else."""
        self.log.write_text("")
        # In one step, so that no engine step reads half a name.
        new = self.fault.with_suffix(".new")
        new.write_text(fault.plugin)
        new.replace(self.fault)

    @property
    def struck(self) -> int:
        """How many requests the fault really struck."""
        return len({json.loads(line)["struck"] for line in self.log.read_text().splitlines()})


class ZooServer:
    """vLLM, serving the probe; a context that starts and stops it."""

    def __init__(self, place: Workplace, fault: ZooFault) -> None:
        """Prepare a server.

        Args:
            place: where it runs.
            fault: whose flags and template it is started with.
        """
        self.place = place
        self._flags = fault.flags
        if fault.template:
            template = place.folder / f"{fault.name}.jinja"
            template.write_text(fault.template)
            self._flags = ("--chat-template", str(template))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._command = [
            *(place.vllm, "serve", "probe", *FLAGS, *self._flags),
            *("--host", "127.0.0.1", "--port", str(port)),
        ]
        self._log = place.folder / f"server-{fault.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        environment = self.place.environment | self.place.plugin_environment
        # Without it, /reset_prefix_cache is not there.
        environment["VLLM_SERVER_DEV_MODE"] = "1"
        self.place.fault.write_text("")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self.place.folder, env=environment, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        try:
            while not healthy(self.url):
                said = self._log.read_text(errors="replace")[-2000:]
                assert self._process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.5)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def switch(self, fault: ZooFault) -> None:
        """Break something else, with a cache in which the last fault has left nothing."""
        self.place.switch(fault)
        answer = httpx.post(f"{self.url}/reset_prefix_cache", timeout=60, trust_env=False)
        answer.raise_for_status()

    def _stop(self) -> None:
        assert self._process is not None
        tree = []
        if self._process.poll() is None:
            tree = psutil.Process(self._process.pid).children(recursive=True)
            self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for left in psutil.wait_procs(tree, timeout=5)[1]:
            left.kill()
