"""One start of the Action: inputs to a verdict, and the verdict back to the workflow.

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
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.action.configurations import configurations, jobs_of
from mrcr_action.action.entry import CANCELLING
from mrcr_action.action.report import report, show_error
from mrcr_action.action.run import Run
from mrcr_action.errors import INTERNAL_HINT, ExitCode, MrcrError, UsageError
from mrcr_action.github.commands import Commands
from mrcr_action.github.inputs import read_inputs
from mrcr_action.github.workspace import find_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.result import Result

log = logging.getLogger(__name__)

API_KEY = "INPUT_API-KEY"
"""The input that the runner shall hide before it is looked at."""


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
    run = Run(environ, commands, find_workspace(folder))
    error: MrcrError | None = None
    try:
        # Held back until here, where they are reported.
        for number in CANCELLING:
            signal.signal(number, run.cancel)
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
        code = report(run, code, error)
    except Exception as unknown:
        # Python's own exit code for this is that of a missed threshold.
        show_error(_internal(unknown))
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


def _judge(run: Run) -> ExitCode:
    """Run everything; the exit code is the worst verdict's, whatever the job makes of it."""
    from mrcr_action.commands.run import folder_of
    from mrcr_action.config import RunConfig
    from mrcr_action.config.listing import unique_names
    from mrcr_action.publish import secrets_of
    from mrcr_action.suite import run_suite, worst_exit_code

    run.go_on()
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
    resolved = configurations(run)
    run.go_on()
    run.folder = folder_of(resolved)
    for name in unique_names([one.name for one in resolved]) if len(resolved) > 1 else ():
        # Each has a subfolder, in whose place a checkout may have a link.
        run.workspace.place(str(run.folder / name), called="output_dir")
    jobs = jobs_of(run, resolved)
    run.go_on()
    results = run_suite(
        jobs,
        run.folder,
        begins=run.begins,
        show=run.show,
        cancelled=lambda: run.cancelled,
    )
    return worst_exit_code(results)
