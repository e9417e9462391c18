"""Builders of what the pure modules pass on; every field has a plausible value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from mrcr_action.bins import parse_bin
from mrcr_action.config import RunConfig
from mrcr_action.gate import judge
from mrcr_action.grade import Grade
from mrcr_action.plan import Ask, Cell, Passed, Plan
from mrcr_action.result import (
    Bucket,
    DataInfo,
    Problem,
    Record,
    Result,
    ServerInfo,
    Timeline,
    Verdict,
)
from mrcr_action.stats import buckets_of, coverage_of
from mrcr_action.template import Preflight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A machine that is busy with something else must not fail a test.
settings.register_profile("unit", deadline=None)
settings.load_profile("unit")

NOT_COMPARABLE = "The scores are not comparable with those of other runs."

SHARD = "2needle/2needle_0.parquet"


@pytest.fixture
def make_grade() -> Callable[..., Grade]:
    return build_grade


@pytest.fixture
def make_record() -> Callable[..., Record]:
    return build_record


@pytest.fixture
def make_bucket() -> Callable[..., Bucket]:
    return build_bucket


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    return build_plan


@pytest.fixture
def make_cell() -> Callable[..., Cell]:
    return build_cell


@pytest.fixture
def by_cell() -> Result:
    """A result by cell: one cell answered, one named in vain, one out of reach."""
    config = RunConfig(protocol="openai", needles=(2,), bins=("8K-16K", "64K-128K"))
    records = [build_record(i) for i in range(10)]
    cells = (
        build_cell(2, "8K-16K", requested=True, fitting=60, dropped={"too long": 40}),
        build_cell(2, "64K-128K", requested=True, fitting=0, planned=0, dropped={"too long": 100}),
        build_cell(2, "512K-1M", fitting=0, planned=0, dropped={"excluded": 100}),
    )
    plan = build_plan(records, config, cells=cells, passed={})
    return build_result(config=config, records=records, plan=plan)


@pytest.fixture
def merged() -> Result:
    """A result of a run that sends the first two turns as one."""
    config = RunConfig(needles=(2,), num_samples=1, merge_leading_user_turns=True)
    seen = Preflight(
        two_user_turns=False,
        merged=True,
        thinks=None,
        overhead_tokens=None,
        tokens_per_message=None,
        fingerprint="",
        notes=(NOT_COMPARABLE,),
    )
    return build_result(config=config, records=[build_record(0)], preflight=seen, notes=seen.notes)


@pytest.fixture
def make_result() -> Callable[..., Result]:
    return build_result


def build_grade(ratio: float = 0.9, **changes: Any) -> Grade:
    values: dict[str, Any] = {
        "nonce_hit": True,
        "exact": False,
        "match_ratio_openai": ratio,
        "match_ratio_vllm": ratio,
    }
    return Grade(**(values | changes))


def build_record(ask: int = 0, ratio: float | None = 0.9, **changes: Any) -> Record:
    """A scored record, or with ``ratio=None`` a failed one."""
    values: dict[str, Any] = {
        "ask": ask,
        "pass_name": "cold",
        "shard": SHARD,
        "row": 100 + ask,
        "sha256": f"{ask:064x}",
        "n_needles": 2,
        "outcome": "failed" if ratio is None else "scored",
        "o200k_tokens": 9000,
        "grade": None if ratio is None else build_grade(ratio),
        "reason": "the connection broke" if ratio is None else "",
        "finish_reason": None if ratio is None else "stop",
        "prompt_tokens": 8000 + ask,
        "completion_tokens": 100,
        "seconds_to_first_token": 0.5,
        "seconds": 1.25,
    }
    return Record(**(values | changes))


def build_bucket(n_needles: int | None = 4, ratio: float | None = 0.9, **changes: Any) -> Bucket:
    graded = 0 if ratio is None else 10
    values: dict[str, Any] = {
        "name": "all" if n_needles is None else f"n{n_needles}",
        "n_needles": n_needles,
        "wanted": 10,
        "asked": graded,
        "scored": graded,
        "truncated": 0,
        "rejected": 0,
        "failed": 0,
        "match_ratio_openai": ratio,
        "match_ratio_vllm": ratio,
        "prefix_hit_rate": None if ratio is None else 1.0,
        "exact_rate": None if ratio is None else 0.5,
    }
    return Bucket(**(values | changes))


def build_plan(records: Sequence[Record], config: RunConfig, **changes: Any) -> Plan:
    """The plan that these records answer."""
    values: dict[str, Any] = {
        "asks": tuple(
            Ask(
                index=r.ask,
                shard=r.shard,
                row=r.row,
                sha256=r.sha256,
                n_needles=r.n_needles,
                prompt_tokens=r.prompt_tokens or 1,
                o200k_tokens=r.o200k_tokens,
            )
            for r in records
        ),
        "max_prompt_tokens": 30_464,
        "quotas": config.quotas(),
        "passed": {n: Passed() for n in config.needles},
        "counted_by": "server",
    }
    return Plan(**(values | changes))


def build_cell(n_needles: int = 2, bin_: str = "8K-16K", **changes: Any) -> Cell:
    """A cell of a plan: by default one of 100 rows, of which ten are planned."""
    found = parse_bin(bin_)
    values: dict[str, Any] = {
        "n_needles": n_needles,
        "low": found.low,
        "high": found.high,
        "rows": 100,
        "fitting": 100,
        "planned": 10,
    }
    return Cell(**(values | changes))


def build_result(
    *,
    config: RunConfig | None = None,
    records: Sequence[Record] | None = None,
    problem: Problem | None = None,
    **changes: Any,
) -> Result:
    """A whole result; its buckets and verdict follow from the records and the configuration.

    By default one sample of each needle count was asked for and answered, with ratios 0.9, 0.8
    and 0.7, and no threshold is set.
    """
    config = config or RunConfig(model_name="org/model", num_samples=3)
    if records is None:
        records = [
            build_record(i, ratio, n_needles=n)
            for i, (n, ratio) in enumerate(zip(config.needles, (0.9, 0.8, 0.7), strict=False))
        ]
    plan = changes.get("plan", build_plan(records, config) if records else None)
    buckets = buckets_of(
        records,
        plan.quotas if plan else config.quotas(),
        protocol=config.protocol,
        cells=plan.cells if plan else (),
    )
    coverage = coverage_of(plan, records)
    verdict = judge(buckets, config, coverage)
    if problem is not None:
        summary = f"MRCR is inconclusive: {problem.message}"
        verdict = Verdict(conclusion="inconclusive", summary=summary, checks=verdict.checks)
    values: dict[str, Any] = {
        "model": "org/model",
        "match_ratio": buckets[0].match_ratio(config.protocol),
        "prefix_hit_rate": buckets[0].prefix_hit_rate,
        "per_needle": {
            f"match_ratio_{b.name}": ratio
            for b in buckets[1:]
            if (ratio := b.match_ratio(config.protocol)) is not None
        },
        "num_samples": buckets[0].graded,
        "latency": 4.0,
        "total_output_tokens": 1200,
        "tokens_per_second": 300.0,
        "max_tokens": config.max_tokens,
        "needles": config.needles,
        "max_prompt_tokens": 30_464,
        "name": "model",
        "tool_version": "0.1.0",
        "config_path": "configs/model.yaml",
        "config": config,
        "invocation": ("mrcr", "run", "configs/model.yaml"),
        "started": "2026-01-02T03:04:05Z",
        "finished": "2026-01-02T03:05:05Z",
        "server": ServerInfo(
            route="process",
            base_url="http://127.0.0.1:8000",
            model="org/model",
            max_model_len=32_768,
            version="0.33.0",
            command=("vllm", "serve", "org/model"),
        ),
        "data": DataInfo(dataset="openai/mrcr", revision="f4c69fae7cf8", library="4.0.0"),
        "plan": plan,
        "coverage": coverage,
        "buckets": buckets,
        "verdict": verdict,
        "problem": problem,
        "timeline": Timeline(start_up=50.0, plan=5.0, ask=4.0, total=60.0),
        "notes": (),
        "records": tuple(records),
    }
    return Result(**(values | changes))
