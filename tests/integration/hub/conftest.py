"""Runs `fetch_shard` in a process of its own against a hub on this machine."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.hub.fake_hub import FakeHub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SHARD = "2needle/2needle_0.parquet"
REVISION = "f4c69fae7cf81f7ca26b9fee34b392a50f6b8a1d"

DRIVER = """
import json, resource, sys, time
from mrcr_action import hub
from mrcr_action.hub import download
order = json.loads(sys.argv[1])
for name, value in order["constants"].items():
    assert hasattr(download, name)
    setattr(download, name, value)
if order["largest"]:
    # Python ignores the signal, so that a write fails as it does on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest"], order["largest"]))
pauses, said = [], []
download.sleep = pauses.append
hub.PINNED.clear()
hub.PINNED.update(order["pinned"])
begin = time.monotonic()
answer = {}
try:
    file = hub.fetch_shard(*order["what"], allow_unverified=order["allow"], report=said.append)
    answer.update(path=str(file.path), sha256=file.sha256, verified=file.verified)
except hub.DataError as error:
    answer.update(error=str(error), hint=error.hint)
answer.update(pauses=pauses, said=said, seconds=time.monotonic() - begin)
print(json.dumps(answer))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call."""

    path: Path | None
    sha256: str | None
    verified: bool | None
    error: str | None
    hint: str
    pauses: list[float]
    said: list[str]
    seconds: float

    @property
    def text(self) -> str:
        """Everything that a person may get to see."""
        return "\n".join((self.error or "", self.hint, *self.said))


@dataclass(slots=True)
class Fetcher:
    """Calls `fetch_shard` as the installed program would; pauses are told, not waited for."""

    environment: dict[str, str]
    home: Path
    pinned: dict[str, str] = field(default_factory=dict)

    def start(
        self,
        *,
        dataset: str = "openai/mrcr",
        revision: str = REVISION,
        shard: str = SHARD,
        allow: bool = False,
        largest: int | None = None,
        env: Mapping[str, str] | None = None,
        **constants: Any,
    ) -> subprocess.Popen[str]:
        order = {
            "what": [dataset, revision, shard],
            "allow": allow,
            "largest": largest,
            "pinned": self.pinned,
            "constants": constants,
        }
        return subprocess.Popen(
            # Whatever the library warns of is a failure.
            [sys.executable, "-W", "error", "-c", DRIVER, json.dumps(order)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **(env or {})},
        )

    def __call__(self, **order: Any) -> Outcome:
        process = self.start(**order)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
        assert (process.returncode, err) == (0, "")
        answer = json.loads(out)
        return Outcome(
            path=Path(answer["path"]) if "path" in answer else None,
            sha256=answer.get("sha256"),
            verified=answer.get("verified"),
            error=answer.get("error"),
            hint=answer.get("hint", ""),
            pauses=answer["pauses"],
            said=answer["said"],
            seconds=answer["seconds"],
        )

    @property
    def folder(self) -> Path:
        return self.home / "hub" / "datasets--openai--mrcr"

    @property
    def pointer(self) -> Path:
        return self.folder / "snapshots" / REVISION / SHARD

    def contents(self) -> list[bytes]:
        """What lies in the cache, finished or not."""
        return [path.read_bytes() for path in self.folder.glob("blobs/*")]


@pytest.fixture
def content() -> bytes:
    return random.Random(1).randbytes(200_000)


@pytest.fixture
def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(tmp_path: Path, content: bytes) -> Path:
    """A dataset of one file."""
    file = tmp_path / "served" / SHARD
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return tmp_path / "served"


@pytest.fixture
def hub(folder: Path) -> Iterator[FakeHub]:
    with FakeHub(folder) as made:
        yield made


@pytest.fixture
def make_fetcher(
    tmp_path: Path, clean_environment: dict[str, str], sha256: str
) -> Callable[..., Fetcher]:
    """Builds a `Fetcher` for a hub's address, with an empty cache that it shares with others."""

    def make(endpoint: str, **env: str) -> Fetcher:
        environment = {
            **clean_environment,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DOWNLOAD_TIMEOUT": "1",
            "HF_ENDPOINT": endpoint,
            **env,
        }
        if "HF_HUB_OFFLINE" not in env:
            del environment["HF_HUB_OFFLINE"]
        return Fetcher(environment, tmp_path / "home", {SHARD: sha256})

    return make


@pytest.fixture
def fetch(hub: FakeHub, make_fetcher: Callable[..., Fetcher]) -> Fetcher:
    return make_fetcher(hub.endpoint)
