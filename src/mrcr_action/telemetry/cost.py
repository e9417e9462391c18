"""What the answers of a run cost, put together with how its servers fared. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.telemetry.document import Telemetry
from mrcr_action.telemetry.latency import latencies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.result import Record
    from mrcr_action.rounds import Round
    from mrcr_action.telemetry.document import Gpu, ServerTelemetry


def telemetry_of(
    records: Sequence[Record],
    rounds: Sequence[Round],
    *,
    servers: Sequence[ServerTelemetry],
    gpus: Sequence[Gpu],
) -> Telemetry | None:
    """The field of the result; None where nothing was asked.

    Args:
        records: finished asks, answered or not.
        rounds: of the plan.
        servers: as they were observed.
        gpus: likewise.
    """
    if not records and not servers:
        return None
    answered = [record for record in records if record.grade is not None]
    cached = [r.cached_tokens for r in answered if r.cached_tokens is not None]
    return Telemetry(
        answers=len(answered),
        prompt_tokens=sum(r.prompt_tokens or 0 for r in answered),
        output_tokens=sum(r.completion_tokens or 0 for r in answered),
        cached_tokens=sum(cached) if cached else None,
        latency=latencies(records, rounds),
        servers=tuple(servers),
        gpus=tuple(gpus),
    )
