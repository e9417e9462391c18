from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from mrcr_action.client import Unavailable
from mrcr_action.errors import DataError, ServerError
from mrcr_action.server import watch
from mrcr_action.server.watch import death_soon, watched

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mrcr_action.server import Server


class FakeServer:
    """Dies after so many seconds; never with None."""

    def __init__(self, dies_after: float | None, *, ours: bool = True) -> None:
        self.dies_after = dies_after
        self.command = ("vllm",) if ours else ()

    async def died(self) -> ServerError:
        await asyncio.sleep(60 if self.dies_after is None else self.dies_after)
        return ServerError("dead")


async def work(error: Exception | None = None, seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    if error is not None:
        raise error
    return "done"


def run(working: Coroutine[Any, Any, str], server: FakeServer) -> str:
    async def body() -> str:
        result = await watched(working, cast("Server", server))
        assert len(asyncio.all_tasks()) == 1
        return result

    return asyncio.run(body())


def test_what_the_work_returns_is_passed_on() -> None:
    assert run(work(), FakeServer(None)) == "done"


def test_a_death_ends_the_work() -> None:
    with pytest.raises(ServerError, match="dead"):
        run(work(seconds=60), FakeServer(0.01))


def test_a_death_soon_after_an_error_is_the_better_explanation() -> None:
    with pytest.raises(ServerError, match="dead"):
        run(work(Unavailable("no answer")), FakeServer(0.05))


@pytest.mark.parametrize(
    ("error", "server"),
    [
        (Unavailable("no answer"), FakeServer(None)),
        (Unavailable("no answer"), FakeServer(0.05, ours=False)),
        (DataError("no sample fits"), FakeServer(0.05)),
    ],
)
def test_an_error_without_a_death_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, error: Exception, server: FakeServer
) -> None:
    monkeypatch.setattr(watch, "LATE_SECONDS", 0.1)

    with pytest.raises(type(error), match=str(error)):
        run(work(error), server)


def test_a_death_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LATE_SECONDS", 0.1)

    assert asyncio.run(death_soon(cast("Server", FakeServer(None)))) is None
