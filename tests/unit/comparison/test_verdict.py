from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from mrcr_action.comparison.document import Comparison
from mrcr_action.comparison.verdict import FEWEST_CHANGED, FLIP, SIGNIFICANT, compare
from mrcr_action.config import RunConfig
from mrcr_action.errors import UsageError
from mrcr_action.grade import Grade
from mrcr_action.result import Record, Result

MakeGrade = Callable[..., Grade]
MakeRecord = Callable[..., Record]
Compared = Callable[..., Comparison]

BINS = (6_000, 12_000, 24_000)
"""Lengths in three bins."""


@pytest.fixture
def compared(make_result: Callable[..., Result], make_record: MakeRecord) -> Compared:
    """Compares two results by their ratios; a sample lost is None."""

    def records(ratios: Sequence[float | None], places: Sequence[tuple[int, int]]) -> list[Record]:
        return [
            make_record(i, ratio, n_needles=n_needles, o200k_tokens=length)
            for i, (ratio, (n_needles, length)) in enumerate(zip(ratios, places, strict=True))
        ]

    def make(
        a: Sequence[float | None],
        b: Sequence[float | None],
        *,
        places: Sequence[tuple[int, int]] | None = None,
        max_regression: float | None = None,
        **config: Any,
    ) -> Comparison:
        where = places or [(2, 6_000)] * len(a)
        settings = RunConfig(num_samples=len(a), **config)
        return compare(
            make_result(config=settings, records=records(a, where)),
            make_result(config=settings, records=records(b, where)),
            paths=("a/result.json", "b/result.json"),
            max_regression=max_regression,
        )

    return make


