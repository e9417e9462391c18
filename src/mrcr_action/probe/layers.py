"""The 21 layers, first to last; each says what it reads and what it adds.

0-2 phrase code, 3 spot phrases, 4-9 identity hash, 10 fetch identities, 11 count, 12-13 tell every
token its segment, 14 make that exact and find the nonce, 15-19 offset, 20 copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mrcr_action.probe import layout as at
from mrcr_action.probe import wording
from mrcr_action.probe.attention import (
    FAR_KERNEL,
    FAR_REACH,
    FAR_RESOLUTION,
    NEAR_KERNEL,
    NEAR_REACH,
    NEAR_RESOLUTION,
    NEARER,
    OVERRIDE,
    ROOT,
    Attention,
    Channels,
    Head,
    Kernel,
    Sum,
    kernel_score,
)
from mrcr_action.probe.codes import Codes, sequence_code, shifted, tables
from mrcr_action.probe.mlp import SURE, Mlp
from mrcr_action.probe.vocabulary import encode
from mrcr_action.sample import NONCE_LENGTH

HASH_WEIGHT = 32.0
"""For comparing hashes: 136 nats between equal and unrelated ones, each flip costs 5.7."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: attention, then an MLP that sees what the attention added."""

    attention: Attention = field(default_factory=Attention)
    mlp: Mlp = field(default_factory=Mlp)

    @property
    def heads(self) -> tuple[Head, Head]:
        """The layer's two query heads."""
        return self.attention.heads


def all_layers() -> list[Layer]:
    """The model's layers, first to last."""
    return [
        *(phrase_code(step) for step in range(3)),
        spot_phrases(),
        *(identity_hash(step) for step in range(len(wording.IDENTITY_STEPS))),
        fetch_identities(),
        count_requests(),
        near_hop(),
        far_hop(),
        exact_segment_and_nonce(),
        *(offset_phase(index) for index in range(len(at.PHASE_PAIRS))),
        copy(),
    ]


def phrase_code(step: int) -> Layer:
    """PHRASE ← PHRASE · shifted PHRASE of the token 1, 2, 4 back: a code of the last 8 tokens.

    The idle second head fetches, in step 0, COPIED, and in step 1, ORDINAL_DIGIT.
    """
    layer = Layer()
    see, mlp = layer.attention, layer.mlp
    distance = 2**step
    first, second = layer.heads
    factors = at.SCRATCH[: at.PHRASE_CODE]
    first.at_distance(distance)
    first.write(see.carry(*shifted(at.PHRASE, distance)), factors)
    mlp.multiply(at.PHRASE, factors)
    if step == 0:
        second.at_distance(wording.COPY_DISTANCE)
        second.write(see.carry(*at.TOKEN), at.COPIED)
    if step == 1:
        second.at_distance(wording.ORDINAL_DISTANCE)
        second.write(see.carry(*at.DIGIT), at.ORDINAL_DIGIT)
    return layer


def spot_phrases() -> Layer:
    """PHRASE, ORDINAL_DIGIT → OPENED, IN_NONCE, ORDINAL, at the last token of an opening."""
    layer = Layer()
    opened = at.OPENED[0]
    for phrase in wording.REQUEST_OPENINGS:
        layer.mlp.detect(_phrase_test(phrase), (opened,))
    question = _phrase_test(wording.QUESTION_OPENING)
    layer.mlp.detect(question, (opened,))
    layer.mlp.detect(_phrase_test(wording.NONCE_OPENING), (opened, at.IN_NONCE))
    for digit, ordinal in zip(at.ORDINAL_DIGIT, at.ORDINAL, strict=True):
        layer.mlp.detect({**question, digit: 2}, (ordinal,))
    return layer


def identity_hash(step: int) -> Layer:
    """HASH, COUNT ← their products over twice as many tokens, back to the last opening.

    A token that has an opening within reach (OPENED) looks at ``<|bos|>``, where HASH and COUNT
    are 1, and so keeps what it has. IN_NONCE, IN_REPLY and ORDINAL are handed on from the opening.
    """
    layer = Layer()
    see, head = layer.attention, layer.heads[0]
    distance = wording.IDENTITY_STEPS[step]
    opened, opened_further = at.OPENED[step : step + 2]
    head.at_distance(distance)
    head.match(see.show(at.BOS), (opened,), OVERRIDE)
    head.write(see.carry(*shifted(at.HASH, distance), *shifted(at.COUNT, distance)), at.SCRATCH)
    flags = (at.IN_NONCE, at.IN_REPLY, *at.ORDINAL)
    head.write(see.carry(*flags), flags)
    head.write(see.carry(opened), (opened_further,))
    layer.mlp.multiply(at.HASH + at.COUNT, at.SCRATCH)
    return layer


