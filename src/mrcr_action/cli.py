"""The command ``mrcr``; every command calls one function, imported when it is used."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.arguments import make_parser
from mrcr_action.daemon_thread import leave_work_behind
from mrcr_action.errors import INTERNAL_HINT, ExitCode, MrcrError
from mrcr_action.report.stream import quiet_streams
from mrcr_action.report.text import lines, one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and turn errors into one line and an exit code."""
    with quiet_streams():
        try:
            code = _main(arguments)
        except KeyboardInterrupt:
            print("mrcr: cancelled", file=sys.stderr)
            code = ExitCode.CANCELLED
        leave_work_behind(code)
        return code


def _main(arguments: Sequence[str] | None) -> int:
    options = make_parser().parse_args(arguments)
    command = COMMANDS[options.command]
    if options.debug:
        # What stopped a run is part of its result; its traceback is logged.
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("mrcr_action").setLevel(logging.DEBUG)
    try:
        return int(command(options))
    except MrcrError as error:
        if options.debug:
            traceback.print_exc()
        print(f"mrcr: error: {one_line(str(error), 1_000)}", file=sys.stderr)
        for line in [one_line(error.hint, 1_000), *lines(error.details)]:
            if line:
                print(f"  {line}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        print(
            f"mrcr: internal error: {type(error).__name__}: {one_line(str(error))}\n"
            f"  {INTERNAL_HINT}",
            file=sys.stderr,
        )
        return ExitCode.CANNOT_JUDGE


def _run(options: argparse.Namespace) -> int:
    from mrcr_action.commands.run import run_command
    from mrcr_action.config.flags import given_flags

    return run_command(options.configs, given_flags(options), options.api_key, os.environ)


def _plan(options: argparse.Namespace) -> int:
    from mrcr_action.commands.plan import plan_command
    from mrcr_action.commands.run import api_key_of, checked_key
    from mrcr_action.config.flags import given_flags

    return plan_command(
        options.configs,
        given_flags(options),
        window=options.window,
        as_json=options.json,
        api_key=checked_key(options.api_key) or api_key_of(os.environ),
        environ=os.environ,
    )


def _calibrate(options: argparse.Namespace) -> int:
    from mrcr_action.commands.calibrate import calibrate_command
    from mrcr_action.config.flags import given_flags

    return calibrate_command(
        options.config,
        given_flags(options),
        false_alarm=options.false_alarm,
        buckets=options.buckets,
        to=options.to,
        force=options.force,
        api_key=options.api_key,
        environ=os.environ,
    )


def _probe(options: argparse.Namespace) -> int:
    from mrcr_action.commands.probe import DTYPE, build_command, probe_command, variant_of
    from mrcr_action.config.flags import given_flags
    from mrcr_action.config.resolve import flag_of
    from mrcr_action.errors import UsageError

    variant = variant_of(
        architecture=options.architecture,
        head_size=options.head_size,
        sensitivity=options.sensitivity,
    )
    flags = given_flags(options)
    if options.build is not None:
        if not options.build or flags:
            named = ", ".join(map(flag_of, flags)) or "DIR is empty"
            raise UsageError(f"--build only writes the model: {named}")
        return build_command(options.build, variant=variant, dtype=options.dtype or DTYPE)
    if options.dtype is not None:
        raise UsageError(
            "--dtype: of what --build writes",
            hint='For a server that is started here: --server-args "--dtype float16".',
        )
    return probe_command(
        flags,
        variant=variant,
        longest=options.longest,
        api_key=options.api_key,
        environ=os.environ,
    )


def _compare(options: argparse.Namespace) -> int:
    from mrcr_action.commands.compare import compare_command

    return compare_command(
        options.a, options.b, max_regression=options.max_regression, as_json=options.json
    )


def _report(options: argparse.Namespace) -> int:
    from mrcr_action.commands.report import report_command

    return report_command(
        options.results,
        options.output_dir,
        files={name: getattr(options, name) for name in ("html", "junit", "summary")},
    )


def _merge(options: argparse.Namespace) -> int:
    from mrcr_action.commands.merge import merge_command

    return merge_command(
        options.results, Path(options.output_dir), allow_missing=options.allow_missing
    )


def _data_fetch(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import fetch_command
    from mrcr_action.config.flags import given_flags

    return fetch_command(
        options.config,
        given_flags(options),
        to=Path(options.to),
        window=options.window,
        environ=os.environ,
    )


def _data_key(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import key_command
    from mrcr_action.config.flags import given_flags

    flags = given_flags(options)
    return key_command(options.config, flags, window=options.window, environ=os.environ)


def _data_check(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import check_command

    return check_command(options.dataset)


def _data_stats(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import stats_command

    return stats_command(options.dataset)


def _demo(options: argparse.Namespace) -> int:
    from mrcr_action.commands.demo import demo_command

    return demo_command(Path(options.output_dir), options.broken)


def _synth(options: argparse.Namespace) -> int:
    from mrcr_action.commands.synth import synth_command

    return synth_command(
        Path(options.out),
        needles=options.needles,
        bins=options.bins,
        per_cell=options.per_cell,
        seed=options.seed,
        non_latin=options.non_latin,
    )


def _schema(options: argparse.Namespace) -> int:
    from mrcr_action.commands.schema import schema_text

    print(schema_text(options.document), end="")
    return ExitCode.PASS


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "plan": _plan,
    "calibrate": _calibrate,
    "compare": _compare,
    "report": _report,
    "merge": _merge,
    "probe": _probe,
    "data fetch": _data_fetch,
    "data check": _data_check,
    "data stats": _data_stats,
    "data key": _data_key,
    "demo": _demo,
    "synth": _synth,
    "schema": _schema,
}
"""By the names that `mrcr_action.arguments` gives them."""
