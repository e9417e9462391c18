"""What an answer is made of, in the order in which it goes over the wire.

An answer is an iterator of steps, so that deciding what to send stays apart from sending it.
When the steps run out, the response ends properly: its last chunk is sent, and the connection
stays open unless a header closes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """Status and headers; without a content-length the body is sent in chunks."""

    status: int
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of the body, written to the socket on its own."""

    body: bytes
    tokens: int = 0
    """How many generated tokens it brings, for the metrics."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Send nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reset:
    """End the connection with a TCP reset."""


@dataclass(frozen=True, slots=True)
class Die:
    """End the whole process at once."""

    exit_code: int


Step = Head | Data | Wait | Reset | Die


def whole(status: int, body: bytes, content_type: str, *headers: tuple[str, str]) -> Iterator[Step]:
    """A response whose body is sent in one piece."""
    yield Head(
        status,
        (("content-type", content_type), ("content-length", str(len(body))), *headers),
    )
    if body:
        yield Data(body)


def json_bytes(value: Any) -> bytes:
    """Compact JSON in UTF-8, with emoji as they are, as vLLM writes it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair came in as an escape: so it goes out
        return json.dumps(value, separators=(",", ":")).encode()


def json_reply(status: int, value: Any, *headers: tuple[str, str]) -> Iterator[Step]:
    """A response that is one JSON value."""
    return whole(status, json_bytes(value), "application/json", *headers)
