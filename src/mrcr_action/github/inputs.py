"""The inputs of the Action, as its container gets them; ``action.yml`` describes them.

Most are settings under another name and win over the configuration file. An empty one does not
count: that is how an input that nobody gave arrives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from mrcr_action.config.resolve import flag_of
from mrcr_action.config.values import TYPES, did_you_mean
from mrcr_action.errors import UsageError
from mrcr_action.report.annotations import FailOn

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = {
    "model": "model_name",
    "base-url": "base_url",
    "server": "server",
    "image": "image",
    "gpus": "gpus",
    "cache-dir": "cache_dir",
    "shm-size": "shm_size",
    "server-args": "server_args",
    "thresholds": "thresholds",
    "tolerance": "tolerance",
    "protocol": "protocol",
    "needles": "needles",
    "samples-per-cell": "samples_per_cell",
    "num-samples": "num_samples",
    "max-tokens": "max_tokens",
    "plan": "plan",
    "shard": "shard",
    "concurrency": "concurrency",
    "dataset": "dataset",
    "output-dir": "output_dir",
    "junit": "junit",
    "startup-timeout": "startup_max_wait_seconds",
    "time-limit": "time_limit_seconds",
}
"""Inputs that are settings, with the key that each one sets."""

OTHERS = ("config", "api-key", "fail-on", "annotations")
"""Inputs that are no settings."""

RUNNERS_OWN = "entrypoint"
"""An input that runners take for themselves, and pass on all the same; for an image without an
action.yml (``uses: docker://``), Kubernetes demands it."""

PREFIX = "INPUT_"

_NAMES = {key: name for name, key in KEYS.items()}
_TRUE, _FALSE = {"true", "True", "TRUE"}, {"false", "False", "FALSE"}
"""What a runner takes for a boolean, and nothing else."""

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]+[a-z])(?![\w-])(?: (URL|NAME|DIR|N|FILE|KEY)\b)?")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the workflow says under ``with:``."""

    configs: tuple[str, ...]
    """Configuration files and lists of them."""
    settings: dict[str, str]
    """Values by key of `mrcr_action.config.RunConfig`, as text."""
    api_key: str | None
    fail_on: FailOn
    """From which conclusion on the job fails."""
    annotations: bool


def read_inputs(environ: Mapping[str, str]) -> Inputs:
    """The inputs from a container's environment.

    Raises:
        UsageError: there is one that the Action does not have, or one of its own is malformed. A
            threshold with a slip in its name would otherwise gate nothing.
    """
    given = {
        variable.removeprefix(PREFIX).lower(): _without_line_end(value)
        for variable, value in environ.items()
        if variable.startswith(PREFIX) and value.strip()
    }
    given.pop(RUNNERS_OWN, None)
    known = (*KEYS, *OTHERS)
    for name in given:
        if name not in known:
            guess = did_you_mean(name, known) or f"; the inputs are {', '.join(known)}"
            raise UsageError(f"input {name}: there is no such input{guess}")
    configs = tuple(line.strip() for line in given.get("config", "").splitlines() if line.strip())
    return Inputs(
        configs=configs,
        settings={key: given[name] for name, key in KEYS.items() if name in given},
        api_key=given.get("api-key"),
        fail_on=_fail_on(given.get("fail-on", "inconclusive").strip()),
        annotations=_boolean("annotations", given.get("annotations", "true").strip()),
    )


def input_of(key: str) -> str:
    """What to call a setting in an error."""
    return f"input {_NAMES[key]}" if key in _NAMES else key


def in_their_words(text: str) -> str:
    """A sentence for the command line, with its flags called by the names that a workflow uses."""

    def name(match: re.Match[str]) -> str:
        flag = f"--{match[1]}"
        key = {flag_of(key): key for key in TYPES}.get(flag)
        if flag == "--api-key":
            return "the input api-key"
        if key is None:
            return match[0]
        return f"the input {_NAMES[key]}" if key in _NAMES else f"{key} (in the configuration)"

    return _FLAG.sub(name, text)


def _without_line_end(value: str) -> str:
    """A value as it was meant: YAML's block scalars (``|``) end in a line end that nobody wrote."""
    text = value.strip()
    # The first of several lines keeps its indentation: they may be YAML.
    return text if len(text.splitlines()) == 1 else value.rstrip()


def _fail_on(text: str) -> FailOn:
    allowed = get_args(FailOn)
    if text not in allowed:
        raise UsageError(
            f"input fail-on: {text!r}: expected one of {', '.join(allowed)}"
            + did_you_mean(text, allowed)
        )
    found: FailOn = text  # type: ignore[assignment]
    return found


def _boolean(name: str, text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise UsageError(f"input {name}: {text!r}: expected true or false")
    return text in _TRUE
