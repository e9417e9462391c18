from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from mrcr_action.calibration.servers import Evidence

if TYPE_CHECKING:
    from mrcr_action.calibration.servers import Numbers


def drawn(seen: Numbers, *, servers: int = 200, runs: int = 50) -> Numbers:
    """Scores by server, run and sample."""
    random, evidence = np.random.default_rng(0), Evidence(seen)
    return np.stack([evidence.server(random).runs(runs, random) for _ in range(servers)])


def test_the_chances_of_a_sample_add_up_to_one() -> None:
    random = np.random.default_rng(0)
    seen = np.where(random.random((30, 5)) < 0.2, 0.1, random.random((30, 5)))
    server = Evidence(seen).server(random)
    assert server.chances.min() >= 0
    assert server.chances.sum(axis=1) == pytest.approx(1)


def test_what_never_varied_mostly_stays_and_else_falls_to_zero() -> None:
    found = drawn(np.full((20, 5), 0.8))
    assert {0.0, 0.8} == set(np.round(np.unique(found), 9))
    assert 0 < (found == 0).mean() < 3 / (20 * 5)


def test_nineteen_of_twenty_servers_keep_to_the_rule_of_three() -> None:
    n, repeats = 50, 4
    lost = (drawn(np.ones((n, repeats)), servers=1000, runs=400) == 0).mean(axis=(1, 2))
    assert np.quantile(lost, 0.95) == pytest.approx(3 / (n * repeats), rel=0.25)


def test_a_sample_that_flipped_flips_again_about_as_often() -> None:
    seen = np.ones((40, 5))
    seen[:10, :2] = 0
    share = (drawn(seen)[:, :, :10] < 0.5).mean()
    assert share == pytest.approx(0.4, abs=0.15)


def test_where_all_samples_are_alike_one_that_never_flipped_flips_as_the_others() -> None:
    random = np.random.default_rng(1)
    seen = np.where(random.random((300, 5)) < 0.1, 0.0, 1.0)
    steady = (seen == 1).all(axis=1)
    assert (drawn(seen, servers=100)[:, :, steady] < 0.5).mean() == pytest.approx(0.1, abs=0.03)


def test_where_a_few_samples_always_flip_the_others_hardly_do() -> None:
    seen = np.ones((100, 6))
    seen[:10, ::2] = 0
    assert (drawn(seen)[:, :, 10:] < 0.5).mean() < 0.01


def test_an_unseen_flip_is_as_deep_as_one_that_was_seen() -> None:
    seen = np.full((40, 5), 0.9)
    seen[0, 0] = 0.5
    assert drawn(seen)[:, :, 1:].min() == pytest.approx(0.5)


def test_doubt_about_a_mean_is_that_of_normal_scores() -> None:
    random = np.random.default_rng(2)
    n, repeats, sd = 400, 5, 0.01
    found = drawn(random.normal(0.5, sd, (n, repeats)), servers=400, runs=100).mean(axis=2)
    # Without what may be lost though nothing was.
    servers = np.median(found, axis=1)
    assert servers.std() == pytest.approx(sd / np.sqrt(n * repeats), rel=0.4)
    within = np.quantile(found - servers[:, None], 0.84)
    assert within == pytest.approx(sd / np.sqrt(n), rel=0.3)
