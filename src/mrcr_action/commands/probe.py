"""``mrcr probe``: a model that reads perfectly, so that every wrong answer is the server's."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.cache import entry, locked
from mrcr_action.choice import tokens_in
from mrcr_action.commands.run import api_key_of, checked_key, job_of
from mrcr_action.config.faults import server_arguments
from mrcr_action.config.resolve import ENV_PREFIX, Resolved, flag_of, resolve
from mrcr_action.errors import ExitCode, OutputError, UsageError
from mrcr_action.report.text import one_line
from mrcr_action.server.route import attaches
from mrcr_action.suite import run_suite, worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mrcr_action.probe.checkpoint import Dtype

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

USUAL_LENGTH = "8K"
"""Longest prompt unless another is wanted."""

OWN_DATA = {"max_tokens": "4096"}
"""What differs where the rows are the user's: the dataset's pieces have up to 3,890 characters."""

LEAST_WINDOW = 16_384
"""Tokens of the window of a server that is started here, unless prompts are longer."""

ROOM = 4_096
"""Tokens of a window beyond the longest row: padding, and the answer."""

LEAST_LENGTH, LONGEST = 512, 131_072 - ROOM
"""Tokens of the longest row, at least and at most."""


SHIPPED = Path(sys.prefix) / "share" / "mrcr-probe"
"""Where an image has the model ready."""


def probe_command(
    flags: Mapping[str, Any], *, longest: str, api_key: str | None, environ: Mapping[str, str]
) -> int:
    """Serve the probe, or attach to a server that serves it, and gate on any inexact answer.

    Args:
        flags: as of ``mrcr run``.
        longest: longest prompt, such as 8K.
        api_key: the server's key.
        environ: variables of this process.

    Raises:
        UsageError: what is asked for is impossible; nothing was run.
    """
    given = dict(flags)
    resolved = probe_run(given, environ, longest=longest, server="process")
    job = job_of(resolved, api_key=checked_key(api_key) or api_key_of(environ), flags=given)
    return worst_exit_code(run_suite([job], Path(resolved.config.output_dir)))


def probe_run(
    given: dict[str, Any],
    environ: Mapping[str, str],
    *,
    longest: str = USUAL_LENGTH,
    server: str = "auto",
    called: Callable[[str], str] = flag_of,
) -> Resolved:
    """The probe's model, rows and gate where nothing else is said.

    Args:
        given: flags or inputs; what is missing is filled in.
        environ: variables of this process.
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
    rows = folder / f"rows-{tokens}"
    model = SHIPPED if (SHIPPED / "config.json").exists() else folder / "model"
    _make(model, rows, tokens)
    has_data = "dataset" in given or bool(environ.get(ENV_PREFIX + "DATASET", "").strip())
    own = OWN_DATA if has_data else {"dataset": str(rows)}
    for key, value in {**GATE, **own}.items():
        if not environ.get(ENV_PREFIX + key.upper(), "").strip():
            given.setdefault(key, value)
    config = resolve(None, environ, given, called=called).config
    if attaches(config, has_file=False):
        # Any other model would score 0, as if the server were broken.
        given.setdefault("model_name", SERVED)
    else:
        if config.server == "auto" and config.image is None:
            given["server"] = server
        window = max(LEAST_WINDOW, tokens + ROOM)
        # Those that are given come last, so that they win.
        needed = ("--served-model-name", SERVED, "--max-model-len", str(window))
        given["server_args"] = shlex.join([*needed, *server_arguments(config)])
        given.setdefault("model_name", str(model))
    return replace(resolve(None, environ, given, called=called), name=SERVED, is_probe=True)


def _folder() -> Path:
    """Where the model and its rows are kept, by the code that makes them."""
    from mrcr_action import probe

    assert probe.__file__ is not None
    digest = hashlib.sha256()
    for module in sorted(Path(probe.__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return entry("probe", digest.hexdigest()[:16])


def _make(model: Path, rows: Path, tokens: int) -> None:
    """Write the model and the rows, unless they are there.

    Raises:
        OutputError: they cannot be written.
    """
    from mrcr_action.data.writer import write_parquet
    from mrcr_action.probe import build
    from mrcr_action.probe.rows import rows as made

    try:
        with locked(rows.parent / "made"):
            if not (model / "config.json").exists():
                build(model)
            if not rows.exists():
                partial = rows.with_name(f".{rows.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                write_parquet(made(tokens), partial)
                partial.rename(rows)
    except OSError as error:
        raise OutputError(f"{rows.parent}: cannot be written: {error.strerror}") from error


def build_command(directory: str, *, dtype: Dtype) -> int:
    """Write the model's files.

    Raises:
        OutputError: the folder cannot be written.
    """
    from mrcr_action.probe import build

    try:
        build(Path(directory), dtype=dtype)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written: {error.strerror}") from error
    print(
        f"Wrote the probe to {one_line(directory, 1_000)}. Serve it: vllm serve"
        f" {one_line(shlex.quote(directory), 1_000)} --served-model-name {SERVED} --dtype auto"
    )
    return ExitCode.PASS
