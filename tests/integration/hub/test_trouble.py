"""A hub in trouble: tried again, with pauses that are told, resumed and bounded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.integration.hub.fake_hub import Fault

if TYPE_CHECKING:
    from tests.integration.hub.conftest import Fetcher
    from tests.integration.hub.fake_hub import FakeHub

CUT = 70_000


def test_calm_hub_is_asked_twice(fetch: Fetcher, hub: FakeHub, content: bytes, sha256: str) -> None:
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert (done.sha256, done.verified) == (sha256, True)
    assert [seen.method for seen in hub.requests] == ["HEAD", "GET"]
    assert done.pauses == []
    assert done.said == ["openai/mrcr: 2needle/2needle_0.parquet: fetching 0.2 MiB"]


def test_nothing_but_the_file_is_asked_for_and_little_is_told_of_this_machine(
    fetch: Fetcher, hub: FakeHub
) -> None:
    fetch()
    for seen in hub.requests:
        assert "/resolve/" in seen.path
        assert re.fullmatch(r"mrcr-action/[\d.]+", seen.headers["user-agent"])


@pytest.mark.parametrize("method", ["HEAD", "GET"])
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_status_is_waited_out(
    fetch: Fetcher, hub: FakeHub, method: str, status: int
) -> None:
    hub.fail(method, *[Fault(status=status)] * 3)
    done = fetch()
    assert done.verified is True
    assert len(hub.seen(method)) == 4
    assert len(done.pauses) == 3
    for at, (pause, first) in enumerate(zip(done.pauses, (1, 2, 4), strict=True), start=1):
        assert first <= pause <= first * 1.5
        assert any(f"says {status}; trying again in" in line for line in done.said)
        assert any(line.endswith(f"({at} of 5)") for line in done.said)


def test_retry_after_is_honoured(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(status=429, headers={"Retry-After": "17"}))
    done = fetch()
    assert done.verified is True
    assert done.pauses == [17]
    assert "says 429; trying again in 17 s (1 of 5)" in done.said[0]


def test_rate_limit_window_of_the_hub_is_waited_for(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(status=429, headers={"RateLimit": '"resolvers";r=0;t=55'}))
    assert fetch().pauses == [55]


def test_retry_after_of_hours_is_an_error(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("HEAD", Fault(status=429, headers={"Retry-After": "7200"}))
    done = fetch()
    assert done.error is not None
    assert "asks to wait for 7200 s" in done.error
    assert done.pauses == []


def test_trouble_without_end_ends_in_an_error(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("GET", *[Fault(status=503)] * 50)
    done = fetch()
    assert done.error is not None
    assert "says 503; given up after 5 more tries" in done.error
    assert "mrcr data fetch CONFIG --to DIR" in done.hint
    assert len(hub.seen("GET")) == 6


@pytest.mark.parametrize(
    "fault", [Fault(cut=CUT), Fault(reset=CUT), Fault(stall=CUT)], ids=["cut", "reset", "stall"]
)
def test_half_a_download_is_resumed_where_it_broke_off(
    fetch: Fetcher, hub: FakeHub, content: bytes, fault: Fault
) -> None:
    hub.fail("GET", fault)
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    first, second = hub.seen("GET")
    assert first.range is None
    assert second.range is not None
    begin = int(second.range.removeprefix("bytes=").removesuffix("-"))
    # A reset may overtake what was sent before it.
    assert begin <= CUT if fault.reset else begin == CUT


def test_download_that_breaks_again_and_again_is_still_finished(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    # Ten breaks are more than there are tries, but each time the file has grown.
    hub.fail("GET", *[Fault(cut=15_000)] * 10)
    done = fetch(FURTHER=30_000)
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert [seen.range for seen in hub.seen("GET")][1:4] == [
        "bytes=15000-",
        "bytes=30000-",
        "bytes=45000-",
    ]


def test_download_that_crawls_is_given_up(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("GET", *[Fault(cut=10)] * 50)
    done = fetch()
    assert done.error is not None
    assert len(hub.seen("GET")) == 6


def test_next_run_goes_on_where_the_last_one_gave_up(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    hub.fail("GET", Fault(cut=CUT), *[Fault(status=503)] * 5)
    assert fetch().error is not None
    hub.requests.clear()
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert [seen.range for seen in hub.seen("GET")] == [f"bytes={CUT}-"]
    assert "0.1 MiB are here" in done.said[0]


def test_range_that_is_ignored_begins_anew(fetch: Fetcher, hub: FakeHub, content: bytes) -> None:
    hub.fail("GET", Fault(cut=CUT), Fault(no_range=True))
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content


def test_other_range_than_asked_for_is_not_taken(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    hub.fail("GET", Fault(cut=CUT), Fault(elsewhere=True))
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert [seen.range for seen in hub.seen("GET")] == [None, f"bytes={CUT}-", None]


def test_shorter_file_than_promised_is_completed(
    fetch: Fetcher, hub: FakeHub, content: bytes
) -> None:
    hub.fail("GET", Fault(less=CUT))
    done = fetch()
    assert done.path is not None
    assert done.path.read_bytes() == content
    assert hub.seen("GET")[1].range == f"bytes={CUT}-"


def test_hub_that_never_answers_is_given_up(fetch: Fetcher, hub: FakeHub) -> None:
    hub.fail("GET", *[Fault(stall=0)] * 50)
    done = fetch(RETRIES=1)
    assert done.error is not None
    assert "127.0.0.1 does not go on; given up after 1 more tries" in done.error


def test_slow_download_says_how_far_it_is(fetch: Fetcher, hub: FakeHub) -> None:
    done = fetch(PROGRESS_SECONDS=0)
    assert any(line.endswith("of 0.2 MiB have come") for line in done.said)


def test_download_has_a_deadline(fetch: Fetcher, hub: FakeHub) -> None:
    done = fetch(LONGEST_SECONDS=0)
    assert done.error is not None
    assert "not fetched within" in done.error
