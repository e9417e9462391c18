"""Which questions of MRCR a fault hits: the WHEN behind the ``@``."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from mrcr_action.standin.draws import draw, parse_share


@dataclass(frozen=True, slots=True)
class Span:
    """Requests from one number to another; to the last one when the end is open."""

    first: int
    last: int | None

    def hits(self, ordinal: int, salt: str) -> bool:  # noqa: ARG002 - one signature for all
        """Whether the request of this number, from 1, is meant."""
        return self.first <= ordinal and (self.last is None or ordinal <= self.last)


@dataclass(frozen=True, slots=True)
class Every:
    """Every n-th request: the n-th, the 2n-th and so on."""

    n: int

    def hits(self, ordinal: int, salt: str) -> bool:  # noqa: ARG002 - one signature for all
        """Whether the request of this number, from 1, is meant."""
        return ordinal % self.n == 0


@dataclass(frozen=True, slots=True)
class Chance:
    """A share of the requests, drawn by number, so that every run hits the same ones."""

    share: float

    def hits(self, ordinal: int, salt: str) -> bool:
        """Whether the request is meant; the salt keeps two faults from the same draws."""
        return draw(f"{salt}/{ordinal}") < self.share


When = tuple[Span | Every | Chance, ...]
"""A request is hit if any of these hits it."""


def parse_when(text: str) -> When:
    """Read ``3``, ``2-5``, ``3-``, ``%4``, ``~0.1`` or a list of these with commas.

    Raises:
        ValueError: a part is none of these, or can never hit.
    """
    return tuple(_part(part.strip()) for part in text.split(","))


def _part(text: str) -> Span | Every | Chance:
    if match := re.fullmatch(r"([0-9]+)(?:(-)([0-9]*))?", text):
        first = int(match[1])
        last = int(match[3]) if match[3] else None if match[2] else first
        if first >= 1 and (last is None or last >= first):
            return Span(first, last)
    elif match := re.fullmatch(r"%([1-9][0-9]*)", text):
        return Every(int(match[1]))
    elif text.startswith("~"):
        with contextlib.suppress(ValueError):
            return Chance(parse_share(text[1:]))
    raise ValueError(
        f"{text!r} does not say which requests: write 3, 2-5, 3-, %4 (every 4th), "
        "~0.1 (a tenth of them), or a list such as 1,4-6"
    )
