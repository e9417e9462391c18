from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from mrcr_action.diagnosis.causes import ROUNDS, WHAT
from mrcr_action.diagnosis.clues import MOST, clues_of
from mrcr_action.diagnosis.evidence import LOST, Source
from mrcr_action.rounds import Round

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.plan import Plan
    from mrcr_action.result import Record

    Diagnosed = Callable[..., Record]
    PlanWith = Callable[[Sequence[Record], Sequence[Round]], Plan]


def told(records: Sequence[Record], plan: Plan | None = None) -> list[str]:
    return [clue.told for clue in clues_of(records, plan)]


def test_exact_answers_look_like_nothing(diagnosed: Diagnosed) -> None:
    assert clues_of([], None) == ()
    assert clues_of([diagnosed(at) for at in range(20)], None) == ()
    assert clues_of([diagnosed(at, "failed") for at in range(20)], None) == ()


def test_a_window_is_named_by_its_edge(diagnosed: Diagnosed) -> None:
    far = range(5000, 8000, 300)
    near = range(500, 4500, 400)
    records = [diagnosed(at, distance=d) for at, d in enumerate(near)]
    records += [diagnosed(20 + at, "unrelated", d) for at, d in enumerate(far)]
    first, *_ = told(records)

    assert first.startswith(
        "All wrong answers are to questions whose needle begins more than about 5,000 tokens before"
    )
    assert "10 of 10 answers there; the 10 others, up to 4,100, are all exact; p " in first
    assert first.endswith("an attention window, or a beginning that was cut off?")


def test_an_edge_of_the_prompt_s_length_is_told_apart(diagnosed: Diagnosed) -> None:
    records = [
        diagnosed(
            at, "garbled" if tokens > 6000 else "exact", (at * 977) % 1900, prompt_tokens=tokens
        )
        for at, tokens in enumerate(range(2000, 10_000, 400))
    ]
    first, *_ = told(records)

    assert "to prompts of 6,400 tokens and more" in first


def test_no_edge_is_named_where_all_are_wrong(diagnosed: Diagnosed) -> None:
    records = [diagnosed(at, "near copy", at * 300 + 10, edits=3) for at in range(20)]

    (line,) = told(records)
    assert line == (
        "20 of 20 wrong answers of 20 are the wanted text with edits (3 to 3 edits, in 1 of 1"
        " cells): precision (a quantised KV cache or weights)?"
    )


def test_only_warm_requests_that_fail_point_at_the_cache(
    diagnosed: Diagnosed, plan_with: PlanWith
) -> None:
    records = [diagnosed(at, pass_name="cold", row=at) for at in range(8)]
    records += [
        diagnosed(8 + at, "garbled" if at < 6 else "exact", pass_name="warm", row=at)
        for at in range(8)
    ]
    plan = plan_with(records, [Round(), Round(name="warm", kind="warm")])
    found = told(records, plan)

    assert found[0].startswith("Only warm requests are wrong (6 of 8; 0 of 8 of cold ones; p 0.0")
    assert found[0].endswith("the prefix cache?")
    assert found[1] == (
        "6 of 6 wrong answers of 16 are right at first, and unrelated from some character on."
    )


def test_only_requests_in_company_that_fail_point_at_batching(
    diagnosed: Diagnosed, plan_with: PlanWith
) -> None:
    records = [diagnosed(at, "near copy" if at < 7 else "exact", row=at) for at in range(10)]
    records += [diagnosed(10 + at, pass_name="cold c1", row=at) for at in range(10)]
    plan = plan_with(records, [Round(), Round(name="cold c1", concurrency=1, stage=1)])

    assert told(records, plan)[0].startswith("Only requests in company are wrong (7 of 10; 0 of 10")


def test_a_server_that_gets_worse_is_seen_by_the_order(diagnosed: Diagnosed) -> None:
    records = [
        diagnosed(at, "degenerate" if at > 11 else "exact", (at * 7919) % 5000) for at in range(20)
    ]

    assert told(records)[0].startswith(
        "Answers with 2 needles are exact up to request 12, and 8 of 8 are wrong from 13 on"
    )


def test_one_length_of_all_is_named(diagnosed: Diagnosed) -> None:
    records = [diagnosed(at, "stopped early", at * 10 + 5, completion_tokens=32) for at in range(4)]
    uneven = [
        diagnosed(at, "stopped early", at * 10 + 5, completion_tokens=32 + at * 20)
        for at in range(4)
    ]

    assert "too early (all at 32 tokens): a limit of the server" in told(records)[-1]
    assert "all at" not in told(uneven)[-1]


@pytest.mark.parametrize(
    ("shift", "words"), [(1, "the next one"), (-1, "the one before"), (3, "the one 3 places later")]
)
def test_a_rule_behind_wrong_needles_is_told(diagnosed: Diagnosed, shift: int, words: str) -> None:
    records = [
        diagnosed(
            at,
            "wrong needle",
            at * 10 + 5,
            ordinal=2,
            source=Source(turn=3, ordinal=2 + shift, ratio=1.0),
        )
        for at in range(4)
    ]

    assert f" (4 times {words}): " in told(records)[-1]


def test_a_few_wrong_answers_are_left_alone(diagnosed: Diagnosed) -> None:
    records = [diagnosed(at, "garbled" if at in {3, 11} else "exact", at * 300) for at in range(20)]

    assert told(records) == []


def test_repeated_samples_count_once(diagnosed: Diagnosed, plan_with: PlanWith) -> None:
    rounds = [Round(), *(Round(name=f"cold #{n}", stage=n, repeat=n) for n in range(2, 8))]
    records: list[Record] = []
    for round_ in rounds:
        for row, distance in enumerate([500, 1000, 5000]):
            form = "unrelated" if distance > 4000 else "exact"
            records.append(diagnosed(len(records), form, distance, pass_name=round_.name, row=row))

    assert not any(
        "tokens before the end" in line for line in told(records, plan_with(records, rounds))
    )


def test_there_are_at_most_three_lines(diagnosed: Diagnosed, plan_with: PlanWith) -> None:
    def made(at: int, **changes: Any) -> Record:
        tokens = 1000 + 100 * (at % 40)
        bad = at % 40 >= 20 and at >= 40
        form = "garbled" if bad else "exact"
        return diagnosed(at, form, tokens - 1, prompt_tokens=tokens, row=at % 40, **changes)

    records = [made(at) for at in range(40)]
    records += [made(40 + at, pass_name="warm") for at in range(40)]
    found = told(records, plan_with(records, [Round(), Round(name="warm", kind="warm")]))

    assert len(found) == MOST


def test_every_form_and_kind_of_round_has_words() -> None:
    from typing import get_args

    from mrcr_action.diagnosis.evidence import Form
    from mrcr_action.rounds import Kind

    assert set(WHAT) == set(get_args(Form)) - LOST - {"exact"}
    assert set(ROUNDS) == set(get_args(Kind)) - {"cold"}


def test_many_records_take_no_time(diagnosed: Diagnosed) -> None:
    records = [
        diagnosed(at, "garbled" if at % 3 else "exact", (at * 7919) % 7001) for at in range(2400)
    ]
    begin = time.perf_counter()
    clues_of(records, None)
    assert time.perf_counter() - begin < 5
