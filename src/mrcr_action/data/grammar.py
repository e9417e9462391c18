"""Seeded choices and the templates that are filled from them.

The same seed gives the same text on every machine and version of Python. Of the module
``random`` only seeding by a string and ``random()`` promise that, so nothing else of it is used,
and no power or logarithm, which may differ in the last bit.
"""

from __future__ import annotations

import functools
import random
import re
from typing import TYPE_CHECKING, TypeVar

from mrcr_action.data.words import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

_ARTICLE = re.compile(r"\b[Aa] $")
_VOWELS = tuple("aeiou")


class Dice:
    """A stream of choices that depends on nothing but the parts of its seed."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed))).random  # noqa: S311 - not secret

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        return int(self._random() * limit)

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._random() * len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent


def fill(dice: Dice, template: str, given: Mapping[str, str]) -> str:
    """The template with each name in braces replaced, from ``given`` or else by the rules.

    Raises:
        KeyError: a name is neither given nor one of the rules.
    """
    parts = _split(template)
    if len(parts) == 1:
        return template
    filled = list(parts)
    for at in range(1, len(parts), 2):
        name = parts[at]
        lower = name.lower()
        if lower == "n":
            text = str(dice.between(2, 99))
        elif lower in given:
            text = given[lower]
        else:
            text = fill(dice, dice.pick(RULES[lower]), given)
        filled[at] = text if name == lower else text[:1].upper() + text[1:]
        if text[:1] in _VOWELS and _ARTICLE.search(parts[at - 1]):
            filled[at - 1] = parts[at - 1][:-1] + "n "
    return "".join(filled)


@functools.cache
def _split(template: str) -> tuple[str, ...]:
    # Literals at even places, names at odd ones.
    return tuple(re.split(r"\{([A-Za-z_]+)\}", template))
