"""What ``Sensitivity`` high adds: gauges of scores, keys and values, and a finely written copy.

The other layers compare ±1, which survives much: an fp8 cache, scores that are a tenth too small.
Here two heads weigh two keys whose scores are known, each segment's own ``<|assistant|>`` and
``<|bos|>``, and carry values such that a healthy server reads 0 or 1. Where a reading is off,
the answer is replaced by ``MARKS``, which say what was off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mrcr_action.diagnosis.probe_parts import MARKS as MEANINGS
from mrcr_action.probe import layout as at
from mrcr_action.probe import vocabulary
from mrcr_action.probe.codes import tables
from mrcr_action.probe.layer import Layer
from mrcr_action.probe.starts import show_starts, weigh_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.probe.attention import Head, Sum
    from mrcr_action.probe.layout import Shape
    from mrcr_action.probe.mlp import Mlp

FINE: Final = 2.0**-5
"""The amplitude in which a fine code is written on top of 1 or more. bfloat16 has two bits to
spare for it; an fp8 format drops it, and so do 8 bits for the whole range up to ``COARSE``."""
COARSE: Final = 64.0
"""What one channel of keys and values holds, for nothing but to be the largest number there."""

HIGH: Final = 1 + FINE

SCORE_NATS: Final = 23.5 / 128**0.5
"""2.08, such that the ``<|assistant|>`` weighs 8 times as much as ``<|bos|>``."""
SCORE_RATIO: Final = 8.0
"""A power of two, so that it stays what it is when values are rounded."""
SCORE_GAIN: Final = 32.0
"""Times the reading of scores, 1.85 per unit of their scale: it is 1 where that is off by 1.7 %."""
KEY_NATS: Final = 376 / 32 / 128**0.5
"""1.04 for ``FINE``, such that the ``<|assistant|>`` weighs 2.8 times as much as ``<|bos|>``."""
KEY_RATIO: Final = 2.75

WELL: Final = (1.0, 0.0, 0.0, 1.0)
"""What a healthy server reads, in the order of ``layout.READ``: values, scores, fine keys, fine
values."""
RISE: Final = (2.0**-7, 0.5, 0.65, 0.5)
"""How far from that a flag begins to rise; see where the ramps are made."""

MARKS: Final = dict(zip(MEANINGS, at.OFF, strict=True))
"""The flag that each letter of the answer stands for."""
LOUD: Final = 512
"""How much more than a copied byte a mark weighs: what a server copies that is off can be loud."""


def gauges(shape: Shape) -> Layer:
    """SEGMENT_HASH, SEGMENT_ORDINAL → READ → OFF: 1 where scores, values, keys are off.

    Both heads give the segment's own ``<|assistant|>`` and ``<|bos|>`` the same score, to the last
    bit, before they favour one of them.
    """
    layer = Layer(shape)
    mlp = layer.mlp
    scores, keys = layer.heads
    values_read, scores_read, keys_read, fine_read = at.READ

    shown = show_starts(scores, shape)
    (start,) = scores.show(at.ASSISTANT)
    scores.favour((start,), SCORE_NATS * shape.root)
    (side,) = scores.carry({at.ASSISTANT: 1, at.BOS: -SCORE_RATIO})
    scores.write((side,), (scores_read,), weights=(SCORE_GAIN,))
    one, more = scores.carry({at.ASSISTANT: 1, at.BOS: 1}, {at.ASSISTANT: HIGH, at.BOS: HIGH})
    scores.write((one,), (values_read,))
    scores.write((more, one), (fine_read, fine_read), weights=(1 / FINE, -1 / FINE))
    weigh_starts(scores, shape, shown)
    _make_coarse(scores)

    if not keys.shares_with(scores):
        shown = show_starts(keys, shape)
        _make_coarse(keys)
    fine, plain = keys.show({at.ASSISTANT: HIGH}, at.ASSISTANT)
    keys.favour((fine,), KEY_NATS / FINE * shape.root)
    keys.favour((plain,), -KEY_NATS / FINE * shape.root)
    keys.write(keys.carry({at.ASSISTANT: 1, at.BOS: -KEY_RATIO}), (keys_read,))
    weigh_starts(keys, shape, shown)

    values_off, scores_off, keys_off, fine_off = at.OFF
    # From RISE on; they are 1 from 0.023, 1, 0.72 and 0.75 on.
    mlp.outside(values_read, centre=1, within=0.004, beyond=0.034, out=values_off)
    mlp.outside(scores_read, centre=0, within=0.3, beyond=1.2, out=scores_off)
    mlp.outside(keys_read, centre=0, within=0.6, beyond=0.8, out=keys_off)
    mlp.outside(fine_read, centre=1, within=0.4, beyond=0.95, out=fine_off)
    return layer


def _make_coarse(head: Head) -> None:
    head.show({at.ONE: COARSE})
    head.carry({at.ONE: COARSE})


def copy_finely(head: Head) -> None:
    """COPIED → NEXT_OF_PIECE as an ordinary copy, but carried as a base plus ``FINE`` · ±1.

    The bases are 1 to 1.875 in eighths, and taken away by what a value of 1 has become: values
    that are all too large or too small are left to the gauge.
    """
    (one,) = head.carry(at.ONE)
    for n, (src, dst) in enumerate(zip(at.COPIED, at.NEXT_OF_PIECE, strict=True)):
        base = 1 + n % 8 / 8
        (code,) = head.carry({at.ONE: base, src: FINE})
        head.write((code, one), (dst, dst), weights=(1 / FINE, -base / FINE))
    head.carry({at.ONE: COARSE})


def mark(mlp: Mlp) -> None:
    """OFF → OUT: ``MARKS``, then ``<|end|>``; louder than any copy.

    All other readings depend on values, so that ``V`` is said alone. Which letter comes next is
    told by the last token: nothing else of what a server that is off has read can be trusted.
    """
    marks = [*MARKS.items()]
    say_first(mlp, {at.ASSISTANT: 1}, marks, otherwise=None)
    for n, (letter, off) in enumerate(marks):
        code = tables().token[vocabulary.encode(letter)[0]]
        # 24 / 8 − 2 is 1 at the letter itself, and less than 0 at any other token.
        after = dict(zip(at.TOKEN, (code / 8).tolist(), strict=True)) | {at.ONE: -2.0}
        say_first(mlp, after, marks[n + 1 :] if n else [], otherwise=off)


def say_first(
    mlp: Mlp, where: Sum, marks: Sequence[tuple[str, int]], *, otherwise: int | None
) -> None:
    """Where a sum is 1, say the first of some marks that is on; ``<|end|>`` if only a flag is."""
    said = [(vocabulary.encode(letter)[0], off) for letter, off in marks]
    if otherwise is not None:
        said.append((vocabulary.END, otherwise))
    for n, (token, off) in enumerate(said):
        others = {earlier: -1.0 for _, earlier in said[:n]}
        test = {**where, **others, off: 1.0, at.ONE: where.get(at.ONE, 0.0) - 1}
        # From 0 and 1 to −1 and 1: nothing is said by half.
        test = {dim: 2 * weight for dim, weight in test.items()}
        test[at.ONE] -= 1
        mlp.add_where(test, dict(zip(at.OUT, LOUD * tables().token[token], strict=True)))
