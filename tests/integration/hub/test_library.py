"""Side by side with the hub library: its cache, its lock, its storage hosts."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.integration.hub.conftest import REVISION, SHARD
from tests.integration.hub.fake_hub import FakeHub, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.integration.hub.conftest import Fetcher

CUT = 70_000


def library(fetch: Fetcher, revision: str = REVISION, **env: str) -> Path:
    """Where the library itself says that the file lies."""
    code = (
        "from huggingface_hub import hf_hub_download;"
        f"print(hf_hub_download('openai/mrcr', {SHARD!r}, repo_type='dataset',"
        f" revision={revision!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**fetch.environment, **env},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    return type(fetch.home)(done.stdout.strip())


@pytest.mark.parametrize("revision", [REVISION, "main"])
def test_library_finds_what_was_fetched(fetch: Fetcher, hub: FakeHub, revision: str) -> None:
    done = fetch(revision=revision, allow=True)
    hub.requests.clear()
    assert library(fetch, revision, HF_HUB_OFFLINE="1") == done.path
    assert hub.requests == []


def test_what_the_library_fetched_is_taken(fetch: Fetcher, hub: FakeHub, sha256: str) -> None:
    path = library(fetch)
    hub.requests.clear()
    done = fetch()
    assert (done.path, done.sha256, done.verified) == (path, sha256, True)
    assert hub.requests == []


def test_cache_without_links_holds_the_file_itself(
    make_fetcher: Callable[..., Fetcher], hub: FakeHub, content: bytes
) -> None:
    fetch = make_fetcher(hub.endpoint, HF_HUB_DISABLE_SYMLINKS="1")
    assert fetch().verified is True
    assert not fetch.pointer.is_symlink()
    assert fetch.pointer.read_bytes() == content
    hub.requests.clear()
    assert fetch().verified is True
    assert hub.requests == []
    fetch.pointer.write_bytes(content[:1000])
    assert fetch().verified is True
    assert fetch.pointer.read_bytes() == content


@pytest.fixture
def remote(folder: Path) -> Iterator[FakeHub]:
    with FakeHub(folder, storage=True) as made:
        yield made


def test_token_does_not_go_to_the_storage_host(
    remote: FakeHub, make_fetcher: Callable[..., Fetcher], content: bytes
) -> None:
    done = make_fetcher(remote.endpoint, HF_TOKEN="hf_secret")()
    assert done.path is not None
    assert done.path.read_bytes() == content
    at_hub, at_storage = remote.seen("GET")
    assert at_hub.headers["authorization"] == "Bearer hf_secret"
    assert at_storage.path.startswith("/storage/")
    assert "authorization" not in at_storage.headers


def test_every_try_gets_a_new_address_of_the_storage_host(
    remote: FakeHub, make_fetcher: Callable[..., Fetcher], content: bytes
) -> None:
    remote.fail("GET", Fault(cut=CUT), Fault(status=403), Fault(status=503))
    done = make_fetcher(remote.endpoint)()
    assert done.path is not None
    assert done.path.read_bytes() == content
    ways = [seen.path.startswith("/storage/") for seen in remote.seen("GET")]
    assert ways == [False, True] * 4
    assert remote.seen("GET")[-1].range == f"bytes={CUT}-"
    assert len(done.pauses) == 3
    assert "Signature" not in done.text


def test_two_processes_fetch_one_file_once(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("GET", Fault(stall=CUT))
    first = fetch.start(env={"HF_HUB_DOWNLOAD_TIMEOUT": "4"})
    try:
        deadline = time.monotonic() + 60
        while not hub.seen("GET"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        second = fetch()
        first.communicate(timeout=60)
    finally:
        first.kill()
    assert second.verified is True
    assert any("another process is fetching it" in line for line in second.said)
    assert [seen.range for seen in hub.seen("GET")] == [None, f"bytes={CUT}-"]


def test_killed_process_leaves_nothing_that_stands_in_the_way(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    hub.fail("GET", Fault(stall=CUT))
    first = fetch.start(env={"HF_HUB_DOWNLOAD_TIMEOUT": "60"})
    deadline = time.monotonic() + 60
    while sum(map(len, fetch.contents())) < 4096:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first.kill()
    first.communicate()
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert hub.seen("GET")[1].range is not None


def test_renamed_dataset_is_followed_with_the_token(
    hub: FakeHub, make_fetcher: Callable[..., Fetcher], sha256: str
) -> None:
    moved = Fault(
        status=307, headers={"Location": f"/datasets/openai/mrcr/resolve/{REVISION}/{SHARD}"}
    )
    hub.fail("HEAD", moved)
    hub.fail("GET", moved)
    done = make_fetcher(hub.endpoint, HF_TOKEN="hf_secret")(dataset="old/name", allow=True)
    assert done.sha256 == sha256
    assert len(hub.requests) == 4
    assert {seen.headers["authorization"] for seen in hub.requests} == {"Bearer hf_secret"}
