"""A run that stops early says what the whole run would have said."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mrcr_action.config import RunConfig
from mrcr_action.gate import judge
from mrcr_action.grade import Grade
from mrcr_action.intervals import Interval
from mrcr_action.plan import Ask, Plan
from mrcr_action.result import Record
from mrcr_action.rounds import with_rounds
from mrcr_action.stats import buckets_of
from mrcr_action.stopping import Stopping, all_with_reach, stopped_early

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.result import Bucket, Verdict

LOST = "failed"


def plan_of(needles: Sequence[int], config: RunConfig, *, wanted: int = 0) -> Plan:
    """A plan of one sample for each number; ``wanted`` is by how many it falls short."""
    asks = tuple(
        Ask(index=i, shard=f"{n}", row=i, sha256="0", n_needles=n, prompt_tokens=9, o200k_tokens=9)
        for i, n in enumerate(needles)
    )
    quotas = {n: needles.count(n) + wanted for n in dict.fromkeys(needles)}
    plan = Plan(asks=asks, max_prompt_tokens=99, quotas=quotas, counted_by="server")
    return with_rounds(plan, config)


def record_of(ask: Ask, value: float | str, *, truncated: bool = False) -> Record:
    """What became of an ask: its ratio (0 misses the nonce, 1 is exact), or that it was lost."""
    lost = isinstance(value, str)
    grade = (
        None
        if isinstance(value, str)
        else Grade(
            nonce_hit=value > 0,
            exact=value == 1,
            match_ratio_openai=value,
            match_ratio_vllm=value,
        )
    )
    return Record(
        ask=ask.index,
        pass_name=ask.pass_name,
        shard=ask.shard,
        row=ask.row,
        sha256=ask.sha256,
        n_needles=ask.n_needles,
        o200k_tokens=ask.o200k_tokens,
        outcome="failed" if lost else "truncated" if truncated else "scored",
        grade=grade,
    )


def buckets(
    records: Sequence[Record], plan: Plan, config: RunConfig, *, stopped: bool
) -> tuple[Bucket, ...]:
    in_order = sorted(records, key=lambda record: record.ask)
    found = buckets_of(
        in_order,
        plan.quotas,
        protocol=config.protocol,
        plan=plan,
        bounded={bound.bucket for bound in config.bounds},
        stopped=stopped,
    )
    return all_with_reach(found, in_order, config) if stopped else found


def verdict_on(
    records: Sequence[Record], plan: Plan, config: RunConfig, *, stopped: bool = False
) -> Verdict:
    return judge(buckets(records, plan, config, stopped=stopped), config)


def asked_until_over(records: Sequence[Record], plan: Plan, config: RunConfig) -> int:
    """How many of these records it takes, in their order, until the verdict is certain."""
    stopping = Stopping(config, plan)
    for count, record in enumerate(records, 1):
        if stopping.add(record):
            return count
    return len(records)


def config_of(stop_when: str, thresholds: Any, **keys: Any) -> RunConfig:
    values = {"stop_when": stop_when, "thresholds": thresholds, "needles": (2, 4), **keys}
    return RunConfig(protocol="openai", **values)


ratios = st.sampled_from([0.0, 1.0, 1.0, 0.5]) | st.floats(0, 1)
outcomes = st.lists(ratios | st.sampled_from([LOST]), min_size=2, max_size=24)
levels = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0])
metrics = st.dictionaries(
    st.sampled_from(["match_ratio", "nonce_rate", "exact_rate", "truncation_rate", "failure_rate"]),
    levels,
    min_size=1,
)
thresholds = st.dictionaries(st.sampled_from(["all", "n2", "n4"]), metrics, min_size=1)


configs = st.builds(
    config_of,
    st.sampled_from(["failed", "decided"]),
    thresholds,
    tolerance=st.sampled_from([0.0, 0.05, 0.3]),
    max_failures=st.integers(0, 3),
    min_samples=st.none() | st.integers(1, 3),
    passes=st.sampled_from([("cold",), ("cold", "warm")]),
)


@settings(max_examples=400)
@given(
    config=configs,
    values=outcomes,
    shortage=st.integers(0, 2),
    draw=st.randoms(use_true_random=False),
    late=st.integers(0, 5),
)
def test_a_run_that_stops_early_concludes_what_the_whole_run_would_have(
    config: RunConfig,
    values: list[float | str],
    shortage: int,
    draw: random.Random,
    late: int,
) -> None:
    plan = plan_of([draw.choice([2, 4]) for _ in values], config, wanted=shortage)
    records = [
        record_of(ask, values[ask.row], truncated=draw.random() < 0.3)
        if ask.pass_name == "cold"
        else record_of(ask, draw.choice(values))
        for ask in plan.asks
    ]
    draw.shuffle(records)

    count = asked_until_over(records, plan, config)
    assume(count < len(records))
    # Answers that had arrived when it was certain are graded all the same.
    arrived = [record for record in records[count:] if record.grade is not None][:late]
    known = records[:count] + arrived
    early = verdict_on(known, plan, config, stopped=True)
    whole = verdict_on(records, plan, config)

    lost_later = any(record.grade is None for record in records[count:])
    if not lost_later:
        assert early.conclusion == whole.conclusion
    else:
        # Those lost later can leave a bucket without a verdict, beyond the budget; no more.
        assert whole.conclusion in {early.conclusion, "inconclusive"}
    if config.stop_when == "failed" or len(config.passes) > 1:
        assert early.conclusion == "fail"


@settings(max_examples=60)
@given(
    values=st.lists(st.sampled_from([0.0, 0.2, 0.9, 1.0, LOST]), min_size=6, max_size=30),
    threshold=st.sampled_from([0.3, 0.6, 0.9]),
    max_failures=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
@example(values=[0.0] * 30, threshold=0.6, max_failures=0, seed=0)
@example(values=[1.0] * 30, threshold=0.3, max_failures=2, seed=0)
def test_so_does_one_whose_whole_interval_decides(
    values: list[float | str], threshold: float, max_failures: int, seed: int
) -> None:
    config = config_of(
        "decided",
        threshold,
        decision="confident",
        max_failures=max_failures,
        needles=(2,),
    )
    plan = plan_of([2] * len(values), config)
    records = [record_of(ask, values[ask.row]) for ask in plan.asks]
    random.Random(seed).shuffle(records)

    count = asked_until_over(records, plan, config)
    assume(count < len(records))
    early = verdict_on(records[:count], plan, config, stopped=True)
    whole = verdict_on(records, plan, config)

    if sum(record.grade is None for record in records) <= max_failures:
        assert early.conclusion == whole.conclusion
    else:
        assert whole.conclusion == "inconclusive"


def made(values: Sequence[float | str], config: RunConfig, n: int) -> list[Record]:
    """Records of the first samples of a plan of ``n``."""
    asks = plan_of([2] * n, config).asks
    return [record_of(ask, value) for ask, value in zip(asks, values, strict=False)]


@pytest.mark.parametrize(
    ("stop_when", "value", "expected"),
    [
        ("never", 0.0, 40),
        ("failed", 0.0, 11),  # 29 of 40 others are 0.725, below 0.75
        ("decided", 0.0, 11),
        ("never", 1.0, 40),
        ("failed", 1.0, 40),
        ("decided", 1.0, 31),  # 30 of 40 are 0.75 to the last bit, which is left to the answers
    ],
)
def test_as_many_are_asked_as_it_takes_to_be_certain(
    stop_when: str, value: float, expected: int
) -> None:
    config = config_of(stop_when, 0.8, needles=(2,))
    plan = plan_of([2] * 40, config)
    assert asked_until_over(made([value] * 40, config, 40), plan, config) == expected


@pytest.mark.parametrize(
    "keys", [{"baseline": "before"}, {"min_logit_margin": 5.0}, {"passes": ("cold", "warm")}]
)
def test_what_is_compared_in_the_end_is_waited_for_before_a_run_passes(
    keys: dict[str, Any],
) -> None:
    config = config_of("decided", 0.8, needles=(2,), **keys)
    plan = plan_of([2] * 20, config)
    records = [record_of(ask, 1.0) for ask in plan.asks]
    assert asked_until_over(records, plan, config) == len(plan.asks)

    broken = [record_of(ask, 0.0) for ask in plan.asks]
    assert asked_until_over(broken, plan, config) < len(plan.asks)


def test_a_later_round_that_can_no_longer_pass_ends_the_run() -> None:
    config = config_of("failed", 0.8, needles=(2,), passes=("cold", "warm"))
    plan = plan_of([2] * 10, config)
    records = [record_of(ask, float(ask.pass_name == "cold")) for ask in plan.asks]

    assert asked_until_over(records, plan, config) == 6
    verdict = verdict_on(records[:6], plan, config, stopped=True)
    assert verdict.state_of("all@warm") == "fail"
    assert verdict.state_of("all") == "inconclusive"


def test_without_a_threshold_there_is_nothing_to_be_certain_of() -> None:
    config = RunConfig(stop_when="decided", needles=(2,))
    plan = plan_of([2] * 9, config)
    assert asked_until_over(made([0.0] * 9, config, 9), plan, config) == 9


def test_a_bucket_that_lost_too_many_is_not_failed_and_the_others_go_on() -> None:
    config = config_of("failed", {"n2": 0.8, "n4": 0.8})
    plan = plan_of([2] * 10 + [4] * 10, config)
    values: list[float | str] = [LOST, *[0.0] * 9, *[0.0] * 10]
    records = [record_of(ask, values[ask.row]) for ask in plan.asks]

    count = asked_until_over(records, plan, config)
    assert count == 13  # all of n2, and three of n4
    verdict = verdict_on(records[:count], plan, config, stopped=True)
    assert (verdict.state_of("n2"), verdict.state_of("n4")) == ("inconclusive", "fail")
    assert verdict.of("n2")[0].message.startswith("match_ratio_n2: 1 of 10 requests were lost")


def test_nothing_is_left_to_ask_for_when_no_bucket_can_be_judged_any_more() -> None:
    config = config_of("decided", 0.8, needles=(2,))
    plan = plan_of([2] * 10, config)
    records = made([LOST], config, 10)

    assert asked_until_over(records, plan, config) == 1
    verdict = verdict_on(records, plan, config, stopped=True)
    assert verdict.conclusion == "inconclusive"
    assert stopped_early(verdict, asked=1, planned=10).sentence == (
        "Stopped after 1 of 10 requests: no further answer can change the verdict"
    )


@pytest.mark.parametrize(
    ("thresholds", "values", "message"),
    [
        (
            0.8,
            [0.0] * 6 + [1.0],
            "match_ratio: at most 0.4000 if all 3 others were exact: < 0.8000 - 0.0500",
        ),
        (
            0.8,
            [0.0] * 9,
            "match_ratio: at most 0.1000 if the other one were exact: < 0.8000 - 0.0500",
        ),
        (
            0.4,
            [1.0] * 6,
            "match_ratio: at least 0.6000 if all 4 others scored 0: >= 0.4000 - 0.0500",
        ),
        (
            {"all": {"nonce_rate": 0.9}},
            [0.0, 0.0],
            "nonce_rate: at most 0.8000 if all 8 others started with the nonce: < 0.9000",
        ),
        (
            {"all": {"exact_rate": 0.3}},
            [1.0] * 3,
            "exact_rate: at least 0.3000 if none of the 7 others were exact: >= 0.3000",
        ),
        (
            {"all": {"failure_rate": 0.1}},
            [LOST, LOST],
            "failure_rate: at least 0.2000 if none of the 8 others were lost: > 0.1000",
        ),
        (
            {"all": {"failure_rate": 0.9}},
            [1.0],
            "failure_rate: at most 0.9000 if all 9 others were lost: <= 0.9000",
        ),
        (
            {"all": {"nonce_rate": 0.5}},
            [0.0, 1.0],
            "nonce_rate: not decided: 8 of 10 samples were not asked",
        ),
    ],
)
def test_a_check_says_what_the_others_would_have_to_be(
    thresholds: Any, values: list[float | str], message: str
) -> None:
    config = config_of("decided", thresholds, needles=(2,), max_failures=2)
    plan = plan_of([2] * 10, config)
    verdict = verdict_on(made(values, config, 10), plan, config, stopped=True)
    assert message in [check.message for check in verdict.checks]


def test_an_interval_is_certain_later_than_a_mean() -> None:
    keys: dict[str, Any] = {"needles": (2,), "tolerance": 0}
    mean = config_of("decided", 0.5, **keys)
    interval = config_of("decided", 0.5, decision="confident", **keys)
    values = [float(i % 10 == 0) for i in range(40)]

    counts = [
        asked_until_over(made(values, config, 40), plan_of([2] * 40, config), config)
        for config in (mean, interval)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < 40
    plan = plan_of([2] * 40, interval)
    verdict = verdict_on(made(values[: counts[1]], interval, 40), plan, interval, stopped=True)
    assert verdict.conclusion == "fail"
    assert verdict.checks[0].message.startswith("match_ratio: its 95 % interval ends at 0.4")


def test_the_intervals_of_many_samples_are_looked_at_now_and_then() -> None:
    config = config_of("failed", 0.8, decision="confident", needles=(2,))
    plan = plan_of([2] * 150, config)
    count = asked_until_over(made([0.0] * 150, config, 150), plan, config)
    assert count < 150
    assert count % 3 == 0


def test_a_bucket_counts_what_was_not_asked_as_skipped_and_not_as_lost() -> None:
    config = config_of("failed", 0.8, needles=(2,))
    plan = plan_of([2] * 10, config)
    (overall, n2) = buckets(made([0.0] * 4, config, 10), plan, config, stopped=True)
    assert (overall.skipped, overall.asked, overall.lost, overall.planned) == (6, 4, 0, 10)
    assert n2.skipped == 6
    assert overall.interval_reach is None


def test_the_ends_that_an_interval_can_have_are_told_where_they_decide() -> None:
    config = config_of("failed", 0.9, needles=(2,), decision="confident")
    plan = plan_of([2] * 20, config)
    (overall, n2) = buckets(made([0.0] * 19, config, 20), plan, config, stopped=True)
    assert isinstance(overall.interval_reach, Interval)
    assert overall.interval_reach.low == 0
    assert 0 < overall.interval_reach.high < 0.85
    assert n2.interval_reach is None  # no threshold speaks of it


def test_a_stop_says_after_how_many_requests_and_why() -> None:
    config = config_of("failed", {"all": 0.8, "n2": {"nonce_rate": 0.9}}, needles=(2,))
    plan = plan_of([2] * 40, config)
    verdict = verdict_on(made([0.0] * 11, config, 40), plan, config, stopped=True)
    stopped = stopped_early(verdict, asked=11, planned=40)
    assert stopped.skipped == 29
    assert stopped.sentence == (
        "Stopped after 11 of 40 requests: match_ratio: at most 0.7250 if all 29 others were exact:"
        " < 0.8000 - 0.0500; and 1 more"
    )
