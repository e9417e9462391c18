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
from mrcr_action.probe.reference import Server, Trace, computed, prepared
from mrcr_action.probe.variant import Variant
from mrcr_action.probe.vocabulary import END, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.probe.checkpoint import Dtype
    from mrcr_action.probe.reference import Array, Cached
    from mrcr_action.probe.variant import Architecture

SAID = slice(len(PROMPT) - 1, None)


@cache
def parameters(architecture: Architecture, dtype: Dtype) -> Mapping[str, Array]:
    return prepared(weights(Variant(architecture=architecture, sensitivity="high")), dtype)


def told(architecture: Architecture, dtype: Dtype, server: Server) -> Trace:
    return computed(
        PROMPT + ANSWER[:-1], parameters(architecture, dtype), dtype=dtype, server=server
    )


def marks(server: Server) -> str:
    """What greedy decoding answers, a few tokens of it."""
    said: list[int] = []
    model = parameters("llama", "bfloat16")
    while len(said) < 4 and (not said or said[-1] != END):
        trace = computed(PROMPT + said, model, dtype="bfloat16", server=server)
        said.append(trace.greedy()[-1])
    return decode(said)


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    [("llama", "bfloat16"), ("llama", "float16"), ("llama", "float32"), ("qwen3", "bfloat16")],
)
@pytest.mark.parametrize("shares", ["float32", "bfloat16"])
def test_a_healthy_server_reads_far_within_the_limits(
    architecture: Architecture, dtype: Dtype, shares: Dtype
) -> None:
    trace = told(architecture, dtype, Server(shares=shares))
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
        ("8-bit integers, one scale", "kv"),
        ("keys × 0.97", "S"),
        ("keys × 1.03", "S"),
        ("values × 0.95", "V"),
        ("softmax scale × 0.5", "S"),
        ("softmax scale × 0.97", "S"),
        ("softmax scale × 1.03", "S"),
    ],
)
def test_the_answer_of_a_server_that_is_off_says_what_is(fault: str, answer: str) -> None:
    assert marks(FAULTS[fault]) == answer


@pytest.mark.parametrize("fault", list(FAULTS))
def test_no_fault_goes_unseen(fault: str) -> None:
    assert told("llama", "bfloat16", FAULTS[fault]).greedy()[SAID] != ANSWER


def test_the_gauges_are_a_layer_of_their_own_before_the_copy() -> None:
    assert len(all_layers("high")) == len(all_layers()) + 1


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
