"""Which faults there are, and how a line of text names one with its parameters."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from engine_faults.cache_faults import (
    EvictedEntry,
    HitHead,
    HitPosition,
    HitStaleBlock,
    HitTail,
    HitUnwritten,
)
from engine_faults.chunk_faults import ChunkDropTokens, ChunkMissBlock, ChunkPosition, FullBlock
from engine_faults.crossing_faults import CrossedBlock, CrossedLogits, CrossedRow, MixedBatch
from engine_faults.fault import Fault
from engine_faults.length_faults import AliasBeyond, DropBlock, DropMiddle, LostSplit, Window
from engine_faults.position_faults import (
    PositionClamp,
    PositionDecode,
    PositionShift,
    PositionWrap,
)
from engine_faults.precision_faults import (
    NoisyLogits,
    RoundedBatch,
    RoundedCache,
    ScaledCache,
    SoftmaxScale,
)
from engine_faults.sampler_faults import Penalty, SecondBest, StopAt, StopEarly

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine_faults.request import Request

FAULTS: dict[str, type[Fault]] = {
    kind.__name__: kind
    for kind in (
        *(EvictedEntry, HitHead, HitPosition, HitStaleBlock, HitTail, HitUnwritten),
        *(ChunkDropTokens, ChunkMissBlock, ChunkPosition, FullBlock),
        *(AliasBeyond, DropBlock, DropMiddle, LostSplit, Window),
        *(PositionClamp, PositionDecode, PositionShift, PositionWrap),
        *(NoisyLogits, RoundedBatch, RoundedCache, ScaledCache, SoftmaxScale),
        *(CrossedBlock, CrossedLogits, CrossedRow, MixedBatch),
        *(Penalty, SecondBest, StopAt, StopEarly),
    )
}


def fault_of(text: str, struck: Callable[[Request], None] = lambda _request: None) -> Fault:
    """The fault that a text such as ``Window size=512 over=1024`` names; none for a blank one.

    Raises:
        ValueError: there is no such fault, it has no such parameter, or a value is no number.
    """
    name, *given = text.split() or [""]
    if not name:
        return Fault()
    if name not in FAULTS:
        raise ValueError(f"{name}: no such fault; there are {', '.join(FAULTS)}")
    kind = FAULTS[name]
    known = {f.name: f.default for f in fields(kind) if not f.name.startswith("_")}
    values: dict[str, Any] = {}
    for word in given:
        key, _, value = word.partition("=")
        if key not in known:
            raise ValueError(f"{name} has no parameter {key}")
        values[key] = float(value) if isinstance(known[key], float) else int(value)
    return kind(_struck=struck, **values)
