"""The start in the image: puts the environment right, then runs what is asked for."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CANCELLING = {signal.SIGINT, signal.SIGTERM}
"""Signals that cancel; the entrypoint holds them back until somebody can report it."""

IMAGE_ENVIRONMENT = Path("/opt/mrcr/environment")
"""Variables as the image has them, ``NAME=VALUE`` a line; written when it is built."""

LEAKING = (
    "HOME",
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
)
"""Variables that describe a machine. A job passes on what its steps have set for the runner's own,
and a home folder that is wiped with every job and in which files of root's are in the way."""


def start(arguments: Sequence[str]) -> int:
    """Run the Action in a job, its clean-up as ``post-entrypoint``, and elsewhere ``mrcr``.

    Args:
        arguments: name of the program, then its arguments.

    Returns:
        The exit code.
    """
    name, *rest = arguments
    restore_environment()
    action = not rest and os.environ.get("GITHUB_ACTIONS") == "true"
    if not action or Path(name).name == "post-entrypoint":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CANCELLING)
    if Path(name).name == "post-entrypoint":
        from mrcr_action.action.post import main as clean_up

        return _in_job(clean_up)
    if not action:
        from mrcr_action.cli import main as command

        return command(rest)
    from mrcr_action.action.main import main as judge

    # It lets signals in as soon as it can report.
    return _in_job(judge)


def restore_environment(file: Path = IMAGE_ENVIRONMENT) -> None:
    """Undo what a job changed of the image's environment, for everything that is started here."""
    with contextlib.suppress(OSError):
        image = dict(line.partition("=")[::2] for line in file.read_text().splitlines())
        for name in LEAKING:
            if value := image.get(name):
                os.environ[name] = value
            else:
                os.environ.pop(name, None)


def _in_job(main: Callable[[Mapping[str, str]], int]) -> int:
    from mrcr_action.daemon_thread import leave_work_behind
    from mrcr_action.report.stream import quiet_streams

    # A runner reads both streams for commands, each for itself: what stops it from that on one
    # would say nothing about the other.
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
    with quiet_streams():
        code = main(dict(os.environ))
        leave_work_behind(code)
    return code
