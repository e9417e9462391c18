from collections.abc import Callable
from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.config.effort import EFFORTS
from mrcr_action.config.resolve import resolve
from mrcr_action.errors import ConfigError
from mrcr_action.plan import Plan
from mrcr_action.report.progress import plan_line
from mrcr_action.rounds import Round, rounds_of, with_rounds


def names(**keys: Any) -> list[str]:
    return [round_.name for round_ in rounds_of(RunConfig(**keys))]


def plan_of(make_record: Callable[..., Any], make_plan: Callable[..., Plan], **keys: Any) -> Plan:
    config = RunConfig(needles=(2,), num_samples=3, **keys)
    return with_rounds(make_plan([make_record(i) for i in range(3)], config), config)


def test_without_a_further_word_there_is_one_round_as_in_vllms_own_script() -> None:
    assert rounds_of(RunConfig(concurrency=5)) == (Round(concurrency=5),)


def test_what_the_first_round_does_not_share_is_in_the_name_of_a_round() -> None:
    assert names(passes=("cold", "warm"), repeats=2, concurrency=(8, 1)) == [
        *("cold", "warm", "cold #2", "warm #2"),
        *("cold c1", "warm c1", "cold c1 #2", "warm c1 #2"),
    ]


def test_a_warm_request_follows_its_cold_one_at_once(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    plan = plan_of(make_record, make_plan, passes=("cold", "warm"), repeats=2)
    told = [(a.index, a.row, a.pass_name, a.follows) for a in plan.asks]
    assert told[:4] == [
        (0, 102, "cold", None),
        (1, 102, "warm", 0),
        (2, 100, "cold", None),
        (3, 100, "warm", 2),
    ]
    # A repetition begins when the one before is over.
    assert [plan.round_of(a).stage for a in plan.asks] == [0] * 6 + [1] * 6
    assert {ask.pass_name for ask in plan.asks[6:]} == {"cold #2", "warm #2"}


def test_long_and_short_samples_take_turns_where_there_are_several_rounds(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    config = RunConfig(needles=(2,), num_samples=5, concurrency=(8, 1))
    plain = make_plan([make_record(i) for i in range(5)], config)
    plan = with_rounds(plain, config)
    assert [ask.row for ask in plan.asks] == [104, 100, 103, 101, 102] * 2
    once = RunConfig(needles=(2,), num_samples=5)
    assert with_rounds(plain, once).asks == plain.asks


def test_a_plan_of_several_rounds_counts_its_samples_once(
    make_record: Callable[..., Any], make_plan: Callable[..., Plan]
) -> None:
    plan = plan_of(make_record, make_plan, passes=("cold", "warm"))
    assert len(plan.asks) == 6
    assert len(plan.samples) == plan.planned(2) == 3
    line = "3 samples (3 with 2 needles), 8,000 to 8,002 prompt tokens"
    assert plan_line(plan) == f"{line}; 6 requests: cold 3, warm 3"


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_effort_sets_what_nobody_gave_and_nothing_else(effort: str) -> None:
    read = resolve(None, {}, {"plan": effort, "protocol": "openai", "boundaries": "7"})
    assert read.given == {"plan", "protocol", "boundaries"}
    assert read.config.boundaries == 7
    assert read.config.passes == ("cold", "warm")


def test_the_standard_effort_asks_at_most_60_times() -> None:
    config = resolve(None, {}, {"plan": "standard", "protocol": "openai"}).config
    pool = 2 * 6
    assert config.num_samples is not None
    assert config.num_samples * 2 + config.boundaries * 4 + config.sweep + pool <= 60


@pytest.mark.parametrize("key", ["num_samples", "samples_per_cell"])
def test_a_number_of_samples_that_was_given_is_the_only_one(key: str) -> None:
    for effort in EFFORTS:
        flags = {"plan": effort, "protocol": "openai", key: "9"}
        config = resolve(None, {}, flags).config
        assert [config.num_samples, config.samples_per_cell].count(None) == 1
        assert getattr(config, key) == 9


def test_an_effort_leaves_cells_to_the_protocol_that_knows_them() -> None:
    assert resolve(None, {}, {"plan": "deep"}).config.samples_per_cell is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"passes": "warm"}, "--passes: ['warm']: expected [cold] or [cold, warm]"),
        ({"passes": "cold,cold"}, "--passes: ['cold', 'cold']: expected [cold] or [cold, warm]"),
        ({"concurrency": "8,1,8"}, "--concurrency: [8, 1, 8]: a number is listed twice"),
        ({"max_instability": "0"}, "--max-instability: 0: every sample is asked once only"),
    ],
)
def test_rounds_that_contradict_themselves_are_errors(flags: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(None, {}, flags)
    assert str(caught.value).startswith(message)


def test_one_concurrency_may_be_written_as_a_number_or_a_list() -> None:
    for text, concurrencies in {"4": (4,), "[4]": (4,), "8 1": (8, 1), "8,1": (8, 1)}.items():
        config = resolve(None, {}, {"concurrency": text}).config
        assert config.concurrencies == concurrencies
