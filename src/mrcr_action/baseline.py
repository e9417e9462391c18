"""The result that a run has to stand up to: read before the run, compared after it.

What can be refused is refused before a server is started. What shows only later, such as another
chat template, makes the run inconclusive: a comparison that could not be made is never green.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.comparison.comparable import check_settings, check_template
from mrcr_action.comparison.document import Against
from mrcr_action.comparison.pairs import graded_in, planned, samples_of
from mrcr_action.comparison.verdict import compare, side_of
from mrcr_action.data.shards import Shards
from mrcr_action.errors import (
    INTERNAL_HINT,
    CannotJudge,
    DataError,
    ExitCode,
    MrcrError,
    UsageError,
)
from mrcr_action.publish import publishable
from mrcr_action.report.files import REPORTS
from mrcr_action.result import Check
from mrcr_action.stored import RESULT_FILE, decoded, file_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mrcr_action.comparison.document import Comparing
    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Plan
    from mrcr_action.result import Result, State
    from mrcr_action.template import Preflight

BUCKET = "baseline"
"""What stands in a check in the place of a bucket."""

NAMES = ("the baseline", "this run")

MOST_FLIPS = 10
"""Flipped samples that a result lists."""

STATES: dict[Comparing, State] = {
    "regression": "fail",
    "no regression": "pass",
    "inconclusive": "inconclusive",
}


@dataclass(frozen=True)
class Baseline:
    """A result to be compared with, and the file that it was read from."""

    path: Path
    result: Result


def read_baseline(config: RunConfig) -> Baseline | None:
    """The baseline that a configuration names; None where it names none.

    Raises:
        UsageError: it cannot be read, none of its samples was graded, or it did not ask or grade as
            this configuration would; as a configuration that cannot gate, no option forgives it.
    """
    if config.baseline is None:
        return None
    try:
        path = file_of(config.baseline, wanted="one")
        result = decoded(path, text_of(path))
        graded = graded_in(samples_of(result, str(path)))
    except DataError as error:
        raise UsageError(f"baseline: {error}", hint=error.hint) from error
    if result.part is not None:
        of = f"{result.part.number}/{result.part.count}"
        raise UsageError(
            f"baseline: {path}: shard: {of}: it is one part of a plan",
            hint="Name what `mrcr merge` made of all parts.",
        )
    if not graded:
        raise UsageError(
            f"baseline: {path}: none of its samples was graded",
            hint="Name the result of a run that came to its end.",
        )
    baseline = Baseline(path, result)
    _check_settings(baseline, config)
    return baseline


def _check_settings(baseline: Baseline, config: RunConfig) -> None:
    with contextlib.suppress(DataError):  # which the run itself will say of its samples
        data = Shards(
            config.dataset, config.revision, allow_unverified=config.allow_unverified, report=None
        ).info()
        try:
            check_settings(baseline.result, publishable(config), data, NAMES)
        except UsageError as error:
            raise UsageError(
                f"baseline: {baseline.path}: {error}",
                hint="Make a new baseline with this configuration, or take the change back.",
                details=error.details,
            ) from error


def check_plan(baseline: Baseline, seen: Preflight | None, plan: Plan) -> None:
    """See that a run can be compared when it is over, before it asks for hours.

    Args:
        baseline: what it is to be compared with.
        seen: what is known of the chat template.
        plan: what is to be asked.

    Raises:
        CannotJudge: the chat template is another, or the baseline graded none of the samples.
    """
    called = f"baseline: {baseline.path}"
    try:
        check_template(baseline.result, seen, NAMES)
    except UsageError as error:
        raise CannotJudge(f"{called}: {error}", hint=error.hint) from error
    before = samples_of(baseline.result, called)
    records = [before.get(key) for key in planned(plan)]
    if not any(record is not None and record.grade is not None for record in records):
        raise CannotJudge(
            f"{called}: none of the {len(records)} samples of this run was graded in it",
            hint="Make a new baseline: other rows, another seed or another choice of samples are"
            " other questions.",
        )


def check_place(baseline: Baseline, folders: Iterable[Path], saved: str | None) -> None:
    """See that no report of a run takes the place of its baseline.

    Args:
        baseline: already read.
        folders: those that the reports go to.
        saved: a further file that is written.

    Raises:
        UsageError: one does.
    """
    own = [folder / name for folder in folders for name in REPORTS]
    if saved is not None:
        own.append(Path(saved))
    place = os.path.realpath(baseline.path)
    if place in {os.path.realpath(path) for path in own}:
        raise UsageError(
            f"baseline: {baseline.path}: this run writes its own report there",
            hint=f"Copy the {RESULT_FILE} elsewhere and name the copy, or choose another"
            " --output-dir.",
        )


def compared(baseline: Baseline, result: Result) -> Against:
    """What changed from a baseline to a run, or why that cannot be told.

    Nothing is raised: the run is over, and its reports are worth more than an error.
    """
    path = str(baseline.path)
    side = side_of(baseline.result, path, samples_of(baseline.result, path))
    stopped = result.problem
    if stopped is not None and stopped.exit_code == ExitCode.CANCELLED:
        # Nothing would come of it, and of thousands of samples it takes seconds, which a runner
        # does not leave.
        return Against(baseline=side, problem=stopped.message)
    try:
        found = compare(
            baseline.result,
            result,
            paths=(path, result.config.output_dir),
            max_regression=result.config.max_regression,
            names=NAMES,
        )
    except MrcrError as error:
        said = [str(error), *error.details.splitlines()]
        return Against(baseline=side, problem="; ".join(said))
    except Exception as error:
        kind = type(error).__name__
        return Against(baseline=side, problem=f"internal error: {kind}: {error}. {INTERNAL_HINT}")
    notes = found.notes
    if baseline.result.verdict.conclusion == "fail":
        notes = ("The baseline itself is the result of a run that failed.", *notes)
    found = msgspec.structs.replace(found, notes=notes, flips=found.flips[:MOST_FLIPS])
    return Against(baseline=side, comparison=found)


def check_of(against: Against) -> Check:
    """What a comparison means for the verdict."""
    path, comparison = against.baseline.path, against.comparison
    if comparison is None:
        return Check(
            bucket=BUCKET,
            state="inconclusive",
            message=f"{BUCKET}: {against.problem}",
            against=path,
        )
    overall = comparison.buckets[0]
    summary = comparison.summary
    return Check(
        bucket=BUCKET,
        state=STATES[comparison.conclusion],
        message=f"{BUCKET}: {summary[0].lower()}{summary[1:]}",
        measured=overall.difference,
        samples=overall.n,
        interval=overall.interval,
        against=path,
    )
