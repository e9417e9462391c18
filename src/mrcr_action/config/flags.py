"""The command line's flags, one for every key of `RunConfig`."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from mrcr_action.config.keys import RunConfig
from mrcr_action.config.resolve import ENV_PREFIX, flag_of
from mrcr_action.config.values import LISTS, SWITCHES, TYPES, describe

GROUPS = {
    "the server": (
        "model_name server base_url host port image gpus cache_dir shm_size server_args env"
        " trust_remote_code startup_max_wait_seconds"
    ),
    "the samples": (
        "protocol dataset revision allow_unverified num_samples samples_per_cell"
        " max_samples_per_cell needles bins exclude max_prompt_tokens"
    ),
    "the passes": ("plan passes repeats boundaries sweep small_pool max_instability"),
    "a part of the samples": "shard",
    "the requests": (
        "max_tokens temperature seed concurrency extra_body merge_leading_user_turns"
        " request_timeout_seconds time_limit_seconds"
    ),
    "the gate": (
        "match_ratio_threshold thresholds tolerance decision max_failures min_samples stop_when"
        " cut_without_nonce baseline max_regression min_logit_margin calibration"
    ),
    "the output": "output_dir save_results junit",
}
METAVARS = {
    "model_name": "NAME", "server": "{auto,process,container,external}", "base_url": "URL",
    "host": "HOST",
    "image": "IMAGE", "gpus": "all|none|N,N", "cache_dir": "DIR", "shm_size": "SIZE",
    "server_args": "'ARG…'", "env": "'{NAME: VALUE}'", "protocol": "{vllm,openai}",
    "dataset": "NAME|DIR", "revision": "REV", "extra_body": "JSON",
    "match_ratio_threshold": "RATIO", "thresholds": "'{BUCKET: RATIO}'",
    "decision": "{point,confident}", "stop_when": "{never,failed,decided}", "bins": "LOW-HIGH",
    "exclude": "CELL|BIN", "output_dir": "DIR", "save_results": "FILE",
    "junit": "{buckets,samples}",
    "shard": "K/N", "passes": "PASS", "plan": "{smoke,standard,deep}", "max_instability": "RATIO",
    "baseline": "FILE|DIR", "max_regression": "RATIO",
    "min_logit_margin": "NATS",
    "calibration": "'{KEY: VALUE}'",
}  # fmt: skip


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags, in groups, and the one setting that is no key: the API key."""
    for title in GROUPS:
        add_group(parser, title)
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        help="key of the server; rather set MRCR_API_KEY, which `ps` does not show",
    )
    parser.epilog = (
        f"Every flag is also a key of the YAML file and a variable {ENV_PREFIX}KEY; a flag wins"
        " over the environment, and both win over the file."
    )


def add_group(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the flags of one of `GROUPS`."""
    defaults = {f.name: f.default for f in msgspec.structs.fields(RunConfig)}
    group = parser.add_argument_group(title)
    for key in GROUPS[title].split():
        _add(group, key, defaults[key])


def given_flags(options: argparse.Namespace) -> dict[str, Any]:
    """The flags that were given, by key."""
    values = {key: getattr(options, key, None) for key in TYPES}
    return {key: value for key, value in values.items() if value is not None}


def _add(group: Any, key: str, default: Any) -> None:
    text = describe(key).replace("%", "%%")
    if default is msgspec.NODEFAULT:
        default = {}
    if default not in (None, "", {}, (), False):
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        text += f" Default: {shown}."
    names = [flag_of(key)]
    if key == "match_ratio_threshold":
        names.append("--threshold")
    if key in SWITCHES:
        group.add_argument(*names, dest=key, action=argparse.BooleanOptionalAction, help=text)
    elif key in LISTS:
        group.add_argument(*names, dest=key, nargs="+", metavar=METAVARS.get(key, "N"), help=text)
    else:
        group.add_argument(*names, dest=key, metavar=METAVARS.get(key, "N"), help=text)
