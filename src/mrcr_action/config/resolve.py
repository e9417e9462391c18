"""Layers of settings, later over earlier: defaults, a YAML file, the environment, flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrcr_action.config.effort import preset
from mrcr_action.config.faults import faults
from mrcr_action.config.keys import RunConfig
from mrcr_action.config.values import (
    THRESHOLD_KEYS,
    TYPES,
    convert,
    did_you_mean,
    read_text,
)
from mrcr_action.config.yaml_file import YamlFile, read_yaml
from mrcr_action.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ENV_PREFIX = "MRCR_"

ALIASES = {"MODEL": "model_name", "THRESHOLD": "match_ratio_threshold"}
"""Variables that are named like a flag rather than a key."""

THRESHOLD_VARIABLES = ("MRCR_THRESHOLD", "MRCR_MATCH_RATIO_THRESHOLD", "MRCR_THRESHOLDS")

BASELINE_VARIABLE = "MRCR_BASELINE"

RIVALS = (("num_samples", "samples_per_cell"), THRESHOLD_KEYS)
"""Keys that say the same in two ways."""

OTHER_VARIABLES = {"MRCR_API_KEY", "MRCR_VLLM", "MRCR_CACHE", "MRCR_SERVER_MARK"}
"""Variables with the prefix that are no settings."""


@dataclass(frozen=True)
class Resolved:
    """A configuration with what is known of its origin."""

    config: RunConfig
    name: str
    """Name of the configuration in reports: the file's stem, or the model's."""
    path: Path | None
    """The YAML file, if there is one."""
    given: frozenset[str]
    """Keys that some layer set."""
    is_probe: bool = False
    """Whether the model is the one that reads perfectly (``mrcr probe``)."""


def flag_of(key: str) -> str:
    """Name of the command-line flag of a key."""
    return "--model" if key == "model_name" else "--" + key.replace("_", "-")


def resolve(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, str | bool | list[str]],
    *,
    called: Callable[[str], str] = flag_of,
) -> Resolved:
    """Merge the layers into one `RunConfig`.

    Args:
        path: YAML file, or None.
        environ: variables named ``MRCR_`` + the key in upper case count; empty ones do not.
        flags: by key; a flag that was not given is absent.
        called: what to call a key's flag in an error.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind or outside its limits, or keys
            that contradict each other; names where the value came from.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    layers: dict[str, int] = {}
    file = read_yaml(path) if path else None
    if file:
        for key, value in file.values.items():
            _check_known(file, key)
            values[key], origins[key] = value, f"{file.where(key)}: {key}"
            layers[key] = 0
    for key, variable in _variables(environ).items():
        layers[key] = 1
        origins[key] = f"environment: {variable}"
        values[key] = read_text(key, environ[variable], origin=origins[key])
    for key in TYPES:
        if key in flags:
            values[key] = read_text(key, flags[key], origin=called(key))
            origins[key] = called(key)
            layers[key] = 2
    _drop_weaker(values, layers)
    blank = [v for v in THRESHOLD_VARIABLES if v in environ and not environ[v].strip()]
    if blank and not any(key in values for key in THRESHOLD_KEYS):
        # As from a variable of CI that nobody defined: it must not switch a gate off.
        raise ConfigError(
            f"environment: {blank[0]}: is blank, and no other threshold is given",
            hint="Unset it to measure without a threshold.",
        )
    if environ.get(BASELINE_VARIABLE, "x").strip() == "" and "baseline" not in values:
        raise ConfigError(
            f"environment: {BASELINE_VARIABLE}: is blank, and no other baseline is given",
            hint="Unset it to compare with nothing.",
        )
    typed = {key: convert(key, value, origin=origins[key]) for key, value in values.items()}
    config = RunConfig(**(preset(typed) | typed))
    for key, fault in faults(config):
        origin = origins.get(key) or (str(path) if path else called(key))
        raise ConfigError(f"{origin}: {fault}")
    name = path.stem if path else (config.model_name or "run").rstrip("/").rsplit("/", 1)[-1]
    return Resolved(config=config, name=name, path=path, given=frozenset(typed))


def _drop_weaker(values: dict[str, Any], layers: dict[str, int]) -> None:
    """Of two ways to say the same, the one that a later layer took stands."""
    for pair in RIVALS:
        if all(key in values for key in pair) and layers[pair[0]] != layers[pair[1]]:
            del values[min(pair, key=layers.__getitem__)]


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold a setting, by key; blank ones do not count.

    Raises:
        ConfigError: a variable with the prefix is none that is known. A threshold with a slip in
            its name would otherwise gate nothing.
    """
    known = {ENV_PREFIX + key.upper(): key for key in TYPES}
    known |= {ENV_PREFIX + alias: key for alias, key in ALIASES.items()}
    found: dict[str, str] = {}
    for variable in environ:
        if not variable.startswith(ENV_PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            guess = did_you_mean(variable, known)
            raise ConfigError(f"environment: {variable}: unknown setting{guess}")
        if environ[variable].strip():
            key = known[variable]
            if key in found:
                raise ConfigError(f"environment: {variable}: {found[key]} is set too")
            found[key] = variable
    return found


def _check_known(file: YamlFile, key: str) -> None:
    if key in TYPES:
        return
    guess = did_you_mean(key, TYPES) or f"; valid keys are {', '.join(TYPES)}"
    raise ConfigError(f"{file.where(key)}: {key}: unknown key{guess}")
