"""The words that all pieces about a topic lean on, as real ones about horses share a saddle.

Without them two pieces on one topic would be as strange to each other as two on any topics, and a
wrong needle would be easier to tell from the right one than it is in the dataset.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mrcr_action.synthetic.grammar import Dice
from mrcr_action.synthetic.sentences import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

# How many words of each list a topic leans on.
_MOTIFS = {"adj": 5, "noun": 5, "nouns": 5, "being": 3, "did": 5, "did_to": 5, "place": 5}
# Percent of the draws from a list that come out as one of the motifs.
_PERCENT = 45


@functools.cache
def rules_for(topic: str) -> Mapping[str, tuple[str, ...]]:
    """The rules of `mrcr_action.synthetic.sentences`, with the words of this topic more likely."""
    dice = Dice("motifs", topic)
    rules = dict(RULES)
    for name, many in _MOTIFS.items():
        words = RULES[name]
        motifs = tuple(dice.pick(words) for _ in range(many))
        repeats = len(words) * _PERCENT // (100 - _PERCENT) // many
        rules[name] = words + motifs * repeats
    return rules
