"""The verdict back to the workflow: outputs, job summary, annotations, and the step's exit code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import ExitCode, MrcrError, OutputError
from mrcr_action.github.files import SUMMARY_LIMIT, write_outputs, write_summary
from mrcr_action.github.inputs import in_their_words
from mrcr_action.github.outputs import outputs_of
from mrcr_action.report.text import lines, markdown, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.action.run import Run
    from mrcr_action.report.annotations import FailOn
    from mrcr_action.result import Result

MOST_ANNOTATIONS = 10
"""Of each level, the runner keeps so many of a step; one is left for what concerns all of it."""

OWN_FOLDERS = ("MRCR_CACHE", "HF_HOME")
"""Variables that may name further folders of the workspace that a run writes to."""


def report(run: Run, code: ExitCode, error: MrcrError | None) -> ExitCode:
    """Hand over what was found; the exit code of the step."""
    if error is not None:
        run.commands.end_group()
        show_error(error)
    fails: FailOn = run.inputs.fail_on if run.inputs else "inconclusive"
    shown = run.inputs.annotations if run.inputs else True
    final = code if error is not None else _forgiving(run.results, code, fails)
    outputs = outputs_of(run.results, code, run.folder, run.workspace.here)
    unwritten = max(
        _tried(partial(write_outputs, run.environ, outputs)),
        _tried(partial(write_summary, run.environ, _summary(run, code, error))),
    )
    final = final or unwritten
    if shown:
        _annotate(run, code, error, fails)
    run.workspace.hand_over(_written(run))
    return final


def _tried(write: Callable[[], None]) -> ExitCode:
    try:
        write()
    except OutputError as unwritable:
        show_error(unwritable)
        return unwritable.exit_code
    return ExitCode.PASS


def _forgiving(results: Sequence[Result], code: ExitCode, fail_on: FailOn) -> ExitCode:
    """The step's exit code, by the conclusions for which the job is to fail.

    A wrong configuration and a cancelled run are never forgiven, nor hidden behind one that is.
    """
    from mrcr_action.suite import worst_exit_code

    forgiven: dict[FailOn, set[ExitCode]] = {
        "never": {ExitCode.FAIL, ExitCode.CANNOT_JUDGE},
        "fail": {ExitCode.CANNOT_JUDGE},
    }
    if not results or fail_on not in forgiven:
        return code
    counting = [r for r in results if worst_exit_code([r]) not in forgiven[fail_on]]
    return worst_exit_code(counting) if counting else ExitCode.PASS


def show_error(error: MrcrError) -> None:
    """Print what is wrong and what to do about it."""
    print(f"mrcr: error: {one_line(in_their_words(str(error)), 1_000)}")
    for line in [one_line(in_their_words(error.hint), 1_000), *lines(error.details)]:
        if line:
            print(f"  {line}", flush=True)


def _summary(run: Run, code: ExitCode, error: MrcrError | None) -> str:
    from mrcr_action.report.summary import fit_summary

    parts = []
    if error is not None:
        parts.append(
            "## ⚠️ MRCR could not be run\n\n"
            f"{markdown(in_their_words(str(error)), 2_000)}\n\n"
            f"{markdown(in_their_words(error.hint), 2_000)}\n"
        )
    elif not run.results and code is ExitCode.CANCELLED:
        parts.append("## ⚠️ MRCR was cancelled before it began\n")
    text = "\n".join(parts)
    if run.results:
        text += fit_summary(run.results, SUMMARY_LIMIT - len(text.encode()))
    return text


def _annotate(run: Run, code: ExitCode, error: MrcrError | None, fail_on: FailOn) -> None:
    from mrcr_action.report.annotations import annotations_of

    if error is not None:
        hint = one_line(in_their_words(error.hint), 1_000)
        message = f"{one_line(in_their_words(str(error)), 2_000)} {hint}"
        run.commands.annotate("error", "MRCR could not be run", message.strip())
    elif code is ExitCode.CANCELLED and not run.results:
        run.commands.annotate("error", "MRCR was cancelled", "It was cancelled before it began.")
    for note in annotations_of(run.results, MOST_ANNOTATIONS - 1, fail_on=fail_on):
        run.commands.annotate(note.level, note.title, note.message, file=note.file)
    whole = [result for result in run.results if result.part is None]
    ungated = [result.name for result in whole if not _is_gated(result)]
    if code is ExitCode.PASS and ungated:
        run.commands.annotate(
            "warning",
            "MRCR gated nothing",
            f"{one_line(', '.join(ungated))}: no threshold is set that a server can miss: give the"
            " input thresholds, or thresholds or a baseline in the configuration.",
        )


def _is_gated(result: Result) -> bool:
    from mrcr_action.margins import can_be_missed

    config = result.config
    if config.baseline is not None and config.max_regression != 1:
        return True
    if config.max_instability is not None and config.max_instability < 1:
        return True
    return any(
        can_be_missed(check.metric, check.threshold, check.tolerance or 0.0)
        for check in result.verdict.checks
        if check.threshold is not None
    )


def _written(run: Run) -> list[Path]:
    """Files and folders that the run may have written."""
    folders = [Path(run.environ[name]) for name in OWN_FOLDERS if run.environ.get(name)]
    saved = [result.config.save_results for result in run.results]
    folders += [Path(name) for name in saved if name]
    return [*folders, *([run.folder] if run.folder else [])]
