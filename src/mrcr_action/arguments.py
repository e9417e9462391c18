"""The command line's words: commands and their flags, each added when its command is used."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mrcr_action import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

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
  mrcr run --base-url URL --dataset samples --protocol openai --samples-per-cell 5
"""


CALIBRATE_EPILOG = """\
Asks every sample --repeats times (default here: 5, at least 2) in every pass of the configuration,
and writes it anew with thresholds for which a server like this one fails no more often than
--false-alarm says. A server that loses requests, or scores nothing, gets none: exit code 3. See
docs/calibrating.md.

examples:
  mrcr calibrate configs/model.yaml
  mrcr calibrate configs/model.yaml --false-alarm 0.001 --repeats 10 --base-url URL
"""


COMPARE_EPILOG = """\
exit codes:
  0  no regression    1  a regression    2  asked or graded differently
  3  cannot judge: a result cannot be read, samples were lost, or it may be chance

Without --max-regression, a regression is a bucket whose mean fell and whose p, corrected for the
number of buckets, is below 0.05. With it, one whose mean fell by more, and surely fell. Where all
samples together fell that far (without it: by more than the tolerance of B's configuration) and it
may be chance, there is no verdict. See docs/comparing.md.

examples:
  mrcr compare before after
  mrcr compare before/result.json after/result.json --max-regression 0.02
"""


REPORT_EPILOG = """\
No server is asked, and no verdict is changed: exit code 0 when the reports are written, 3 when a
result cannot be read. The texts of the answers come from the samples.jsonl beside each result; a
report for a browser has none of them where it is gone. See docs/report.md.

examples:
  mrcr report mrcr-results                                    anew, in their place
  mrcr report mrcr-results --html page.html                   one of them, elsewhere
  mrcr report night-1 night-2 night-3 --output-dir nights     several results side by side
"""


MERGE_EPILOG = """\
The parts of one plan, each measured with `mrcr run --shard K/N`, become what one run would have
found: the same statistics, verdict, reports and exit code. Parts of different configurations,
models, servers or plans are refused (2), and so is a part that is missing (3). See
docs/sharding.md.

examples:
  mrcr merge part-1 part-2 part-3 part-4
  mrcr merge parts/*                                          wherever the parts were put
"""


PROBE_EPILOG = """\
The model's weights were set by hand such that it answers every MRCR question exactly: one inexact
answer, and the server has read a prompt wrongly. Nothing is downloaded, and its 42 MB load in
seconds. See docs/probe.md and docs/detection.md.

Unlike in mrcr run, these are the defaults: --plan standard, --protocol openai, --thresholds 1,
--tolerance 0, --max-instability 0, --min-logit-margin 28, --max-tokens 256, rows and a model of its
own, and a server that is started here as a process.

examples:
  mrcr probe                                          serve it with vLLM here
  mrcr probe --server-args "--block-size 32"          with the flags that are to be tested
  mrcr probe --sensitivity high                       a few percent off is red, too
  mrcr probe --build probe                            for a vLLM elsewhere, and then:
  mrcr probe --base-url http://HOST:8000              attach to that one
"""


class _Command(argparse.ArgumentParser):
    """A command whose flags are added when it is used: `mrcr --help` needs none of them."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        return super().parse_known_args(args, namespace)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; it says in ``command`` which one was chosen."""
    parser = argparse.ArgumentParser(
        prog="mrcr",
        description="Does this server still read long contexts? Runs OpenAI's MRCR benchmark"
        " against a vLLM server and ends in a verdict for CI.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mrcr {__version__}")
    commands = _commands_of(parser)
    _command(commands, "run", _fill_run, "take configurations to a verdict")
    _command(commands, "plan", _fill_plan, "show what a run would ask, without asking it")
    _command(commands, "calibrate", _fill_calibrate, "write thresholds that a healthy server meets")
    _command(commands, "compare", _fill_compare, "say what changed from one result to another")
    _command(commands, "report", _fill_report, "write the reports of results again")
    _command(commands, "merge", _fill_merge, "take the parts of one plan (--shard) to a verdict")
    _command(commands, "probe", _fill_probe, "gate a server with a model that reads perfectly")
    commands.add_parser(
        "data", help="fetch, check and list samples, for use without a network"
    ).fill = _fill_data
    _command(commands, "demo", _fill_demo, "run the whole pipeline against a stand-in server")
    _command(commands, "synth", _fill_synth, "write synthetic samples in the dataset's layout")
    _command(commands, "schema", _fill_schema, "print a JSON Schema")
    return parser


def _commands_of(parser: argparse.ArgumentParser) -> Any:
    return parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", parser_class=_Command
    )


def _command(
    commands: Any,
    name: str,
    fill: Callable[[argparse.ArgumentParser], None],
    summary: str,
    *,
    within: str = "",
) -> None:
    parser: _Command = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + "."
    )
    parser.set_defaults(command=f"{within} {name}".strip())
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    parser.fill = fill


def _fill_run(run: argparse.ArgumentParser) -> None:
    from mrcr_action.config.flags import add_config_flags

    run.add_argument(
        "configs",
        nargs="*",
        metavar="CONFIG",
        help="YAML files, or lists of them (one a line, relative to the list)",
    )
    add_config_flags(run)


def _fill_plan(plan: argparse.ArgumentParser) -> None:
    from mrcr_action.config.flags import add_config_flags

    plan.add_argument("configs", nargs="*", metavar="CONFIG", help="as for `mrcr run`")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    _add_window(plan)
    add_config_flags(plan)


