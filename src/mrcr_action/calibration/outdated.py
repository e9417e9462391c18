"""Whether a run is still the one that its thresholds were made for. Pure; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.report.text import one_line
from mrcr_action.rounds import rounds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mrcr_action.calibration.document import Calibration
    from mrcr_action.config import RunConfig
    from mrcr_action.result import Bucket

MOST_NAMED = 6
"""Differences that one sentence lists."""

SHOWN = 100
"""Characters shown of a foreign text."""


def outdated(
    config: RunConfig, *, model: str | None, version: str | None, buckets: Sequence[Bucket]
) -> list[str]:
    """One sentence where thresholds were calibrated for something else; none where all is the same.

    Args:
        config: of the run.
        model: as the server names it; None where that is not known yet.
        version: of vLLM, likewise.
        buckets: what was measured.
    """
    made_for = config.calibration
    if made_for is None:
        return []
    differing = [
        *_differing(made_for, config, model, version),
        *(
            f"{bucket.name} has {bucket.asked} samples, not {wanted}"
            for bucket in buckets
            if bucket.asked and bucket.round is None
            for wanted in (made_for.n.get(bucket.name, bucket.asked),)
            if wanted != bucket.asked
        ),
    ]
    if not differing:
        return []
    shown = "; ".join(differing[:MOST_NAMED])
    if len(differing) > MOST_NAMED:
        shown += f"; and {len(differing) - MOST_NAMED} more"
    sentence = (
        f"The thresholds were calibrated for another run: {shown}. How often a healthy server"
        " fails them is not known; run `mrcr calibrate` again."
    )
    return [sentence]


def _differing(
    made_for: Calibration, config: RunConfig, model: str | None, version: str | None
) -> Iterator[str]:
    values = (
        ("the model is", model, made_for.model),
        ("vLLM is", version, made_for.vllm_version),
        ("the protocol is", config.protocol, made_for.protocol),
        ("the seed is", config.seed, made_for.seed),
    )
    for what, now, then in values:
        if None not in {now, then} and now != then:
            yield f"{what} {one_line(str(now), SHOWN)}, not {one_line(str(then), SHOWN)}"
    new = [r.name for r in rounds_of(config) if r.repeat == 1 and r.name not in made_for.passes]
    if new:
        yield f"there was no pass {', '.join(new)}"
