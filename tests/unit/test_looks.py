"""Several looks at a threshold: which there may be, what each one sees, how often they err."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.conftest import build_cell, build_plan, build_record

from mrcr_action.config import RunConfig
from mrcr_action.config.thresholds import place_of
from mrcr_action.extension import More, extended, more_wanted
from mrcr_action.findings import buckets_in
from mrcr_action.gate import judge
from mrcr_action.intervals import mean_interval
from mrcr_action.looks import confidence, counted, level_of, schedule_of, taken
from mrcr_action.plan import Look, Plan
from mrcr_action.rounds import with_rounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.result import Bucket, Record

TOKENS = {"4K-8K": 5_000, "8K-16K": 9_000}


def config_of(thresholds: Any = 0.5, **keys: Any) -> RunConfig:
    values: dict[str, Any] = {
        "protocol": "openai",
        "needles": (2,),
        "decision": "confident",
        "tolerance": 0.0,
        "samples_per_cell": 10,
        "max_samples_per_cell": 40,
        "thresholds": thresholds,
    }
    return RunConfig(**(values | keys))


class Server:
    """Answers with ratios known beforehand, by cell; plan and records are as a run makes them."""

    def __init__(self, config: RunConfig, ratios: Mapping[str, Sequence[float]]) -> None:
        self.config = config
        self.ratios = ratios
        self.records: list[Record] = []
        assert config.per_cell is not None
        self.plan = with_rounds(self.chosen(dict.fromkeys(ratios, config.per_cell)), config)
        self.answer()

    def chosen(self, levels: Mapping[str, int]) -> Plan:
        """A choice of so many rows of each cell."""
        records: list[Record] = []
        ranks, cells = [], []
        for name, ratios in self.ratios.items():
            n_needles, bin_ = int(name[1]), name.partition("/")[2]
            planned = min(levels[name], len(ratios))
            for rank in range(planned):
                ranks.append(rank)
                records.append(
                    build_record(
                        len(records), shard=name, row=rank,
                        n_needles=n_needles, o200k_tokens=TOKENS[bin_],
                    )
                )  # fmt: skip
            sizes = {"rows": len(ratios), "fitting": len(ratios), "planned": planned}
            cells.append(build_cell(n_needles, bin_, level=levels[name], **sizes))
        plan = build_plan(records, self.config, cells=tuple(cells), passed={})
        asks = [
            msgspec.structs.replace(ask, rank=rank)
            for ask, rank in zip(plan.asks, ranks, strict=True)
        ]
        return msgspec.structs.replace(plan, asks=tuple(asks), schedule=schedule_of(self.config))

    def answer(self) -> None:
        """Answer what was not asked before."""
        for ask in self.plan.asks[len(self.records) :]:
            ratio = self.ratios[ask.shard][ask.row]
            changes = {
                name: getattr(ask, name)
                for name in ("pass_name", "shard", "row", "n_needles", "o200k_tokens")
            }
            self.records.append(build_record(ask.index, ratio, **changes))

    @property
    def buckets(self) -> dict[str, Bucket]:
        return {b.name: b for b in buckets_in(self.plan, self.records, self.config)}

    def wanted(self) -> More | None:
        return more_wanted(self.plan, list(self.buckets.values()), self.config)

    def look_again(self) -> bool:
        """Take another look, if the run would; whether it did."""
        more = self.wanted()
        if more is None:
            return False
        chosen = self.chosen(more.levels)
        self.plan, _ = extended(self.plan, chosen, more, self.config)
        self.answer()
        return True

    def run(self) -> str:
        """All looks; what the last one says."""
        while self.look_again():
            pass
        return judge(list(self.buckets.values()), self.config).conclusion


def ones(share: float, n: int) -> list[float]:
    """So many ratios, of which a share is 1, spread evenly, and the others are 0."""
    return [float(int((i + 1) * share) > int(i * share)) for i in range(n)]


@pytest.mark.parametrize(
    ("first", "most", "expected"),
    [
        (10, 100, (10, 15, 23, 35, 53, 80, 100)),
        (1, 10, (1, 3, 5, 8, 10)),
        (10, 11, (10, 11)),
        (10, 15, (10, 15)),
    ],
)
def test_every_look_has_half_as_many_more_samples_and_two_at_least(
    first: int, most: int, expected: tuple[int, ...]
) -> None:
    config = config_of(samples_per_cell=first, max_samples_per_cell=most)
    assert schedule_of(config) == expected


def test_without_the_key_there_is_one_look_at_the_usual_interval() -> None:
    config = config_of(max_samples_per_cell=None)
    assert schedule_of(config) == ()
    server = Server(config, {"n2/4K-8K": ones(0.6, 40)})
    assert server.wanted() is None
    assert server.buckets["all"].interval == mean_interval(ones(0.6, 10))
    assert taken(server.plan) == []


@given(first=st.integers(1, 50), further=st.integers(1, 500))
def test_the_looks_together_miss_no_more_than_one_look_may(first: int, further: int) -> None:
    config = config_of(samples_per_cell=first, max_samples_per_cell=first + further)
    schedule = schedule_of(config)
    assert schedule[-1] == first + further
    assert sorted(set(schedule)) == list(schedule)
    plan = Server(config, {"n2/4K-8K": [1.0]}).plan
    assert len(schedule) * (1 - confidence(plan)) == pytest.approx(0.05)


def test_an_undecided_bucket_gets_more_until_it_is_decided() -> None:
    server = Server(config_of(0.4), {"n2/4K-8K": ones(0.7, 100)})
    assert judge(list(server.buckets.values()), server.config).conclusion == "inconclusive"
    assert server.run() == "pass"
    asked = server.plan.cells[0].planned
    assert 10 < asked < 40
    assert asked in server.plan.schedule
    assert server.plan.looks[-1].level == asked
    assert sum(look.samples for look in server.plan.looks) == asked - 10
    assert server.buckets["all"].graded == asked


def test_a_bucket_decided_at_once_gets_no_more() -> None:
    server = Server(config_of(0.2), {"n2/4K-8K": ones(1.0, 100)})
    assert server.wanted() is None
    assert server.run() == "pass"
    assert server.plan.looks == ()


def test_no_more_is_asked_than_allowed_and_the_run_stays_inconclusive() -> None:
    server = Server(config_of(0.7), {"n2/4K-8K": ones(0.7, 100)})
    assert server.run() == "inconclusive"
    assert server.plan.cells[0].planned == 40


def test_no_more_is_asked_than_there_is() -> None:
    server = Server(config_of(0.7), {"n2/4K-8K": ones(0.7, 17)})
    assert server.run() == "inconclusive"
    assert server.plan.cells[0].planned == 17


def test_once_a_bucket_has_failed_no_other_gets_more() -> None:
    thresholds = {"n2/4K-8K": 0.9, "n2/8K-16K": 0.7}
    server = Server(
        config_of(thresholds), {"n2/4K-8K": ones(0.1, 100), "n2/8K-16K": ones(0.7, 100)}
    )
    assert server.wanted() is None
    assert server.run() == "fail"


def test_lost_requests_that_forbid_a_verdict_end_the_run() -> None:
    server = Server(config_of(0.4), {"n2/4K-8K": ones(0.7, 100)})
    assert server.wanted() is not None
    server.records[3] = msgspec.structs.replace(server.records[3], grade=None, outcome="failed")
    assert server.wanted() is None


def test_only_the_cells_of_undecided_buckets_get_more() -> None:
    server = Server(
        config_of({"n2/8K-16K": 0.4}), {"n2/4K-8K": ones(0.5, 100), "n2/8K-16K": ones(0.7, 100)}
    )
    more = server.wanted()
    assert more is not None
    assert more.buckets == ("n2/8K-16K",)
    assert server.run() == "pass"
    first, second = server.plan.cells
    assert first.planned == 10 < second.planned
    # The mean over both lengths stays one over as many of each.
    assert level_of(server.plan, place_of("all")) == 10
    assert server.buckets["all"].graded == server.buckets["all"].wanted == 20
    assert server.buckets["n2/8K-16K"].graded == second.planned


def test_a_bucket_counts_what_a_run_of_that_size_would() -> None:
    ratios = {"n2/4K-8K": ones(0.45, 100), "n2/8K-16K": ones(0.6, 100)}
    server = Server(config_of({"all": 0.5, "n2/8K-16K": 0.1}), ratios)
    assert server.look_again()
    level = level_of(server.plan, place_of("all"))
    larger = config_of(samples_per_cell=level, max_samples_per_cell=None)
    plain = Server(larger, ratios).buckets
    for name, bucket in server.buckets.items():
        assert bucket.graded == plain[name].graded
        assert bucket.match_ratio_openai == pytest.approx(plain[name].match_ratio_openai)


def test_a_cell_without_more_rows_does_not_hold_the_others_back() -> None:
    ratios = {"n2/4K-8K": ones(0.5, 12), "n2/8K-16K": ones(0.6, 100)}
    server = Server(config_of(0.55), ratios)
    assert server.run() == "inconclusive"
    assert [cell.planned for cell in server.plan.cells] == [12, 40]
    assert server.buckets["all"].graded == 52


def test_asks_that_were_made_keep_their_place_and_new_ones_get_every_round() -> None:
    config = config_of(0.4, passes=("cold", "warm"), concurrency=(8, 1))
    server = Server(config, {"n2/4K-8K": ones(0.7, 100)})
    before = server.plan.asks
    assert server.look_again()
    assert server.plan.asks[: len(before)] == before
    new = server.plan.asks[len(before) :]
    assert [ask.index for ask in new] == list(range(len(before), len(server.plan.asks)))
    added = server.plan.looks[-1].samples
    names = [round_.name for round_ in server.plan.rounds]
    assert names == ["cold", "warm", "cold c1", "warm c1"]
    assert [sum(ask.pass_name == name for ask in new) for name in names] == [added] * 4
    assert all(ask.follows == ask.index - 1 for ask in new if ask.pass_name.startswith("warm"))
    assert {b.graded for b in server.buckets.values()} == {10 + added}


def test_a_further_round_that_is_undecided_gets_more_too() -> None:
    server = Server(config_of(0.5, passes=("cold", "warm")), {"n2/4K-8K": ones(1.0, 100)})
    assert server.wanted() is None
    for at, record in enumerate(server.records):
        if record.pass_name == "warm" and record.row % 3 == 0:
            server.records[at] = build_record(
                record.ask, 0.0, pass_name="warm", shard=record.shard,
                row=record.row, o200k_tokens=record.o200k_tokens,
            )  # fmt: skip
    more = server.wanted()
    assert more is not None
    assert more.buckets == ("all@warm",)


def test_a_look_goes_as_far_as_the_interval_promises_and_two_steps_at_most() -> None:
    near = Server(config_of(0.7, max_samples_per_cell=100), {"n2/4K-8K": ones(0.7, 100)}).wanted()
    clear = Server(config_of(0.3, max_samples_per_cell=100), {"n2/4K-8K": ones(0.7, 100)}).wanted()
    assert near is not None
    assert clear is not None
    assert near.levels == {"n2/4K-8K": 23}
    assert clear.levels == {"n2/4K-8K": 15}


def test_the_looks_are_told_with_what_they_cost() -> None:
    server = Server(config_of(0.4), {"n2/4K-8K": ones(0.7, 100)})
    looks = (
        Look(buckets=("all",), level=15, samples=5),
        Look(buckets=("all",), level=23, samples=8),
    )
    plan = msgspec.structs.replace(server.chosen({"n2/4K-8K": 23}), looks=looks)
    (told,) = taken(plan)
    assert told == (
        "Looks at the thresholds: 3 of at most 5, 13 samples were added to 10 (max_samples_per_cell"
        " is 40). Each interval is at 99.00%, so that all of them together hold 95 times in 100."
    )


def test_all_rows_of_a_bucket_are_counted_up_to_its_level() -> None:
    server = Server(config_of(), {"n2/4K-8K": ones(0.7, 100), "n2/8K-16K": ones(0.7, 100)})
    plan = server.chosen({"n2/4K-8K": 10, "n2/8K-16K": 23})
    assert counted(plan, place_of("n2/8K-16K")) == {("n2/8K-16K", row) for row in range(23)}
    assert counted(plan, place_of("n2")) == {
        (name, row) for name in server.ratios for row in range(10)
    }
    assert counted(plan, place_of("n8")) == frozenset()


RUNS = 100
"""Of each simulation; seeded, so always the same ones. benchmarks/looks.py makes more."""


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.97])
def test_a_server_at_the_edge_is_seldom_called_good_or_bad_however_often_one_looks(
    chance: float,
) -> None:
    random = np.random.default_rng(7)
    verdicts = {"pass": 0, "fail": 0, "inconclusive": 0}
    naive = 0
    for _ in range(RUNS):
        ratios = (random.random(40) < chance).astype(float).tolist()
        config = config_of(chance)
        verdicts[Server(config, {"n2/4K-8K": ratios}).run()] += 1
        naive += _decided_by_plain_looks(ratios, chance, schedule_of(config))
    wrong = verdicts["pass"] + verdicts["fail"]
    assert wrong <= 0.05 * RUNS
    assert verdicts["inconclusive"] == RUNS - wrong
    # What is avoided: the plain interval, looked at as often, is wrong far more than 5 % of times.
    assert naive >= 0.1 * RUNS


def _decided_by_plain_looks(
    ratios: Sequence[float], needed: float, schedule: Sequence[int]
) -> bool:
    for n in schedule:
        interval = mean_interval(ratios[:n])
        assert interval is not None
        if not interval.low < needed <= interval.high:
            return True
    return False


def test_a_server_away_from_the_edge_is_mostly_decided_before_the_last_sample() -> None:
    random = np.random.default_rng(8)
    sizes = []
    for _ in range(50):
        ratios = (random.random(40) < 0.95).astype(float).tolist()
        server = Server(config_of(0.6), {"n2/4K-8K": ratios})
        assert server.run() != "fail"
        sizes.append(server.plan.cells[0].planned)
    assert sum(size < 40 for size in sizes) > 40
