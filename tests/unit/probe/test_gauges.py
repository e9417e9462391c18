"""High sensitivity: exact on a healthy server, and answers that name what is off on others."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.probe.bees import ANSWER, PROMPT

from mrcr_action.probe import layout as at
from mrcr_action.probe.build import weights
from mrcr_action.probe.faults import E4M3, E5M2, FAULTS, integers
from mrcr_action.probe.gauges import RISE, WELL
from mrcr_action.probe.layers import all_layers
from mrcr_action.probe.reference import Rounding, Server, Trace, computed, prepared
from mrcr_action.probe.variant import Variant
from mrcr_action.probe.vocabulary import END, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.probe.checkpoint import Dtype
    from mrcr_action.probe.reference import Array, Cached

SAID = slice(len(PROMPT) - 1, None)


LLAMA = Variant(sensitivity="high")
NARROW = Variant(head_size=64, sensitivity="high")
QWEN3 = Variant(architecture="qwen3", sensitivity="high")


@cache
def parameters(variant: Variant, dtype: Dtype) -> Mapping[str, Array]:
    return prepared(weights(variant), dtype)


def told(variant: Variant, dtype: Dtype, server: Server, gap: int = 0) -> Trace:
    return computed(
        PROMPT + ANSWER[:-1], parameters(variant, dtype), dtype=dtype, server=server, gap=gap
    )


def marks(variant: Variant, server: Server) -> str:
    """What greedy decoding answers, a few tokens of it."""
    said: list[int] = []
    model = parameters(variant, "bfloat16")
    while len(said) < 4 and (not said or said[-1] != END):
        trace = computed(PROMPT + said, model, dtype="bfloat16", server=server)
        said.append(trace.greedy()[-1])
    return decode(said)


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [
        (LLAMA, "bfloat16"),
        (LLAMA, "float16"),
        (LLAMA, "float32"),
        (NARROW, "bfloat16"),
        (NARROW, "float16"),
        (QWEN3, "bfloat16"),
    ],
)
@pytest.mark.parametrize(
    ("rounding", "gap"),
    [
        (Rounding(), 0),
        (Rounding(rounds_shares=True), 0),
        (Rounding(scales_query=True), 0),
        (Rounding(drops_bits=True), 0),
        (Rounding(), 130_000),
    ],
)
def test_a_healthy_server_reads_far_within_the_limits(
    variant: Variant, dtype: Dtype, rounding: Rounding, gap: int
) -> None:
    trace = told(variant, dtype, Server(rounding=rounding), gap)
    assert trace.greedy()[SAID] == ANSWER
    best = np.sort(trace.logits[SAID], axis=1)
    assert float((best[:, -1] - best[:, -2]).min()) > 55
    read = np.abs(trace.residuals[20][SAID][:, at.READ] - np.array(WELL))
    # A third of what a flag needs to begin to rise is the most that rounding may do.
    assert (read.max(axis=0) <= np.array(RISE) / 3).all()


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("fp8 e4m3 cache", "kv"),
        ("fp8 e4m3 keys", "k"),
        ("fp8 e4m3 values", "v"),
        ("fp8 e5m2 cache", "kv"),
        ("keys × 0.97", "S"),
        ("keys × 1.03", "S"),
        ("values × 0.95", "V"),
        ("softmax scale × 0.5", "S"),
        ("softmax scale × 0.97", "S"),
        ("softmax scale × 1.03", "S"),
    ],
)
@pytest.mark.parametrize("variant", [LLAMA, NARROW], ids=str)
def test_the_answer_of_a_server_that_is_off_says_what_is(
    variant: Variant, fault: str, answer: str
) -> None:
    assert marks(variant, FAULTS[fault]) == answer


@pytest.mark.parametrize("variant", [LLAMA, NARROW], ids=str)
def test_a_cache_of_8_bit_integers_is_off_in_values_and_in_scores_or_keys(variant: Variant) -> None:
    # The scale of its keys also rounds the large ones that a healthy score rests on.
    assert marks(variant, FAULTS["8-bit integers, one scale"]) in {"Sv", "kv"}


@pytest.mark.parametrize("variant", [LLAMA, NARROW, QWEN3], ids=str)
@pytest.mark.parametrize("fault", list(FAULTS))
def test_no_fault_goes_unseen(variant: Variant, fault: str) -> None:
    assert told(variant, "bfloat16", FAULTS[fault]).greedy()[SAID] != ANSWER


def test_the_gauges_are_a_layer_of_their_own_before_the_copy() -> None:
    assert len(all_layers(Variant(sensitivity="high"))) == len(all_layers()) + 1


@pytest.mark.parametrize(
    ("cached", "number", "expected"),
    [
        (E4M3, 1.03125, 1.0),
        (E4M3, 0.96875, 1.0),
        (E4M3, 1.07, 1.125),
        (E4M3, -1000.0, -448.0),
        (E4M3, 2.0**-9, 2.0**-9),
        (E4M3, 2.0**-11, 0.0),
        (E5M2, 1.1, 1.0),
        (E5M2, 1.2, 1.25),
    ],
)
def test_formats_of_caches_round_as_they_are_defined(
    cached: Cached, number: float, expected: float
) -> None:
    assert float(cached(np.array([[number]], np.float32))[0, 0]) == expected


def test_integers_are_spread_over_the_largest_of_a_layer() -> None:
    found = integers(8)(np.array([[127, 0.4, 0.6]], np.float32))
    assert found.tolist() == [[127, 0, 1]]
    assert integers(8)(np.zeros((1, 2), np.float32)).tolist() == [[0, 0]]
