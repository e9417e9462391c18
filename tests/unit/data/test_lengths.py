"""Which bin rows lie in, found out by counting few of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.unit.handmade import WORDS, row, write_rows

from mrcr_action.bins import ALL_BINS, BINS, Bin, bin_of
from mrcr_action.data.lengths import FIRST_COUNTED, MARGIN, Length, Lengths
from mrcr_action.data.paths import shards_of
from mrcr_action.data.shards import Shards
from mrcr_action.data.store import Row, ShardIndex
from mrcr_action.plan import Candidate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

SHARD = shards_of(2, (0,))[0]


class FakeShards:
    """Rows of so many tokens and characters, known once they are counted."""

    def __init__(self, sizes: Sequence[tuple[int, int]]) -> None:
        self.sizes = sizes
        self.counted: list[int] = []
        self.rows = [
            Row(
                n_needles=2,
                n_chars=chars - 20,
                total_messages=6,
                desired_msg_index=1,
                nonce="0123456789",
                answer_chars=20,
            )
            for _, chars in sizes
        ]

    def index(self, shard: str) -> ShardIndex:
        return ShardIndex(shard=shard, rows=self.rows)

    def count(self, wanted: Mapping[str, Collection[int]]) -> None:
        for number in wanted[SHARD]:
            self.counted.append(number)
            self.rows[number].prompt_tokens = self.sizes[number][0] - 4
            self.rows[number].answer_tokens = 4

    def lengths(self) -> Lengths:
        candidates = [
            Candidate(shard=SHARD, row=at, n_needles=2, n_chars=entry.n_chars, total_messages=6)
            for at, entry in enumerate(self.rows)
        ]
        return Lengths(self, {2: candidates})  # type: ignore[arg-type]


def of_ratio(tokens: int, ratio: float) -> tuple[int, int]:
    return tokens, max(24, round(tokens * ratio))


def everything(_: Bin) -> bool:
    return True


def bins_of(lengths: Lengths) -> list[Bin | None]:
    return [length.bin for length in lengths.of(2)]


@pytest.mark.parametrize("seed", range(8))
def test_every_bin_is_the_one_that_counting_all_rows_gives(seed: int) -> None:
    dice = random.Random(seed)
    spread = dice.choice([0.0, 0.02, 0.1, 0.3])
    sizes = []
    for _ in range(300):
        bin_ = dice.choice(ALL_BINS)
        tokens = dice.randint(max(bin_.low, 40), bin_.high)
        sizes.append(of_ratio(tokens, dice.uniform(4.9 * (1 - spread), 4.9 * (1 + spread))))
    # Those in the middle of the seen ratios and on the edges themselves.
    sizes += [of_ratio(edge + d, 4.9) for bin_ in BINS for edge in [bin_.low] for d in (-1, 0, 1)]
    shards = FakeShards(sizes)
    lengths = shards.lengths()

    while lengths.settle(everything):
        pass

    assert bins_of(lengths) == [bin_of(tokens) for tokens, _ in sizes]


def test_only_some_rows_and_those_near_an_edge_are_counted() -> None:
    # 200 rows, the first of them right in the middle of a bin, the others close below its edge.
    sizes = [of_ratio(48_000 + n, 5.0) for n in range(150)]
    sizes += [of_ratio(64_000 + n, 5.0) for n in range(50)]
    shards = FakeShards(sizes)
    lengths = shards.lengths()

    lengths.settle(everything)

    far = [number for number in shards.counted if number < 150]
    assert len(far) <= FIRST_COUNTED
    assert {number for number in shards.counted if number >= 150} == set(range(150, 200))
    assert Counter(shards.counted).most_common(1)[0][1] == 1
    assert sum(not length.exact for length in lengths.of(2)) == 150 - len(far)


def test_a_row_is_counted_where_the_margin_around_its_estimate_holds_an_edge() -> None:
    # Of fewer characters a token than the dataset's rows, so that their own numbers matter.
    sizes = [of_ratio(40_000, 3.6) for _ in range(40)]
    edge = 65_536 * (1 - MARGIN)
    sizes += [of_ratio(int(edge) - 100, 3.6), of_ratio(int(edge) + 100, 3.6)]
    shards = FakeShards(sizes)

    shards.lengths().settle(everything)

    assert 40 not in shards.counted
    assert 41 in shards.counted


def test_rows_of_bins_that_do_not_matter_are_not_counted() -> None:
    sizes = [of_ratio(tokens, 5.0) for tokens in range(3_900, 4_300, 10)]
    sizes += [of_ratio(tokens, 5.0) for tokens in range(65_000, 66_000, 20)]
    shards = FakeShards(sizes)
    lengths = shards.lengths()

    lengths.settle(lambda bin_: bin_.high <= 8_192)

    long = [number for number in shards.counted if sizes[number][0] > 60_000]
    assert len(long) <= FIRST_COUNTED
    short = [length for length in lengths.of(2) if length.row.chars < 30_000]
    assert all(length.exact for length in short)


def test_a_row_outside_the_range_seen_widens_it() -> None:
    # All of 5 characters a token, but for one that nobody has looked at; the row in question would
    # lie on the other side of the edge if it were like that one.
    sizes = [of_ratio(40_000 + n, 5.0) for n in range(80)]
    near = len(sizes)
    sizes.append(of_ratio(48_000, 5.0))
    odd = len(sizes)
    sizes.append((58_882, 200_200))
    shards = FakeShards(sizes)
    lengths = shards.lengths()
    lengths.settle(everything)
    assert not {near, odd} & set(shards.counted)
    shards.count({SHARD: [odd]})

    assert lengths.settle(everything)

    assert near in shards.counted
    assert not lengths.settle(everything)


def test_what_is_known_already_is_not_counted_again() -> None:
    sizes = [of_ratio(60_000 + 200 * n, 5.0) for n in range(60)]
    shards = FakeShards(sizes)
    lengths = shards.lengths()

    assert lengths.settle(everything)
    before = list(shards.counted)
    assert not lengths.settle(everything)
    assert not shards.lengths().settle(everything)

    assert shards.counted == before


def test_lengths_that_were_not_counted_are_estimated_and_said_to_be() -> None:
    sizes = [of_ratio(40_000 + 50 * n, 5.0 + n / 400) for n in range(80)]
    shards = FakeShards(sizes)
    lengths = shards.lengths()
    lengths.settle(everything)

    found = lengths.of(2)

    assert {length.exact for length in found} == {True, False}
    for length, (tokens, _) in zip(found, sizes, strict=True):
        assert length.tokens == pytest.approx(tokens, rel=0 if length.exact else MARGIN)
        assert length.prompt_tokens < length.tokens
    assert [length.candidate.row for length in found] == list(range(80))


def test_the_first_rows_counted_run_from_short_to_long() -> None:
    sizes = [of_ratio(40_000 + 50 * n, 5.0) for n in range(80)]
    random.Random(0).shuffle(sizes)
    shards = FakeShards(sizes)

    shards.lengths().settle(everything)

    counted = sorted(sizes[number][0] for number in shards.counted)
    assert len(counted) == FIRST_COUNTED
    assert counted[0] == 40_000
    assert counted[-1] >= 40_000 + 50 * 60


@pytest.mark.parametrize("amount", [0, 1, 3])
def test_few_rows_are_all_counted(amount: int) -> None:
    shards = FakeShards([of_ratio(5_000, 5.0)] * amount)
    lengths = shards.lengths()

    lengths.settle(everything)

    assert sorted(shards.counted) == list(range(amount))
    assert bins_of(lengths) == [BINS[0]] * amount


def test_a_file_of_rows_without_any_text_ends_the_counting() -> None:
    shards = FakeShards([(4, 30_000)] * 12)
    lengths = shards.lengths()

    for _ in range(10):
        if not lengths.settle(everything):
            break
    else:
        pytest.fail("counts for ever")

    assert len(shards.counted) <= 24


def test_rows_of_a_real_file_are_counted_by_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(5)
    sizes = [4_095, 4_096, 8_192, 8_193] + [dice.randint(500, 12_000) for _ in range(60)]
    folder = write_rows(
        tmp_path, [row(2, i, size, word=WORDS[i % 3]) for i, size in enumerate(sizes)]
    )
    shards = Shards(str(folder), "main")
    candidates = [c for shard in shards_of(2, (0, 1)) for c in shards.candidates(shard)]
    counted: list[tuple[str, int]] = []
    count = shards.count

    def counting(wanted: Mapping[str, Collection[int]]) -> None:
        counted.extend((shard, number) for shard, rows in wanted.items() for number in rows)
        count(wanted)

    monkeypatch.setattr(shards, "count", counting)
    lengths = Lengths(shards, {2: candidates})

    while lengths.settle(everything):
        pass

    def size_of(length: Length) -> int:
        at = 2 * length.candidate.row + int(length.candidate.shard.endswith("_1.parquet"))
        return sizes[at]

    assert [x.bin for x in lengths.of(2)] == [bin_of(size_of(x)) for x in lengths.of(2)]
    assert all(x.tokens == size_of(x) for x in lengths.of(2) if x.exact)
    assert len(counted) == len(set(counted)) < len(sizes)
