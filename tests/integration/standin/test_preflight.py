"""The look before a run, at a server over a real connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mrcr_action.client import Client
from mrcr_action.config import RunConfig
from mrcr_action.errors import ServerError, TemplateError, UsageError
from mrcr_action.preflight import Preflight, preflight

if TYPE_CHECKING:
    from tests.integration.conftest import StartStandIn


def look(url: str, *, merge: bool = False, api_key: str | None = None) -> Preflight:
    async def body() -> Preflight:
        async with Client(url, api_key=api_key, request_timeout=5) as client:
            return await preflight(client, config=RunConfig(), model="m", merge=merge)

    return asyncio.run(body())


def test_a_good_server_is_seen_whole_and_not_numbered(start_standin: StartStandIn) -> None:
    url = start_standin("m", "--fault", "status=500@1").url

    seen = look(url)

    assert (seen.two_user_turns, seen.thinks, seen.notes) == (True, False, ())
    assert (seen.overhead_tokens, seen.tokens_per_message) == (16, 4.0)
    assert look(url).fingerprint == seen.fingerprint != ""


@pytest.mark.parametrize("more", [(), ("--fault", "no-tokenize")])
def test_strict_roles_are_named_and_merging_gets_around_them(
    start_standin: StartStandIn, more: tuple[str, ...]
) -> None:
    url = start_standin("m", "--fault", "strict-roles", *more).url

    with pytest.raises(TemplateError, match="Conversation roles must alternate"):
        look(url)

    assert look(url, merge=True).merged is True


@pytest.mark.parametrize("fault", ["think=400", "think-old=400", "think-aloud=400"])
def test_thinking_is_seen_wherever_the_thoughts_come(
    start_standin: StartStandIn, fault: str
) -> None:
    assert look(start_standin("m", "--fault", fault).url).thinks is True


@pytest.mark.parametrize("fault", ["status=500", "cut", "reset-mid", "empty", "html", "die=1"])
def test_a_server_in_trouble_is_left_to_the_run(start_standin: StartStandIn, fault: str) -> None:
    seen = look(start_standin("m", "--fault", fault).url)

    assert (seen.two_user_turns, seen.thinks, len(seen.notes)) == (True, None, 1)


def test_a_server_that_refuses_everything_is_said_to_once(start_standin: StartStandIn) -> None:
    with pytest.raises(ServerError, match="the server refuses even a tiny request: HTTP 400"):
        look(start_standin("m", "--fault", "status=400").url)


def test_a_wrong_key_is_a_usage_error(start_standin: StartStandIn) -> None:
    url = start_standin("m", "--api-key", "sesame").url

    with pytest.raises(UsageError, match="HTTP 401"):
        look(url, api_key="wrong")

    assert look(url, api_key="sesame").two_user_turns is True
