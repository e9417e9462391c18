"""The chance that is promised, held against servers whose true chances are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mrcr_action.calibration.levels import thresholds_for

if TYPE_CHECKING:
    from mrcr_action.calibration.servers import Numbers

Runs = Callable[[int], "Numbers"]
"""So many runs of a server, a row each."""

NEEDLES, EACH = 3, 12
SAMPLES = NEEDLES * EACH
MEMBERS = np.vstack([np.ones(SAMPLES), np.repeat(np.eye(NEEDLES), EACH, axis=1)])
"""All samples, and those of each needle count."""

SHARES = (MEMBERS / MEMBERS.sum(axis=1, keepdims=True)).T
WANTED = 0.05
TRIALS = 15


def flips(random: np.random.Generator) -> Runs:
    """Right or another needle; most samples always the same, some now one and now the other."""
    chances = np.where(random.random(SAMPLES) < 0.6, 0, random.random(SAMPLES))
    return lambda runs: np.where(random.random((runs, SAMPLES)) < chances, 0.05, 1.0)


def rare_flips(random: np.random.Generator) -> Runs:
    """Each sample fails once in fifty times: in five repetitions few are seen."""
    return lambda runs: np.where(random.random((runs, SAMPLES)) < 0.02, 0.0, 1.0)


def jitter(random: np.random.Generator) -> Runs:
    """A few words differ every time."""
    level = random.uniform(0.4, 0.9, SAMPLES)
    return lambda runs: level + random.normal(0, 0.02, (runs, SAMPLES))


def mix(random: np.random.Generator) -> Runs:
    """A few words in every answer, and now and then another needle or no nonce."""
    level = random.uniform(0.8, 1, SAMPLES)

    def draw(runs: int) -> Numbers:
        words = np.clip(level + random.normal(0, 0.01, (runs, SAMPLES)), 0, 1)
        other = random.choice([0.0, 0.05, 0.5], (runs, SAMPLES))
        return np.where(random.random((runs, SAMPLES)) < 0.04, other, words)

    return draw


def wide(random: np.random.Generator) -> Runs:
    """Anything at all, as at a high temperature."""
    return lambda runs: random.random((runs, SAMPLES))


def calibrated(*rounds: Numbers, false_alarm: float = WANTED, repeats: int = 1) -> list[float]:
    return thresholds_for(
        rounds, MEMBERS, false_alarm=false_alarm, repeats=repeats, servers=100, runs=200
    )


def red_share(runs: Numbers, thresholds: list[float]) -> float:
    return float((runs @ SHARES < thresholds).any(axis=1).mean())


@pytest.mark.parametrize("repeats", [2, 5])
@pytest.mark.parametrize("make", [flips, rare_flips, jitter, mix, wide])
def test_a_healthy_server_fails_no_more_often_than_is_wanted(
    make: Callable[[np.random.Generator], Runs], repeats: int
) -> None:
    shares = []
    for trial in range(TRIALS):
        server = make(np.random.default_rng(trial))
        thresholds = calibrated(server(repeats).T)
        shares.append(red_share(server(2000), thresholds))
    assert np.mean(shares) <= WANTED
    assert sum(share > WANTED for share in shares) <= TRIALS / 5
    assert max(shares) <= 5 * WANTED


@pytest.mark.parametrize("make", [flips, jitter, mix])
def test_thresholds_are_no_lower_than_it_takes_to_see_a_needle_count_fall(
    make: Callable[[np.random.Generator], Runs],
) -> None:
    server = make(np.random.default_rng(1))
    thresholds = calibrated(server(5).T)
    broken = server(1000)
    broken[:, -EACH:] *= random_zeros(broken[:, -EACH:].shape)
    assert red_share(broken, thresholds) > 0.9


def random_zeros(shape: tuple[int, ...]) -> Numbers:
    """Three of four answers are lost."""
    return (np.random.default_rng(0).random(shape) < 0.25).astype(float)


def test_two_passes_together_fail_no_more_often_than_is_wanted() -> None:
    shares = []
    for trial in range(TRIALS):
        server = mix(np.random.default_rng(trial))
        thresholds = calibrated(server(5).T, server(5).T)
        either = [server(2000) @ SHARES < thresholds for _ in range(2)]
        shares.append(float((either[0] | either[1]).any(axis=1).mean()))
    assert np.mean(shares) <= WANTED


def test_more_rounds_a_run_lower_the_thresholds() -> None:
    seen = mix(np.random.default_rng(0))(5).T
    once, thrice = calibrated(seen), calibrated(seen, repeats=3)
    assert all(low <= high for low, high in zip(thrice, once, strict=True))
    assert thrice != once


def test_a_smaller_chance_lowers_the_thresholds() -> None:
    seen = mix(np.random.default_rng(0))(5).T
    often, seldom = calibrated(seen, false_alarm=0.2), calibrated(seen, false_alarm=0.005)
    assert all(low < high for low, high in zip(seldom, often, strict=True))


def test_of_answers_that_never_varied_some_may_yet_be_lost() -> None:
    # Three in n N is what nothing seen in n N leaves possible: here one answer in 60.
    thresholds = calibrated(np.ones((SAMPLES, 5)))
    for n, threshold in zip(MEMBERS.sum(axis=1), thresholds, strict=True):
        assert 1 - 6 / n <= threshold < 1 - 1 / n


def test_more_repetitions_that_never_varied_raise_the_thresholds() -> None:
    few, many = calibrated(np.ones((SAMPLES, 2))), calibrated(np.ones((SAMPLES, 50)))
    assert many[0] > few[0]


def test_the_same_scores_have_the_same_thresholds() -> None:
    seen = flips(np.random.default_rng(0))(5).T
    assert calibrated(seen) == calibrated(seen)


def test_thresholds_have_four_decimals_and_are_no_ratio_below_zero() -> None:
    thresholds = calibrated(wide(np.random.default_rng(0))(2).T * 0.2, false_alarm=0.001)
    assert all(threshold == round(threshold, 4) and threshold >= 0 for threshold in thresholds)


def test_a_mean_that_is_the_threshold_itself_is_no_failure() -> None:
    # A third has no last decimal: rounded up, it would be above the mean it stands for.
    thresholds = calibrated(np.full((SAMPLES, 50), 1 / 3), false_alarm=0.2)
    assert thresholds[0] <= 1 / 3
