"""``mrcr probe``: a model that reads perfectly, so that every wrong answer is the server's."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.cache import entry, locked
from mrcr_action.choice import tokens_in
from mrcr_action.commands.run import api_key_of, checked_key, job_of
from mrcr_action.config.faults import server_arguments
from mrcr_action.config.resolve import Resolved, flag_of, resolve
from mrcr_action.config.values import THRESHOLD_KEYS
from mrcr_action.errors import ExitCode, OutputError, UsageError
from mrcr_action.probe.build import DEFAULT_MAX_LEN
from mrcr_action.probe.variant import DEFAULT, Variant
from mrcr_action.report.text import one_line
from mrcr_action.server.route import attaches
from mrcr_action.suite import run_suite, worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mrcr_action.probe.checkpoint import Dtype
    from mrcr_action.probe.variant import Architecture, HeadSize, Sensitivity

DTYPE: Dtype = "bfloat16"
"""Of the weights that are written."""

SERVED = "probe"
"""Name that the model is served under."""

GATE = {
    "protocol": "openai",
    "plan": "standard",
    "thresholds": "1",
    "tolerance": "0",
    "max_instability": "0",
    "max_tokens": "256",
    "min_logit_margin": "28",
}
"""What is asked and what is tolerated, which is nothing; a flag or a variable says otherwise."""

THRESHOLDS = frozenset(THRESHOLD_KEYS)

USUAL_LENGTH = "8K"
"""Longest prompt unless another is wanted."""

OWN_DATA = {"max_tokens": "4096"}
"""What differs where the rows are the user's: the dataset's pieces have up to 3,890 characters."""

LEAST_WINDOW = 16_384
"""Tokens of the window of a server that is started here, unless prompts are longer."""

ROOM = 4_096
"""Tokens of a window beyond the longest row: padding, and the answer."""

LEAST_LENGTH, LONGEST = 2_048, DEFAULT_MAX_LEN - ROOM
"""Tokens of the longest row, at least and at most."""


SHIPPED = Path(sys.prefix) / "share" / "mrcr-probe"
"""Where an image has the model ready."""


def probe_command(
    flags: Mapping[str, Any],
    *,
    variant: Variant,
    longest: str,
    api_key: str | None,
    environ: Mapping[str, str],
) -> int:
    """Serve the probe, or attach to a server that serves it, and gate on any inexact answer.

    Args:
        flags: as of ``mrcr run``.
        variant: which form of the model a server that is started here serves.
        longest: longest prompt, such as 8K.
        api_key: the server's key.
        environ: variables of this process.

    Raises:
        UsageError: what is asked for is impossible; nothing was run.
    """
    resolved = probe_run(flags, environ, variant=variant, longest=longest, server="process")
    job = job_of(resolved, api_key=checked_key(api_key) or api_key_of(environ), flags=flags)
    job = replace(job, invocation=(*job.invocation, *_form(variant, longest)))
    return worst_exit_code(run_suite([job], Path(resolved.config.output_dir)))


def probe_run(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    variant: Variant = DEFAULT,
    longest: str = USUAL_LENGTH,
    server: str = "auto",
    called: Callable[[str], str] = flag_of,
) -> Resolved:
    """The probe's model, rows and gate where nothing else is said.

    Args:
        given: flags or inputs; what is missing is filled in.
        environ: variables of this process.
        variant: which form of the model is served.
        longest: longest prompt, such as 8K.
        server: how it is started where the settings leave that open.
        called: what to call a setting in an error.

    Raises:
        UsageError: what is asked for is impossible.
        OutputError: the model or the rows cannot be written.
    """
    tokens = tokens_in(longest)
    if not tokens or not LEAST_LENGTH <= tokens <= LONGEST:
        raise UsageError(
            f"--longest {one_line(longest, 40)}: expected a number of tokens such as 8K, at least"
            f" {LEAST_LENGTH} and at most {LONGEST:,}"
        )
    folder = _folder()
    said = resolve(None, environ, given, called=called).given
    given = {**_defaults(folder, variant, tokens, said), **given}
    config = resolve(None, environ, given, called=called).config
    if config.protocol != "openai":
        raise UsageError(
            f"{called('protocol')} {config.protocol}: the probe is judged by openai's, in which an"
            " exact answer scores 1"
        )
    if attaches(config, has_file=False):
        if variant.parts():
            raise UsageError(
                "a running server serves the form that it was started with",
                hint="Leave out --architecture, --head-size and --sensitivity (in a workflow, say"
                " model: probe), or the address.",
            )
        # Any other model would score 0, as if the server were broken.
        served = {"model_name": SERVED}
    else:
        window = min(max(LEAST_WINDOW, tokens + ROOM + config.max_tokens), DEFAULT_MAX_LEN)
        # Those that are given come last, so that they win.
        needed = ("--served-model-name", SERVED, "--max-model-len", str(window))
        given["server_args"] = shlex.join([*needed, *server_arguments(config)])
        served = {"model_name": str(_model(folder, variant))}
        if config.image is None:
            served["server"] = server
    given = {**{key: value for key, value in served.items() if key not in said}, **given}
    return replace(resolve(None, environ, given, called=called), name=SERVED, is_probe=True)


def _defaults(folder: Path, variant: Variant, tokens: int, said: frozenset[str]) -> dict[str, str]:
    """The probe's gate and rows, as far as nothing else is said.

    Raises:
        UsageError: the form of the model cannot read the rows that are named.
        OutputError: the rows cannot be written.
    """
    own = dict(OWN_DATA)
    if "dataset" not in said:
        # Which rows are left out because the model cannot read them depends on its heads.
        rows = folder / f"rows-{tokens}-{variant.head_size}"
        _make_rows(rows, variant, tokens)
        own = {"dataset": str(rows)}
    elif variant.shape.hash_bits < DEFAULT.shape.hash_bits:
        raise UsageError(
            f"--head-size {variant.head_size}: reads rows of its own only, since it may take two"
            " requests of others for equal",
            hint="Leave out --dataset, or --head-size.",
        )
    taken = said | (THRESHOLDS if said & THRESHOLDS else frozenset())
    return {key: value for key, value in {**GATE, **own}.items() if key not in taken}


def _form(variant: Variant, longest: str) -> list[str]:
    """The flags that are not those of ``mrcr run``."""
    usual = {"longest": USUAL_LENGTH, **asdict(DEFAULT)}
    own = {"longest": longest, **asdict(variant)}
    return [f"{flag_of(key)}={value}" for key, value in own.items() if value != usual[key]]


def variant_of(
    *, architecture: Architecture, head_size: HeadSize, sensitivity: Sensitivity
) -> Variant:
    """The form of the model that flags ask for.

    Raises:
        UsageError: there is none.
    """
    try:
        return Variant(architecture=architecture, head_size=head_size, sensitivity=sensitivity)
    except ValueError as error:
        raise UsageError(
            f"--architecture {architecture} --head-size {head_size}: {error}"
        ) from error


def _folder() -> Path:
    """Where the model and its rows are kept, by the code that makes them."""
    from mrcr_action import probe

    assert probe.__file__ is not None
    digest = hashlib.sha256()
    for module in sorted(Path(probe.__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return entry("probe", digest.hexdigest()[:16])


def _model(folder: Path, variant: Variant) -> Path:
    """The model's folder, made unless it is there.

    Raises:
        OutputError: it cannot be written.
    """
    from mrcr_action.probe import build

    if not variant.parts() and (SHIPPED / "config.json").exists():
        return SHIPPED
    model = folder / "-".join(["model", *variant.parts()])
    try:
        with locked(folder / "made"):
            if not (model / "config.json").exists():
                build(model, variant=variant)
    except OSError as error:
        raise OutputError(f"{model}: cannot be written: {error.strerror}") from error
    return model


def _make_rows(rows: Path, variant: Variant, tokens: int) -> None:
    """Write the rows, unless they are there.

    Raises:
        OutputError: they cannot be written.
    """
    from mrcr_action.data.writer import write_parquet
    from mrcr_action.probe.collisions import rivals
    from mrcr_action.probe.rows import rows as made

    try:
        with locked(rows.parent / "made"):
            if not rows.exists():
                partial = rows.with_name(f".{rows.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                read = (row for row in made(tokens) if not rivals(_asked(row), variant.shape))
                write_parquet(read, partial)
                partial.rename(rows)
    except OSError as error:
        raise OutputError(f"{rows.parent}: cannot be written: {error.strerror}") from error


def _asked(row: Mapping[str, Any]) -> list[str]:
    return [m["content"] for m in json.loads(row["prompt"]) if m["role"] == "user"]


def build_command(directory: str, *, variant: Variant, dtype: Dtype) -> int:
    """Write the model's files.

    Raises:
        OutputError: the folder cannot be written.
    """
    from mrcr_action.probe import build

    try:
        build(Path(directory), variant=variant, dtype=dtype)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written: {error.strerror}") from error
    print(
        f"Wrote the probe to {one_line(directory, 1_000)}. Serve it: vllm serve"
        f" {one_line(shlex.quote(directory), 1_000)} --served-model-name {SERVED} --dtype auto"
    )
    return ExitCode.PASS
