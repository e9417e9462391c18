"""The command ``mrcr``; every command calls one function, imported when it is used."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action import __version__
from mrcr_action.config.flags import add_config_flags, add_group, given_flags
from mrcr_action.errors import INTERNAL_HINT, ExitCode, MrcrError
from mrcr_action.report.stream import quiet_streams
from mrcr_action.report.text import lines, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

EPILOG = """\
exit codes:
  0  pass              1  a threshold was missed        2  usage or configuration
  3  cannot judge: server, infrastructure or data      130  cancelled

start here:
  mrcr demo                                   the whole pipeline in seconds, without a GPU
  mrcr run configs/Qwen3.5-4B.yaml            start vLLM, evaluate, gate, stop it
  mrcr run --base-url http://127.0.0.1:8000   evaluate a server that already runs
"""

SYNTH_EPILOG = """\
The text is made up by a grammar from the seed: no model has seen it, and no network is needed.
The columns and the folders are those of openai/mrcr.

examples:
  mrcr synth --out samples                                    15 short samples, for a first run
  mrcr synth --bins 32K-64K 64K-128K --per-cell 10 --out samples
  mrcr synth --needles 1 3 16 --bins 512K-1M --per-cell 1 --out samples
  mrcr run --dataset samples --base-url http://127.0.0.1:8000      ask a server for the answers
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and turn errors into one line and an exit code."""
    with quiet_streams():
        try:
            return _main(arguments)
        except KeyboardInterrupt:
            return ExitCode.CANCELLED


def _main(arguments: Sequence[str] | None) -> int:
    options = make_parser().parse_args(arguments)
    if options.debug:
        # What stopped a run is part of its result; its traceback is logged.
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("mrcr_action").setLevel(logging.DEBUG)
    try:
        return int(options.function(options))
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


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="mrcr",
        description="Does this server still read long contexts? Runs OpenAI's MRCR benchmark"
        " against a vLLM server and ends in a verdict for CI.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mrcr {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")

    run = _command(commands, "run", _run, "take configurations to a verdict")
    run.add_argument(
        "configs",
        nargs="*",
        metavar="CONFIG",
        help="YAML files, or lists of them (one a line, relative to the list)",
    )
    add_config_flags(run)

    plan = _command(commands, "plan", _plan, "show what a run would ask, without asking it")
    plan.add_argument("configs", nargs="*", metavar="CONFIG", help="as for `mrcr run`")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    _add_window(plan)
    add_config_flags(plan)

    data = commands.add_parser(
        "data", help="fetch, check and list samples, for use without a network"
    )
    _add_data_commands(data.add_subparsers(required=True, metavar="COMMAND", title="commands"))

    demo = _command(commands, "demo", _demo, "run the whole pipeline against a stand-in server")
    demo.add_argument(
        "--break",
        dest="broken",
        metavar="FAULT",
        help="switch a fault on: window, drop-nonce, wrong-needle, garble, truncate, abort, cut,"
        " or any FAULT of `python -m mrcr_action.standin --help`",
    )
    demo.add_argument("--output-dir", default="mrcr-demo", metavar="DIR", help="default: mrcr-demo")

    synth = _command(commands, "synth", _synth, "write synthetic samples in the dataset's layout")
    synth.epilog = SYNTH_EPILOG
    synth.formatter_class = argparse.RawDescriptionHelpFormatter
    synth.add_argument(
        "--needles",
        nargs="+",
        type=int,
        default=[2, 4, 8],
        metavar="N",
        help="how many identical requests a sample holds, each 1 to 16 (default: 2 4 8)",
    )
    synth.add_argument(
        "--bins",
        nargs="+",
        default=["4K-8K"],
        metavar="LOW-HIGH",
        help="length ranges in o200k tokens of prompt and answer, up to 512K-1M (default: 4K-8K)",
    )
    synth.add_argument(
        "--per-cell",
        type=int,
        default=5,
        metavar="N",
        help="samples for each needle count in each range (default: 5)",
    )
    synth.add_argument(
        "--non-latin",
        type=int,
        default=0,
        metavar="PERCENT",
        help="share of the pieces in Greek, Cyrillic, Arabic, Devanagari, Chinese, Japanese or"
        " Korean, 0 to 100 (default: 0)",
    )
    synth.add_argument(
        "--seed",
        type=int,
        default=0,
        help="the same seed makes the same samples; another one makes new text (default: 0)",
    )
    synth.add_argument("--out", required=True, metavar="DIR", help="folder to write")

    schema = _command(commands, "schema", _schema, "print a JSON Schema")
    schema.add_argument("document", choices=["config", "result"])
    return parser


def _command(commands: Any, name: str, function: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + "."
    )
    parser.set_defaults(function=function)
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    return parser


def _run(options: argparse.Namespace) -> int:
    from mrcr_action.commands.run import run_command

    return run_command(options.configs, given_flags(options), options.api_key, os.environ)


def _add_window(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window",
        metavar="TOKENS",
        help="the server's context length, such as 131072 or 128K (default: --max-model-len of"
        " server_args)",
    )


def _add_data_commands(commands: Any) -> None:
    fetch = _command(
        commands, "fetch", _data_fetch, "write the samples that a configuration can use to a folder"
    )
    key = _command(
        commands, "key", _data_key, "print a name for that folder in a cache, such as CI's"
    )
    for parser in (fetch, key):
        parser.add_argument(
            "config", nargs="?", metavar="CONFIG", help="default: all samples of --needles, --bins"
        )
        _add_window(parser)
        add_group(parser, "the samples")
    fetch.add_argument("--to", required=True, metavar="DIR", help="folder to write, or to replace")
    check = _command(commands, "check", _data_check, "read all of a folder of samples for faults")
    stats = _command(
        commands, "stats", _data_stats, "count a folder's samples by needles and length"
    )
    for parser in (check, stats):
        parser.add_argument("dataset", metavar="DIR", help="a bundle, or a local dataset")


def _plan(options: argparse.Namespace) -> int:
    from mrcr_action.commands.plan import plan_command
    from mrcr_action.commands.run import api_key_of, checked_key

    return plan_command(
        options.configs,
        given_flags(options),
        window=options.window,
        as_json=options.json,
        api_key=checked_key(options.api_key) or api_key_of(os.environ),
        environ=os.environ,
    )


def _data_fetch(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import fetch_command

    return fetch_command(
        options.config,
        given_flags(options),
        to=Path(options.to),
        window=options.window,
        environ=os.environ,
    )


def _data_key(options: argparse.Namespace) -> int:
    from mrcr_action.commands.data import key_command

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
