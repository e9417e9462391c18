"""``mrcr calibrate``: what a healthy server scores again and again, to thresholds that it meets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mrcr_action.calibration.document import Calibration
from mrcr_action.calibration.hardware import hardware_of
from mrcr_action.calibration.levels import thresholds_for
from mrcr_action.calibration.scores import FEWEST, KINDS, scores_of
from mrcr_action.calibration.written import Line, kept, merged, rates_of, table, text_of
from mrcr_action.commands.run import api_key_of, checked_key, job_of
from mrcr_action.config.resolve import resolve
from mrcr_action.config.values import convert, read_text
from mrcr_action.config.yaml_file import read_yaml
from mrcr_action.errors import CannotJudge, ExitCode, UsageError
from mrcr_action.pipeline import exit_code
from mrcr_action.report.files import prepare_folder, write
from mrcr_action.report.text import one_line
from mrcr_action.suite import run_suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mrcr_action.calibration.scores import Kind, Scores
    from mrcr_action.config import RunConfig
    from mrcr_action.result import Result

REPEATS = 5
FEWEST_REPEATS = 2
FALSE_ALARM = 0.01
LEAST_FALSE_ALARM, MOST_FALSE_ALARM = 0.001, 0.2
"""Fewer cannot be told from the runs that are simulated; more is no gate."""


def calibrate_command(
    config: str,
    flags: Mapping[str, Any],
    *,
    false_alarm: float,
    buckets: str,
    to: str | None,
    force: bool,
    api_key: str | None,
    environ: Mapping[str, str],
) -> int:
    """Run a configuration several times over, and write it with thresholds.

    Args:
        config: path of the configuration.
        flags: as of ``mrcr run``; ``repeats`` is how often all passes are made now.
        false_alarm: how likely one run of a healthy server may fail.
        buckets: kinds of buckets that get a threshold, separated by commas.
        to: path of the file to write; by default beside the configuration.
        force: whether a file that is there may be replaced.
        api_key: the server's key.
        environ: variables of this process.

    Raises:
        UsageError: what is asked for is impossible; nothing was run.
        CannotJudge: the server is not one to measure others by; nothing is written.
        OutputError: the file cannot be written.
    """
    kinds = _kinds(buckets)
    if not LEAST_FALSE_ALARM <= false_alarm <= MOST_FALSE_ALARM:
        raise UsageError(
            f"--false-alarm {false_alarm:g}: expected {LEAST_FALSE_ALARM} to {MOST_FALSE_ALARM}"
        )
    flags = dict(flags)
    repeats = _repeats(flags.pop("repeats", None))
    file = read_yaml(Path(config))
    resolved = resolve(Path(config), environ, flags)
    if resolved.config.shard is not None:
        raise UsageError(
            f"shard: {resolved.config.shard}: thresholds are made of all samples",
            hint="Leave shard out.",
        )
    values, left_out = kept(file, resolved)
    place = Path(to) if to else Path(config).with_name(f"{Path(config).stem}-calibrated.yaml")
    _check_place(place, Path(config), force=force)
    prepare_folder(place.parent, hint="Name another file with --to.")
    measured = replace(resolved, config=_measuring(resolved.config, repeats))
    job = job_of(measured, api_key=checked_key(api_key) or api_key_of(environ), flags=flags)
    # As a run of the file alone it could not be repeated.
    again = ("mrcr", "calibrate", *job.invocation[2:], f"--repeats={repeats}")
    job = replace(job, invocation=again)
    (result,) = run_suite([job], Path(measured.config.output_dir))
    if exit_code(result) in {ExitCode.CANCELLED, ExitCode.USAGE}:
        return exit_code(result)
    scores = scores_of(result, kinds)
    lines = _lines(scores, false_alarm, resolved.config.repeats)
    calibration = _calibration(result, scores, lines, false_alarm)
    text = text_of(
        values,
        merged(resolved.config, lines),
        calibration,
        lines=lines,
        remarks=[*_remarks(resolved.config, scores, lines, left_out)],
    )
    _check_place(place, Path(config), force=force)
    write(place, text.encode("utf-8", "replace"))
    for row in table(lines):
        print(f"  {row}")
    print(
        f"Wrote {place}, whose thresholds a healthy server misses in at most {false_alarm:.2%} of"
        f" its runs. Run it: mrcr run {place}"
    )
    return ExitCode.PASS


def _kinds(text: str) -> tuple[Kind, ...]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in KINDS:
            raise UsageError(
                f"--buckets {one_line(text, 100)}: expected one or more of {', '.join(KINDS)}"
            )
    return tuple(kind for kind in KINDS if kind in words)


def _repeats(given: Any) -> int:
    if given is None:
        return REPEATS
    text = read_text("repeats", given, origin="--repeats")
    repeats = int(convert("repeats", text, origin="--repeats"))
    if repeats < FEWEST_REPEATS:
        raise UsageError(
            f"--repeats {repeats}: at least {FEWEST_REPEATS} are needed to see what varies",
            hint=f"{REPEATS} is a good number; more give thresholds that are closer.",
        )
    return repeats


def _check_place(place: Path, config: Path, *, force: bool) -> None:
    """See that the file to write is nobody else's.

    Raises:
        UsageError: it is.
    """
    if place.exists() and place.resolve() == config.resolve():
        raise UsageError(
            f"--to {place}: is the configuration itself", hint="Name another file with --to."
        )
    if place.is_dir():
        raise UsageError(f"--to {place}: is a folder", hint="Name a file in it.")
    if not force and (place.exists() or place.is_symlink()):
        raise UsageError(
            f"{place}: exists already", hint="Name another file with --to, or pass --force."
        )


def _measuring(config: RunConfig, repeats: int) -> RunConfig:
    """The configuration that is run: what thresholds are about, and little else that could fail."""
    return msgspec.structs.replace(
        config,
        repeats=repeats,
        match_ratio_threshold=None,
        thresholds=rates_of(config) or None,
        decision="point",
        stop_when="never",
        baseline=None,
        max_regression=None,
        boundaries=0,
        sweep=0,
        small_pool=False,
        save_results=None,
        calibration=None,
    )


def _lines(scores: Scores, false_alarm: float, repeats: int) -> list[Line]:
    """Every bucket with its threshold; those that a healthy server may leave at 0 have none."""
    import numpy as np

    found = thresholds_for(
        [*scores.rounds.values()],
        np.array([*scores.members.values()]),
        false_alarm=false_alarm,
        repeats=repeats,
    )
    lines = []
    for bucket, threshold in zip(scores.members, found, strict=True):
        means = scores.means(bucket)
        line = Line(
            bucket=bucket,
            n=int(scores.members[bucket].sum()),
            mean=float(means.mean()),
            sd=float(means.std(ddof=1)),
            least=float(means.min()),
            most=float(means.max()),
            threshold=threshold,
        )
        if threshold > 0:
            lines.append(line)
    if not lines:
        raise CannotJudge(
            "calibrate: the answers vary so much that a healthy server may score 0 in every bucket",
            hint="Ask for more samples, make more --repeats, or allow a larger --false-alarm.",
        )
    return lines


def _calibration(
    result: Result, scores: Scores, lines: Sequence[Line], false_alarm: float
) -> Calibration:
    return Calibration(
        model=result.model or "",
        vllm_version=result.server.version,
        hardware=hardware_of(result.server.route, result.config),
        dataset=result.data.origin or result.data.dataset,
        revision=result.data.revision,
        protocol=result.config.protocol,
        seed=result.config.seed,
        n={line.bucket: line.n for line in lines},
        passes=tuple(scores.rounds),
        repeats=scores.repeats,
        false_alarm=false_alarm,
        date=result.finished,
    )


def _remarks(
    config: RunConfig, scores: Scores, lines: Sequence[Line], left_out: Sequence[str]
) -> Iterator[str]:
    if scores.thin:
        named = ", ".join(f"{bucket} ({n})" for bucket, n in scores.thin.items())
        yield f"No threshold, for fewer than {FEWEST} samples: {named}."
    if lax := [bucket for bucket in scores.members if bucket not in {n.bucket for n in lines}]:
        yield f"No threshold, since a healthy server may score 0: {', '.join(lax)}."
    if config.decision != "point":
        yield "decision: confident was left out: the thresholds are made for means."
    if rates_of(config):
        yield "Bounds of rates are as they were, and no part of the chance above."
    if config.baseline is not None or config.max_instability is not None:
        yield "baseline and max_instability are as they were, and no part of the chance above."
    if left_out:
        yield f"Left out of env, since it may be secret: {one_line(', '.join(left_out), 200)}."
