"""131,072 tokens: the arithmetic of positions, with tables and products rounded as vLLM does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mrcr_action.probe import layout as at
from mrcr_action.probe import wording
from mrcr_action.probe.attention import (
    FAR_KERNEL,
    FAR_REACH,
    FAR_RESOLUTION,
    NEAR_KERNEL,
    NEAR_REACH,
    NEAR_RESOLUTION,
)
from mrcr_action.probe.build import DEFAULT_MAX_LEN
from mrcr_action.probe.positions import (
    distance_margin,
    kernel_margin,
    offset_margin,
    table,
)

if TYPE_CHECKING:
    from mrcr_action.probe.checkpoint import Dtype

DTYPES: tuple[Dtype, ...] = ("bfloat16", "float16", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distance", [1, 32, wording.QUESTION_DISTANCE])
def test_the_key_at_a_distance_leads_at_every_position(distance: int, dtype: Dtype) -> None:
    assert distance_margin(DEFAULT_MAX_LEN, distance, dtype) > 25


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nearer_key_leads_at_every_position(dtype: Dtype) -> None:
    near = kernel_margin(DEFAULT_MAX_LEN, NEAR_KERNEL, NEAR_REACH, NEAR_RESOLUTION, dtype)
    far = kernel_margin(DEFAULT_MAX_LEN, FAR_KERNEL, FAR_REACH, FAR_RESOLUTION, dtype)
    # What bfloat16 adds at the worst positions is nearly all that there is.
    assert min(near, far) > (1 if dtype == "bfloat16" else 20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("piece", [1000, DEFAULT_MAX_LEN - 2 * FAR_REACH])
def test_an_offset_is_found_in_a_piece_far_before_the_answer(piece: int, dtype: Dtype) -> None:
    lead = offset_margin(
        DEFAULT_MAX_LEN,
        piece=piece,
        answer=DEFAULT_MAX_LEN - FAR_REACH,
        size=FAR_REACH,
        offsets=range(wording.COPY_DISTANCE, FAR_REACH, 97),
        dtype=dtype,
    )
    assert lead > 20


def test_a_longer_context_than_the_design_is_not_told_apart() -> None:
    beyond = kernel_margin(4 * DEFAULT_MAX_LEN, FAR_KERNEL, FAR_REACH, FAR_RESOLUTION, "float32")
    assert beyond < 0


def test_queries_score_as_their_formula_says() -> None:
    pairs, nats, phases = (0, 3, 9), (5.0, 2.0, 7.0), (0.3, -1.0, 0.0)
    made = table(3000, pairs, "float32")
    (query,) = made.queries(np.array([2500]), nats, phases)
    score = made.keys() @ query / at.WIDE.root
    for distance in (0, 1, 77, 2500):
        wanted = sum(
            a * math.cos(at.TURN[pair] * distance + phase)
            for pair, a, phase in zip(pairs, nats, phases, strict=True)
        )
        assert float(score[2500 - distance]) == pytest.approx(wanted, abs=5e-3)
