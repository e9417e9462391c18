from collections.abc import Callable

import pytest

from mrcr_action.auc import Area, areas_of, auc
from mrcr_action.bins import ALL_BINS, BINS, Bin
from mrcr_action.config import RunConfig
from mrcr_action.plan import Plan
from mrcr_action.report.rows import areas
from mrcr_action.result import Record, Result
from mrcr_action.stats import coverage_of

K = 1024

PUBLISHED = dict(zip(BINS, (87.6, 68.0, 70.4, 57.5, 55.5, 57.1, 55.6, 42.1), strict=True))
"""A model's means by bin on Context Arena, in percent; its areas there are 61.6 and 53.2."""

Measure = Callable[..., tuple[Plan, list[Record]]]


@pytest.fixture
def measure(
    make_plan: Callable[..., Plan],
    make_record: Callable[..., Record],
    make_cell: Callable[..., object],
) -> Measure:
    """A plan with two samples of 2 needles in each of some bins, and their answers."""

    def build(bins: list[Bin], config: RunConfig) -> tuple[Plan, list[Record]]:
        records = [
            make_record(2 * at + i, PUBLISHED.get(bin_, 0.0) / 100, o200k_tokens=bin_.high - 1)
            for at, bin_ in enumerate(bins)
            for i in range(2)
        ]
        cells = tuple(
            make_cell(2, str(bin_), planned=2 if bin_ in bins else 0) for bin_ in ALL_BINS
        )
        return make_plan(records, config, cells=cells, passed={}), records

    return build


@pytest.mark.parametrize(("up_to", "expected"), [(128 * K, 61.6), (1024 * K, 53.2)])
def test_the_area_is_the_one_that_context_arena_publishes(up_to: int, expected: float) -> None:
    assert auc(PUBLISHED, up_to) == pytest.approx(expected, abs=0.05)


def test_equal_means_have_that_mean_as_their_area() -> None:
    assert auc(dict.fromkeys(BINS, 0.75), 1024 * K) == pytest.approx(0.75, abs=1e-15)


def test_the_longest_bins_weigh_most() -> None:
    means = dict.fromkeys(BINS, 1.0)
    short, long = auc(means | {BINS[0]: 0.0}, 1024 * K), auc(means | {BINS[-1]: 0.0}, 1024 * K)
    # By hand: the first trapezoid is 8K wide of 1,016K, the last one 512K; half of each is lost.
    assert short == pytest.approx(1 - 4 / 1016)
    assert long == pytest.approx(1 - 256 / 1016)


@pytest.mark.parametrize("missing", BINS[:5])
def test_a_bin_that_was_not_measured_leaves_no_area_that_reaches_over_it(missing: Bin) -> None:
    means = {bin_: mean for bin_, mean in PUBLISHED.items() if bin_ != missing}
    assert auc(means, 128 * K) is None


def test_a_bin_beyond_the_end_is_not_needed() -> None:
    means = {bin_: mean for bin_, mean in PUBLISHED.items() if bin_.high <= 128 * K}
    assert auc(means, 128 * K) == auc(PUBLISHED, 128 * K)
    assert auc(means, 1024 * K) is None


@pytest.mark.parametrize("up_to", [0, 4 * K, 8 * K, 100_000, 2048 * K])
def test_there_is_no_area_up_to_what_is_no_end_of_a_second_bin(up_to: int) -> None:
    assert auc(PUBLISHED, up_to) is None


def test_a_run_has_the_areas_of_which_every_bin_was_measured(measure: Measure) -> None:
    plan, records = measure([*ALL_BINS[:4], *BINS[:5]], RunConfig(protocol="openai", needles=(2,)))
    (area,) = areas_of(coverage_of(plan, records))
    assert (area.n_needles, area.up_to) == (2, 128 * K)
    assert area.auc == pytest.approx(0.616, abs=0.0005)
    # The bins below the dataset's shortest row are none of Context Arena's.
    assert area.n == 10
    assert areas_of(coverage_of(plan, records[:-2])) == ()


def test_reports_say_whose_area_it_is_and_over_how_many_samples(
    make_result: Callable[..., Result],
) -> None:
    found = make_result(
        auc=(
            Area(n_needles=2, up_to=128 * K, auc=0.6161, n=50),
            Area(n_needles=8, up_to=1024 * K, auc=0.25, n=80),
        )
    )
    assert areas(found) == (
        "AUC as Context Arena counts it: n2 @128K 61.6% (50 samples), n8 @1M 25.0% (80 samples)"
    )
    assert areas(make_result()) == ""
