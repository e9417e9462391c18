"""The faults that wait for something: a hit of the cache, a length, a crowd, or their chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.standin.draws import draw

if TYPE_CHECKING:
    from mrcr_action.standin.faults import Effects

EDGE_TOKENS = 24
"""How far behind a multiple the end of a prompt may lie for the fault ``block-edge``."""

_MOST_EDITS = 8
_EDITED, _ELSEWHERE = 0.7, 0.95
"""Of the answers that noise hits, so many are edited; up to the second number, another needle is
answered; the rest lacks its nonce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a completion meets as it begins."""

    completion: int
    """Its number in the server's life, from 1: no other one has it."""
    question: str
    """The last message: what is wrong with it stays wrong in the same way."""
    prompt_tokens: int
    cached_tokens: int
    evicted: bool
    """Whether its prompt was in the cache once and had to go."""
    running: int
    """How many completions run now, itself included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """What is wrong with one answer for such a reason; nothing is by default."""

    wrong_needle: bool = False
    garble: bool = False
    drop_nonce: bool = False
    edits: int = 0
    """How many characters are others."""
    seed: str = ""
    """Draws which ones."""


def slip(effects: Effects, moment: Moment) -> Slip:
    """What the faults that are switched on do to the answer at this moment."""
    mistaken = _mistaken(effects, moment)
    elsewhere = draw(f"mistake/{moment.question}") < 0.5  # noqa: PLR2004 - one half each
    lot = draw(f"severity/{moment.completion}") if _noisy(effects, moment) else None
    seed = f"edit/{moment.completion}"
    crowded = effects.batch is not None and moment.running >= effects.batch
    edited = crowded or (lot is not None and lot < _EDITED)
    return Slip(
        wrong_needle=(mistaken and elsewhere) or (lot is not None and _EDITED <= lot < _ELSEWHERE),
        garble=mistaken and not elsewhere,
        drop_nonce=lot is not None and lot >= _ELSEWHERE,
        edits=1 + int(draw(f"{seed}/count") * _MOST_EDITS) if edited else 0,
        seed=seed,
    )


def _mistaken(effects: Effects, moment: Moment) -> bool:
    """Whether a fault of the cache or of a length strikes."""
    stale = effects.stale_hit is not None and moment.cached_tokens > effects.stale_hit
    edge = (
        effects.block_edge is not None
        and moment.prompt_tokens > effects.block_edge
        and (moment.prompt_tokens - 1) % effects.block_edge < EDGE_TOKENS
    )
    return stale or edge or (effects.evicted_hit and moment.evicted)


def _noisy(effects: Effects, moment: Moment) -> bool:
    return effects.noise is not None and draw(f"noise/{moment.completion}") < effects.noise