def fetch_identities() -> Layer:
    """HASH, ORDINAL → REQUEST_HASH, WANTED_HASH, WANTED_ORDINAL, from two fixed distances back.

    They are meant for each ``<|assistant|>``; other tokens get what nobody reads. Also
    COUNT, IN_REPLY → NONCE_TURN.
    """
    layer = Layer()
    see = layer.attention
    request, question = layer.heads
    request.at_distance(wording.REQUEST_DISTANCE)
    question.at_distance(wording.QUESTION_DISTANCE)
    # <|bos|> has the neutral hash of all +1; it is carried as 0, no identity.
    hashes = see.carry(*({dim: 1, at.BOS: -1} for dim in at.HASH))
    request.write(hashes, at.REQUEST_HASH)
    question.write(hashes, at.WANTED_HASH)
    # A thermometer: ordinal j + 1 is +1 in the first j dimensions, −1 in the others.
    for j, ordinal in enumerate(see.carry(*at.ORDINAL)):
        for k, dim in enumerate(at.WANTED_ORDINAL):
            question.write((ordinal,), (dim,), weights=(1.0 if k < j else -1.0,))
    # In float32 each product loses some 10^−5, and the next layer weighs the hash against <|bos|>.
    layer.mlp.sharpen(at.REQUEST_HASH)
    for counted in tables().count[:NONCE_LENGTH]:
        layer.mlp.detect({**_code_test(at.COUNT, counted), at.IN_REPLY: 8}, (at.NONCE_TURN,))
    return layer


def count_requests() -> Layer:
    """REQUEST_HASH → SHARE → REQUEST_ORDINAL.

    A head averages over the request's n occurrences, which carry 1, and ``<|bos|>``, which carries
    0 and weighs as much as 8: it finds n / (n + 8).
    """
    layer = Layer()
    see, mlp, head = layer.attention, layer.mlp, layer.heads[0]
    head.favour(see.show({at.ASSISTANT: 1, at.BOS: 1}), 1024.0)
    head.match(see.show(*at.REQUEST_HASH), at.REQUEST_HASH, HASH_WEIGHT)
    head.favour(see.show({at.BOS: at.HASH_CODE}), HASH_WEIGHT)
    head.favour(see.show(at.BOS), ROOT * math.log(8))
    head.write(see.carry(at.ASSISTANT), (at.SHARE,))
    for n, dim in enumerate(at.REQUEST_ORDINAL, 1):
        mlp.step(at.SHARE, low=n / (n + 8), high=(n + 1) / (n + 9), out=dim, height=2)
    mlp.add(-1, at.REQUEST_ORDINAL)
    return layer


def near_hop() -> Layer:
    """From the nearest ``<|assistant|>`` up to 480 tokens back: its four groups → FETCHED.

    Also → NEAR and INSIDE_RAW: 1 where there is one.
    """
    layer = Layer()
    see, head = layer.attention, layer.heads[0]
    _nearest_within(layer, at.ASSISTANT, NEAR_KERNEL, reach=NEAR_REACH, width=NEAR_RESOLUTION)
    carried = see.carry(
        *at.REQUEST_HASH,
        # <|bos|> comes after no request at all, which the thermometer shows as −1; carried as 0.
        *({dim: 1, at.BOS: 1} for dim in at.REQUEST_ORDINAL),
        *at.WANTED_HASH,
        *at.WANTED_ORDINAL,
    )
    head.write(carried, at.FETCHED)
    found = see.carry(at.ASSISTANT)
    head.write(found, (at.NEAR_RAW,))
    head.write(found, (at.INSIDE_RAW,))
    layer.mlp.step(at.NEAR_RAW, low=0.5, high=1.0, out=at.NEAR)
    return layer


def far_hop() -> Layer:
    """Tokens that are not NEAR: FETCHED of the nearest one that is, up to 8,800 tokens back.

    Then FETCHED → SEGMENT and INSIDE_RAW → INSIDE, as signs.
    """
    layer = Layer()
    see, head = layer.attention, layer.heads[0]
    bos = _nearest_within(layer, at.NEAR, FAR_KERNEL, reach=FAR_REACH, width=FAR_RESOLUTION)
    head.match(bos, (at.NEAR,), 4 * OVERRIDE)
    head.write(see.carry(*at.FETCHED), at.FETCHED)
    head.write(see.carry(at.NEAR), (at.INSIDE_RAW,))
    layer.mlp.snap((*at.FETCHED, at.INSIDE_RAW), (*at.SEGMENT, at.INSIDE))
    return layer


def exact_segment_and_nonce() -> Layer:
    """SEGMENT_HASH, SEGMENT_ORDINAL, INSIDE ← exactly ±1 or 0.

    Where two keys shared the far hop's attention, they are off by up to 6 %.

    Also COUNT, IN_NONCE, TOKEN → NEXT_OF_NONCE: a head looks at the nearest nonce, at the byte
    whose count since ``Prepend `` is one more than the query's count since ``<|assistant|>``.
    """
    layer = Layer()
    see, nonce = layer.attention, layer.heads[0]
    layer.mlp.sharpen((*at.SEGMENT_HASH, *at.SEGMENT_ORDINAL, at.INSIDE))
    unit = tables().count[0]
    nonce.favour(see.show(at.IN_NONCE), 4 * OVERRIDE)
    nonce.match(see.show(*at.COUNT), shifted(at.COUNT, 1), 64.0, signs=unit.tolist())
    nonce.nearest(NEAR_KERNEL)
    nonce.write(see.carry(*at.TOKEN), at.NEXT_OF_NONCE)
    return layer


