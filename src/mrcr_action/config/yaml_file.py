"""One YAML file as keys with the lines they stand on; safe, bounded, no duplicates."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from mrcr_action.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1_000_000
"""A configuration is a page of text; anything larger is a mistake or an attack."""

MALFORMED = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)
"""What PyYAML raises for text it cannot read; the last two for values such as `!!bool x`."""


@dataclass(frozen=True)
class YamlFile:
    """The top level of a configuration file."""

    path: Path
    values: dict[str, Any]
    lines: dict[str, int]
    """Line of each key, from 1."""

    def where(self, key: str) -> str:
        """``file:line`` of a key, for an error message."""
        return f"{self.path}:{self.lines.get(key, 1)}"


class Loader(yaml.SafeLoader):
    """A safe loader without aliases and without silent duplicates."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not read here; write the value out",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(
                    problem="a key must be plain text", problem_mark=key_node.start_mark
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key} occurs twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> YamlFile:
    """Read a configuration file.

    Raises:
        ConfigError: it is missing, too large, empty, not text, not YAML or not a mapping.
    """
    text = _read_text(path)
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError(
                f"{path}: the file is empty", hint="Name at least model_name; see configs/."
            )
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(
                f"{path}: expected keys with values, such as `model_name: NAME`",
                hint="See configs/ for examples.",
            )
        values = loader.construct_document(node)
        # By the text of the file, in which `on:` is "on" and not the truth value it is to YAML.
        names = [key.value for key, _ in node.value]
        lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: {error.problem or error.context}") from error
    except MALFORMED as error:
        if isinstance(error, (LookupError, AttributeError)):
            reason = "a value does not suit its tag"
        else:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{path}: not readable as YAML: {reason}") from error
    return YamlFile(path, dict(zip(names, values.values(), strict=True)), lines)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES:,} bytes, so not a configuration")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not text in UTF-8 (byte {error.start} is 0x{raw[error.start]:02x})"
        ) from error
    if "\0" in text:
        raise ConfigError(f"{path}: a binary file, not YAML")
    return text
