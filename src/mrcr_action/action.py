"""The GitHub Action: inputs to a verdict, and the verdict back to the workflow.

Reads what the workflow gave, runs its configurations as ``mrcr run`` does, and hands over outputs,
the job summary and annotations. The same whether it ends by itself, by an error or by a signal:
what was found until then is reported, and a run without a verdict is inconclusive, never green.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.entry import CANCELLING
from mrcr_action.errors import INTERNAL_HINT, ExitCode, MrcrError, OutputError, UsageError
from mrcr_action.github.commands import Commands
from mrcr_action.github.files import SUMMARY_LIMIT, write_outputs, write_summary
from mrcr_action.github.inputs import Inputs, in_their_words, input_of, read_inputs
from mrcr_action.github.outputs import outputs_of
from mrcr_action.github.workspace import Workspace, find_workspace
from mrcr_action.report.text import lines, markdown, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mrcr_action.config.resolve import Resolved
    from mrcr_action.report.annotations import FailOn
    from mrcr_action.result import Result
    from mrcr_action.suite import Job

log = logging.getLogger(__name__)

MOST_ANNOTATIONS = 10
"""Of each level, the runner keeps so many of a step; one is left for what concerns all of it."""

API_KEY = "INPUT_API-KEY"
"""The input that the runner shall hide before it is looked at."""

OWN_FOLDERS = ("MRCR_CACHE", "HF_HOME")
"""Variables that may name further folders of the workspace that a run writes to."""


@dataclass
class _Run:
    """What one start of the Action knows so far."""

    environ: Mapping[str, str]
    commands: Commands
    workspace: Workspace
    inputs: Inputs | None = None
    folder: Path | None = None
    results: list[Result] = field(default_factory=list)

    def begins(self, name: str) -> None:
        """A configuration's turn has come."""
        self.commands.group(f"MRCR: {one_line(name)}")

    def show(self, result: Result, files: Sequence[Path]) -> None:
        """A configuration is done."""
        from mrcr_action.report.console import print_result

        self.results.append(result)
        self.commands.end_group()
        print_result(result, files)


def main(environ: Mapping[str, str]) -> int:
    """Run the Action; the exit code is that of the step.

    Args:
        environ: the container's environment; ``GITHUB_WORKSPACE`` is its working folder.
    """
    commands = Commands(sys.stdout)
    if environ.get("RUNNER_DEBUG") == "1":
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("mrcr_action").setLevel(logging.DEBUG)
    folder = Path(environ.get("GITHUB_WORKSPACE") or Path.cwd())
    run = _Run(environ, commands, find_workspace(folder))
    error: MrcrError | None = None
    try:
        # Held back until here, where they are reported.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CANCELLING)
        code = _judge(run)
    except KeyboardInterrupt:
        code = ExitCode.CANCELLED
    except MrcrError as known:
        error, code = known, _despite(run.results, known.exit_code)
    except Exception as unknown:
        error, code = _internal(unknown), ExitCode.CANNOT_JUDGE
    # From here on it takes a moment, in which a second signal would only do harm.
    for number in CANCELLING:
        signal.signal(number, signal.SIG_IGN)
    try:
        code = _report(run, code, error)
    except Exception as unknown:
        # Python's own exit code for this is that of a missed threshold.
        _show(_internal(unknown))
        code = code or ExitCode.CANNOT_JUDGE
    finally:
        commands.close()
    return code


def _despite(results: Sequence[Result], code: ExitCode) -> ExitCode:
    """The exit code of an error that came late: a threshold that was missed by then stays so."""
    from mrcr_action.suite import worst_exit_code

    missed = bool(results) and worst_exit_code(results) is ExitCode.FAIL
    return ExitCode.FAIL if missed else code


def _internal(error: Exception) -> MrcrError:
    log.debug("%s", traceback.format_exc())
    what = f"internal error: {type(error).__name__}: {error}"
    return MrcrError(what, hint=INTERNAL_HINT)


def _judge(run: _Run) -> ExitCode:
    """Run everything; the exit code is the worst verdict's, whatever the job makes of it."""
    from mrcr_action.commands.run import folder_of
    from mrcr_action.config import RunConfig
    from mrcr_action.config.listing import unique_names
    from mrcr_action.publish import secrets_of
    from mrcr_action.suite import run_suite, worst_exit_code

    key = run.environ.get(API_KEY)
    run.commands.mask(secrets_of(RunConfig(), api_key=key, environ=run.environ))
    try:
        os.chdir(run.workspace.here)
    except OSError as error:
        raise UsageError(
            f"{run.workspace.here}: cannot be used as the workspace: {error.strerror}",
            hint="It is the folder that GITHUB_WORKSPACE names; a runner mounts it there.",
        ) from error
    run.inputs = read_inputs(run.environ)
    resolved = _configurations(run)
    run.folder = folder_of(resolved)
    for name in unique_names([one.name for one in resolved]) if len(resolved) > 1 else ():
        # Each has a subfolder, in whose place a checkout may have a link.
        run.workspace.place(str(run.folder / name), called="output_dir")
    return worst_exit_code(
        run_suite(_jobs(run, resolved), run.folder, begins=run.begins, show=run.show)
    )


