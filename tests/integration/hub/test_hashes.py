"""What is taken from the hub and from the cache, and what is not: hashes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from tests.integration.hub.conftest import REVISION, SHARD
from tests.integration.hub.fake_hub import FakeHub, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.hub.conftest import Fetcher

OTHER = "0" * 64


def test_other_file_at_the_pinned_revision_is_refused_before_it_is_fetched(
    fetch: Fetcher, hub: FakeHub, sha256: str
) -> None:
    fetch.pinned[SHARD] = OTHER
    done = fetch()
    assert done.error is not None
    for part in (SHARD, sha256, OTHER):
        assert part in done.error
    assert "--allow-unverified is for forks only" in done.hint
    assert hub.seen("GET") == []


def test_other_file_whose_hash_the_hub_does_not_tell_is_refused_and_not_kept(
    folder: Path, make_fetcher: Callable[..., Fetcher], sha256: str
) -> None:
    with FakeHub(folder, etag="5d41402abc4b2a76b9719d911017c592deadbeef") as hub:
        fetch = make_fetcher(hub.endpoint)
        fetch.pinned[SHARD] = OTHER
        done = fetch()
        assert done.error is not None
        assert sha256 in done.error
        assert OTHER in done.error
        assert len(hub.seen("GET")) == 2
        assert fetch.contents() == []


def test_other_file_is_taken_unverified_when_that_is_allowed(
    fetch: Fetcher, hub: FakeHub, sha256: str
) -> None:
    fetch.pinned[SHARD] = OTHER
    for _ in range(2):  # from the hub, then from the cache
        done = fetch(allow=True)
        assert (done.sha256, done.verified) == (sha256, False)
    assert len(hub.seen("GET")) == 1
    # What was allowed then is not allowed now.
    assert fetch().error is not None


@pytest.mark.parametrize(
    ("dataset", "revision"), [("some/fork", REVISION), ("openai/mrcr", "main")]
)
def test_data_without_a_known_hash_is_refused_without_a_request(
    fetch: Fetcher, hub: FakeHub, dataset: str, revision: str
) -> None:
    done = fetch(dataset=dataset, revision=revision)
    assert done.error is not None
    assert "no SHA-256 is known" in done.error
    assert "--allow-unverified" in done.hint
    assert hub.requests == []


def test_download_with_a_wrong_byte_is_fetched_once_more(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    hub.fail("GET", Fault(corrupt=True))
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert [seen.range for seen in hub.seen("GET")] == [None, None]


@pytest.mark.parametrize("order", [{}, {"allow": True}], ids=["checked", "unverified"])
def test_download_that_is_always_wrong_is_an_error_and_not_kept(
    fetch: Fetcher, hub: FakeHub, sha256: str, content: bytes, order: dict[str, bool]
) -> None:
    hub.fail("GET", *[Fault(corrupt=True)] * 9)
    done = fetch(**order)
    came = hashlib.sha256(bytes([content[0] ^ 1]) + content[1:]).hexdigest()
    assert done.error is not None
    assert f"has the SHA-256 {came}, expected was {sha256}" in done.error
    assert len(hub.seen("GET")) == 2
    assert fetch.contents() == []
    assert not fetch.pointer.exists()


def test_cached_file_needs_no_network(fetch: Fetcher, hub: FakeHub, sha256: str) -> None:
    fetch()
    hub.requests.clear()
    for env in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}, {}):
        done = fetch(env=env)
        assert (done.sha256, done.verified, done.said) == (sha256, True, [])
    assert hub.requests == []


@pytest.mark.parametrize("size", [0, 100_000])
def test_file_that_was_cut_on_disk_is_fetched_anew(
    fetch: Fetcher, hub: FakeHub, content: bytes, size: int
) -> None:
    fetch()
    fetch.pointer.write_bytes(content[:size])
    done = fetch()
    assert done.path == fetch.pointer
    assert fetch.pointer.read_bytes() == content
    assert fetch.contents() == [content]
    assert "damaged; fetching it anew" in done.said[0]
    assert hub.seen("GET")[-1].range is None


def test_file_that_was_cut_on_disk_is_not_left_there_without_a_network(
    fetch: Fetcher, content: bytes, sha256: str
) -> None:
    fetch()
    fetch.pointer.write_bytes(content[:1000])
    done = fetch(env={"HF_HUB_OFFLINE": "1"})
    assert done.error is not None
    assert f"expected was {sha256}; it was removed, and" in done.error
    assert "mrcr data fetch CONFIG --to DIR" in done.hint
    assert not fetch.pointer.exists()


def test_rest_of_an_earlier_download_that_is_wrong_does_no_harm(
    fetch: Fetcher, hub: FakeHub, content: bytes, sha256: str
) -> None:
    partial = fetch.folder / "blobs" / f"{sha256}.mrcr.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"something else")
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert [seen.range for seen in hub.seen("GET")] == ["bytes=14-", None]


def test_branch_is_asked_for_again_and_fetched_once(
    fetch: Fetcher, hub: FakeHub, sha256: str
) -> None:
    for _ in range(2):
        done = fetch(revision="main", allow=True)
        assert (done.sha256, done.verified) == (sha256, False)
    assert [seen.method for seen in hub.requests] == ["HEAD", "GET", "HEAD"]


def test_branch_is_what_it_was_when_the_hub_cannot_be_reached(fetch: Fetcher, sha256: str) -> None:
    fetch(revision="main", allow=True)
    for env in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        assert fetch(revision="main", allow=True, env=env).sha256 == sha256


def test_same_content_of_another_revision_is_not_fetched_again(
    fetch: Fetcher, hub: FakeHub, sha256: str
) -> None:
    fetch(revision="main", allow=True)
    done = fetch()
    assert (done.sha256, done.verified) == (sha256, True)
    assert len(hub.seen("GET")) == 1
