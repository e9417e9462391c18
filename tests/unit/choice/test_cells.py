"""Sampling by cell, on rows made by hand and a server that only counts."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.choice.choosing import (
    Counter,
    as_bytes,
    as_o200k,
    as_quarters,
    by_cell,
    chosen,
    config_of,
    picks,
    seen,
)
from tests.unit.handmade import WORDS, row, write_rows

from mrcr_action.bins import ALL_BINS, BINS, Bin, bin_of
from mrcr_action.choice import Choice
from mrcr_action.choice.shares import level
from mrcr_action.client import Denied, ModelEntry
from mrcr_action.data.order import candidates_in_order
from mrcr_action.data.paths import shards_of
from mrcr_action.data.shards import Shards
from mrcr_action.data.writer import SCHEMA, write_parquet
from mrcr_action.errors import NothingFits
from mrcr_action.synthetic import SyntheticSpec, synthetic_row
from mrcr_action.tokens import count_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Cell, Plan
    from mrcr_action.sample import Message

PER_BIN = 12


def rows_of_bins(needles: Sequence[int], bins: Sequence[Bin], per_bin: int) -> list[dict[str, Any]]:
    """So many rows in each bin, of two kinds of words; a row's number tells its bin."""
    dice = random.Random(7)
    return [
        row(n, 100 * at + i, dice.randint(bin_.low + 1, bin_.high - 1), word=WORDS[i % 2])
        for n in needles
        for at, bin_ in enumerate(bins)
        for i in range(per_bin)
    ]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 2 and 4 needles: twelve rows in each bin from 512 to 16K."""
    return write_rows(tmp_path_factory.mktemp("wide"), rows_of_bins((2, 4), ALL_BINS[1:6], PER_BIN))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 2 needles: twelve rows in each bin from 8K to 128K."""
    return write_rows(tmp_path_factory.mktemp("long"), rows_of_bins((2,), BINS[1:5], PER_BIN))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 2 needles and 8: nine rows in each bin from 512 to 4K."""
    return write_rows(tmp_path_factory.mktemp("short"), rows_of_bins((2, 8), ALL_BINS[1:4], 9))


def cells(plan: Plan) -> dict[str, Cell]:
    return {cell.name: cell for cell in plan.cells}


def test_every_cell_gets_its_number_of_rows_in_order_of_needles_and_length(short: Path) -> None:
    plan = chosen(config_of(short, needles=(8, 2), samples_per_cell=4))

    names = ["512-1K", "1K-2K", "2K-4K"]
    assert by_cell(plan) == {f"n{n}/{name}": 4 for n in (8, 2) for name in names}
    assert [ask.index for ask in plan.asks] == list(range(24))
    order = [(ask.n_needles, bin_of(ask.o200k_tokens)) for ask in plan.asks]
    assert order == sorted(order, key=lambda cell: (-cell[0], cell[1]))
    assert plan.quotas == {8: 12, 2: 12}
    assert plan.notes == ()
    assert plan.counted_by == "server"


def test_ten_rows_of_every_cell_that_the_window_reaches_are_the_default(wide: Path) -> None:
    plan = chosen(config_of(wide), limit=6_000)

    top = cells(plan)["n2/4K-8K"]
    assert by_cell(plan) == {
        "n2/512-1K": 10,
        "n2/1K-2K": 10,
        "n2/2K-4K": 10,
        "n2/4K-8K": top.planned,
    }
    assert 0 < top.planned <= top.fitting < 10
    assert (top.rows, top.dropped) == (PER_BIN, {"too long": PER_BIN - top.fitting})
    assert not any(cell.requested for cell in plan.cells)
    assert plan.notes[0] == (
        "Fewer than 10 samples, because the others of the first 10 are too long for the window, in"
        f" n2/4K-8K ({top.planned})."
    )


def test_a_row_that_is_too_long_is_not_replaced_by_another(wide: Path) -> None:
    limited = chosen(config_of(wide, bins=("4K-8K",), samples_per_cell=6), limit=6_000)
    whole = chosen(config_of(wide, bins=("4K-8K",), samples_per_cell=6))

    fitting = {(ask.shard, ask.row) for ask in whole.asks if ask.prompt_tokens <= 6_000}
    assert picks(limited) == fitting
    assert 0 < len(fitting) < 6
    assert cells(limited)["n2/4K-8K"].fitting > len(fitting)


def test_cells_of_the_dataset_out_of_reach_are_told_with_their_rows(wide: Path) -> None:
    plan = chosen(config_of(wide), limit=3_000)

    beyond = cells(plan)["n2/8K-16K"]
    assert (beyond.rows, beyond.planned, beyond.fitting) == (PER_BIN, 0, 0)
    assert beyond.dropped == {"too long": PER_BIN}


def test_only_the_bins_that_are_named_are_tested(wide: Path) -> None:
    plan = chosen(config_of(wide, bins=("1K-2K", "4K-8K"), samples_per_cell=3))

    assert by_cell(plan) == {"n2/1K-2K": 3, "n2/4K-8K": 3}
    assert cells(plan)["n2/1K-2K"].requested
    assert cells(plan)["n2/512-1K"].dropped == {"excluded": PER_BIN}


def test_a_named_bin_without_a_row_has_a_cell_that_says_so(short: Path) -> None:
    plan = chosen(config_of(short, bins=("512-1K", "512K-1M"), samples_per_cell=2))

    empty = cells(plan)["n2/512K-1M"]
    assert (empty.requested, empty.rows, empty.planned, empty.dropped) == (True, 0, 0, {})


def test_a_named_bin_that_is_too_long_has_a_cell_that_says_so(short: Path) -> None:
    plan = chosen(config_of(short, bins=("512-1K", "2K-4K")), limit=1_200)

    long = cells(plan)["n2/2K-4K"]
    assert (long.requested, long.rows, long.planned, long.fitting) == (True, 9, 0, 0)
    assert long.dropped == {"too long": 9}


def test_a_cell_or_a_bin_can_be_excluded(short: Path) -> None:
    plan = chosen(
        config_of(
            short, needles=(2, 8), samples_per_cell=2, exclude=("n8/1K-2K", "512-1K", "64K-128K")
        )
    )

    assert by_cell(plan) == {"n2/1K-2K": 2, "n2/2K-4K": 2, "n8/2K-4K": 2}
    assert cells(plan)["n8/1K-2K"].dropped == {"excluded": 9}


def test_an_excluded_cell_of_a_named_bin_is_not_requested(short: Path) -> None:
    plan = chosen(
        config_of(short, needles=(2, 8), bins=("512-1K", "2K-4K"), exclude=("n8/2K-4K",)),
    )

    requested = {cell.name for cell in plan.cells if cell.requested}
    assert requested == {"n2/512-1K", "n2/2K-4K", "n8/512-1K"}


def test_a_number_in_all_is_shared_over_the_cells_of_each_needle_count(short: Path) -> None:
    plan = chosen(config_of(short, needles=(2, 8), num_samples=10))

    shares = [2, 1, 2]
    names = ["512-1K", "1K-2K", "2K-4K"]
    expected = {f"n{n}/{b}": share for n in (2, 8) for b, share in zip(names, shares, strict=True)}
    assert by_cell(plan) == expected
    assert plan.quotas == {2: 5, 8: 5}


def test_what_one_cell_cannot_fill_of_a_number_in_all_is_taken_from_the_others(
    wide: Path,
) -> None:
    plan = chosen(config_of(wide, num_samples=40), limit=6_000)

    fitting = cells(plan)["n2/4K-8K"].fitting
    assert 0 < fitting < 10
    assert by_cell(plan)["n2/4K-8K"] == fitting
    assert len(plan.asks) == min(40, 3 * PER_BIN + fitting)


def test_a_number_in_all_that_the_dataset_cannot_fill_is_noted(short: Path) -> None:
    plan = chosen(config_of(short, num_samples=40), limit=2_000)

    planned = len(plan.asks)
    assert planned < 27
    assert any(
        note.startswith(f"Only {planned} of 40 samples with 2 needles were found: of 27 rows, ")
        for note in plan.notes
    )


def test_more_samples_per_cell_keep_every_earlier_pick(wide: Path) -> None:
    for seed in range(3):
        config = config_of(wide, needles=(2, 4), seed=seed)
        before: set[tuple[str, int]] = set()
        for samples in (1, 5, 10):
            more = msgspec.structs.replace(config, samples_per_cell=samples)
            found = picks(chosen(more, limit=6_000, server=Counter(as_quarters)))
            assert before < found
            before = found


def test_more_of_one_cell_is_the_first_rows_of_a_larger_sample_and_leaves_the_others(
    wide: Path,
) -> None:
    config = config_of(wide, needles=(2, 4), samples_per_cell=3)
    counts = Counter(as_quarters)
    choice = Choice(config)
    first = chosen(config, limit=6_000, server=counts, choice=choice)
    asked = len(counts.counted)
    levels = {cell.name: cell.level for cell in first.cells if cell.planned} | {"n2/1K-2K": 8}
    more = asyncio.run(choice.more(levels))

    assert picks(first) < picks(more)
    assert by_cell(more) == by_cell(first) | {"n2/1K-2K": 8}
    assert cells(more)["n2/1K-2K"].level == 8
    config = config_of(wide, needles=(2, 4), samples_per_cell=8)
    larger = chosen(config, limit=6_000, server=Counter(as_quarters))
    ranks = {(ask.shard, ask.row): ask.rank for ask in larger.asks}
    assert {(a.shard, a.row): a.rank for a in more.asks}.items() <= ranks.items()
    # Nothing that the server has counted is counted once more.
    assert len(set(counts.counted)) == len(counts.counted) >= asked


def test_ranks_leave_out_rows_that_are_too_long(wide: Path) -> None:
    config = config_of(wide, bins=("4K-8K",), samples_per_cell=6)
    whole = {(ask.shard, ask.row): ask.rank for ask in chosen(config).asks}
    assert sorted(whole.values()) == list(range(6))
    limited = {(ask.shard, ask.row): ask.rank for ask in chosen(config, limit=6_000).asks}
    assert limited.items() < whole.items()


def test_more_samples_and_a_longer_window_keep_every_earlier_pick(long: Path) -> None:
    def of(window: int, samples: int, seed: int) -> set[tuple[str, int]]:
        config = config_of(long, samples_per_cell=samples, seed=seed)
        limit = config.prompt_limit(window)
        assert limit is not None
        return picks(chosen(config, limit=limit))

    for seed in range(6):
        assert of(32_768, 5, seed) < of(131_072, 10, seed)


@pytest.mark.parametrize("measure", [as_o200k, as_quarters])
def test_a_longer_window_alone_keeps_every_earlier_pick(
    wide: Path, measure: Callable[[Sequence[Message]], int]
) -> None:
    for seed in range(3):
        config = config_of(wide, samples_per_cell=5, seed=seed)
        before: set[tuple[str, int]] = set()
        for limit in (900, 5_000, 6_000, 20_000):
            found = picks(chosen(config, limit=limit, server=Counter(measure)))
            assert before <= found
            before = found


def test_another_seed_chooses_other_rows(wide: Path) -> None:
    config = config_of(wide, samples_per_cell=5)
    first = picks(chosen(config))

    assert picks(chosen(config)) == first
    assert picks(chosen(config_of(wide, samples_per_cell=5, seed=1))) != first


def test_rows_of_both_shards_are_chosen(wide: Path) -> None:
    plan = chosen(config_of(wide, samples_per_cell=5))

    shards = {ask.shard for ask in plan.asks}
    assert shards == {"2needle/2needle_0.parquet", "2needle/2needle_1.parquet"}


# --- rows that are not as they should be


def test_a_row_that_breaks_an_invariant_gives_its_place_to_the_next(tmp_path: Path) -> None:
    rows = [row(2, number, 600 + number) for number in range(9)]
    good = write_rows(tmp_path / "good", rows)
    config = config_of(good, samples_per_cell=3)
    before = [(ask.shard, ask.row) for ask in chosen(config).asks]
    everything = chosen(config_of(good, samples_per_cell=9))
    order = [(ask.shard, ask.row) for ask in everything.asks]
    assert before == order[:3]

    second = before[1]
    number = 2 * second[1] + int(second[0].endswith("_1.parquet"))
    rows[number]["answer"] = rows[number]["answer"] + "!"
    bad = write_rows(tmp_path / "bad", rows)
    plan = chosen(config_of(bad, samples_per_cell=3))

    assert [(ask.shard, ask.row) for ask in plan.asks] == [order[0], *order[2:4]]
    fault = "the answer is not the nonce followed by the wanted reply"
    assert plan.notes == (f"{second[0]}#{second[1]} was left out: {fault}.",)
    cell = cells(plan)["n2/512-1K"]
    assert (cell.rows, cell.fitting, cell.planned) == (9, 8, 3)
    assert cell.dropped == {"invalid": 1}


def test_many_rows_that_break_invariants_are_counted_not_all_listed(tmp_path: Path) -> None:
    rows = [row(2, number, 600 + number) for number in range(12)]
    for broken in rows[:8]:
        broken["n_chars"] += 1
    plan = chosen(config_of(write_rows(tmp_path, rows), samples_per_cell=12))

    assert cells(plan)["n2/512-1K"].dropped == {"invalid": 8}
    assert len(plan.asks) == 4
    listed = [note for note in plan.notes if "was left out" in note]
    assert len(listed) == 5
    assert "3 more rows were left out: they break the dataset's invariants." in plan.notes


def test_a_row_that_cannot_be_parsed_is_left_out_like_one_that_breaks_an_invariant(
    tmp_path: Path,
) -> None:
    rows = [row(2, number, 600 + number) for number in range(4)]
    rows[0]["prompt"] = "no JSON"
    rows[1]["prompt"] = json.dumps([{"role": "tool", "content": "x"}])
    plan = chosen(config_of(write_rows(tmp_path, rows), samples_per_cell=10))

    assert len(plan.asks) == 2
    assert len([note for note in plan.notes if "was left out" in note]) == 2


def test_a_row_in_the_file_of_another_needle_count_is_left_out(tmp_path: Path) -> None:
    rows = [row(2, number, 600 + number) for number in range(4)]
    folder = write_rows(tmp_path, rows)
    strange = row(3, 9, 650)
    path = folder / "2needle" / "2needle_0.parquet"
    _rewrite(path, [strange, rows[2]])
    plan = chosen(config_of(folder, samples_per_cell=10))

    assert len(plan.asks) == 3
    assert plan.notes[0] == (
        "2needle/2needle_0.parquet#0 was left out: n_needles is 3 in the file of 2 needles."
    )


def test_nothing_that_fits_is_an_error(short: Path) -> None:
    with pytest.raises(NothingFits, match="no sample fits into 300 prompt tokens"):
        chosen(config_of(short), limit=300)


# --- edges


def test_rows_at_the_edges_of_the_bins_lie_where_the_dataset_card_puts_them(
    tmp_path: Path,
) -> None:
    bins = {4096: BINS[0], 8192: BINS[0], 8193: BINS[1]}
    rows = [
        synthetic_row(SyntheticSpec(n_needles=2, bin=bin_, seed=1, exact=exact))
        for exact, bin_ in bins.items()
    ]
    write_parquet(rows, tmp_path)

    plan = chosen(config_of(tmp_path), server=Counter(lambda _messages: 100))

    of = {ask.o200k_tokens: bin_of(ask.o200k_tokens) for ask in plan.asks}
    assert of == bins
    assert by_cell(plan) == {"n2/4K-8K": 2, "n2/8K-16K": 1}


def test_a_row_at_an_edge_is_found_among_others_by_counting_it(tmp_path: Path) -> None:
    edges = [4096, 8192, 8193, 16_384, 16_385]
    rows = [row(2, i, size) for i, size in enumerate(edges)]
    rows += [row(2, 100 + i, size, word=WORDS[i % 2]) for i, size in enumerate(range(5_000, 7_000))]
    folder = write_rows(tmp_path, rows[:60])

    plan = chosen(config_of(folder, samples_per_cell=100))

    found = cells(plan)
    assert found["n2/8K-16K"].rows == 2
    assert found["n2/16K-32K"].rows == 1
    assert found["n2/4K-8K"].rows == 57
    assert "n2/2K-4K" not in found


def test_rows_of_more_than_a_million_tokens_lie_in_no_cell(tmp_path: Path) -> None:
    rows = [row(2, 0, 1 << 20), row(2, 1, (1 << 20) + 1), row(2, 2, 5_000)]
    folder = write_rows(tmp_path, rows)

    plan = chosen(config_of(folder), limit=2_000_000)

    assert by_cell(plan) == {"n2/4K-8K": 1, "n2/512K-1M": 1}
    assert sum(cell.rows for cell in plan.cells) == 2
    assert sorted(ask.o200k_tokens for ask in plan.asks) == [5_000, 1 << 20]


# --- what the server is asked


def test_only_a_few_short_rows_and_those_near_the_limit_are_counted_by_the_server(
    wide: Path,
) -> None:
    server = Counter()

    plan = chosen(config_of(wide, samples_per_cell=5), limit=6_000, server=server)

    bins = [number // 100 for _, number in server.counted]
    assert bins.count(0) == 3
    assert set(bins) == {0, 3}
    assert len(server.counted) == len(set(server.counted)) < 3 + PER_BIN
    assert 0 < plan.tokenized <= len(server.counted)


def test_a_row_that_was_not_counted_is_said_to_be_estimated(wide: Path) -> None:
    server = Counter()

    plan = chosen(config_of(wide, samples_per_cell=5), limit=6_000, server=server)

    exact = {ask.prompt_tokens for ask in plan.asks if not ask.estimated}
    assert 0 < len(exact) < len(plan.asks)
    assert len(exact) <= len(server.counted)
    for ask in plan.asks:
        if ask.estimated:
            assert ask.prompt_tokens == pytest.approx(ask.o200k_tokens, rel=0.1)


@pytest.mark.parametrize("measure", [as_o200k, as_quarters, as_bytes])
@pytest.mark.parametrize("limit", [900, 5_000])
@pytest.mark.parametrize("keys", [{"samples_per_cell": 4}, {"num_samples": 17}])
def test_what_is_chosen_is_what_counting_every_row_would_choose(
    wide: Path,
    measure: Callable[[Sequence[Message]], int],
    limit: int,
    keys: dict[str, int],
) -> None:
    config = config_of(wide, **keys)
    limit = limit * 6 if measure is as_bytes else limit

    plan = chosen(config, limit=limit, server=Counter(measure))

    assert [(ask.shard, ask.row) for ask in plan.asks] == _by_brute_force(config, measure, limit)
    assert all(ask.prompt_tokens <= limit for ask in plan.asks)


def test_the_same_rows_are_chosen_whatever_the_cache_knows(
    wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(cache: str, **keys: Any) -> set[tuple[str, int]]:
        monkeypatch.setenv("MRCR_CACHE", str(tmp_path / cache))
        own = config_of(wide, **({"samples_per_cell": 4} | keys))
        return picks(chosen(own, limit=6_000, server=Counter(as_quarters), preflight=seen()))

    cold = choose("a")
    assert choose("a") == cold
    choose("b", bins=("2K-4K", "4K-8K"))
    choose("b", samples_per_cell=12)
    assert choose("b") == cold
    choose("c", seed=9)
    assert choose("c") == cold
    # Everything counted exactly.
    monkeypatch.setenv("MRCR_CACHE", str(tmp_path / "d"))
    shards = Shards(str(wide), "")
    for shard in shards_of(2, (0, 1)):
        shards.count({shard: range(30)})
    assert choose("d") == cold


def test_what_was_counted_once_is_not_asked_again(wide: Path) -> None:
    config = config_of(wide, samples_per_cell=5)
    first, second = Counter(), Counter()

    plan = chosen(config, limit=6_000, server=first, preflight=seen())
    again = chosen(config, limit=6_000, server=second, preflight=seen())

    assert first.counted
    assert second.counted == []
    assert picks(again) == picks(plan)
    assert again.tokenized == plan.tokenized > 0


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ({}, {"preflight": seen("f2")}),
        ({"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}, {}),
        ({"merge_leading_user_turns": True}, {}),
        ({}, {"preflight": None}),
        ({}, {"preflight": seen("")}),
    ],
)
def test_counts_of_another_tokenizer_or_template_are_not_taken(
    short: Path, keys: dict[str, Any], changes: dict[str, Any]
) -> None:
    chosen(config_of(short), server=Counter(), preflight=seen())
    server = Counter()

    chosen(config_of(short, **keys), server=server, **({"preflight": seen()} | changes))

    assert server.counted


def test_counts_of_another_model_are_not_taken(short: Path) -> None:
    chosen(config_of(short), server=Counter(), preflight=seen())
    server = Counter()

    other = ModelEntry("m", "org/other", None)
    chosen(config_of(short), server=server, preflight=seen(), model=other)

    assert server.counted


def test_damaged_counts_in_the_cache_are_asked_for_again(short: Path, own_cache: Path) -> None:
    chosen(config_of(short), server=Counter(), preflight=seen())
    files = [path for path in (own_cache / "tokenize").rglob("*.json") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"{")
    server = Counter()

    chosen(config_of(short), server=server, preflight=seen())

    assert server.counted


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_without_tokenize_o200k_tokens_decide_and_it_is_noted(wide: Path, status: int) -> None:
    server = Counter(error=Denied(f"HTTP {status}", status=status))
    config = config_of(wide, samples_per_cell=4)

    plan = chosen(config, limit=6_000, server=server)

    assert plan.counted_by == "o200k"
    assert f"no /tokenize (HTTP {status})" in plan.notes[0]
    assert len(server.kwargs) == 1
    assert plan.tokenized == 0
    assert all(ask.estimated for ask in plan.asks)
    # What the server's own count would be nobody knows, so a tenth of the limit is kept free.
    expected = _by_brute_force(config, as_o200k, 5_400)
    assert [(ask.shard, ask.row) for ask in plan.asks] == expected


def test_a_window_that_ends_within_a_bin_is_noted(wide: Path) -> None:
    plan = chosen(config_of(wide, samples_per_cell=2), limit=6_000)

    (note,) = [note for note in plan.notes if "untested" in note]
    assert plan.longest_o200k is not None
    assert 5_800 <= plan.longest_o200k <= 6_000
    assert note == (
        "The top of the last bin, 4K-8K, is untested: the limit is about"
        f" {plan.longest_o200k:,} of its 8,192 o200k tokens, and"
        f" {cells(plan)['n2/4K-8K'].dropped['too long']} of its rows are longer."
    )


def test_a_window_that_holds_all_rows_leaves_nothing_untested(short: Path) -> None:
    assert chosen(config_of(short, samples_per_cell=2), limit=5_000).notes == ()


def test_progress_tells_of_chosen_rows_up_to_all_of_them(short: Path) -> None:
    told: list[tuple[int, int]] = []

    plan = chosen(config_of(short, samples_per_cell=3), limit=3_000, told=told)

    assert told[-1] == (len(plan.asks), len(plan.asks))
    assert all(0 <= done <= wanted for done, wanted in told)


def _by_brute_force(
    config: RunConfig, measure: Callable[[Sequence[Message]], int], limit: int
) -> list[tuple[str, int]]:
    """The choice by reading and counting every row."""
    shards = Shards(config.dataset, "")
    found: list[tuple[str, int]] = []
    for shard in shards_of(2, (0, 1)) + (shards_of(4, (0, 1)) if 4 in config.needles else []):
        shards.keep({shard: range(len(shards.candidates(shard)))})
    for n_needles, quota in config.quotas().items():
        by_bin: dict[Bin | None, list[tuple[tuple[str, int], bool]]] = {b: [] for b in ALL_BINS}
        for candidate in candidates_in_order(
            shards, protocol="openai", n_needles=n_needles, seed=config.seed
        ):
            sample = shards.load(candidate.shard, candidate.row)
            fits = measure(sample.messages) <= limit
            by_bin[bin_of(count_sample(sample))].append(((candidate.shard, candidate.row), fits))
        chosen_rows = [
            [place for place, fits in rows[: config.per_cell] if fits] for rows in by_bin.values()
        ]
        if config.per_cell is None:
            shares = level(quota, [len(rows) for rows in chosen_rows])
            chosen_rows = [rows[:n] for rows, n in zip(chosen_rows, shares, strict=True)]
        found += [place for rows in chosen_rows for place in rows]
    return found


def _rewrite(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path)