def offset_phase(index: int) -> Layer:
    """SEGMENT_HASH, SEGMENT_ORDINAL → two of PHASE: cos and sin of turn · offset in the segment.

    Each head weighs the segment's own ``<|assistant|>``, at 1/4 · cos(turn · offset) nats, against
    ``<|bos|>``. They carry 1 and −1, so the head finds tanh(cos / 8), about cos / 8. The first of
    these layers also takes INSIDE from tokens for which that does not hold.
    """
    layer = Layer()
    if index == 0:
        _leave_what_cannot_be_asked_for(layer)
    see = layer.attention
    ordinal_weight = 128.0
    ends = see.show({at.ASSISTANT: 1, at.BOS: 1})
    # <|bos|> must weigh as much as a match to the last bit, and kernels may round a query after
    # they scaled it: the same weight as for the match, of a key as large as the match is long.
    as_hashes = see.show({at.BOS: at.HASH_CODE})
    as_ordinals = see.show({at.BOS: wording.ORDINALS})
    hashes = see.show(*at.SEGMENT_HASH)
    ordinals = see.show(*at.SEGMENT_ORDINAL)
    side = see.carry({at.ASSISTANT: 1, at.BOS: -1})
    for quarter, head in enumerate(layer.heads):
        head.favour(ends, 1024.0)
        head.favour(as_hashes, HASH_WEIGHT)
        head.favour(as_ordinals, ordinal_weight)
        head.match(hashes, at.SEGMENT_HASH, HASH_WEIGHT)
        head.match(ordinals, at.SEGMENT_ORDINAL, ordinal_weight)
        head.turn(at.PHASE_PAIRS[index], 1 / 4, -quarter * math.pi / 2)
        head.write(side, (at.PHASE[2 * index + quarter],), weights=(8.0,))
    return layer


def _leave_what_cannot_be_asked_for(layer: Layer) -> None:
    """INSIDE ← 0 past the reach of the far hop, and in replies to the 9th and later equal requests.

    Their PHASE is up to 8 times too large and would outweigh a right one: all those replies have
    one thermometer, so that a head finds several ``<|assistant|>``; at the end of the far hop's
    reach SEGMENT fades, and it finds none. INSIDE_RAW fades there, too: it is 1/2 where SEGMENT
    is still exact, and 2/3 or more within reach.
    """
    layer.mlp.step(at.INSIDE_RAW, low=1 / 3, high=2 / 3, out=at.INSIDE)
    layer.mlp.clear(at.INSIDE)
    ninth = {at.SEGMENT_ORDINAL[-1]: SURE, at.INSIDE: SURE, at.ONE: -SURE}
    layer.mlp.unit(gate=ninth, up={at.ONE: 1}, down={at.INSIDE: -1 / SURE})


def copy() -> Layer:
    """COPIED of the token with the wanted segment and the same offset, or the nonce's → OUT."""
    layer = Layer()
    see, mlp, head = layer.attention, layer.mlp, layer.heads[0]
    head.match(see.show(*at.SEGMENT_HASH), at.SEGMENT_WANTED_HASH, HASH_WEIGHT)
    head.match(see.show(*at.SEGMENT_ORDINAL), at.SEGMENT_WANTED_ORDINAL, 512.0)
    # Text before the first <|assistant|> is out. One weight that large would overflow float16.
    head.favour(see.show(at.INSIDE, at.INSIDE), 49152.0)
    head.match(see.show(*at.PHASE), at.PHASE, 1024.0)
    head.write(see.carry(*at.COPIED), at.NEXT_OF_PIECE)
    for nonce, piece, out in zip(at.NEXT_OF_NONCE, at.NEXT_OF_PIECE, at.OUT, strict=True):
        mlp.move(nonce, out, where={at.NONCE_TURN: 1})
        mlp.move(piece, out, where={at.ONE: 1, at.NONCE_TURN: -1})
    return layer


def _phrase_test(phrase: str) -> Sum:
    return _code_test(at.PHRASE, sequence_code(tables().phrase, encode(phrase)))


def _code_test(dims: at.Dims, code: Codes) -> Sum:
    return dict(zip(dims, code.tolist(), strict=True))


def _nearest_within(layer: Layer, flag: int, kernel: Kernel, *, reach: int, width: int) -> Channels:
    """Let the first head look at the nearest flagged token within reach, else at ``<|bos|>``.

    Returns the key channel that only ``<|bos|>`` shows.
    """
    see, head = layer.attention, layer.heads[0]
    head.favour(see.show({flag: 1, at.BOS: 1}), 12288.0)
    head.nearest(kernel)
    bos = see.show(at.BOS)
    edge = (kernel_score(kernel, reach) + kernel_score(kernel, reach + width)) / 2
    head.favour(bos, edge * NEARER * ROOT)
    return bos
