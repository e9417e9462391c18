from __future__ import annotations

import re
from email.utils import formatdate
from typing import TYPE_CHECKING

import httpx
import pytest

from mrcr_action.data.paths import PARTS, shard_path
from mrcr_action.errors import DataError
from mrcr_action.hub import PINNED
from mrcr_action.hub.cache import check_room, size_of
from mrcr_action.hub.client import hub_url
from mrcr_action.hub.errors import Trouble, Unreachable, error_of_failure, error_of_status

if TYPE_CHECKING:
    from pathlib import Path

HUB = httpx.URL("https://hub.example/datasets/a/b/resolve/main/c")
STORAGE = httpx.URL("https://storage.example/c?Signature=hush")


def status(
    code: int, url: httpx.URL = HUB, headers: dict[str, str] | None = None
) -> Trouble | DataError:
    response = httpx.Response(code, headers=headers, request=httpx.Request("GET", url))
    return error_of_status("a/b: c", response, HUB)


def failure(kind: type[httpx.TransportError], text: str = "", *, heard: bool = True) -> Exception:
    return error_of_failure(
        "a/b: c", kind(text, request=httpx.Request("GET", STORAGE)), heard=heard
    )


def test_every_shard_has_a_known_hash() -> None:
    assert list(PINNED) == [shard_path(n, part) for n in (2, 4, 8) for part in range(PARTS)]
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in PINNED.values())
    assert len(set(PINNED.values())) == 6


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504, 520])
def test_passing_status_is_trouble(code: int) -> None:
    assert isinstance(status(code), Trouble)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 410, 451])
def test_lasting_status_is_an_error_with_a_hint(code: int) -> None:
    error = status(code)
    assert isinstance(error, DataError)
    assert str(code) in str(error)
    assert error.hint


@pytest.mark.parametrize("code", [401, 403, 404])
def test_refusal_of_a_storage_host_is_trouble_since_addresses_expire(code: int) -> None:
    error = status(code, STORAGE)
    assert isinstance(error, Trouble)
    assert str(error) == f"storage.example says {code}"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"Retry-After": "12"}, 12),
        ({"Retry-After": " 12 "}, 12),
        ({"Retry-After": "-1"}, 0),
        ({"Retry-After": "soon"}, 0),
        ({"Retry-After": formatdate(0, usegmt=True)}, 0),
        ({"RateLimit": '"resolvers";r=0;t=55'}, 55),
        ({"RateLimit": '"resolvers";r=9;t=55'}, 0),
        ({"RateLimit": "nonsense"}, 0),
    ],
)
def test_wait_is_what_the_hub_asks_for(headers: dict[str, str], seconds: float) -> None:
    error = status(429, headers=headers)
    assert isinstance(error, Trouble)
    assert error.wait == seconds


def test_date_to_wait_for_is_understood() -> None:
    error = status(429, headers={"Retry-After": formatdate(4e9, usegmt=True)})
    assert isinstance(error, Trouble)
    assert error.wait > 1e6


def test_words_of_the_hub_are_made_harmless() -> None:
    said = "no\x1b[31m \u202e::error::x".encode("latin-1", "replace").decode("latin-1")
    assert "\x1b" not in str(status(404, headers={"X-Error-Message": said}))


@pytest.mark.parametrize(
    "kind", [httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ConnectError]
)
def test_broken_connection_is_trouble_and_shows_no_address(
    kind: type[httpx.TransportError],
) -> None:
    error = failure(kind, "https://storage.example/c?Signature=hush")
    assert isinstance(error, Trouble)
    assert "storage.example" in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize("kind", [httpx.ConnectError, httpx.ConnectTimeout])
def test_hub_that_never_answered_is_unreachable(kind: type[httpx.TransportError]) -> None:
    assert isinstance(failure(kind, heard=False), Unreachable)


def test_certificate_that_is_not_trusted_is_an_error_at_once() -> None:
    error = failure(httpx.ConnectError, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed")
    assert isinstance(error, Unreachable)
    assert "SSL_CERT_FILE" in error.hint


def test_address_is_the_libraries() -> None:
    assert hub_url("https://hub.example", "a/b", "refs/pr/1", "c/d.parquet") == (
        "https://hub.example/datasets/a/b/resolve/refs%2Fpr%2F1/c/d.parquet"
    )


@pytest.mark.parametrize("revision", ["../../x", "a/../b", "/x", "-x", "a b", "", "x\n"])
def test_revision_that_is_no_path_within_the_cache_is_refused(revision: str) -> None:
    with pytest.raises(DataError, match="is not a revision"):
        hub_url("https://hub.example", "a/b", revision, "c")


@pytest.mark.parametrize("dataset", ["a/b/c", "a b/c", "../x", "a//b", "a/b.git", ""])
def test_name_that_no_dataset_has_is_refused(dataset: str) -> None:
    with pytest.raises(DataError, match="not the name of a dataset"):
        hub_url("https://hub.example", dataset, "main", "c")


def test_rest_that_does_not_fit_onto_the_disk_is_no_room(tmp_path: Path) -> None:
    partial = tmp_path / "partial"
    check_room(partial, None)
    check_room(partial, 1)
    with pytest.raises(OSError, match="are needed"):
        check_room(partial, 2**60)
    assert size_of(partial) == 0
