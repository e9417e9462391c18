"""What a run has found so far, and how that becomes a `Result` at any moment."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from mrcr_action import __version__
from mrcr_action.auc import areas_of
from mrcr_action.baseline import check_of, compared
from mrcr_action.calibration.outdated import outdated
from mrcr_action.cutting import cut_notes
from mrcr_action.errors import INTERNAL_HINT, CannotJudge, ExitCode, MrcrError
from mrcr_action.gate import judge
from mrcr_action.logit_margin import margin_checks, unknown_margin
from mrcr_action.looks import taken
from mrcr_action.margins import one_sample_decides
from mrcr_action.parts import unjudged
from mrcr_action.publish import mask_arguments, publishable, without_password
from mrcr_action.result import (
    CacheInfo,
    DataInfo,
    Problem,
    Record,
    Result,
    ServerInfo,
    Timeline,
    Verdict,
)
from mrcr_action.rounds.stability import (
    not_cold,
    round_changes,
    stability_checks,
    unknown_cache,
    unsure_falls,
)
from mrcr_action.stats import buckets_of, coverage_of
from mrcr_action.stopping import all_with_reach, stopped_early
from mrcr_action.telemetry.cost import telemetry_of
from mrcr_action.telemetry.gpu import GpuMeter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.baseline import Baseline
    from mrcr_action.client import ModelEntry
    from mrcr_action.config import RunConfig
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.plan import Plan
    from mrcr_action.result import Bucket, Check, Part
    from mrcr_action.server import RouteName
    from mrcr_action.telemetry.document import ServerTelemetry
    from mrcr_action.template import Preflight


@dataclass
class Findings:
    """What is known so far; turned into a `Result` at any moment, also after a failure."""

    baseline: Baseline | None = None
    """What the run is compared with when it is over."""
    model: ModelEntry | None = None
    version: str | None = None
    data: DataInfo | None = None
    preflight: Preflight | None = None
    plan: Plan | None = None
    part: Part | None = None
    """Which part of a larger plan it is; None where it is the whole one."""
    cache: CacheInfo | None = None
    problem: Problem | None = None
    stopped: bool = False
    """Whether the asking ended early, since the verdict was certain."""
    servers: list[ServerTelemetry] = field(default_factory=list)
    gpus: GpuMeter = field(default_factory=GpuMeter)
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    start_up: float = 0.0
    planning: float = 0.0
    asking: float = 0.0
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    begin: float = field(default_factory=time.perf_counter)


class Described(Protocol):
    """What a result says of a server that has nothing to do with its answers."""

    @property
    def route(self) -> RouteName: ...
    @property
    def why(self) -> str: ...
    @property
    def image(self) -> str | None: ...
    @property
    def base_url(self) -> str: ...
    @property
    def command(self) -> tuple[str, ...]: ...


def result_of(
    found: Findings, resolved: Resolved, server: Described, *, invocation: tuple[str, ...]
) -> Result:
    """The document about what was found, whole or partial.

    Args:
        found: everything known; its clock ends now.
        resolved: the configuration.
        server: its address and command.
        invocation: command line that repeats the run.
    """
    config = resolved.config
    records = found.records
    buckets = buckets_in(found.plan, records, config, stopped=found.stopped)
    buckets = all_with_reach(buckets, records, config) if found.stopped else buckets
    rounds = round_changes(found.plan, records, config, found.cache)
    held = stability_checks(rounds, config, stopped=found.stopped)
    held += margin_checks(records, config)
    coverage = coverage_of(found.plan, records)

    def verdict(*further: Check) -> Verdict:
        problem = found.problem
        if found.part is not None:
            judged = unjudged(found.part, buckets, config)
        else:
            judged = judge(buckets, config, coverage, (*held, *further))
        cancelled = problem is not None and problem.exit_code == ExitCode.CANCELLED
        if problem is None or (judged.conclusion == "fail" and not cancelled):
            return judged
        return Verdict(
            conclusion="inconclusive",
            summary=f"MRCR is inconclusive: {problem.message}",
            checks=judged.checks,
        )

    overall = buckets[0]
    first = [bucket for bucket in buckets if bucket.round is None]
    per_needle = [b for b in first if b.n_needles is not None and b.bin is None]
    output_tokens = sum(r.completion_tokens or 0 for r in records)
    model = found.model
    stale = outdated(
        config, model=model.id if model else None, version=found.version, buckets=first
    )
    result = Result(
        model=model.id if model else config.model_name,
        match_ratio=overall.match_ratio(config.protocol),
        prefix_hit_rate=overall.prefix_hit_rate,
        per_needle={
            f"match_ratio_{b.name}": ratio
            for b in per_needle
            if (ratio := b.match_ratio(config.protocol)) is not None
        },
        num_samples=overall.graded,
        latency=found.asking,
        total_output_tokens=output_tokens,
        tokens_per_second=output_tokens / found.asking if found.asking > 0 else 0.0,
        max_tokens=config.max_tokens,
        needles=config.needles,
        max_prompt_tokens=found.plan.max_prompt_tokens if found.plan else config.max_prompt_tokens,
        name=resolved.name,
        is_probe=resolved.is_probe,
        tool_version=__version__,
        config_path=str(resolved.path) if resolved.path else None,
        config=publishable(config),
        invocation=invocation,
        started=_utc(found.started),
        finished=_utc(datetime.now(UTC)),
        server=ServerInfo(
            route=server.route,
            why=server.why,
            image=server.image,
            base_url=without_password(server.base_url),
            model=model.id if model else None,
            root=model.root if model else None,
            max_model_len=model.max_model_len if model else None,
            version=found.version,
            command=tuple(mask_arguments(server.command)),
        ),
        data=found.data or DataInfo(dataset=config.dataset),
        cache=found.cache,
        rounds=rounds,
        plan=found.plan,
        part=None
        if found.part is None
        else msgspec.structs.replace(found.part, notes=tuple(found.notes)),
        preflight=found.preflight,
        coverage=coverage,
        auc=areas_of(coverage) if config.protocol == "openai" else (),
        buckets=buckets,
        verdict=(judged := verdict()),
        stopped=stopped_early(judged, asked=len(records), planned=len(found.plan.asks))
        if found.stopped and found.plan
        else None,
        problem=found.problem,
        timeline=Timeline(
            start_up=found.start_up,
            plan=found.planning,
            ask=found.asking,
            total=time.perf_counter() - found.begin,
        ),
        telemetry=telemetry_of(
            records,
            found.plan.rounds if found.plan else (),
            servers=found.servers,
            gpus=found.gpus.document(),
        ),
        notes=(
            *found.notes,
            *(taken(found.plan) if found.plan else ()),
            *unknown_cache(rounds),
            *not_cold(found.plan, records),
            *unsure_falls(rounds, config),
            # A part has fewer samples than its thresholds are meant for.
            *(one_sample_decides(first, config) if found.part is None else ()),
            *cut_notes(records, config),
            *unknown_margin(records, config),
            *(stale if found.part is None else ()),
        ),
        records=tuple(records),
    )
    if found.baseline is None or found.part is not None:
        return result
    against = compared(found.baseline, result)
    return msgspec.structs.replace(result, verdict=verdict(check_of(against)), baseline=against)


def buckets_in(
    plan: Plan | None, records: Sequence[Record], config: RunConfig, *, stopped: bool = False
) -> tuple[Bucket, ...]:
    """What came of a plan so far, bucket by bucket."""
    return buckets_of(
        records,
        plan.quotas if plan else config.quotas(),
        protocol=config.protocol,
        cells=plan.cells if plan else (),
        plan=plan,
        bounded={bound.bucket for bound in config.bounds},
        stopped=stopped,
    )


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def problem_of(error: Exception, hide: Callable[[str], str]) -> Problem:
    """An error as the result document holds it, without what ``hide`` replaces.

    An error that was not raised on purpose is a fault of this program, and said to be one.
    """
    kind = type(error).__name__
    if not isinstance(error, MrcrError):
        error = CannotJudge(f"internal error: {kind}: {error}", hint=INTERNAL_HINT)
        kind = "InternalError"
    return Problem(
        kind=kind,
        message=hide(str(error)),
        hint=hide(error.hint),
        details=hide(error.details),
        exit_code=error.exit_code,
    )
