"""What differs between the rounds of a run: answers that depend on the cache or on company. Pure.

Samples are compared with themselves, so that neither their difficulty nor the model's skill is in
the way. A mean that falls by more than chance explains fails the run, whatever the thresholds say;
texts that merely differ do so where ``max_instability`` is set, since on a healthy server, too, the
last bits of a sum depend on what is batched with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mrcr_action.comparison.document import RoundChange
from mrcr_action.comparison.paired import change_of, holm
from mrcr_action.cutting import is_cut
from mrcr_action.result import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.comparison.document import Change
    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Plan
    from mrcr_action.result import CacheInfo, Record, State
    from mrcr_action.rounds import Round

SIGNIFICANT = 0.001
"""Chance, over all rounds together, that a healthy server's mean seems to fall from the first."""

USUAL_BLOCK = 128
"""Tokens of a block of the KV cache where the server does not tell; GPUs have 16, CPUs 128."""

NOTED_FALL = 0.25
"""Fall of a mean that is worth a sentence, however few the samples."""

DEEP_FALL, FEWEST_FALLEN = 0.5, 2
"""Fall of a mean that leaves no verdict where all samples changed, and the fewest of them."""

LEAST_CACHED = 0.5
"""Share of a warm round that has to come from the prefix cache for it to test that."""


def round_changes(
    plan: Plan | None, records: Sequence[Record], config: RunConfig, cache: CacheInfo | None
) -> tuple[RoundChange, ...]:
    """Compare every round with the first one.

    Args:
        plan: tells the rounds.
        records: finished asks.
        config: whose protocol's ratio is compared.
        cache: what is known of the server's cache.
    """
    if plan is None or len(plan.rounds) == 1:
        return ()
    first = {_key(r): r for r in records if r.pass_name == plan.rounds[0].name}
    # vLLM leaves the field out where nothing was cached.
    tells = any(record.cached_tokens is not None for record in records)
    from_cache = {r.name for r in plan.rounds if r.from_cache or r.kind == "sweep"}
    share = _cached_share(cache, [r for r in records if r.pass_name in from_cache])
    changes = [
        _change(
            round_,
            [r for r in records if r.pass_name == round_.name],
            first,
            config=config,
            cache=cache,
            tells=tells,
            share=share,
        )
        for round_ in plan.rounds[1:]
    ]
    known = [at for at, found in enumerate(changes) if found.change is not None]
    corrected = holm([c.change.p_lower for c in changes if c.change is not None])
    ps = dict(zip(known, corrected, strict=True))
    return tuple(
        msgspec.structs.replace(found, p_corrected=ps.get(at)) for at, found in enumerate(changes)
    )


def _change(
    round_: Round,
    own: Sequence[Record],
    first: dict[tuple[str, int], Record],
    *,
    config: RunConfig,
    cache: CacheInfo | None,
    tells: bool,
    share: float | None,
) -> RoundChange:
    pairs = [(first[_key(r)], r) for r in own if r.grade is not None and _key(r) in first]
    if round_.kind == "sweep":
        return _swept(round_, own, pairs)
    graded = [(a, b) for a, b in pairs if a.grade is not None]
    known = [(a, b) for a, b in graded if a.digest is not None and b.digest is not None]
    ratios = [
        (a.grade.match_ratio(config.protocol), b.grade.match_ratio(config.protocol))
        for a, b in graded
        if a.grade is not None and b.grade is not None
    ]
    least = 2 * ((cache and cache.block_size) or USUAL_BLOCK)
    cacheable = [r for r in own if r.grade is not None and (r.prompt_tokens or 0) >= least]
    if told := [r for r in cacheable if tells and not is_cut(r)]:  # how much comes with the end
        cacheable = told
    return RoundChange(
        name=round_.name,
        kind=round_.kind,
        asked=sum(r.attempts > 0 for r in own),
        change=change_of(ratios) if ratios else None,
        differing=sum(a.digest != b.digest for a, b in known),
        comparable=len(known),
        p_corrected=None,
        cached=sum(_is_hit(r) for r in told) if told else None,
        cacheable=len(cacheable) if round_.from_cache else 0,
        cached_share=share if round_.from_cache and not told else None,
    )


def _swept(
    round_: Round, own: Sequence[Record], pairs: Sequence[tuple[Record, Record]]
) -> RoundChange:
    """Other questions have other answers: those of a conversation that was read exactly once."""
    known = [b.grade.exact for a, b in pairs if a.grade is not None and a.grade.exact and b.grade]
    return RoundChange(
        name=round_.name,
        kind=round_.kind,
        asked=sum(r.attempts > 0 for r in own),
        change=None,
        differing=known.count(False),
        comparable=len(known),
        p_corrected=None,
    )


def _cached_share(cache: CacheInfo | None, warm: Sequence[Record]) -> float | None:
    """Of all prompts that are meant to hit the prefix cache, the share that did, by its counters.

    Others cannot, since every sample has a cache of its own.
    """
    if cache is None:
        return None
    if cache.prefix_caching is False:
        return 0.0
    tokens = sum(r.prompt_tokens or 0 for r in warm if r.grade is not None)
    if cache.queried_tokens is None or cache.hit_tokens is None or not tokens:
        return None
    return min(1.0, cache.hit_tokens / tokens)


def _is_hit(record: Record) -> bool:
    """Whether a prompt came from the prefix cache, and not just the way that all prompts begin."""
    tokens = record.prompt_tokens or 0
    return (record.cached_tokens or 0) > LEAST_CACHED / 2 * tokens


