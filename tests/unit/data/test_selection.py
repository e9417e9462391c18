"""Which rows a bundle holds for a configuration, and the name that a cache gives to the choice."""

from __future__ import annotations

from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.data.selection import Selection, bundle_key, selection_of
from mrcr_action.data.store import Row

OPENAI: dict[str, Any] = {"protocol": "openai", "needles": (2, 4, 8)}


def row(tokens: int | None, **fields: Any) -> Row:
    """A counted row, all of whose tokens but 100 are the prompt's."""
    known: dict[str, Any] = {
        "n_needles": 2,
        "n_chars": 5 * (tokens or 0),
        "total_messages": 6,
        "desired_msg_index": 1,
        "nonce": "0123456789",
        "answer_chars": 400,
        "prompt_tokens": None if tokens is None else tokens - 100,
        "answer_tokens": None if tokens is None else 100,
        "sha256": "0" * 64,
    }
    return Row(**{**known, **fields})


def select(window: int | None = None, **keys: Any) -> Selection:
    return selection_of(RunConfig(**{**OPENAI, **keys}), window)


def key(
    window: int | None = None, dataset: str = "openai/mrcr", revision: str = "a" * 40, **keys: Any
) -> str:
    return bundle_key(dataset, revision, select(window, **keys))


def test_the_edges_of_a_bin_decide_as_on_the_dataset_card() -> None:
    first, second = select(bins=("4K-8K",)), select(bins=("8K-16K",))
    assert [row(n) in first for n in (4095, 4096, 8192, 8193)] == [False, True, True, False]
    assert [row(n) in second for n in (8192, 8193, 16384, 16385)] == [False, True, True, False]


def test_without_bins_every_row_of_a_bin_is_of_use_and_none_outside_of_all_bins() -> None:
    assert all(row(n) in select() for n in (101, 4096, 1_048_576))
    assert row(1_048_577) not in select()
    assert row(100, answer_tokens=0, prompt_tokens=0) not in select()


def test_a_prompt_of_up_to_a_third_more_than_the_limit_is_of_use() -> None:
    chosen = select(max_prompt_tokens=9_000)
    assert [row(100 + n) in chosen for n in (9_000, 12_000, 12_001)] == [True, True, False]


def test_the_limit_is_the_windows_less_the_answer_and_a_margin() -> None:
    assert select(131_072).max_prompt_tokens == 131_072 - 2048 - 256
    assert select(131_072, max_prompt_tokens=5_000).max_prompt_tokens == 5_000
    assert select().max_prompt_tokens is None


@pytest.mark.parametrize(
    "fields",
    [
        {"fault": "n_chars is 1, the contents hold 2 characters"},
        {"fault": "the prompt is not a list of messages", "sha256": ""},
        {"prompt_tokens": None, "answer_tokens": None, "sha256": None},
    ],
)
def test_a_faulty_or_an_uncounted_row_is_of_no_use(fields: dict[str, Any]) -> None:
    assert row(5_000) in select()
    assert row(5_000, **fields) not in select()


def test_the_vllm_protocol_goes_by_characters_and_looks_at_no_invariant() -> None:
    chosen = select(protocol="vllm", max_prompt_tokens=10_000)
    assert row(60_000, n_chars=40_000) in chosen
    assert row(100, n_chars=40_001) not in chosen
    assert row(2_000_000) in select(protocol="vllm")
    assert row(5_000, fault="n_chars is 1, the contents hold 2 characters") in chosen
    assert row(5_000, fault="the prompt is not a list of messages", sha256="") not in chosen


def test_the_shards_are_those_that_the_protocol_reads() -> None:
    assert select(needles=(8, 2)).shards() == [
        "2needle/2needle_0.parquet",
        "2needle/2needle_1.parquet",
        "8needle/8needle_0.parquet",
        "8needle/8needle_1.parquet",
    ]
    assert select(needles=(8, 2), protocol="vllm").shards() == [
        "2needle/2needle_0.parquet",
        "8needle/8needle_0.parquet",
    ]


def test_a_bin_that_is_excluded_whole_is_left_out_and_one_cell_of_it_is_not() -> None:
    assert select(bins=("4K-8K", "8K-16K"), exclude=("8K-16K",)).bins == ("4K-8K",)
    assert select(exclude=("n8/4K-8K",)).bins is None
    assert row(5_000) not in select(exclude=("4K-8K",))
    assert row(9_000) in select(exclude=("4K-8K",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"needles": (2, 4)}, {"needles": (4, 2)}),
        ({"bins": ("4K-8K", "64K-128K")}, {"bins": ("64K-128K", "4K-8K")}),
        ({"bins": ("4K-8K",)}, {"bins": ("4k-8k",)}),
        ({"bins": ("4K-8K", "8K-16K"), "exclude": ("8K-16K",)}, {"bins": ("4K-8K",)}),
        ({"window": 131_072}, {"max_prompt_tokens": 128_768}),
        ({}, {"seed": 7, "samples_per_cell": 3, "concurrency": 1, "match_ratio_threshold": 0.5}),
    ],
)
def test_the_key_is_the_same_for_the_same_rows(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(**one) == key(**other)


def test_the_key_is_another_for_other_rows() -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"needles": (2,)},
        {"needles": (2, 4)},
        {"bins": ("4K-8K",)},
        {"bins": ("4K-8K", "8K-16K")},
        {"window": 131_072},
        {"window": 65_536},
        {"revision": "b" * 40},
        {"dataset": "someone/mrcr"},
        {"protocol": "vllm"},
    ]
    assert len({key(**choice) for choice in choices}) == len(choices)


def test_the_key_is_fit_for_a_cache_and_does_not_change_from_version_to_version() -> None:
    # Another one here means that every cache in use is filled anew.
    assert key() == "mrcr-data-1-2d8331b3b5af12c3"
