"""One value: from text, and into the type that its key demands, with an error for a person."""

from __future__ import annotations

import difflib
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec
import yaml

from mrcr_action.config.keys import RunConfig
from mrcr_action.config.thresholds import BadThreshold, read_thresholds
from mrcr_action.config.yaml_file import MALFORMED, Loader
from mrcr_action.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

TYPES: dict[str, Any] = get_type_hints(RunConfig, include_extras=True)
"""Annotation of every key, with limits and description."""

SHOWN = 80
"""Characters of a bad value that an error shows."""

SECRET_KEYS = ("env", "extra_body", "server_args")
"""Keys whose value may hold a secret anywhere, so that no message shows it."""

THRESHOLD_KEYS = ("match_ratio_threshold", "thresholds")
"""Keys without either of which nothing is gated."""

SWITCHES = (
    "trust_remote_code",
    "allow_unverified",
    "merge_leading_user_turns",
    "small_pool",
    "cut_without_nonce",
)
"""Keys that are true or false."""

LISTS = ("needles", "bins", "exclude", "passes", "concurrency")
"""Keys whose flag takes several words."""

NUMBERS = ("needles", "concurrency")
"""Of these, those of whole numbers."""

GATES = (*THRESHOLD_KEYS, "baseline")
"""Keys that can fail a run. To leave one out is one thing; to leave it blank is a slip."""

PATH_KEYS = ("dataset", "output_dir", "save_results", "baseline")
"""Keys whose value may be a path, in which ~ is the home folder."""

DIGITS_AS_TEXT = {"gpus": 0, "shm_size": 1}
"""Keys of text that YAML reads as a number where it has only digits, with the least of them."""

FORMS = {
    "gpus": "expected all, none, or numbers such as 0,1",
    "shm_size": "expected a size such as 16g, or host",
    "shard": "expected a part of how many, such as 2/4",
}
"""What a key of a certain form expects."""

KIND_NAMES = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "object": "keys with values",
    "array": "a list",
    "bool": "true or false",
    "null": "nothing",
}
"""What msgspec calls a type, and what a person does."""


def describe(key: str) -> str:
    """What a key means, in a sentence or two."""
    return next((str(m.description) for m in TYPES[key].__metadata__ if m.description), "")


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.5) -> str:
    """The end of a sentence that names what a slip stands for; empty where nothing is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]}?" if near else ""


def read_text(key: str, given: Any, *, origin: str) -> Any:
    """The value that a text from the environment or the command line stands for.

    Args:
        key: key of `RunConfig`.
        given: text; words for ``needles``; or a flag's own True and False.
        origin: what to call it in an error.

    Raises:
        ConfigError: the text cannot be read.
    """
    if isinstance(given, bool):
        return given
    if key in LISTS:
        text = " ".join(given) if isinstance(given, list) else given
        words = [w for w in re.split(r"[,\s]+", text.strip("[] ")) if w]
        if key not in NUMBERS:
            return words
        numbers = [int(w) if w.isascii() and w.isdigit() else w for w in words]
        return numbers[0] if key == "concurrency" and len(numbers) == 1 else numbers
    if not given.strip() and key != "server_args":
        raise ConfigError(f"{origin}: is empty", hint="Leave it out for the default.")
    if _is_text(key):
        return given
    try:
        return yaml.load(given, Loader=Loader)  # noqa: S506 - a safe one, without duplicates
    except MALFORMED as error:
        problem = getattr(error, "problem", None)
        reason = f"cannot be read: {problem}" if problem else "cannot be read"
        raise ConfigError(f"{origin}: {_show(key, given)}{reason}") from error


def convert(key: str, value: Any, *, origin: str) -> Any:
    """A value in the type of its key.

    Raises:
        ConfigError: it is of another kind, or outside the limits; names origin and value.
    """
    if key == "match_ratio_threshold" and isinstance(value, dict):
        counts = {k: {str(n): n for n in range(1, 17)}.get(k, k) for k in value}
        if len(set(counts.values())) < len(counts):
            raise ConfigError(f"{origin}: {_show(key, value)}a needle count occurs twice")
        value = {counts[k]: v for k, v in value.items()}
    if key in PATH_KEYS and isinstance(value, str) and value.startswith("~"):
        value = str(Path(value).expanduser())
    if key in DIGITS_AS_TEXT and type(value) is int:
        value = str(value)
    if value is None and key in GATES:
        # Nothing must switch the gate off by accident, such as a variable that was not set.
        without = "compare with nothing" if key == "baseline" else "measure without a threshold"
        raise ConfigError(f"{origin}: is empty", hint=f"Leave the key out to {without}.")
    if isinstance(value, bool) and key not in SWITCHES:
        # A YAML `yes` or `on` where a number or a text belongs is always a slip.
        raise ConfigError(f"{origin}: {str(value).lower()}: true and false have no meaning here")
    if key == "thresholds":
        return _thresholds(value, origin)
    try:
        converted = msgspec.convert(value, TYPES[key])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin}: {_show(key, value)}{_reason(key, str(error))}") from error
    if fault := _no_json(converted):
        raise ConfigError(f"{origin}: {_show(key, value)}{fault}")
    return converted


def _thresholds(value: Any, origin: str) -> Any:
    try:
        return read_thresholds(value)
    except BadThreshold as error:
        where = "".join(f"{_cut(str(word))}: " for word in error.where)
        raise ConfigError(f"{origin}: {where}{_cut(repr(error.value))}: {error}") from error


def _is_text(key: str) -> bool:
    """Whether the key holds text as such, so that '1' stays '1'."""
    kind = get_args(TYPES[key])[0]
    if get_origin(kind) is dict:
        return False
    choices = get_origin(kind) is not None and all(isinstance(a, str) for a in get_args(kind))
    return choices or str in (kind, *get_args(kind))


def _no_json(value: Any) -> str:
    """Why a value cannot be written as JSON, which requests and ``result.json`` are; or ""."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        names = "" if all(type(k) in {str, int} for k in value) else "a key must be plain text"
        return names or next(filter(None, map(_no_json, [*value, *value.values()])), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_no_json, value)), "")
    if isinstance(value, float) and not math.isfinite(value):
        return "expected a finite number"
    if isinstance(value, str) and not value.isascii():
        return "" if value.encode("utf-8", "ignore").decode() == value else "not text in UTF-8"
    if value is None or isinstance(value, (str, int, float)):
        return ""
    return f"JSON has no {type(value).__name__}; put it in quotes"


def _reason(key: str, message: str) -> str:
    """msgspec's complaint in the words of a configuration."""
    out_of_range = key == "needles" and re.match(r"Expected `int` [<>]=", message)
    if out_of_range or (key == "match_ratio_threshold" and re.search("`int`.*`key`", message)):
        return "needle counts are 2, 4 and 8 (1 to 16 in synthetic samples)"
    if key in FORMS:
        return FORMS[key]
    if match := re.match(r"Invalid enum value '(.*)'", message):
        allowed = [str(choice) for choice in get_args(get_args(TYPES[key])[0])]
        return f"expected one of {', '.join(allowed)}" + did_you_mean(match[1], allowed, cutoff=0.6)
    text = message.partition(" - at ")[0].replace("Expected ", "expected ").replace(" | null", "")
    return re.sub(
        r"`([\w| ]+)`",
        lambda m: " or ".join(KIND_NAMES.get(k.strip(), k) for k in m[1].split("|")),
        text,
    )


def _show(key: str, value: Any) -> str:
    """A bad value and a colon, as an error begins; nothing where it may hold a secret."""
    return "" if key in SECRET_KEYS else f"{_cut(repr(value))}: "


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