def _key(record: Record) -> tuple[str, int]:
    return record.shard, record.row


def stability_checks(
    changes: Sequence[RoundChange], config: RunConfig, *, stopped: bool = False
) -> list[Check]:
    """What the differences mean for the verdict: one check a round.

    Args:
        changes: of all rounds but the first.
        config: what may differ.
        stopped: the run ended early, so that the rounds are not whole, and that few answers differ
            proves nothing of the others.
    """
    return [_check(change, config, stopped=stopped) for change in changes if change.asked]


def _check(found: RoundChange, config: RunConfig, *, stopped: bool) -> Check:
    change = found.change

    def check(state: State, message: str) -> Check:
        return Check(
            bucket=f"{found.name} against the first pass",
            state=state,
            message=f"{found.name}: {message}",
            measured=None if change is None else change.difference,
            samples=0 if change is None else change.n,
            interval=None if change is None else change.interval,
            round=found.name,
        )

    differ = f"{found.differing} of {found.comparable} answers differ from the first pass"
    if found.kind == "sweep":
        differ = f"{found.differing} of {found.comparable} other turns were not read exactly"
    most = config.max_instability
    if most is not None and found.differing > most * found.comparable:
        return check("fail", f"{differ}, at most {most:.1%} may")
    p = found.p_corrected
    if change is not None and p is not None and p < SIGNIFICANT and change.difference < 0:
        fell = f"the mean fell by {-change.difference:.4f} against the first pass"
        return check("fail", f"{fell} ({change.changed} of {change.n} samples changed, p {p:.2g})")
    if lack := _not_from_cache(found) or _fell_deeply(change):
        return check("inconclusive", lack)
    if not found.comparable and change is None:
        return check("measured", "no sample was graded in both")
    if stopped and most is not None:
        return check("inconclusive", f"{differ}, and the run stopped before all were asked")
    return check("measured" if most is None else "pass", differ)


def _fell_deeply(change: Change | None) -> str:
    """Why a few samples leave no verdict; empty where they leave one."""
    if change is None or change.n < FEWEST_FALLEN or change.changed < change.n:
        return ""
    if change.difference > -DEEP_FALL:
        return ""
    fell = f"all {change.n} samples changed, and the mean fell by {-change.difference:.4f}"
    return f"{fell}, in too few samples for that to fail the run"


def _not_from_cache(found: RoundChange) -> str:
    """Why a warm round tested nothing; empty where it did, or where nobody can tell."""
    if not found.cacheable:
        return ""
    if found.cached is not None:
        if found.cached >= LEAST_CACHED * found.cacheable:
            return ""
        seen = f"only {found.cached} of {found.cacheable} answers came from the prefix cache"
    elif found.cached_share is not None and found.cached_share < LEAST_CACHED / 2:
        seen = f"only {found.cached_share:.0%} of the prompts' tokens were in the prefix cache"
    else:
        return ""
    return f"{seen}, so that it was not tested: is it switched off, or too small?"


def unknown_cache(changes: Sequence[RoundChange]) -> list[str]:
    """A sentence where nobody can tell whether a warm round came from the cache."""
    unknown = [c.name for c in changes if c.cacheable and c.cached is None]
    if not any(c.cacheable and c.cached is None and c.cached_share is None for c in changes):
        return []
    told = (
        f"Whether {', '.join(unknown)} came from the prefix cache could not be checked: the server"
        " tells neither cached_tokens (vLLM: --enable-prompt-tokens-details) nor its counters in"
        " /metrics."
    )
    return [told]


def not_cold(plan: Plan | None, records: Sequence[Record]) -> list[str]:
    """A sentence where rounds that are cold by their names came from the prefix cache all the same.

    So they do where requests cannot be told apart: without a ``cache_salt``, or with the same one.
    """
    if plan is None or len(plan.rounds) == 1:
        return []
    found = []
    for round_ in plan.rounds:
        own = [r for r in records if r.pass_name == round_.name and r.grade is not None]
        hot = sum(2 * (r.cached_tokens or 0) > (r.prompt_tokens or 0) > 0 for r in own)
        if round_.kind == "cold" and hot > LEAST_CACHED * len(own):
            found.append(f"{round_.name} ({hot} of {len(own)} answers)")
    if not found:
        return []
    told = (
        f"Not cold, since most of the prompts came from the prefix cache: {', '.join(found)}. Does"
        " extra_body set cache_salt, or does the server not know that field?"
    )
    return [told]


def unsure_falls(changes: Sequence[RoundChange], config: RunConfig) -> list[str]:
    """A sentence about rounds that fell far, in too few samples for that to fail the run.

    Args:
        changes: of all rounds but the first.
        config: how many answers may differ; where more do, the verdict says so.
    """
    most = 1.0 if config.max_instability is None else config.max_instability
    fell = [
        f"{found.name} by {-change.difference:.4f} ({change.changed} of {change.n} samples)"
        for found in changes
        if (change := found.change) is not None and change.difference <= -NOTED_FALL
        if found.p_corrected is not None and found.p_corrected >= SIGNIFICANT
        if found.differing <= most * found.comparable
    ]
    if not fell:
        return []
    told = (
        "The mean fell far against the first pass, in too few samples to be sure:"
        f" {', '.join(fell)}. Look at the responses; more samples would tell, and max_instability"
        " gates on it."
    )
    return [told]
