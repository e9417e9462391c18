"""Without a network: what was fetched once is enough, and nothing else is tried."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.hub.fake_hub import FakeHub
from tests.integration.six_shards import write_six_shards

from mrcr_action.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.conftest import Ended, Mrcr, StandIn, StartStandIn

HOOK = '''
"""Imported by every Python process: no address but this machine's, and all are written down."""
import os, sys

def watch(event, arguments):
    if event == "socket.getaddrinfo":
        host, port = arguments[:2]
    elif event in ("socket.connect", "socket.sendto", "socket.gethostbyname"):
        address = arguments[-1]
        host, port = address[:2] if isinstance(address, tuple) else (address, "-")
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    with open(os.environ["WATCHED_ADDRESSES"], "a") as file:
        file.write(f"{event} {host} {port}\\n")
    if host not in ("127.0.0.1", "::1", "localhost", "None"):
        raise OSError(f"no network: {event} {host}")

sys.addaudithook(watch)
'''

SHORT = (300, 600, 900, 1500, 2500, 4096)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_six_shards(tmp_path_factory.mktemp("offline") / "dataset", SHORT)


@pytest.fixture(scope="module")
def server(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin()


@pytest.fixture
def hub(dataset: Path) -> Iterator[FakeHub]:
    with FakeHub(dataset) as made:
        yield made


@pytest.fixture
def closed_port() -> int:
    """One that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass(slots=True)
class Watched:
    """The installed command, in processes that reach this machine alone."""

    mrcr: Mrcr
    log: Path

    def __call__(self, *arguments: str | Path, **env: str) -> Ended:
        self.log.unlink(missing_ok=True)
        return self.mrcr(*arguments, env=env)

    @property
    def addresses(self) -> set[tuple[str, str]]:
        """Host and port of everything that was looked up or connected to."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return {(host, port) for _, host, port in (line.split() for line in lines)}


@pytest.fixture
def watched(mrcr: Mrcr, tmp_path: Path) -> Watched:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    log = tmp_path / "addresses"
    paths = [str(tmp_path / "hook"), mrcr.environment.get("PYTHONPATH", "")]
    mrcr.environment |= {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "WATCHED_ADDRESSES": str(log),
        "HF_HOME": str(tmp_path / "home"),
        CACHE_VARIABLE: str(tmp_path / "cache"),
    }
    # Offline mode would do what is to be shown here.
    del mrcr.environment["HF_HUB_OFFLINE"]
    return Watched(mrcr, log)


def empty(watched: Watched) -> None:
    """Forget everything that was cached."""
    for name in ("HF_HOME", CACHE_VARIABLE):
        shutil.rmtree(watched.mrcr.environment[name], ignore_errors=True)


@pytest.mark.parametrize("protocol", ["openai", "vllm"])
def test_a_run_from_a_bundle_connects_to_the_server_and_to_nothing_else(
    watched: Watched, hub: FakeHub, server: StandIn, closed_port: int, protocol: str
) -> None:
    fetched = watched(
        *("data", "fetch", "--protocol", protocol, "--allow-unverified", "--to", "bundle"),
        HF_ENDPOINT=hub.endpoint,
    )
    assert fetched.code == 0, fetched.said
    assert {port for _, port in watched.addresses} == {hub.endpoint.rpartition(":")[2]}
    empty(watched)

    for endpoint in (None, f"http://127.0.0.1:{closed_port}"):
        ended = watched(
            *("run", "--dataset", "bundle", "--protocol", protocol, "--base-url", server.url),
            **({} if endpoint is None else {"HF_ENDPOINT": endpoint}),
        )
        assert ended.code == 0, ended.said
        assert {record.outcome for record in ended.result.records} == {"scored"}
        assert watched.addresses == {("127.0.0.1", server.port)}
    assert not Path(watched.mrcr.environment["HF_HOME"]).exists()


def test_a_bundle_is_checked_counted_and_planned_without_any_connection(
    watched: Watched, dataset: Path
) -> None:
    flags = ("--dataset", dataset, "--protocol", "openai")
    assert watched("data", "fetch", *flags, "--to", "bundle").code == 0
    assert watched.addresses == set()
    for command in (
        ("data", "check", "bundle"),
        ("data", "stats", "bundle"),
        ("plan", "--dataset", "bundle", "--protocol", "openai", "--window", "8K"),
        ("plan", "--dataset", "bundle", "--protocol", "vllm", "--window", "8K"),
    ):
        ended = watched(*command)
        assert ended.code == 0, ended.said
        assert watched.addresses == set()


def test_the_watch_sees_what_the_hub_would_be_asked(watched: Watched, server: StandIn) -> None:
    """The tests above would fail if a run from a bundle asked for anything."""
    ended = watched("run", "--protocol", "openai", "--base-url", server.url)
    assert ended.code == 3
    assert ("huggingface.co", "443") in watched.addresses
    assert ended.result.problem is not None
    assert "huggingface.co" in ended.result.problem.message + ended.result.problem.hint


def test_what_a_run_has_fetched_of_a_commit_is_asked_for_no_more(
    watched: Watched, hub: FakeHub, server: StandIn
) -> None:
    flags = ("run", "--protocol", "openai", "--allow-unverified", "--base-url", server.url)
    first = watched(*flags, HF_ENDPOINT=hub.endpoint)
    assert first.code == 0, first.said
    asked = [(record.shard, record.row, record.sha256) for record in first.result.records]
    assert len(hub.requests) == 12
    hub.requests.clear()

    for forgotten in (None, CACHE_VARIABLE):
        # With what was read of the files, and with the files alone.
        if forgotten is not None:
            shutil.rmtree(watched.mrcr.environment[forgotten])
        again = watched(*flags, HF_ENDPOINT=hub.endpoint)
        assert again.code == 0, again.said
        assert [(r.shard, r.row, r.sha256) for r in again.result.records] == asked
        assert (again.result.data.kind, again.result.data.verified) == ("hub", False)
        assert hub.requests == []
        assert watched.addresses == {("127.0.0.1", server.port)}


def test_offline_mode_takes_what_is_cached_and_says_so_at_once_when_it_is_not(
    watched: Watched, hub: FakeHub, server: StandIn
) -> None:
    flags = ("--protocol", "openai", "--allow-unverified")
    ended = watched("plan", *flags, "--window", "8K", HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="1")
    assert ended.code == 3
    assert "2needle/2needle_0.parquet" in ended.stderr
    assert "mrcr data fetch" in ended.stderr
    assert hub.requests == []
    assert watched.addresses == set()

    fetched = watched("data", "fetch", *flags, "--to", "bundle", HF_ENDPOINT=hub.endpoint)
    assert fetched.code == 0
    shutil.rmtree(watched.mrcr.environment[CACHE_VARIABLE])
    ended = watched("plan", *flags, "--window", "8K", HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="1")
    assert ended.code == 0, ended.said
    assert watched.addresses == set()


def test_a_branch_is_asked_for_again_and_taken_from_the_cache_without_a_network(
    watched: Watched, hub: FakeHub, closed_port: int
) -> None:
    flags = (
        *("plan", "--protocol", "openai", "--allow-unverified", "--revision", "main"),
        *("--window", "8K", "--needles", "2"),
    )
    first = watched(*flags, HF_ENDPOINT=hub.endpoint)
    assert first.code == 0, first.said
    hub.requests.clear()
    assert watched(*flags, HF_ENDPOINT=hub.endpoint).code == 0
    assert [seen.method for seen in hub.requests] == ["HEAD", "HEAD"]
    again = watched(*flags, HF_ENDPOINT=f"http://127.0.0.1:{closed_port}")
    assert again.code == 0, again.said
    assert again.stdout == first.stdout


def test_a_bundle_may_lie_where_nothing_can_be_written(
    watched: Watched, dataset: Path, server: StandIn
) -> None:
    assert watched("data", "fetch", "--dataset", dataset, "--to", "bundle").code == 0
    bundle = watched.mrcr.cwd / "bundle"
    before = {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}
    for path in (*bundle.rglob("*"), bundle):
        path.chmod(0o555 if path.is_dir() else 0o444)
    ended = watched(
        *("run", "--dataset", "bundle", "--protocol", "openai", "--base-url", server.url)
    )
    assert ended.code == 0, ended.said
    assert {path: path.stat().st_mtime_ns for path in bundle.rglob("*")} == before
    for path in (bundle, *bundle.rglob("*")):
        path.chmod(0o755)


def test_a_damaged_row_of_a_bundle_ends_the_run_and_is_named(
    watched: Watched, dataset: Path, server: StandIn
) -> None:
    flags = ("--dataset", dataset, "--needles", "2", "--bins", "512-1K")
    assert watched("data", "fetch", *flags, "--to", "bundle").code == 0
    for path in (watched.mrcr.cwd / "bundle").rglob("*.rows"):
        content = bytearray(path.read_bytes())
        content[50] ^= 1
        path.write_bytes(content)
    ended = watched(
        *("run", "--dataset", "bundle", "--protocol", "openai", "--needles", "2"),
        *("--bins", "512-1K", "--base-url", server.url),
    )
    assert ended.code == 3
    assert ended.result.problem is not None
    assert re.search(r"\.rows: row \d is damaged", ended.result.problem.message)
    assert ended.result.verdict.conclusion == "inconclusive"
    assert json.loads((ended.folder / "result.json").read_bytes())["data"]["kind"] == "bundle"
