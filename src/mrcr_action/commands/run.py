"""``mrcr run``: configurations, or flags alone, to a verdict."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.config.listing import expand
from mrcr_action.config.resolve import Resolved, flag_of, resolve
from mrcr_action.config.values import SECRET_KEYS
from mrcr_action.errors import UsageError
from mrcr_action.publish import MASK, mask_arguments, without_password
from mrcr_action.server.machine import Machine
from mrcr_action.server.route import API_KEY_VARIABLES, make_server, route_of
from mrcr_action.suite import Job, run_suite, worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mrcr_action.sample import Sample
    from mrcr_action.server import Server


def run_command(
    configs: Sequence[str],
    flags: Mapping[str, Any],
    api_key: str | None,
    environ: Mapping[str, str],
) -> int:
    """Run all configurations; the exit code is the worst verdict's."""
    api_key = checked_key(api_key) or api_key_of(environ)
    paths: list[Path | None] = [*expand(configs)] if configs else [None]
    runs = [resolve(path, environ, flags) for path in paths]
    folder = folder_of(runs)
    jobs = [job_of(run, api_key=api_key, flags=flags) for run in runs]
    return worst_exit_code(run_suite(jobs, folder))


def folder_of(runs: Sequence[Resolved]) -> Path:
    """The folder for the reports of all runs.

    Raises:
        UsageError: they name several, or the same file twice.
    """
    folders = {run.config.output_dir for run in runs}
    if len(folders) > 1:
        raise UsageError(
            f"the configurations name different output folders: {', '.join(sorted(folders))}",
            hint="Pass one with --output-dir.",
        )
    saved = [run.config.save_results for run in runs if run.config.save_results]
    if len(set(saved)) < len(saved):
        raise UsageError(
            "--save-results: several configurations would write the same file",
            hint="Leave it out: each configuration's result.json holds the same fields.",
        )
    return Path(folders.pop())


def api_key_of(environ: Mapping[str, str]) -> str | None:
    """The server's key from the environment, if there is one."""
    keys = (checked_key(environ.get(name), name) for name in API_KEY_VARIABLES)
    return next(filter(None, keys), None)


def checked_key(given: str | None, origin: str = "--api-key") -> str | None:
    """A key without the line end that a file leaves behind; the key itself is never shown.

    Raises:
        UsageError: no HTTP header can carry it.
    """
    key = given.strip() if given else None
    if key and not (key.isascii() and key.isprintable()):
        raise UsageError(f"{origin}: a key holds printable ASCII characters only")
    return key or None


def job_of(resolved: Resolved, *, api_key: str | None, flags: Mapping[str, Any]) -> Job:
    """A job for a configuration; what can be found wrong without a server is found here."""
    machine = Machine()
    chosen = route_of(resolved.config, has_file=resolved.path is not None, machine=machine)

    def make(output: Path, further: Sequence[str] = ()) -> Server:
        return make_server(
            resolved.config,
            chosen,
            machine=machine,
            output=output,
            api_key=api_key,
            further=further,
        )

    return Job(
        resolved=resolved,
        invocation=_invocation(resolved, flags),
        make_server=make,
        make_second=None if chosen.name == "external" else make,
        cannot_read=_judge_of(resolved),
    )


def _judge_of(resolved: Resolved) -> Callable[[Sample], str | None] | None:
    """Says of a row why the probe cannot read it; None for a model that may be asked anything."""
    if not resolved.is_probe:
        return None
    from mrcr_action.probe.readable import cannot_read

    return partial(cannot_read, max_tokens=resolved.config.max_tokens)


def _invocation(resolved: Resolved, flags: Mapping[str, Any]) -> tuple[str, ...]:
    words = [
        "mrcr",
        "probe" if resolved.is_probe else "run",
        *([str(resolved.path)] if resolved.path else []),
    ]
    for key, value in flags.items():
        if isinstance(value, bool):
            words.append(flag_of(key) if value else "--no-" + flag_of(key)[2:])
        elif isinstance(value, list):
            words += [flag_of(key), *value]
        elif key == "server_args":
            words.append(f"--server-args={shlex.join(mask_arguments(shlex.split(value)))}")
        elif key in SECRET_KEYS:
            words.append(f"{flag_of(key)}={MASK}")
        else:
            words.append(f"{flag_of(key)}={without_password(value)}")
    return tuple(words)
