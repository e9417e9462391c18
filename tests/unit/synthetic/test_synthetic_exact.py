import pytest

from mrcr_action.bins import BINS, Bin
from mrcr_action.errors import UsageError
from mrcr_action.sample import Sample
from mrcr_action.synthetic import SyntheticSpec, synthetic_row
from mrcr_action.tokens import count_sample

EDGES = [(Bin(256, 1024), 512), (BINS[0], 4096), (BINS[0], 8192), (BINS[1], 8193)]


def exact_row(n_needles: int, bin_: Bin, exact: int) -> Sample:
    spec = SyntheticSpec(n_needles=n_needles, bin=bin_, seed=3, exact=exact)
    return Sample.from_row(synthetic_row(spec), shard="synthetic", index=0)


@pytest.mark.parametrize("n_needles", [2, 4, 8])
@pytest.mark.parametrize(("bin_", "exact"), EDGES)
def test_an_exact_row_has_its_tokens_to_the_token(n_needles: int, bin_: Bin, exact: int) -> None:
    made = exact_row(n_needles, bin_, exact)
    assert made.violations() == []
    assert count_sample(made) == exact


@pytest.mark.parametrize("exact", range(400, 440, 7))
def test_exact_rows_with_hardly_any_room_for_fillers_come_out_even(exact: int) -> None:
    made = exact_row(8, Bin(256, 512), exact)
    assert made.violations() == []
    assert count_sample(made) == exact


def test_exact_tokens_outside_the_bin_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"exactly 8193 tokens .* bin 4K-8K"):
        exact_row(2, BINS[0], 8193)


def test_exact_tokens_too_few_for_the_needles_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="16 needles fits 260 tokens"):
        exact_row(16, Bin(256, 512), 260)