def _configurations(run: _Run) -> list[Resolved]:
    """The configurations, with every path in the workspace.

    Raises:
        UsageError: one of them is wrong.
    """
    from mrcr_action.config.listing import expand
    from mrcr_action.config.resolve import resolve
    from mrcr_action.publish import secrets_of

    assert run.inputs is not None
    place, settings = run.workspace.place, dict(run.inputs.settings)
    named = [str(place(config, called="input config")) for config in run.inputs.configs]
    try:
        paths: list[Path | None] = [*expand(named)] if named else [None]
    except UsageError as error:
        raise UsageError(f"input config: {error}", hint=error.hint) from error
    for key in ("output_dir", "dataset"):
        given = settings.get(key)
        if given is not None and (key == "output_dir" or _is_path(given)):
            settings[key] = str(place(given, called=input_of(key)))
    found = []
    run.inputs = replace(run.inputs, settings=settings)
    for path in paths:
        if path is not None:
            # An entry of a list, or a link in the workspace, may lead out of it.
            place(str(path), called="input config")
        one = resolve(path, run.environ, settings, called=input_of)
        where = path or "configuration"
        for key in ("output_dir", "save_results", "dataset"):
            value = getattr(one.config, key)
            if value is not None and (key != "dataset" or _is_path(value)):
                place(value, called=f"{where}: {key}")
        _check_mounts(run, one)
        run.commands.mask(secrets_of(one.config, api_key=None, environ=run.environ))
        found.append(one)
    return found


def _check_mounts(run: _Run, resolved: Resolved) -> None:
    """See that no file decides what of the runner's machine is mounted into a container.

    A configuration may come with a pull request; the workflow is where a machine's paths belong.

    Raises:
        UsageError: one does.
    """
    assert run.inputs is not None
    config, given = resolved.config, run.inputs.settings
    cache, model = config.cache_dir, config.model_name or ""
    if cache is not None and cache not in {
        given.get("cache_dir"),
        run.environ.get("MRCR_CACHE_DIR"),
    }:
        raise UsageError(
            f"{resolved.path}: cache_dir: {cache}: a folder of the runner's machine is named in a"
            " file",
            hint="Name it in the workflow, as the input cache-dir.",
        )
    said = {given.get("model_name"), *map(run.environ.get, ("MRCR_MODEL", "MRCR_MODEL_NAME"))}
    if model.startswith("/") and model not in said:
        run.workspace.place(model, called=f"{resolved.path}: model_name")


def _is_path(dataset: str) -> bool:
    """Whether a dataset's name is that of a folder rather than one of the hub."""
    # Unlike the method of a path, it takes a name that is too long for one.
    return dataset.startswith(("/", ".")) or os.path.exists(dataset)  # noqa: PTH110


def _jobs(run: _Run, resolved: Sequence[Resolved]) -> list[Job]:
    from mrcr_action.commands.run import api_key_of, checked_key, job_of

    assert run.inputs is not None
    key = checked_key(run.inputs.api_key, "input api-key") or api_key_of(run.environ)
    return [job_of(one, api_key=key, flags=run.inputs.settings) for one in resolved]


def _report(run: _Run, code: ExitCode, error: MrcrError | None) -> ExitCode:
    """Hand over what was found; the exit code of the step."""
    if error is not None:
        run.commands.end_group()
        _show(error)
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
        _show(unwritable)
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


def _show(error: MrcrError) -> None:
    print(f"mrcr: error: {one_line(in_their_words(str(error)), 1_000)}")
    for line in [one_line(in_their_words(error.hint), 1_000), *lines(error.details)]:
        if line:
            print(f"  {line}", flush=True)


def _summary(run: _Run, code: ExitCode, error: MrcrError | None) -> str:
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


def _annotate(run: _Run, code: ExitCode, error: MrcrError | None, fail_on: FailOn) -> None:
    from mrcr_action.report.annotations import annotations_of

    if error is not None:
        hint = one_line(in_their_words(error.hint), 1_000)
        message = f"{one_line(in_their_words(str(error)), 2_000)} {hint}"
        run.commands.annotate("error", "MRCR could not be run", message.strip())
    elif code is ExitCode.CANCELLED and not run.results:
        run.commands.annotate("error", "MRCR was cancelled", "It was cancelled before it began.")
    for note in annotations_of(run.results, MOST_ANNOTATIONS - 1, fail_on=fail_on):
        run.commands.annotate(note.level, note.title, note.message, file=note.file)
    ungated = [result.name for result in run.results if not _is_gated(result)]
    if code is ExitCode.PASS and ungated:
        run.commands.annotate(
            "warning",
            "MRCR gated nothing",
            f"{one_line(', '.join(ungated))}: no threshold is set that a server can miss: give the"
            " input thresholds, or match_ratio_threshold in the configuration.",
        )


def _is_gated(result: Result) -> bool:
    checks = [check for check in result.verdict.checks if check.threshold is not None]
    return any((check.threshold or 0) > (check.tolerance or 0) for check in checks)


def _written(run: _Run) -> list[Path]:
    """Files and folders that the run may have written."""
    folders = [Path(run.environ[name]) for name in OWN_FOLDERS if run.environ.get(name)]
    saved = [result.config.save_results for result in run.results]
    folders += [Path(name) for name in saved if name]
    return [*folders, *([run.folder] if run.folder else [])]
