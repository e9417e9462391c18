"""What is read of a server and its GPUs around and during the asking; never a reason to fail."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from mrcr_action.client import ApiError
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.telemetry.counters import between, read_counters
from mrcr_action.telemetry.document import ServerTelemetry
from mrcr_action.telemetry.gauges import peaks_of, read_load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mrcr_action.client import Client
    from mrcr_action.telemetry.document import Gap, Of
    from mrcr_action.telemetry.gauges import Load
    from mrcr_action.telemetry.gpu import GpuMeter, GpuReading

EVERY_SECONDS = 5.0
"""From one sample to the next, and from the beginning to the first."""

LOOK_SECONDS = 2.0
"""Limit of one look at /metrics, and of one at the GPUs."""


@contextlib.asynccontextmanager
async def observed(
    client: Client,
    told: list[ServerTelemetry],
    *,
    of: Of = "run",
    meter: GpuMeter | None = None,
    read: Callable[[], tuple[GpuReading, ...]] | None = None,
    every: float = EVERY_SECONDS,
) -> AsyncIterator[None]:
    """Observe a server for as long as the block, which asks it, lasts.

    The counters are read before it and, unless it ends in an exception, after it. Sampling ends
    with the block; a look that is under way is given up.

    Args:
        client: of the server.
        told: gets what was found, also where the block ends in an exception.
        of: which server of the run it is.
        meter: gets the readings of the GPUs.
        read: reads them, in a thread; None where there are none to read.
        every: seconds between samples.
    """
    text = await _metrics(client)
    before = read_counters(text)
    loads: list[Load] = []
    samplers = []
    if read_load(text) is not None:
        samplers.append(asyncio.create_task(_sample_load(client, loads, every)))
    if meter is not None and read is not None:
        samplers.append(asyncio.create_task(_sample_gpus(read, meter, every)))
    try:
        yield
    finally:
        for sampler in samplers:
            sampler.cancel()
        await asyncio.gather(*samplers, return_exceptions=True)
        gap: Gap = "no metrics" if before is None else "not to the end"
        told.append(ServerTelemetry(of=of, gap=gap, peaks=peaks_of(loads)))
    if before is not None:
        counted, gap = between(before, read_counters(await _metrics(client)))
        told[-1] = ServerTelemetry(of=of, counted=counted, gap=gap, peaks=peaks_of(loads))


async def _metrics(client: Client) -> str:
    """The text of /metrics; empty where it cannot be had at once."""
    try:
        return await client.metrics(seconds=LOOK_SECONDS)
    except ApiError:
        return ""


async def _sample_load(client: Client, loads: list[Load], every: float) -> None:
    while True:
        await asyncio.sleep(every)
        load = read_load(await _metrics(client))
        if load is not None:
            loads.append(load)


async def _sample_gpus(
    read: Callable[[], tuple[GpuReading, ...]], meter: GpuMeter, every: float
) -> None:
    """Until the first look that tells nothing, or that hangs: a further one would hang too."""
    while True:
        await asyncio.sleep(every)
        readings = await asyncio.wait_for(in_daemon_thread(read), LOOK_SECONDS)
        if not readings:
            return
        meter.add(readings)
