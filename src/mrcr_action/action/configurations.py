"""The configurations of a step: files and inputs, with every path in the workspace."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError
from mrcr_action.github.inputs import input_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mrcr_action.action.run import Run
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.suite import Job


def configurations(run: Run) -> list[Resolved]:
    """The configurations, with every path in the workspace.

    Raises:
        UsageError: one of them is wrong.
    """
    from mrcr_action.config.listing import expand
    from mrcr_action.config.resolve import resolve
    from mrcr_action.publish import secrets_of
    from mrcr_action.stored import RESULT_FILE

    assert run.inputs is not None
    place, settings = run.workspace.place, dict(run.inputs.settings)
    named = [str(place(config, called="input config")) for config in run.inputs.configs]
    try:
        paths: list[Path | None] = [*expand(named)] if named else [None]
    except UsageError as error:
        raise UsageError(f"input config: {error}", hint=error.hint) from error
    for key in ("output_dir", "dataset"):
        given = settings.get(key)
        if given is not None and (key == "output_dir" or _is_path(given)):
            settings[key] = str(place(given, called=input_of(key)))
    found = []
    run.inputs = replace(run.inputs, settings=settings)
    for path in paths:
        if path is not None:
            # An entry of a list, or a link in the workspace, may lead out of it.
            place(str(path), called="input config")
        one = resolve(path, run.environ, settings, called=input_of)
        where = path or "configuration"
        for key in ("output_dir", "save_results", "dataset"):
            value = getattr(one.config, key)
            if value is not None and (key != "dataset" or _is_path(value)):
                place(value, called=f"{where}: {key}")
        if one.config.baseline is not None:
            # The file in it, where it is a folder: either may be a link.
            for baseline in (one.config.baseline, f"{one.config.baseline}/{RESULT_FILE}"):
                place(baseline, called=f"{where}: baseline")
        _check_mounts(run, one)
        run.commands.mask(secrets_of(one.config, api_key=None, environ=run.environ))
        found.append(one)
    return found


def _check_mounts(run: Run, resolved: Resolved) -> None:
    """See that no file decides what of the runner's machine is mounted into a container.

    A configuration may come with a pull request; the workflow is where a machine's paths belong.

    Raises:
        UsageError: one does.
    """
    assert run.inputs is not None
    config, given = resolved.config, run.inputs.settings
    cache, model = config.cache_dir, config.model_name or ""
    if cache is not None and cache not in {
        given.get("cache_dir"),
        run.environ.get("MRCR_CACHE_DIR"),
    }:
        raise UsageError(
            f"{resolved.path}: cache_dir: {cache}: a folder of the runner's machine is named in a"
            " file",
            hint="Name it in the workflow, as the input cache-dir.",
        )
    said = {given.get("model_name"), *map(run.environ.get, ("MRCR_MODEL", "MRCR_MODEL_NAME"))}
    if model.startswith("/") and model not in said:
        run.workspace.place(model, called=f"{resolved.path}: model_name")


def _is_path(dataset: str) -> bool:
    """Whether a dataset's name is that of a folder rather than one of the hub."""
    # Unlike the method of a path, it takes a name that is too long for one.
    return dataset.startswith(("/", ".")) or os.path.exists(dataset)  # noqa: PTH110


def jobs_of(run: Run, resolved: Sequence[Resolved]) -> list[Job]:
    """The jobs of configurations, with the server's key.

    Raises:
        UsageError: one of them leads to no server.
    """
    from mrcr_action.commands.run import api_key_of, checked_key, job_of

    assert run.inputs is not None
    key = checked_key(run.inputs.api_key, "input api-key") or api_key_of(run.environ)
    return [job_of(one, api_key=key, flags=run.inputs.settings) for one in resolved]
