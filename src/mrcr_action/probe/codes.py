"""The ±1 codes, drawn from SHA-256 so that they are the same on every machine and release.

Two codes are compared by their dot product: the width if equal, about 0 if not. A sequence of
tokens has the code ``Π_j shift^j(code of the token j back)``: products and shifts of ±1 codes
are ±1 codes again, so nothing is ever rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrcr_action.probe import layout, vocabulary
from mrcr_action.sample import NONCE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Codes = NDArray[np.int64]
"""One code, or a table of them by row; entries ±1."""

TOKEN_ALIKE = 10
"""Largest dot product of two tokens' codes, of 24: any two differ in 7 places or more."""
COUNT_ALIKE = 12
"""Largest dot product of a nonce's count code with any other, of 24."""
COUNTS = 64
"""How many counts are told apart."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The codes the model is made of."""

    token: Codes
    """By token id, 24 wide: what is copied and written out."""
    phrase: Codes
    """By token id, 32 wide: factors of the phrase code."""
    hash: Codes
    """By token id, 48 wide: factors of the identity hash."""
    count: Codes
    """By count from 0, 24 wide: ``count[n + 1] = count[0] * shift(count[n])``."""


@cache
def tables() -> Tables:
    """All codes; always the same."""
    return Tables(
        token=spread("token", vocabulary.SIZE, layout.TOKEN_CODE, alike=TOKEN_ALIKE),
        phrase=np.stack(list(islice(draws("phrase", layout.PHRASE_CODE), vocabulary.SIZE))),
        hash=np.stack(list(islice(draws("hash", layout.HASH_CODE), vocabulary.SIZE))),
        count=next(
            counts
            for counts in map(counted, draws("count", layout.COUNT_CODE))
            if count_likeness(counts) <= COUNT_ALIKE
        ),
    )


def draws(label: str, width: int) -> Iterator[Codes]:
    """Endlessly many codes of up to 256 entries: the n-th is the SHA-256 of ``label n``."""
    n = 0
    while True:
        digest = np.frombuffer(sha256(f"{label} {n}".encode()).digest(), np.uint8)
        yield np.unpackbits(digest)[:width].astype(np.int64) * 2 - 1
        n += 1


def spread(label: str, rows: int, width: int, *, alike: int) -> Codes:
    """The first codes drawn whose dot products with all earlier ones are at most ``alike``."""
    chosen: list[Codes] = []
    for code in draws(label, width):
        if all(int(code @ other) <= alike for other in chosen):
            chosen.append(code)
            if len(chosen) == rows:
                break
    return np.stack(chosen)


def shift(width: int, by: int) -> list[int]:
    """Where each entry of a shifted code comes from: ``code[shift(len(code), by)]``.

    The entries turn in two cycles of coprime lengths, so that no two shifts by fewer than 64
    places are alike.
    """
    first = width // 2 - 1
    second = width - first
    return [(i - by) % first for i in range(first)] + [
        first + (i - by) % second for i in range(second)
    ]


def shifted(dims: Sequence[int], by: int) -> layout.Dims:
    """Dimensions of a code in the order that reads it shifted."""
    return tuple(dims[i] for i in shift(len(dims), by))


def sequence_code(table: Codes, ids: Sequence[int]) -> Codes:
    """Code of a run of tokens, as the doubling layers compute it."""
    width = table.shape[1]
    code = np.ones(width, np.int64)
    for back, token in enumerate(reversed(ids)):
        code = code * table[token][shift(width, back)]
    return code


def counted(unit: Codes) -> Codes:
    """Table of the codes of 0 to 63 tokens since an opening, when each token's code is ``unit``."""
    table = [unit]
    while len(table) < COUNTS:
        table.append(unit * table[-1][shift(len(unit), 1)])
    return np.stack(table)


def count_likeness(counts: Codes) -> int:
    """Largest dot product of the code of a place in the nonce with that of any other count."""
    products = counts @ counts.T
    np.fill_diagonal(products, -len(counts[0]))
    return int(products[: NONCE_LENGTH + 1].max())
