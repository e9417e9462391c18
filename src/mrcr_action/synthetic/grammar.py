"""Seeded choices and the templates that are filled from them.

The same seed gives the same text on every machine and version of Python. Of the module
``random`` only seeding by a string and ``random()`` promise that, so nothing else of it is used,
and no power or logarithm, which may differ in the last bit.
"""

from __future__ import annotations

import functools
import random
import re
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

_ARTICLE = re.compile(r"\b[Aa] $")
_VOWELS = frozenset("aeiou")


class Dice:
    """A stream of choices that depends on nothing but the parts of its seed.

    ``draw`` gives the next number from 0 up to, not including, 1.
    """

    def __init__(self, *seed: object) -> None:
        self.draw = random.Random("/".join(map(str, seed))).random  # noqa: S311 - not secret

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        return int(self.draw() * limit)

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + int(self.draw() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.draw() * len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent


def fill(
    dice: Dice,
    template: str,
    given: Mapping[str, str],
    rules: Mapping[str, Sequence[str]],
) -> str:
    """The template with each name in braces replaced, from ``given`` or else by the rules.

    ``{n}`` becomes a number. A capital first letter in the braces capitalises what comes out, and
    an ``a`` before it becomes ``an`` where it must.

    Raises:
        KeyError: a name is neither given nor one of the rules.
    """
    # Nearly all the time of making a row is spent here, hence the tuples and the bare draw.
    first, slots = _split(template)
    filled = [first]
    draw = dice.draw
    for name, is_capital, has_article, then in slots:
        if name in given:
            text = given[name]
        elif name == "n":
            text = str(dice.between(2, 99))
        else:
            choices = rules[name]
            text = choices[int(draw() * len(choices))]
            if "{" in text:
                text = fill(dice, text, given, rules)
        if has_article and text[:1] in _VOWELS:
            filled[-1] = filled[-1][:-1] + "n "
        if is_capital:
            text = text[:1].upper() + text[1:]
        filled.append(text)
        filled.append(then)
    return "".join(filled)


class _Slot(NamedTuple):
    """A name in braces and the literal text that follows it."""

    name: str
    is_capital: bool
    has_article: bool
    then: str


@functools.cache
def _split(template: str) -> tuple[str, tuple[_Slot, ...]]:
    """The text before the first name, and the names."""
    # Literals at even places, names at odd ones.
    parts = re.split(r"\{([A-Za-z_]+)\}", template)
    slots = [
        _Slot(
            name=parts[at].lower(),
            is_capital=not parts[at].islower(),
            has_article=_ARTICLE.search(parts[at - 1]) is not None,
            then=parts[at + 1],
        )
        for at in range(1, len(parts), 2)
    ]
    return parts[0], tuple(slots)
