"""What no other try would change: said at once, with what to do."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest
from tests.integration.hub.fake_hub import FakeHub, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.hub.conftest import Fetcher

OFFLINE = (
    "On a machine with internet run `mrcr data fetch CONFIG --to DIR`, then pass --dataset DIR"
    " here."
)


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://nowhere.invalid", "nowhere.invalid: its name cannot be resolved"),
        ("http://127.0.0.1:9", "127.0.0.1: it refuses connections"),
        ("http://[100::1]", "100::1: "),
    ],
)
def test_missing_network_is_said_at_once(
    make_fetcher: Callable[..., Fetcher], endpoint: str, why: str
) -> None:
    done = make_fetcher(endpoint)()
    assert done.error is not None
    assert done.error.startswith(f"the hub cannot be reached: {why}")
    assert done.hint == OFFLINE
    assert (done.pauses, done.said) == ([], [])


def test_host_that_swallows_everything_is_given_up_in_time(
    make_fetcher: Callable[..., Fetcher],
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        # A queue that is full: further connections are neither taken nor refused.
        waiting = [socket.socket() for _ in range(8)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            time.sleep(0.1)
            done = make_fetcher(f"http://127.0.0.1:{full.getsockname()[1]}")(CONTACT_SECONDS=0.5)
        finally:
            for one in waiting:
                one.close()
    assert done.error is not None
    assert "cannot be reached" in done.error
    assert done.hint == OFFLINE
    assert done.pauses == []


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"])
def test_offline_mode_is_kept(fetch: Fetcher, hub: FakeHub, variable: str) -> None:
    done = fetch(env={variable: "1"})
    assert done.error is not None
    assert "not in the hub library's cache, and HF_HUB_OFFLINE forbids" in done.error
    assert OFFLINE in done.hint
    assert hub.requests == []


def test_missing_file_is_named(fetch: Fetcher, hub: FakeHub) -> None:
    done = fetch(shard="2needle/2needle_7.parquet", allow=True)
    assert done.error is not None
    assert "2needle/2needle_7.parquet: 127.0.0.1 says 404" in done.error
    assert done.error.endswith("no such file")
    assert "rate limit" in done.hint
    assert done.pauses == []


def test_missing_revision_is_named(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(status=404, headers={"X-Error-Code": "RevisionNotFound"}))
    done = fetch()
    assert done.error is not None
    assert done.error.endswith("no such revision")
    assert "--revision" in done.hint


def test_missing_dataset_may_be_a_private_one(fetch: Fetcher) -> None:
    done = fetch(dataset="some/fork", allow=True)
    assert done.error is not None
    assert "some/fork" in done.error
    assert "says 401 (Repository not found): there is no such dataset" in done.error
    assert "HF_TOKEN" in done.hint


def test_gated_dataset_needs_a_token_that_is_never_shown(
    folder: Path, make_fetcher: Callable[..., Fetcher]
) -> None:
    with FakeHub(folder, token="hf_good") as hub:
        without = make_fetcher(hub.endpoint)()
        assert without.error is not None
        assert "401 (Access is gated.)" in without.error
        assert "set HF_TOKEN" in without.hint
        wrong = make_fetcher(hub.endpoint, HF_TOKEN="hf_wrong")()
        assert wrong.error is not None
        assert "hf_wrong" not in wrong.text
        assert make_fetcher(hub.endpoint, HF_TOKEN="hf_good")().verified is True


def test_forbidden_dataset_names_the_token(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(status=403))
    done = fetch()
    assert done.error is not None
    assert "says 403" in done.error
    assert "HF_TOKEN" in done.hint


def test_token_that_no_header_can_hold_is_not_shown(fetch: Fetcher, hub: FakeHub) -> None:
    done = fetch(env={"HF_TOKEN": "hf_sécrèt"})
    assert done.error is not None
    assert "crèt" not in done.text
    assert "HF_TOKEN" in done.hint
    assert hub.requests == []


def test_login_page_instead_of_the_hub_is_recognized(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(bare=True))
    done = fetch()
    assert done.error is not None
    assert "does not answer like the hub" in done.error
    assert "HF_ENDPOINT" in done.hint


@pytest.mark.parametrize("endpoint", ["huggingface.co", "http://", "ftp://127.0.0.1"])
def test_address_that_is_none_is_said(make_fetcher: Callable[..., Fetcher], endpoint: str) -> None:
    done = make_fetcher(endpoint)()
    assert done.error == "the hub's address is none"
    assert "HF_ENDPOINT" in done.hint


@pytest.mark.parametrize("endpoint", ["http://[1", "http://user:hush/hush@h"])
def test_address_that_the_library_stumbles_over_is_said(
    make_fetcher: Callable[..., Fetcher], endpoint: str
) -> None:
    done = make_fetcher(endpoint)()
    assert done.error == "the hub library cannot be loaded: ValueError"
    assert "HF_ENDPOINT" in done.hint


def test_password_of_the_address_is_not_shown(
    fetch: Fetcher, hub: FakeHub, make_fetcher: Callable[..., Fetcher]
) -> None:
    hub.fail("HEAD", Fault(status=503))
    hub.fail("GET", *[Fault(cut=9)] * 9)
    done = make_fetcher(hub.endpoint.replace("://", "://user:hush@"))()
    assert done.error is not None
    assert len(done.pauses) == 6
    assert "hush" not in done.text


def test_proxy_that_is_none_is_said(fetch: Fetcher) -> None:
    done = fetch(env={"HF_ENDPOINT": "http://hub.invalid", "HTTP_PROXY": "odd://user:hush@nowhere"})
    assert done.error == "a proxy of the environment cannot be used"
    assert "HTTPS_PROXY" in done.hint


def test_proxy_that_is_not_there_is_said_at_once(fetch: Fetcher) -> None:
    done = fetch(env={"HF_ENDPOINT": "http://hub.invalid", "HTTP_PROXY": "http://127.0.0.1:9"})
    assert done.error is not None
    assert "the proxy before it" in done.error
    assert done.pauses == []
    assert OFFLINE in done.hint


def test_hub_on_this_machine_is_asked_past_a_proxy(fetch: Fetcher) -> None:
    assert fetch(env={"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}).verified is True


def test_cache_that_cannot_be_written_is_said(fetch: Fetcher, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = fetch(env={"HF_HUB_CACHE": str(tmp_path / "file" / "hub")})
    assert done.error is not None
    assert f"cache {tmp_path}/file/hub cannot be used: Not a directory" in done.error
    assert "HF_HOME" in done.hint


def test_full_disk_is_said(fetch: Fetcher) -> None:
    done = fetch(largest=100_000)
    assert done.error is not None
    assert "no room in" in done.error
    assert "HF_HOME" in done.hint
    assert done.pauses == []
