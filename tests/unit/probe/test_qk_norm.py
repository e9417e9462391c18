"""A Qwen3 does with its norms what a Llama does without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.probe.bees import ANSWER, PROMPT

from mrcr_action.probe import layout as at
from mrcr_action.probe.build import weights
from mrcr_action.probe.layers import all_layers
from mrcr_action.probe.qk_norm import CONSTANT_CHANNELS, TRADED, normed_key, normed_query
from mrcr_action.probe.reference import Array, forward, normed, rounded
from mrcr_action.probe.variant import Variant
from mrcr_action.probe.vocabulary import ASSISTANT

if TYPE_CHECKING:
    from mrcr_action.probe.checkpoint import Dtype

DTYPES = ("bfloat16", "float16", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_qwen3_answers_exactly_and_as_clearly_as_a_llama(dtype: Dtype) -> None:
    qwen3, llama = (
        forward(PROMPT + ANSWER[:-1], weights(variant), dtype=dtype)
        for variant in (Variant(architecture="qwen3"), Variant())
    )
    assert qwen3.greedy()[len(PROMPT) - 1 :] == ANSWER
    best = np.sort(qwen3.logits[len(PROMPT) - 1 :], axis=1)
    assert float((best[:, -1] - best[:, -2]).min()) > 55
    for ours, theirs in zip(qwen3.residuals, llama.residuals, strict=True):
        starts = [n for n, token in enumerate(PROMPT) if token == ASSISTANT]
        assert ours[starts] == pytest.approx(theirs[starts], abs=0.07)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_a_norm_gives_hardly_depends_on_the_token(dtype: Dtype) -> None:
    every = np.zeros((3, at.HIDDEN), np.float32)
    every[:, at.ONE] = 1
    # Nothing, some and all of the ±1 that a key or a query may hold.
    every[1, at.SEGMENT] = 1
    every[2, at.ONE + 1 : at.USED] = 1
    for layer in all_layers():
        for made, plain, factor in (
            (normed_key(layer.attention.key), layer.attention.key, TRADED),
            (normed_query(layer.attention.query), layer.attention.query, 1 / TRADED),
        ):
            for head in range(0, len(plain), at.WIDE.head):
                rows = slice(head, head + at.WIDE.head)
                projected = rounded((every @ made.projection[rows].T).astype(np.float32), dtype)
                found = normed(projected, made.gain.astype(np.float32), dtype) / factor
                wanted: Array = (every @ plain[rows].T).astype(np.float32)
                assert found == pytest.approx(wanted, rel=2**-8, abs=0.04)


def test_channels_in_use_are_not_overwritten() -> None:
    key = np.zeros((at.WIDE.head, at.HIDDEN))
    key[CONSTANT_CHANNELS[0], at.BOS] = 1
    with pytest.raises(ValueError, match="in use"):
        normed_key(key)
