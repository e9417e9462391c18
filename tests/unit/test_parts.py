"""A plan in parts: disjoint, complete, even, the same on every machine; and no verdict on one."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.conftest import build_cell, build_plan, build_record, build_result

from mrcr_action.bins import bin_of
from mrcr_action.config import RunConfig
from mrcr_action.errors import UsageError
from mrcr_action.parts import identity_of, key_of, split, unjudged
from mrcr_action.rounds import with_rounds
from mrcr_action.stats import buckets_of, coverage_of

if TYPE_CHECKING:
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record

CONFIG = RunConfig(protocol="openai", samples_per_cell=5, passes=("cold", "warm"))
LENGTHS = {"8K-16K": 9_000, "16K-32K": 20_000}


def plan_of(sizes: dict[tuple[int, str], int], **changes: Any) -> Plan:
    """A plan of so many samples of each cell, cold and warm."""
    records: list[Record] = []
    for (n_needles, bin_), size in sizes.items():
        records += [
            build_record(len(records) + i, n_needles=n_needles, o200k_tokens=LENGTHS[bin_])
            for i in range(size)
        ]
    cells = tuple(build_cell(n, bin_, planned=size) for (n, bin_), size in sizes.items())
    needles = Counter(record.n_needles for record in records)
    plan = build_plan(records, CONFIG, cells=cells, quotas=dict(needles), **changes)
    return with_rounds(plan, CONFIG)


def parts_of(plan: Plan, count: int) -> list[Plan]:
    return [split(plan, number, count)[1] for number in range(1, count + 1)]


EVEN = {(2, "8K-16K"): 5, (4, "8K-16K"): 6, (4, "16K-32K"): 4, (8, "16K-32K"): 7}


@given(
    sizes=st.dictionaries(
        st.tuples(st.sampled_from((2, 4, 8)), st.sampled_from(tuple(LENGTHS))),
        st.integers(1, 12),
        min_size=1,
    ),
    count=st.integers(1, 6),
)
def test_the_parts_are_disjoint_and_all_of_the_plan_and_even_in_every_cell(
    sizes: dict[tuple[int, str], int], count: int
) -> None:
    plan = plan_of(sizes)
    count = min(count, len(plan.samples))

    parts = parts_of(plan, count)

    indices = [ask.index for part in parts for ask in part.asks]
    assert sorted(indices) == [ask.index for ask in plan.asks]
    totals = [len(part.samples) for part in parts]
    assert max(totals) - min(totals) <= 1
    for n_needles, bin_ in sizes:
        of_cell = [
            sum(a.n_needles == n_needles and str(bin_of(a.o200k_tokens)) == bin_ for a in p.samples)
            for p in parts
        ]
        assert max(of_cell) - min(of_cell) <= 1


def test_a_sample_stays_in_one_part_in_all_its_rounds_and_keeps_its_place() -> None:
    plan = plan_of(EVEN)

    for part in parts_of(plan, 3):
        rounds = Counter(ask.row for ask in part.asks)
        assert set(rounds.values()) == {2}
        assert all(plan.asks[ask.index] == ask for ask in part.asks)
        assert [round_.name for round_ in part.rounds] == ["cold", "warm"]


def test_the_parts_do_not_depend_on_lengths_in_tokens_nor_on_the_order_of_the_plan() -> None:
    plan = plan_of(EVEN)
    other = random.Random(7)
    asks = [
        msgspec.structs.replace(ask, prompt_tokens=other.randint(1, 9_999), estimated=True)
        for ask in plan.asks
    ]
    other.shuffle(asks)
    moved = msgspec.structs.replace(
        plan, asks=tuple(msgspec.structs.replace(a, index=i) for i, a in enumerate(asks))
    )

    assert identity_of(moved) == identity_of(plan)
    for one, two in zip(parts_of(plan, 3), parts_of(moved, 3), strict=True):
        assert set(map(key_of, one.asks)) == set(map(key_of, two.asks))


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"row": 7}, {"padding": 3}, {"turn": 1}])
def test_another_question_makes_another_plan(change: dict[str, Any]) -> None:
    plan = plan_of(EVEN)
    first, *others = plan.asks
    changed = (msgspec.structs.replace(first, **change), *others)

    assert identity_of(msgspec.structs.replace(plan, asks=changed)) != identity_of(plan)


def test_what_a_part_plans_of_each_cell_is_its_own_and_none_is_missing() -> None:
    cells = (
        build_cell(2, "8K-16K", planned=1, requested=True),
        build_cell(2, "16K-32K", planned=0, requested=True, fitting=0),
    )
    records = [build_record(0), build_record(1, n_needles=4)]
    plan = build_plan(records, CONFIG, cells=cells, quotas={2: 1, 4: 1})

    one, two = parts_of(plan, 2)

    assert [part.quotas for part in (one, two)] == [{2: 1, 4: 0}, {2: 0, 4: 1}]
    # What the other part has is not missing; what no part has is.
    assert [cell.is_missing for cell in coverage_of(two, ())] == [False, True]


def test_more_parts_than_samples_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^shard: 5/6: the plan has 5 samples only$"):
        split(plan_of({(2, "8K-16K"): 5}), 5, 6)


def verdict_of(records: list[Record], config: RunConfig) -> Any:
    plan = build_plan(records, config)
    part, _ = split(plan, 1, 2)
    buckets = buckets_of(records, plan.quotas, plan=plan)
    return unjudged(part, buckets, config)


def test_a_part_far_below_its_thresholds_is_measured_and_not_failed() -> None:
    config = RunConfig(needles=(2,), num_samples=4, thresholds={"all": 1.0, "n2": 1.0})

    verdict = verdict_of([build_record(i, 0.1) for i in range(2)], config)

    assert verdict.conclusion == "measured"
    assert verdict.summary == "Part 1 of 2: measured, judged by mrcr merge"
    assert {check.state for check in verdict.checks} == {"measured"}
    assert {check.threshold for check in verdict.checks} == {None}


def test_fewer_samples_than_the_whole_needs_are_no_lack_in_a_part() -> None:
    config = RunConfig(needles=(2,), num_samples=40, thresholds=0.5, min_samples=40)

    assert verdict_of([build_record(0), build_record(1)], config).conclusion == "measured"


def test_a_part_that_lost_more_than_the_whole_may_is_inconclusive() -> None:
    config = RunConfig(needles=(2,), num_samples=3, max_failures=1)
    lost = [build_record(i, None) for i in range(2)]

    assert verdict_of([build_record(2), *lost[:1]], config).conclusion == "measured"
    verdict = verdict_of([build_record(2), *lost], config)

    assert verdict.conclusion == "inconclusive"
    assert "part 1 of 2: match_ratio: 2 of 3 requests were lost" in verdict.summary


def test_a_share_of_failures_is_judged_of_the_whole_only() -> None:
    config = RunConfig(needles=(2,), num_samples=3, thresholds={"all": {"failure_rate": 0.4}})
    records = [build_record(0), *(build_record(i, None) for i in (1, 2))]

    assert verdict_of(records, config).conclusion == "measured"


def test_the_name_of_a_part_counts_from_one() -> None:
    plan = plan_of(EVEN)
    assert [str(split(plan, n, 3)[0]) for n in (1, 3)] == ["part 1 of 3", "part 3 of 3"]
    assert build_result().part is None
