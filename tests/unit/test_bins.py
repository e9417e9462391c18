import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcr_action.bins import ALL_BINS, BINS, Bin, bin_of, known_bin, parse_bin


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, None),
        (1, "0-512"),
        (512, "0-512"),
        (513, "512-1K"),
        (2049, "2K-4K"),
        (4095, "2K-4K"),
        (4096, "4K-8K"),
        (8192, "4K-8K"),
        (8193, "8K-16K"),
        (16384, "8K-16K"),
        (16385, "16K-32K"),
        (32768, "16K-32K"),
        (65536, "32K-64K"),
        (131072, "64K-128K"),
        (131073, "128K-256K"),
        (262144, "128K-256K"),
        (524288, "256K-512K"),
        (524289, "512K-1M"),
        (1048576, "512K-1M"),
        (1048577, None),
    ],
)
def test_edges_are_the_dataset_cards(tokens: int, expected: str | None) -> None:
    found = bin_of(tokens)
    assert expected == (None if found is None else str(found))


@given(tokens=st.integers(1, 1048576) | st.sampled_from([b.low or 1 for b in ALL_BINS]))
@settings(max_examples=200, deadline=None)
def test_every_count_lies_in_exactly_one_bin(tokens: int) -> None:
    assert [bin_of(tokens)] == [b for b in ALL_BINS if tokens in b]


def test_a_bin_is_known_by_its_name() -> None:
    assert [known_bin(str(bin_)) for bin_ in ALL_BINS] == list(ALL_BINS)
    assert known_bin("64k-128k") == Bin(65536, 131072)


@pytest.mark.parametrize("text", ["4K-9K", "4096-8191", "0-4K", "1M-2M"])
def test_a_range_that_is_no_bin_is_refused_with_all_bins(text: str) -> None:
    with pytest.raises(ValueError, match=r"is none of the bins 0-512, .*, 512K-1M$"):
        known_bin(text)


def test_a_bin_of_ones_own_is_open_below() -> None:
    assert 512 not in Bin(512, 1024)
    assert 513 in Bin(512, 1024)
    assert 1024 in Bin(512, 1024)
    assert 1025 not in Bin(512, 1024)


def test_a_bin_that_begins_where_the_cards_first_does_is_closed_below() -> None:
    assert 4096 in Bin(4096, 131072)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4K-8K", Bin(4096, 8192)),
        ("4k-8k", Bin(4096, 8192)),
        (" 512-1K ", Bin(512, 1024)),
        ("512K-1M", Bin(524288, 1048576)),
        ("100-200", Bin(100, 200)),
        ("0-4K", Bin(0, 4096)),
    ],
)
def test_ranges_are_read_in_binary_units(text: str, expected: Bin) -> None:
    assert expected == parse_bin(text)


@pytest.mark.parametrize("text", ["", "4K", "4K-", "-8K", "4K–8K", "4G-8G", "4.5K-8K", "a-b"])
def test_what_is_no_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 4K-8K"):
        parse_bin(text)


@pytest.mark.parametrize("text", ["8K-4K", "8K-8K", "1M-512K"])
def test_a_range_must_run_upwards(text: str) -> None:
    with pytest.raises(ValueError, match="from a smaller to a larger"):
        parse_bin(text)


@given(low=st.integers(0, 1 << 22), width=st.integers(1, 1 << 22))
@settings(max_examples=100, deadline=None)
def test_a_printed_bin_reads_back_as_itself(low: int, width: int) -> None:
    assert Bin(low, low + width) == parse_bin(str(Bin(low, low + width)))


def test_a_range_across_the_edge_of_the_cards_first_bin_holds_the_edge() -> None:
    assert 4096 in Bin(2048, 8192)
    assert 4096 not in Bin(2048, 4096)
    assert 4096 not in Bin(8192, 16384)


def test_bins_sort_by_length() -> None:
    assert list(BINS) == sorted(BINS, reverse=True)[::-1]
    assert [str(b) for b in BINS] == [
        "4K-8K",
        "8K-16K",
        "16K-32K",
        "32K-64K",
        "64K-128K",
        "128K-256K",
        "256K-512K",
        "512K-1M",
    ]
