"""Other questions about one conversation: what is asked, what is right, and where they lie."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.config import RunConfig
from mrcr_action.rounds import with_rounds
from mrcr_action.rounds.stability import round_changes, stability_checks
from mrcr_action.rounds.sweep import asked_for, spread, turns_of, with_sweep
from mrcr_action.sample import Message, Sample
from mrcr_action.standin.reader import Turn, read
from mrcr_action.synthetic import synthetic_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Plan

    Make = Callable[..., Any]

CONFIG = RunConfig(needles=(4,), num_samples=3, sweep=6, max_tokens=2048)


@pytest.fixture(scope="module")
def sample() -> Sample:
    (row,) = synthetic_rows([4], [parse_bin("4K-8K")], 1, 0)
    return Sample.from_row(row, shard="s", index=0)


class FakeShards:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    def load(self, _shard: str, _row: int) -> Sample:
        return self.sample


def test_every_turn_that_is_asked_for_has_the_answer_of_who_parses_the_conversation(
    sample: Sample,
) -> None:
    turns = turns_of(sample)
    assert len(turns) > 6
    assert sample.desired_msg_index not in turns
    for turn in turns:
        other = asked_for(sample, turn)
        assert other.messages[:-1] == sample.messages[:-1]
        assert other.answer == sample.nonce + sample.messages[turn + 1].content
        # The stand-in finds the answer by its own reading of the question.
        told = read(tuple(Turn(m.role, m.content) for m in other.messages))
        assert other.nonce + told.text == other.answer
        assert sum(len(m.content) for m in other.messages) == other.n_chars


def test_turns_are_spread_over_the_whole_conversation(sample: Sample) -> None:
    turns = spread(sample, turns_of(sample), 6)
    assert turns == sorted(set(turns))
    before = [sum(len(m.content) for m in sample.messages[:t]) / sample.n_chars for t in turns]
    gaps = [after - ahead for ahead, after in zip([0.0, *before], [*before, 1.0], strict=True)]
    # With six of them evenly apart, gaps are a sixth; a turn is up to a tenth of this conversation.
    assert max(gaps) < 1 / 6 + 1 / 10


def test_no_more_turns_are_taken_than_there_are(sample: Sample) -> None:
    every = turns_of(sample)
    assert spread(sample, every, 10_000) == every


@pytest.mark.parametrize(
    "text", ["What was the 2nd poem?", "Prepend x to the second (1 indexed) poem about foxes."]
)
def test_a_question_that_is_worded_otherwise_has_no_sweep(sample: Sample, text: str) -> None:
    changed = Sample(
        **{name: getattr(sample, name) for name in Sample.__dataclass_fields__}
        | {"messages": (*sample.messages[:-1], Message("user", text))}
    )
    assert turns_of(changed) == []


def planned(
    make_record: Make,
    make_plan: Make,
    sample: Sample,
    config: RunConfig,
    cannot_read: Callable[[Sample], str | None] | None = None,
) -> Plan:
    records = [make_record(i, n_needles=4, prompt_tokens=1_000 + i) for i in range(3)]
    plan = with_rounds(make_plan(records, config), config)
    shards = cast("Shards", FakeShards(sample))
    return asyncio.run(with_sweep(plan, config, shards, cannot_read=cannot_read))


def test_the_longest_sample_is_asked_about_in_a_round_of_its_own(
    make_record: Make, make_plan: Make, sample: Sample
) -> None:
    plan = planned(make_record, make_plan, sample, CONFIG)
    swept = [ask for ask in plan.asks if ask.pass_name == "sweep"]
    assert [ask.index for ask in swept] == [3, 4, 5, 6, 7, 8]
    assert {ask.row for ask in swept} == {102}
    assert len({ask.turn for ask in swept}) == 6
    assert plan.rounds[-1].stage == 1
    assert len(plan.samples) == 3


def test_turns_that_the_model_cannot_read_are_not_asked_for_and_that_is_said(
    make_record: Make, make_plan: Make, sample: Sample
) -> None:
    def cannot_read(asked: Sample) -> str | None:
        return None if asked.desired_msg_index in readable else "too odd"

    readable = turns_of(sample)[3:6]
    plan = planned(make_record, make_plan, sample, CONFIG, cannot_read)
    assert [ask.turn for ask in plan.asks if ask.pass_name == "sweep"] == readable
    assert plan.notes[-1].startswith("Only 3 of 6 other turns of the longest sample")
    assert plan.notes[-1].endswith(", or the probe cannot read them.")


def test_turns_whose_answers_are_cut_are_not_asked_for_and_that_is_said(
    make_record: Make, make_plan: Make, sample: Sample
) -> None:
    config = RunConfig(needles=(4,), num_samples=3, sweep=6, max_tokens=1)
    plan = planned(make_record, make_plan, sample, config)
    assert len(plan.rounds) == 1
    assert plan.notes[-1].startswith("Only 0 of 6 other turns of the longest sample")


@pytest.mark.parametrize(
    ("most", "first", "wrong", "state"),
    [
        (None, True, 6, "measured"),
        (0.0, True, 0, "pass"),
        (0.0, True, 1, "fail"),
        (0.2, True, 1, "pass"),
        # Nothing is known of a conversation that was not read in the first place.
        (0.0, False, 6, "measured"),
    ],
)
def test_turns_that_are_not_read_exactly_count_as_unstable(
    make_record: Make,
    make_grade: Make,
    make_plan: Make,
    sample: Sample,
    *,
    most: float | None,
    first: bool,
    wrong: int,
    state: str,
) -> None:
    config = RunConfig(needles=(4,), num_samples=3, sweep=6, max_instability=most)
    plan = planned(make_record, make_plan, sample, config)
    records = []
    for ask in plan.asks:
        swept = ask.turn is not None
        exact = ask.index >= 3 + wrong if swept else first
        records.append(
            make_record(
                ask.index,
                row=ask.row,
                pass_name=ask.pass_name,
                grade=make_grade(1.0 if exact else 0.9, exact=exact),
            )
        )
    (check,) = stability_checks(round_changes(plan, records, config, None), config)
    assert check.state == state
