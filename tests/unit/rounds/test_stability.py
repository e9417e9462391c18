"""Rounds compared with the first one: made answers, of which every figure is known."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.cutting import CUT
from mrcr_action.gate import judge
from mrcr_action.plan import Plan
from mrcr_action.result import Bucket, CacheInfo, Check, Record
from mrcr_action.rounds import Round, with_rounds
from mrcr_action.rounds.stability import (
    not_cold,
    round_changes,
    stability_checks,
    unknown_cache,
    unsure_falls,
)
from mrcr_action.stats import buckets_of

Make = Callable[..., Any]

CONFIG = RunConfig(needles=(2,), num_samples=12, passes=("cold", "warm"))


@pytest.fixture
def plan(make_record: Make, make_plan: Make) -> Plan:
    return with_rounds(make_plan([make_record(i) for i in range(12)], CONFIG), CONFIG)


@pytest.fixture
def answers(plan: Plan, make_record: Make) -> Callable[..., list[Record]]:
    """Records of a plan, given what a sample scores in each round, and what is cached."""

    def made(ratio: Callable[[str, int], float | None], cached: int | None = 7_936) -> list[Record]:
        records = []
        for ask in plan.asks:
            score = ratio(ask.pass_name, ask.row - 100)
            is_warm = ask.pass_name == "warm"
            records.append(
                make_record(
                    ask.index,
                    score,
                    row=ask.row,
                    pass_name=ask.pass_name,
                    cached_tokens=cached if is_warm else None,
                    digest=None if score is None else f"{ask.row}:{score}",
                )
            )
        return records

    return made


def checks(
    plan: Plan,
    records: Sequence[Record],
    config: RunConfig = CONFIG,
    cache: CacheInfo | None = None,
) -> list[Check]:
    return stability_checks(round_changes(plan, records, config, cache), config)


def test_a_healthy_server_says_the_same_twice(plan: Plan, answers: Make) -> None:
    (check,) = checks(plan, answers(lambda _round, at: at / 12))
    assert check.state == "measured"
    assert check.message == "warm: 0 of 12 answers differ from the first pass"
    assert (check.measured, check.samples, check.round) == (0.0, 12, "warm")


def test_a_fall_of_all_samples_from_the_cache_fails_without_any_threshold(
    plan: Plan, answers: Make
) -> None:
    (check,) = checks(plan, answers(lambda name, _: 0.5 if name == "warm" else 0.9))
    assert check.state == "fail"
    # All 12 fell: of the 4,096 ways to give them signs, this is the lowest.
    assert check.message == (
        "warm: the mean fell by 0.4000 against the first pass (12 of 12 samples changed, p 0.00024)"
    )


def test_nine_samples_that_fell_are_not_yet_sure_enough(plan: Plan, answers: Make) -> None:
    # 1 in 512 is more than 1 in 1,000.
    (check,) = checks(plan, answers(lambda name, at: 0.5 if name == "warm" and at < 9 else 0.9))
    assert check.state == "measured"
    assert check.message == "warm: 9 of 12 answers differ from the first pass"


@pytest.mark.parametrize(
    ("fallen", "most", "is_noted"),
    [(5, None, True), (2, None, False), (12, None, False), (5, 0.5, True), (5, 0.1, False)],
)
def test_a_deep_fall_of_few_samples_is_noted_where_it_fails_nothing(
    plan: Plan, answers: Make, fallen: int, most: float | None, *, is_noted: bool
) -> None:
    # Two samples are no deep fall of twelve; twelve fail the run, and five do if that is asked for.
    records = answers(lambda name, at: 0.1 if name == "warm" and at < fallen else 0.9)
    config = msgspec.structs.replace(CONFIG, max_instability=most)
    notes = unsure_falls(round_changes(plan, records, config, None), config)
    assert bool(notes) is is_noted
    assert not notes or "warm by 0.3333 (5 of 12 samples)" in notes[0]


@pytest.mark.parametrize(("fell", "state"), [(2, "inconclusive"), (1, "measured")])
def test_two_of_two_samples_that_fell_deeply_leave_no_verdict(
    make_record: Make, make_plan: Make, fell: int, state: str
) -> None:
    config = RunConfig(needles=(2,), num_samples=2, repeats=2)
    plan = with_rounds(make_plan([make_record(i) for i in range(2)], config), config)
    records = [
        make_record(
            a.index,
            0.1 if a.pass_name == "cold #2" and a.row >= 102 - fell else 0.9,
            row=a.row,
            pass_name=a.pass_name,
        )
        for a in plan.asks
    ]
    (check,) = checks(plan, records, config)
    assert check.state == state


def test_a_rise_fails_nothing_unless_answers_must_not_differ(plan: Plan, answers: Make) -> None:
    records = answers(lambda name, _: 0.9 if name == "warm" else 0.5)
    (check,) = checks(plan, records)
    assert check.state == "measured"
    strict = RunConfig(needles=(2,), num_samples=12, passes=("cold", "warm"), max_instability=0.5)
    (check,) = checks(plan, records, strict)
    assert check.state == "fail"
    assert check.message.endswith("12 of 12 answers differ from the first pass, at most 50.0% may")


@pytest.mark.parametrize(("most", "state"), [(0.0, "fail"), (0.25, "pass"), (0.24, "fail")])
def test_the_share_of_answers_that_differ_is_held_to_its_bound(
    plan: Plan, answers: Make, most: float, state: str
) -> None:
    config = RunConfig(needles=(2,), num_samples=12, passes=("cold", "warm"), max_instability=most)
    records = answers(lambda name, at: 0.8 if name == "warm" and at < 3 else 0.9)
    (check,) = checks(plan, records, config)
    assert check.state == state


@pytest.mark.parametrize(
    ("cached", "state"),
    [
        (0, "inconclusive"),
        (128, "inconclusive"),  # of 8,000 and more: how all prompts begin
        (7_936, "measured"),
    ],
)
def test_a_warm_round_that_did_not_come_from_the_cache_tested_nothing(
    plan: Plan, answers: Make, cached: int, state: str
) -> None:
    (check,) = checks(plan, answers(lambda _round, _at: 0.9, cached=cached))
    assert check.state == state
    if state == "inconclusive":
        assert "only 0 of 12 answers came from the prefix cache" in check.message


def test_counters_tell_where_answers_do_not(plan: Plan, answers: Make) -> None:
    records = answers(lambda _round, _at: 0.9, cached=None)
    without = CacheInfo(queried_tokens=200_000.0, hit_tokens=1_000.0)
    (check,) = checks(plan, records, cache=without)
    assert check.state == "inconclusive"
    assert "only 1% of the prompts' tokens were in the prefix cache" in check.message
    nearly_all = CacheInfo(queried_tokens=200_000.0, hit_tokens=98_000.0)
    (check,) = checks(plan, records, cache=nearly_all)
    assert check.state == "measured"


def test_a_few_warm_requests_among_many_cold_ones_are_measured_by_their_own_tokens(
    make_record: Make, make_plan: Make
) -> None:
    # Of the 42,000 tokens that were looked up, these 1,000 are all that can be there.
    plan = make_plan([make_record(i, prompt_tokens=1_000) for i in range(40)], CONFIG)
    rounds = [
        Round(name="block", kind="block", stage=1),
        Round(name="block warm", kind="block warm", stage=1),
    ]
    plan = msgspec.structs.replace(plan, rounds=(*plan.rounds, *rounds))
    records = [
        *(make_record(i, 0.9, prompt_tokens=1_000) for i in range(40)),
        make_record(40, 0.9, row=100, prompt_tokens=1_000, pass_name="block"),
        make_record(41, 0.9, row=100, prompt_tokens=1_000, pass_name="block warm"),
    ]
    hit = CacheInfo(block_size=16, queried_tokens=42_000.0, hit_tokens=992.0)
    assert {check.state for check in checks(plan, records, cache=hit)} == {"measured"}
    missed = CacheInfo(block_size=16, queried_tokens=42_000.0, hit_tokens=16.0)
    states = [check.state for check in checks(plan, records, cache=missed)]
    assert states == ["measured", "inconclusive"]


def test_a_response_that_was_cut_tells_nothing_of_the_cache(plan: Plan, answers: Make) -> None:
    # Its stream was closed before the server could say how much was cached.
    records = [
        msgspec.structs.replace(record, finish_reason=CUT, digest=None, cached_tokens=None)
        if record.row < 109
        else record
        for record in answers(lambda _round, _at: 0.9)
    ]
    found = round_changes(plan, records, CONFIG, None)
    assert (found[0].cached, found[0].cacheable) == (3, 3)
    assert [check.state for check in stability_checks(found, CONFIG)] == ["measured"]


def test_where_all_were_cut_the_counters_tell(plan: Plan, answers: Make) -> None:
    records = [
        msgspec.structs.replace(record, finish_reason=CUT, digest=None, cached_tokens=None)
        if record.pass_name == "warm"
        else msgspec.structs.replace(record, cached_tokens=0)
        for record in answers(lambda _round, _at: 0.9)
    ]
    missed = CacheInfo(queried_tokens=200_000.0, hit_tokens=1_000.0)
    (check,) = checks(plan, records, cache=missed)
    assert check.state == "inconclusive"


def test_where_nobody_can_tell_a_note_says_so(plan: Plan, answers: Make) -> None:
    records = answers(lambda _round, _at: 0.9, cached=None)
    (note,) = unknown_cache(round_changes(plan, records, CONFIG, None))
    assert note.startswith("Whether warm came from the prefix cache could not be checked")
    known = answers(lambda _round, _at: 0.9)
    assert unknown_cache(round_changes(plan, known, CONFIG, None)) == []


def test_a_cold_round_that_came_from_the_cache_is_named(make_record: Make, make_plan: Make) -> None:
    config = RunConfig(needles=(2,), num_samples=4, repeats=2, passes=("cold", "warm"))
    plan = with_rounds(make_plan([make_record(i) for i in range(4)], config), config)

    def records(of_second: int) -> list[Record]:
        cached = {"cold": 16, "cold #2": of_second, "warm": 8_000, "warm #2": 8_000}
        return [
            make_record(
                a.index, row=a.row, pass_name=a.pass_name, cached_tokens=cached[a.pass_name]
            )
            for a in plan.asks
        ]

    (note,) = not_cold(plan, records(8_000))
    assert "Not cold" in note
    assert note.count("answers") == 1
    assert "cold #2 (4 of 4 answers)" in note
    # Most prompts begin alike.
    assert not_cold(plan, records(16)) == []


def test_prompts_shorter_than_two_blocks_need_not_be_cached(plan: Plan, answers: Make) -> None:
    records = answers(lambda _round, _at: 0.9, cached=0)
    (check,) = checks(plan, records, cache=CacheInfo(block_size=8192))
    assert check.state == "measured"


def test_a_lost_answer_is_in_no_pair(plan: Plan, answers: Make) -> None:
    records = answers(lambda name, at: None if name == "warm" and at < 5 else 0.9)
    (check,) = checks(plan, records)
    assert check.samples == 7


def test_chances_are_corrected_for_the_number_of_rounds(make_record: Make, make_plan: Make) -> None:
    # Ten of ten that fell: 1 in 1,024 alone is below 1 in 1,000, and for three rounds it is not.
    config = RunConfig(needles=(2,), num_samples=10, repeats=4)
    plan = with_rounds(make_plan([make_record(i) for i in range(10)], config), config)
    records = [
        make_record(
            a.index, 0.5 if a.pass_name == "cold #2" else 0.9, row=a.row, pass_name=a.pass_name
        )
        for a in plan.asks
    ]
    found = {c.name: c for c in round_changes(plan, records, config, None)}
    assert found["cold #2"].change is not None
    assert found["cold #2"].change.p_lower == 1 / 1024
    assert found["cold #2"].p_corrected == 3 / 1024
    assert {c.state for c in stability_checks(tuple(found.values()), config)} == {"measured"}


def test_every_round_of_the_same_samples_is_held_to_the_thresholds(
    plan: Plan, answers: Make
) -> None:
    config = RunConfig(
        needles=(2,), num_samples=12, passes=("cold", "warm"), thresholds={"n2": 0.9}, tolerance=0.0
    )
    records = answers(lambda name, at: 0.5 if name == "warm" and not at else 0.9)
    buckets = buckets_of(records, {2: 12}, plan=plan, bounded={"n2"})
    assert [bucket.name for bucket in buckets] == ["all", "n2", "all@warm", "n2@warm"]
    verdict = judge(buckets, config)
    assert verdict.conclusion == "fail"
    assert verdict.summary == (
        "MRCR thresholds failed: match_ratio_n2@warm: 0.8667 < 0.9000 - 0.0000"
    )


def test_a_round_of_padded_samples_is_held_to_no_threshold(
    make_bucket: Callable[..., Bucket],
) -> None:
    config = RunConfig(needles=(2,), num_samples=10, thresholds={"all": 0.9})
    padded = make_bucket(None, 0.1, name="all@chunk", round="chunk", base=None)
    assert judge([make_bucket(None), padded], config).conclusion == "pass"


def test_a_request_of_any_round_that_was_lost_leaves_no_verdict(
    make_bucket: Callable[..., Bucket],
) -> None:
    config = RunConfig(needles=(2,), num_samples=10, thresholds={"all": 0.9})
    padded = make_bucket(None, name="all@chunk", round="chunk", asked=11, failed=1)
    assert judge([make_bucket(None), padded], config).conclusion == "inconclusive"
