import math
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from mrcr_action.probe import layout as at
from mrcr_action.probe import wording
from mrcr_action.probe.attention import (
    AT_DISTANCE,
    FAR_KERNEL,
    FAR_REACH,
    FAR_RESOLUTION,
    NEAR_KERNEL,
    NEAR_REACH,
    NEAR_RESOLUTION,
    Attention,
    Kernel,
    kernel_score,
)
from mrcr_action.probe.build import DEFAULT_MAX_LEN

ALL = np.arange(DEFAULT_MAX_LEN)


def waves(distance: NDArray[np.int64], terms: Iterable[tuple[int, float, float]]) -> at.Matrix:
    found: at.Matrix = np.zeros(len(distance))
    for pair, amplitude, phase in terms:
        found += amplitude * np.cos(at.TURN[pair] * distance + phase)
    return found


@pytest.mark.parametrize(
    "distance",
    [
        *wording.IDENTITY_STEPS,
        wording.COPY_DISTANCE,
        wording.ORDINAL_DISTANCE,
        wording.QUESTION_DISTANCE,
    ],
)
def test_the_wanted_distance_wins_clearly_in_the_whole_context(distance: int) -> None:
    terms = [
        (pair, nats, -distance * at.TURN[pair])
        for pair, nats in zip(at.FAST, AT_DISTANCE, strict=True)
    ]
    score = waves(ALL, terms)
    wanted = score[distance]
    score[distance] = -math.inf
    assert wanted == pytest.approx(sum(AT_DISTANCE))
    assert wanted - float(score.max()) > 13


@pytest.mark.parametrize(
    ("kernel", "reach", "resolution"),
    [
        (NEAR_KERNEL, NEAR_REACH, NEAR_RESOLUTION),
        (FAR_KERNEL, FAR_REACH, FAR_RESOLUTION),
    ],
)
def test_a_nearer_key_beats_every_key_further_off(
    kernel: Kernel, reach: int, resolution: int
) -> None:
    score = waves(ALL, kernel)
    best_from = np.maximum.accumulate(score[::-1])[::-1]
    falls = score[: reach + 1] - best_from[resolution : reach + 1 + resolution]
    assert float(falls.min()) > 0.9
    assert kernel_score(kernel, 17) == pytest.approx(float(score[17]))


def test_no_two_offsets_in_a_piece_have_the_same_phases() -> None:
    apart = np.arange(1, FAR_REACH)
    missing = len(at.PHASE_PAIRS) - waves(apart, [(pair, 1, 0) for pair in at.PHASE_PAIRS])
    # Times 1024 / √128 nats, as the copying head weighs them.
    assert float(missing.min()) * 1024 / math.sqrt(128) > 10


def test_slow_pairs_do_not_turn() -> None:
    slowest = max(at.TURN[channel % (at.HEAD // 2)] for channel in at.SLOW)
    assert DEFAULT_MAX_LEN * slowest < 2**-12


def test_heads_share_keys_and_run_out_of_them() -> None:
    attention = Attention()
    shown = attention.show(*range(len(at.SLOW)))
    assert shown == at.SLOW
    with pytest.raises(ValueError, match="no attention channel left"):
        attention.show({at.ONE: 1})


def test_no_group_of_dimensions_is_too_many() -> None:
    assert at.USED <= at.HIDDEN


def test_the_first_channels_for_contents_are_not_turned_at_all() -> None:
    """A 1 minus what RoPE adds is 1 in float32, so that no rounding after it can matter."""
    for channel in at.SLOW[:60]:
        turned = np.float32(DEFAULT_MAX_LEN * at.TURN[channel % (at.HEAD // 2)])
        assert np.float32(1) - turned == 1
