"""Parts of a plan with answers, made without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from tests.unit.conftest import build_plan, build_record, build_result

from mrcr_action.config import RunConfig
from mrcr_action.merging.mergeable import Piece
from mrcr_action.parts import split, unjudged
from mrcr_action.stats import buckets_of

if TYPE_CHECKING:
    from mrcr_action.result import Record, Result

CONFIG = RunConfig(needles=(2, 4, 8), num_samples=12, thresholds=0.7)


def records_of(count: int = 12) -> list[Record]:
    """One answer a sample, no two of them equally good."""
    return [build_record(i, 0.5 + i / 30, n_needles=(2, 4, 8)[i % 3]) for i in range(count)]


def part_of(number: int, count: int = 3, **changes: Any) -> Result:
    """A part of the plan of `records_of`, answered as it is in the whole."""
    config = changes.pop("config", CONFIG)
    records = changes.pop("records", None) or records_of()
    whole = build_plan(records, config)
    part, plan = split(whole, number, count)
    own = [record for record in records if any(ask.index == record.ask for ask in plan.asks)]
    buckets = buckets_of(own, plan.quotas)
    made = build_result(config=config, records=own, plan=plan)
    values: dict[str, Any] = {
        "config": msgspec.structs.replace(config, shard=f"{number}/{count}"),
        "part": part,
        "verdict": unjudged(part, buckets, config),
    }
    return msgspec.structs.replace(made, **(values | changes))


def piece(number: int, count: int = 3, **changes: Any) -> Piece:
    return Piece(where=f"p{number}/result.json", result=part_of(number, count, **changes))
