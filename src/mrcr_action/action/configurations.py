"""The configurations of a step: files and inputs, with every path in the workspace."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError
from mrcr_action.github.inputs import input_of
from mrcr_action.publish import secrets_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mrcr_action.action.run import Run
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.probe.variant import Variant
    from mrcr_action.suite import Job

PROBE = "probe"
"""Value of the input ``model`` that stands for the model with hand-set weights; behind it, and a
dash, may come which of its forms."""


def configurations(run: Run) -> list[Resolved]:
    """The configurations, with every path in the workspace.

    Raises:
        UsageError: one of them is wrong.
    """
    from mrcr_action.config.listing import expand
    from mrcr_action.config.resolve import resolve

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
    if settings.get("model_name", "").split("-")[0] == PROBE:
        from mrcr_action.probe.variant import forms

        # Any other name, such as probe-7b, is that of somebody's model.
        if (variant := forms(PROBE).get(settings["model_name"])) is not None:
            return [_probe(run, settings, variant, has_file=bool(named))]
    run.inputs = replace(run.inputs, settings=settings)
    found = []
    for path in paths:
        if path is not None:
            # An entry of a list, or a link in the workspace, may lead out of it.
            place(str(path), called="input config")
        one = resolve(path, run.environ, settings, called=input_of)
        if _is_path(one.config.dataset):
            place(one.config.dataset, called=f"{path or 'configuration'}: dataset")
        _check_places(run, one)
        _check_mounts(run, one)
        found.append(one)
    return found


def _probe(run: Run, settings: dict[str, str], variant: Variant, *, has_file: bool) -> Resolved:
    """What the input ``model: probe`` stands for: that model, its rows and its gate.

    Raises:
        UsageError: a configuration is given as well.
    """
    from mrcr_action.commands.probe import probe_run

    assert run.inputs is not None
    if has_file:
        raise UsageError(
            "input config: with model probe, the samples and the thresholds are the probe's own",
            hint="Leave one of the two inputs out; a step of its own can do the other.",
        )
    # The name stands for a folder of this container, or for what a running server calls it.
    settings = {key: value for key, value in settings.items() if key != "model_name"}
    found = probe_run(settings, run.environ, variant=variant, called=input_of)
    run.inputs = replace(run.inputs, settings=settings)
    _check_places(run, found)
    return found


def _check_places(run: Run, resolved: Resolved) -> None:
    """See that what is written, and the baseline, lie in the workspace; hide what is secret.

    Raises:
        UsageError: one does not.
    """
    from mrcr_action.stored import RESULT_FILE

    config, where = resolved.config, resolved.path or "configuration"
    for key in ("output_dir", "save_results"):
        if (value := getattr(config, key)) is not None:
            run.workspace.place(value, called=f"{where}: {key}")
    if config.baseline is not None:
        # The file in it, where it is a folder: either may be a link.
        for baseline in (config.baseline, f"{config.baseline}/{RESULT_FILE}"):
            run.workspace.place(baseline, called=f"{where}: baseline")
    run.commands.mask(secrets_of(config, api_key=None, environ=run.environ))


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
