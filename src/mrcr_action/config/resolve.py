"""Layers of settings, later over earlier: defaults, a YAML file, the environment, flags."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mrcr_action.config.keys import RunConfig
from mrcr_action.config.values import TYPES, convert, read_text
from mrcr_action.config.yaml_file import YamlFile, read_yaml
from mrcr_action.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENV_PREFIX = "MRCR_"

ALIASES = {"MODEL": "model_name", "THRESHOLD": "match_ratio_threshold"}
"""Variables that are named like a flag rather than a key."""

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


def flag_of(key: str) -> str:
    """Name of the command-line flag of a key."""
    return "--model" if key == "model_name" else "--" + key.replace("_", "-")


def resolve(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str | bool | list[str]]
) -> Resolved:
    """Merge the layers into one `RunConfig`.

    Args:
        path: YAML file, or None.
        environ: variables named ``MRCR_`` + the key in upper case count; empty ones do not.
        flags: by key; a flag that was not given is absent.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind or outside its limits, or keys
            that contradict each other; names where the value came from.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    file = read_yaml(path) if path else None
    if file:
        for key, value in file.values.items():
            _check_known(file, key)
            values[key], origins[key] = value, f"{file.where(key)}: {key}"
    for key, variable in _variables(environ).items():
        origins[key] = f"environment: {variable}"
        values[key] = read_text(key, environ[variable], origin=origins[key])
    for key in TYPES:
        if key in flags:
            values[key] = read_text(key, flags[key], origin=flag_of(key))
            origins[key] = flag_of(key)
    typed = {key: convert(key, value, origin=origins[key]) for key, value in values.items()}
    config = RunConfig(**typed)
    _check_together(config, origins, str(path) if path else "")
    name = path.stem if path else (config.model_name or "run").rstrip("/").rsplit("/", 1)[-1]
    return Resolved(config=config, name=name, path=path, given=frozenset(typed))


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold a setting, by key; blank ones do not count.

    Raises:
        ConfigError: a variable with the prefix is none that is known. A threshold with a slip in
            its name would otherwise gate nothing.
    """
    known = {ENV_PREFIX + key.upper(): key for key in TYPES}
    known |= {ENV_PREFIX + alias: key for alias, key in ALIASES.items()}
    found = {}
    for variable in environ:
        if not variable.startswith(ENV_PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in known:
            near = difflib.get_close_matches(variable, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"environment: {variable}: unknown setting{hint}")
        if environ[variable].strip():
            found[known[variable]] = variable
    return found


def _check_known(file: YamlFile, key: str) -> None:
    if key in TYPES:
        return
    near = difflib.get_close_matches(key, TYPES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"valid keys are {', '.join(TYPES)}"
    raise ConfigError(f"{file.where(key)}: {key}: unknown key; {hint}")


def _check_together(config: RunConfig, origins: Mapping[str, str], file: str) -> None:
    def fail(key: str, message: str) -> None:
        origin = origins.get(key)
        raise ConfigError(f"{origin or file or flag_of(key)}: {message}")

    if len(set(config.needles)) < len(config.needles):
        fail("needles", f"{list(config.needles)}: a needle count is listed twice")
    threshold = config.match_ratio_threshold
    if isinstance(threshold, dict):
        if not threshold:
            fail("match_ratio_threshold", "{}: names no needle count")
        tested = [n for n, quota in config.quotas().items() if quota]
        untested = [n for n in threshold if n not in tested]
        if untested:
            fail(
                "match_ratio_threshold",
                f"a threshold for {untested[0]} needles, but needles and num_samples test only"
                f" {tested}",
            )
    if config.base_url is not None and not _is_address(config.base_url):
        fail("base_url", "expected an address such as http://127.0.0.1:8000")
    try:
        server_arguments(config)
    except ValueError as error:
        fail("server_args", str(error).lower())


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        whole = parts.port != 0 and bool(parts.hostname)  # the port of a bad address raises
    except ValueError:
        return False
    return whole and parts.scheme in {"http", "https"} and not any(map(str.isspace, url))


def server_arguments(config: RunConfig) -> list[str]:
    """``server_args`` as a list of arguments.

    Raises:
        ValueError: a quotation in the string is not closed.
    """
    if isinstance(config.server_args, str):
        return shlex.split(config.server_args)
    return list(config.server_args)
