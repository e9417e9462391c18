from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, cast

from tests.unit.telemetry.exposing import exposed

from mrcr_action.client import Unavailable
from mrcr_action.telemetry import sampler
from mrcr_action.telemetry.document import Peaks, ServerTelemetry
from mrcr_action.telemetry.gpu import GpuMeter, GpuReading
from mrcr_action.telemetry.sampler import observed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from mrcr_action.client import Client

EVERY = 0.01


async def until(there: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    async with asyncio.timeout(10):
        while not there():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.001)


class Server:
    """Tells these texts in /metrics, one a look and then the last one again; an error raises."""

    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)
        self.limits: list[float] = []

    @property
    def looks(self) -> int:
        return len(self.limits)

    async def metrics(self, *, seconds: float) -> str:
        self.limits.append(seconds)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(text, Exception):
            raise text
        return text

    async def until(self, looks: int) -> None:
        """Wait for so many looks in all."""
        await until(lambda: self.looks >= looks)


def observe(server: Server, *, looks: int = 0, fails: bool = False) -> ServerTelemetry:
    """What is told of a server that is asked until it was looked at so often."""

    async def body() -> ServerTelemetry:
        told: list[ServerTelemetry] = []
        try:
            async with observed(cast("Client", server), told, every=EVERY):
                await server.until(looks)
                assert not fails
        except AssertionError:
            if not fails:
                raise
        (found,) = told
        return found

    return asyncio.run(body())


def test_counters_are_read_before_and_after() -> None:
    server = Server(exposed(prompt=10, output=1), exposed(prompt=110, output=6))
    found = observe(server)
    assert found.counted is not None
    assert (found.counted.prompt_tokens, found.counted.output_tokens) == (100, 5)
    assert (found.gap, found.peaks) == ("", None)
    assert server.limits == [2.0, 2.0]


def test_the_largest_of_all_samples_is_told() -> None:
    texts = [
        exposed(),
        exposed(running=8, usage=0.25),
        exposed(running=3, waiting=5, usage=0.75),
        exposed(running=1),
    ]
    found = observe(Server(*texts), looks=4)
    assert found.peaks is not None
    assert found.peaks.samples >= 3
    assert found.peaks == Peaks(
        samples=found.peaks.samples, kv_cache_usage=0.75, running=8, waiting=5
    )


def test_a_server_without_metrics_is_not_asked_again() -> None:
    server = Server(Unavailable("HTTP 404"))

    async def body() -> list[ServerTelemetry]:
        told: list[ServerTelemetry] = []
        async with observed(cast("Client", server), told, every=EVERY):
            await asyncio.sleep(5 * EVERY)
        return told

    assert asyncio.run(body()) == [ServerTelemetry(gap="no metrics")]
    assert server.looks == 1


def test_a_look_that_fails_meanwhile_costs_that_sample_only() -> None:
    texts: list[str | Exception] = [exposed(), Unavailable("no answer"), exposed(running=2)]
    found = observe(Server(*texts), looks=4)
    assert found.peaks is not None
    assert found.peaks.running == 2


def test_a_restart_is_told() -> None:
    found = observe(Server(exposed(prompt=500), exposed(prompt=3)))
    assert (found.counted, found.gap) == (None, "restarted")


def test_a_last_look_that_fails_is_no_error() -> None:
    found = observe(Server(exposed(), Unavailable("gone")))
    assert (found.counted, found.gap) == (None, "no metrics")


def test_an_asking_that_is_broken_off_is_not_waited_for_and_keeps_its_samples() -> None:
    server = Server(exposed(prompt=10), exposed(running=6))
    # By the third look, the second has been taken in.
    found = observe(server, looks=3, fails=True)
    assert (found.counted, found.gap) == (None, "not to the end")
    assert found.peaks is not None
    assert found.peaks.running == 6


def test_nothing_is_sampled_before_the_first_interval_is_over() -> None:
    server = Server(exposed())

    async def body() -> None:
        async with observed(cast("Client", server), [], every=sampler.EVERY_SECONDS):
            await asyncio.sleep(0.05)

    asyncio.run(body())
    assert sampler.EVERY_SECONDS == 5
    assert server.looks == 2


def test_gpus_are_read_in_a_thread_until_there_is_nothing_to_read() -> None:
    threads: list[threading.Thread] = []

    def read() -> tuple[GpuReading, ...]:
        threads.append(threading.current_thread())
        return (GpuReading(0, "H200", power=100.0),) if len(threads) < 4 else ()

    meter = GpuMeter()

    async def body() -> None:
        async with (
            asyncio.timeout(10),
            observed(cast("Client", Server("")), [], meter=meter, read=read, every=EVERY),
        ):
            await until(lambda: len(threads) == 4)
            await asyncio.sleep(5 * EVERY)

    asyncio.run(body())
    assert len(threads) == 4
    assert threading.main_thread() not in threads
    (gpu,) = meter.document()
    assert (gpu.samples, gpu.power_max) == (3, 100.0)


def test_a_driver_that_hangs_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "LOOK_SECONDS", 0.05)
    entered, release = threading.Event(), threading.Event()

    def read() -> tuple[GpuReading, ...]:
        entered.set()
        release.wait(20)
        return (GpuReading(0, "H200"),)

    meter = GpuMeter()

    async def body() -> None:
        async with (
            asyncio.timeout(10),
            observed(cast("Client", Server("")), [], meter=meter, read=read, every=EVERY),
        ):
            await asyncio.to_thread(entered.wait, 10)
            await asyncio.sleep(0.1)

    try:
        asyncio.run(body())
    finally:
        release.set()
    assert meter.document() == ()


def test_a_fault_while_reading_gpus_ends_that_alone() -> None:
    def read() -> tuple[GpuReading, ...]:
        raise ZeroDivisionError

    async def body() -> list[ServerTelemetry]:
        told: list[ServerTelemetry] = []
        server = Server(exposed(), exposed(prompt=3))
        async with observed(cast("Client", server), told, meter=GpuMeter(), read=read, every=EVERY):
            await server.until(3)
        return told

    (found,) = asyncio.run(body())
    assert found.counted is not None
    assert found.counted.prompt_tokens == 3