def spread(n: int) -> list[tuple[int, int]]:
    """Needle count and length of so many samples, shared out over nine cells."""
    return [((2, 4, 8)[i % 3], BINS[i // 3 % 3]) for i in range(n)]


def states(comparison: Comparison) -> dict[str, str]:
    return {bucket.name: bucket.state for bucket in comparison.buckets}


def test_the_same_answers_are_no_regression_and_no_change(compared: Compared) -> None:
    ratios = [1.0, 0.9, 0.3] * 6
    comparison = compared(ratios, ratios, places=spread(18))
    assert comparison.conclusion == "no regression"
    assert comparison.summary == "No regression: no sample changed (18 compared)"
    assert (comparison.flips, comparison.lost, comparison.notes[1:]) == ((), (), ())
    assert {bucket.difference for bucket in comparison.buckets} == {0}


def test_buckets_are_all_samples_then_needle_counts_then_cells_by_length(
    compared: Compared,
) -> None:
    places = [(8, 24_000), (2, 12_000), (8, 6_000), (2, 12_000), (2, 2_000_000)]
    comparison = compared([1.0] * 5, [0.5, 1, 1, 1, 1], places=places)
    assert [(b.name, b.n, b.mean_a, b.mean_b) for b in comparison.buckets] == [
        ("all", 5, 1, 0.9),
        ("n2", 3, 1, 1),
        ("n8", 2, 1, 0.75),
        ("n2/8K-16K", 2, 1, 1),
        ("n8/4K-8K", 1, 1, 1),
        ("n8/16K-32K", 1, 1, 0.5),
    ]


@pytest.mark.parametrize(
    ("changed", "conclusion"), [(FEWEST_CHANGED, "regression"), (4, "inconclusive")]
)
def test_five_samples_for_the_worse_and_none_for_the_better_are_no_chance(
    compared: Compared, changed: int, conclusion: str
) -> None:
    # By hand: of k samples, all worse, p is 2^-k; 1/32 is below 0.05, 1/16 is not.
    comparison = compared([1.0] * 20, [0.0] * changed + [1.0] * (20 - changed))
    assert comparison.conclusion == conclusion
    assert comparison.buckets[0].p_lower == 2.0**-changed


def test_no_p_is_given_where_it_could_not_be_small_whatever_came(compared: Compared) -> None:
    few = compared([1.0] * 20, [0.9] * 4 + [1.0] * 16)
    assert [bucket.p_corrected for bucket in few.buckets] == [None] * 3
    assert few.tests == 0
    assert 2.0**-FEWEST_CHANGED < SIGNIFICANT < 2.0 ** (1 - FEWEST_CHANGED)


def test_a_bucket_with_the_samples_of_another_is_no_second_test(compared: Compared) -> None:
    # One needle count and one bin: all samples three times.
    one = compared([1.0] * 8, [0.5] * 8)
    assert len(one.buckets) == 3
    assert one.tests == 1
    assert {bucket.p_corrected for bucket in one.buckets} == {2.0**-8}


def test_p_is_corrected_for_the_buckets_that_are_tested(compared: Compared) -> None:
    # Six of 8 needles changed, five of 2, one of 4: by hand, tests of 12, 6 and 5 samples.
    places = [(8, 6_000)] * 6 + [(2, 6_000)] * 5 + [(4, 6_000)]
    comparison = compared([1.0] * 12, [0.5] * 12, places=places)
    assert comparison.tests == 3
    assert {bucket.name: bucket.p_corrected for bucket in comparison.buckets} == {
        "all": 3 * 2.0**-12,
        "n2": 2.0**-5,
        "n4": None,
        "n8": 2 * 2.0**-6,
        "n2/4K-8K": 2.0**-5,
        "n4/4K-8K": None,
        "n8/4K-8K": 2 * 2.0**-6,
    }
    assert comparison.summary == (
        "Regression: all samples fell by 0.5000 (1.0000 to 0.5000, p 0.00073);"
        " n2 fell by 0.5000 (1.0000 to 0.5000, p 0.031);"
        " n8 fell by 0.5000 (1.0000 to 0.5000, p 0.031);"
        " n2/4K-8K fell by 0.5000 (1.0000 to 0.5000, p 0.031);"
        " n8/4K-8K fell by 0.5000 (1.0000 to 0.5000, p 0.031)"
    )


def test_a_regression_of_one_cell_is_found_behind_a_gain_elsewhere(compared: Compared) -> None:
    places = [(8, 6_000)] * 10 + [(2, 6_000)] * 40
    comparison = compared([0.9] * 10 + [0.5] * 40, [0.4] * 10 + [0.9] * 40, places=places)
    assert comparison.conclusion == "regression"
    assert comparison.buckets[0].difference > 0
    assert [name for name, state in states(comparison).items() if state == "regression"] == [
        "n8",
        "n8/4K-8K",
    ]


def test_a_gain_is_no_regression(compared: Compared) -> None:
    comparison = compared([0.2] * 30, [0.9] * 30)
    assert comparison.conclusion == "no regression"
    assert comparison.summary == (
        "No regression: 0.2000 to 0.9000 over 30 samples, of which 30 changed"
    )


def test_a_large_fall_that_may_be_chance_is_no_verdict(compared: Compared) -> None:
    comparison = compared([1.0] * 18, [0.0] * 4 + [1.0] * 14)
    assert comparison.conclusion == "inconclusive"
    assert comparison.summary == (
        "No verdict: all samples fell by 0.2222 (1.0000 to 0.7778), which may be chance: 4 of 18"
        " samples changed"
    )
    assert any(note.startswith("Fell by more than 0.05") for note in comparison.notes)


def test_a_fall_within_the_tolerance_that_may_be_chance_is_none(compared: Compared) -> None:
    ratios = [1.0] * 18, [0.0] * 4 + [1.0] * 14
    assert compared(*ratios, tolerance=0.25).conclusion == "no regression"


@pytest.mark.parametrize(
    ("limit", "conclusion"), [(0.0, "regression"), (0.19, "regression"), (0.2, "no regression")]
)
def test_max_regression_is_what_a_mean_may_fall(
    compared: Compared, limit: float, conclusion: str
) -> None:
    # Falls by 0.2 to the last bit but one: 0.9 less 0.7.
    comparison = compared([0.9] * 20, [0.7] * 20, max_regression=limit)
    assert comparison.conclusion == conclusion
    assert f"of more than {limit:g}" in comparison.summary


def test_max_regression_takes_an_interval_without_zero(compared: Compared) -> None:
    # One sample of ten: more than a third of all resamples are without it.
    comparison = compared([1.0] * 10, [0.0] + [1.0] * 9, max_regression=0.05)
    assert comparison.buckets[0].state == "unclear"
    assert comparison.conclusion == "inconclusive"


def test_max_regression_takes_samples_enough_for_an_interval(compared: Compared) -> None:
    comparison = compared([1.0] * 5, [0.0] * 5, max_regression=0.05)
    assert comparison.buckets[0].interval is None
    assert comparison.conclusion == "inconclusive"
    assert any("fewer than 6 samples" in note for note in comparison.notes)


def test_a_small_bucket_that_is_unclear_leaves_the_verdict_to_the_others(
    compared: Compared,
) -> None:
    places = [(8, 6_000)] * 2 + [(2, 6_000)] * 98
    comparison = compared([1.0] * 100, [0.0] + [1.0] * 99, places=places, max_regression=0.05)
    assert states(comparison)["n8"] == "unclear"
    assert comparison.conclusion == "no regression"
    assert "Fell by more than 0.05, which may be chance: n8, n8/4K-8K." in comparison.notes


@pytest.mark.parametrize("limit", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_limit_that_is_no_ratio_is_refused(compared: Compared, limit: float) -> None:
    with pytest.raises(UsageError, match=r"--max-regression .*: not a ratio"):
        compared([1.0], [1.0], max_regression=limit)


def test_what_b_lost_is_never_a_pass(compared: Compared) -> None:
    comparison = compared([1.0] * 10, [None] * 3 + [1.0] * 7)
    assert comparison.conclusion == "inconclusive"
    assert comparison.summary == (
        "No verdict: 3 of 10 samples graded in A were lost in B (its max_failures is 0);"
        " no regression among the others"
    )
    assert [(s.outcome_a, s.outcome_b) for s in comparison.lost] == [("scored", "failed")] * 3


def test_what_b_lost_within_its_budget_is_forgiven(compared: Compared) -> None:
    comparison = compared([1.0] * 10, [None] + [1.0] * 9, max_failures=1)
    assert comparison.conclusion == "no regression"


def test_what_a_lost_and_b_answered_is_no_loss(compared: Compared) -> None:
    comparison = compared([None] * 3 + [1.0] * 7, [1.0] * 10)
    assert (comparison.conclusion, comparison.compared) == ("no regression", 7)


def test_a_regression_is_one_whatever_was_lost(compared: Compared) -> None:
    assert compared([1.0] * 10, [None] + [0.0] * 9).conclusion == "regression"


def test_flipped_samples_are_those_that_changed_by_a_tenth_worst_first(compared: Compared) -> None:
    comparison = compared([0.9, 1.0, 0.5, 0.2, 0.6], [0.8, 0.05, 0.41, 0.9, 0.6])
    assert [round(flip.change, 2) for flip in comparison.flips] == [-0.95, -0.1, 0.7]
    assert [flip.row for flip in comparison.flips] == [101, 100, 103]
    assert comparison.flips[0].cell == "n2/4K-8K"
    assert FLIP == 0.1


def test_answers_that_are_exact_no_more_are_counted_however_little_changed(
    make_result: Callable[..., Result], make_record: MakeRecord, make_grade: MakeGrade
) -> None:
    exact = make_grade(1.0, exact=True)
    a = make_result(records=[make_record(i, grade=exact) for i in range(3)])
    b = make_result(
        records=[
            make_record(0, grade=exact),
            make_record(1, grade=make_grade(0.99)),
            make_record(2, grade=make_grade(0.0, nonce_hit=False), outcome="truncated"),
        ]
    )
    comparison = compare(a, b, paths=("a", "b"))
    assert (comparison.exact_lost, comparison.exact_gained) == (2, 0)
    back = compare(b, a, paths=("b", "a"))
    assert (back.exact_lost, back.exact_gained) == (0, 2)
    (flip,) = comparison.flips
    assert (flip.exact_a, flip.exact_b, flip.nonce_a, flip.nonce_b) == (True, False, True, False)
    assert (flip.outcome_a, flip.outcome_b) == ("scored", "truncated")


def test_shares_are_counted_on_both_sides_with_exact_intervals(compared: Compared) -> None:
    comparison = compared([1.0] * 20, [1.0] * 18 + [None] * 2, max_failures=2)
    shares = {
        rate.name: (rate.a.hits, rate.a.n, rate.b.hits, rate.b.n) for rate in comparison.rates
    }
    assert shares == {
        "exact": (0, 18, 0, 18),
        "nonce": (18, 18, 18, 18),
        "truncated": (0, 18, 0, 18),
        "lost": (0, 20, 2, 20),
    }
    lost = comparison.rates[-1].a.interval
    assert lost is not None
    assert (lost.low, round(lost.high, 4)) == (0, 0.1684)


def test_the_document_is_read_back_as_it_was_written(compared: Compared) -> None:
    comparison = compared([1.0, None] * 5, [0.5] * 10, places=spread(10))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
    assert comparison.schema_version == 1


def noisy(seed: int, fall: float) -> tuple[list[float], list[float]]:
    """Ratios of 100 samples of their own difficulty, moved by about 0.05 in both runs."""
    random = np.random.default_rng(seed)
    level = random.uniform(0.3, 0.7, 100)
    a, b = level + random.normal(0, 0.05, 100), level + random.normal(0, 0.05, 100) - fall
    return a.clip(0, 1).tolist(), b.clip(0, 1).tolist()


@pytest.mark.parametrize("seed", range(10))
def test_a_planted_fall_of_five_points_is_found_in_100_samples(
    compared: Compared, seed: int
) -> None:
    comparison = compared(*noisy(seed, 0.05), places=spread(100))
    assert comparison.conclusion == "regression"
    assert states(comparison)["all"] == "regression"


def test_runs_that_differ_by_noise_alone_are_called_a_regression_once_in_twenty_at_most(
    compared: Compared,
) -> None:
    places = [((2, 4, 8)[i % 3], 6_000) for i in range(48)]
    seen = []
    for seed in range(100):
        a, b = noisy(seed, 0)
        seen.append(compared(a[:48], b[:48], places=places).conclusion)
    assert seen.count("regression") <= 5
    assert seen.count("no regression") == 100 - seen.count("regression")


def test_the_noise_of_many_small_buckets_is_not_called_more_than_max_regression(
    compared: Compared,
) -> None:
    raw = called = 0
    for seed in range(12):
        comparison = compared(*noisy(seed, 0), places=spread(100), max_regression=0.02)
        raw += any(
            bucket.difference < -0.02
            and bucket.interval is not None
            and bucket.interval.excludes_zero
            for bucket in comparison.buckets
        )
        called += comparison.conclusion == "regression"
    # Of nine cells of 11 samples one has fallen so far, with an interval without 0, in every third
    # pair of runs; corrected for the number of buckets, that is hardly ever more than chance.
    assert raw >= 4
    assert called <= 1


def test_four_bad_samples_are_more_than_max_regression_of_all_and_no_proof_of_one_cell(
    compared: Compared,
) -> None:
    a, b = [1.0] * 22, [0.0] * 4 + [1.0] * 18
    alike = compared(a, b, max_regression=0.05)
    assert set(states(alike).values()) == {"regression"}

    places = [(8, 6_000)] * 11 + [(2, 6_000)] * 11
    apart = compared(
        [0.5] * 22, [0.1] * 4 + [0.5] * 7 + [0.9] * 11, places=places, max_regression=0.05
    )
    assert states(apart)["n8"] == "unclear"
    assert apart.conclusion == "no regression"


@pytest.fixture
def narrowed(make_result: Callable[..., Result], make_record: MakeRecord) -> Compared:
    """Compares twelve samples of two cells with the first six, those of the shorter cell."""

    def make(**of_b: Any) -> Comparison:
        common: dict[str, Any] = {"protocol": "openai", "needles": (2,)}
        records = [make_record(i, 0.9, o200k_tokens=(6_000, 12_000)[i // 6]) for i in range(12)]
        return compare(
            make_result(config=RunConfig(**common), records=records),
            make_result(config=RunConfig(**common, **of_b), records=records[:6]),
            paths=("a", "b"),
        )

    return make


def test_a_cell_that_is_no_longer_tested_keeps_the_verdict_from_being_green(
    narrowed: Compared,
) -> None:
    comparison = narrowed()

    assert comparison.conclusion == "inconclusive"
    assert comparison.summary == (
        "No verdict: nothing of n2/8K-16K, graded in A, is graded in B; no regression among the"
        " others"
    )


@pytest.mark.parametrize(
    "of_b",
    [
        {"bins": ("4k-8k",)},
        {"exclude": ("8K-16K",)},
        {"exclude": ("n2/8k-16k", "n2/512K-1M")},
        {"bins": ("4K-8K", "8K-16K"), "exclude": ("n2/8K-16K",)},
    ],
)
def test_a_cell_that_is_left_out_on_purpose_is_not_missed(
    narrowed: Compared, of_b: dict[str, Any]
) -> None:
    assert narrowed(**of_b).conclusion == "no regression"


@pytest.mark.parametrize("of_b", [{"exclude": ("n4/8K-16K",)}, {"bins": ("8K-16K",)}])
def test_what_is_left_out_of_others_is_missed_all_the_same(
    narrowed: Compared, of_b: dict[str, Any]
) -> None:
    assert narrowed(**of_b).conclusion == "inconclusive"


def test_a_baseline_that_graded_next_to_nothing_lets_nothing_pass(compared: Compared) -> None:
    comparison = compared([1.0] * 2 + [None] * 16, [1.0] * 18)

    assert comparison.conclusion == "inconclusive"
    assert "only 2 of 18 samples graded in B are graded in A" in comparison.summary
