"""What the Action does once its job is over: removes what a run that was cut off has left.

A runner that cancels a job kills the client of the container engine after some seconds, and nothing
in it. Servers that were started beside it, and a container that did not heed, would keep the GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import ExitCode, MrcrError
from mrcr_action.github.commands import Commands
from mrcr_action.github.workspace import find_workspace
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping


def main(environ: Mapping[str, str]) -> int:
    """Clean up, and say what was removed. Never fails the job: the verdict is known by now."""
    commands = Commands(sys.stdout)
    try:
        _sweep(environ)
    except MrcrError as error:
        commands.annotate("warning", "MRCR could not clean up", one_line(str(error), 2_000))
    except Exception as unknown:  # an engine that nobody has seen must not turn a job red
        what = f"{type(unknown).__name__}: {unknown}"
        commands.annotate("warning", "MRCR could not clean up", one_line(what, 2_000))
    finally:
        commands.close()
    # A step that was killed could not do it.
    workspace = find_workspace(Path(environ.get("GITHUB_WORKSPACE") or "/github/workspace"))
    reports = environ.get("INPUT_OUTPUT-DIR", "").strip() or "mrcr-results"
    workspace.hand_over([workspace.here / reports])
    return ExitCode.PASS


def _sweep(environ: Mapping[str, str]) -> None:
    from mrcr_action.server.engine import connect, is_there
    from mrcr_action.server.sweep import sweep_job

    if not is_there(environ):
        print("No container engine is reachable here, so nothing can be left of the run.")
        return
    with connect(environ) as engine:
        removed = sweep_job(engine, environ)
    for name in removed:
        print(f"Removed {one_line(name)}, which the run had left behind.")
    if not removed:
        print("Nothing was left of the run.")
