"""Text put in the place of every text of a result that a program of ours does not choose."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec

KEPT = frozenset({"cold", "all"})
"""Values by which the first round and the bucket of all samples are found."""

GRAMMAR = frozenset({("RunConfig", "thresholds"), ("RunConfig", "bins"), ("RunConfig", "exclude")})
"""Fields whose texts are refused, before anything is run, unless they are of a grammar."""


def planted(value: Any, text: str) -> Any:
    """A copy of a tree of structs with the text in the place of every string that is free.

    A string is free whose type is no `Literal`, and is not held to a pattern. What others may write
    into a ``result.json`` that is rendered again is free as well.
    """
    return _planted(value, type(value), text)


def _planted(value: Any, kind: Any, text: str) -> Any:
    if isinstance(value, str):
        return text if value not in KEPT and not _is_closed(kind) else value
    if isinstance(value, msgspec.Struct):
        changes = {
            name: _planted(getattr(value, name), kind, text) for name, kind in _fields(type(value))
        }
        return msgspec.structs.replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(_planted(one, kind, text) for one in value)
    if isinstance(value, dict):
        return {_planted(k, kind, text): _planted(v, kind, text) for k, v in value.items()}
    return value


@cache
def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    """Fields whose texts may be free, with their types."""
    fields = msgspec.structs.fields(kind)
    return [(f.name, f.type) for f in fields if (kind.__name__, f.name) not in GRAMMAR]


def _is_closed(kind: Any) -> bool:
    """Whether a literal or a pattern is a part of a type."""
    if get_origin(kind) is Literal or (isinstance(kind, msgspec.Meta) and kind.pattern):
        return True
    of_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return not of_struct and any(_is_closed(part) for part in get_args(kind))