def _fill_calibrate(calibrate: argparse.ArgumentParser) -> None:
    from mrcr_action.config.flags import add_config_flags

    calibrate.add_argument("config", metavar="CONFIG", help="YAML file of a healthy server")
    calibrate.add_argument(
        "--false-alarm",
        type=float,
        default=0.01,
        metavar="P",
        help="how likely one run of a healthy server may fail, all thresholds and passes together"
        " (default: 0.01)",
    )
    calibrate.add_argument(
        "--buckets",
        default="all,needles,cells",
        metavar="KIND,…",
        help="what gets thresholds (default: all,needles,cells)",
    )
    calibrate.add_argument(
        "--to", metavar="FILE", help="file to write (default: CONFIG-calibrated.yaml beside CONFIG)"
    )
    calibrate.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_config_flags(calibrate)
    calibrate.epilog = CALIBRATE_EPILOG
    calibrate.formatter_class = argparse.RawDescriptionHelpFormatter


def _fill_compare(compare: argparse.ArgumentParser) -> None:
    compare.epilog = COMPARE_EPILOG
    compare.formatter_class = argparse.RawDescriptionHelpFormatter
    compare.add_argument("a", metavar="A", help="before: a result.json, or the folder with it")
    compare.add_argument("b", metavar="B", help="after: the same, of the same plan")
    compare.add_argument(
        "--max-regression",
        type=float,
        metavar="R",
        help="how much the mean ratio of a bucket may fall, such as 0.02 (default: any fall that is"
        " no chance is a regression)",
    )
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _fill_report(report: argparse.ArgumentParser) -> None:
    report.epilog = REPORT_EPILOG
    report.formatter_class = argparse.RawDescriptionHelpFormatter
    report.add_argument(
        "results", nargs="+", metavar="RESULT", help="a result.json, or the folder with it"
    )
    report.add_argument(
        "--output-dir",
        metavar="DIR",
        help="folder for all reports (default: that of the result, if there is one only)",
    )
    for name, metavar, what in (
        ("html", "FILE", "the page for a browser"),
        ("junit", "FILE", "JUnit XML"),
        ("summary", "FILE", "the summary in Markdown"),
    ):
        report.add_argument(f"--{name}", metavar=metavar, help=f"only write {what}, to this file")


def _fill_merge(merge: argparse.ArgumentParser) -> None:
    merge.epilog = MERGE_EPILOG
    merge.formatter_class = argparse.RawDescriptionHelpFormatter
    merge.add_argument(
        "results", nargs="+", metavar="RESULT", help="a part's result.json, or the folder with it"
    )
    merge.add_argument(
        "--output-dir",
        default="mrcr-results",
        metavar="DIR",
        help="folder for the reports (default: mrcr-results)",
    )
    merge.add_argument(
        "--allow-missing",
        action="store_true",
        help="report on the parts that are there; the verdict is inconclusive then, or a failure",
    )


def _fill_probe(probe: argparse.ArgumentParser) -> None:
    from mrcr_action.config.flags import add_config_flags

    probe.epilog = PROBE_EPILOG
    probe.formatter_class = argparse.RawDescriptionHelpFormatter
    probe.add_argument(
        "--longest",
        default="8K",
        metavar="TOKENS",
        help="longest prompt, such as 32K; a token is a byte, and 124K are the most (default: 8K)",
    )
    probe.add_argument(
        "--architecture",
        choices=["llama", "qwen3"],
        default="llama",
        help="the model class that serves it; qwen3 norms queries and keys (default: llama)",
    )
    probe.add_argument(
        "--head-size",
        type=int,
        choices=[128, 64],
        default=128,
        help="channels of an attention head (default: 128)",
    )
    probe.add_argument(
        "--sensitivity",
        choices=["normal", "high"],
        default="normal",
        help="high: answers are spoiled, too, where scores, keys or values are off by a few percent"
        " (default: normal)",
    )
    probe.add_argument(
        "--build",
        metavar="DIR",
        help="only write the model to a folder, for `vllm serve` elsewhere",
    )
    probe.add_argument(
        "--dtype",
        choices=["bfloat16", "float16", "float32"],
        help="of the weights that --build writes (default: bfloat16)",
    )
    add_config_flags(probe)


def _fill_data(data: argparse.ArgumentParser) -> None:
    commands = _commands_of(data)
    for name, fill, summary in (
        ("fetch", _fill_fetch, "write the samples that a configuration can use to a folder"),
        ("check", _fill_folder, "read all of a folder of samples for faults"),
        ("stats", _fill_folder, "count a folder's samples by needles and length"),
        ("key", _fill_key, "print a name for that folder in a cache, such as CI's"),
    ):
        _command(commands, name, fill, summary, within="data")


def _fill_key(key: argparse.ArgumentParser) -> None:
    from mrcr_action.config.flags import add_group

    key.add_argument(
        "config",
        nargs="?",
        metavar="CONFIG",
        help="without one: all samples of --needles and --bins, under the openai protocol",
    )
    _add_window(key)
    add_group(key, "the samples")


def _fill_fetch(fetch: argparse.ArgumentParser) -> None:
    _fill_key(fetch)
    fetch.add_argument("--to", required=True, metavar="DIR", help="folder to write, or to replace")


def _fill_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DIR", help="a bundle, or a local dataset")


def _fill_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--break",
        dest="broken",
        metavar="FAULT",
        help="switch a fault on: window, drop-nonce, wrong-needle, garble, truncate, abort, cut,"
        " or any FAULT of `python -m mrcr_action.standin --help`",
    )
    demo.add_argument("--output-dir", default="mrcr-demo", metavar="DIR", help="default: mrcr-demo")


def _fill_synth(synth: argparse.ArgumentParser) -> None:
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


def _fill_schema(schema: argparse.ArgumentParser) -> None:
    schema.add_argument("document", choices=["config", "result"])


def _add_window(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window",
        metavar="TOKENS",
        help="the server's context length, such as 131072 or 128K (default: --max-model-len of"
        " server_args)",
    )
