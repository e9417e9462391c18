from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.diagnosis.breakdown import breakdowns
from mrcr_action.rounds import Round

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.plan import Plan
    from mrcr_action.result import Record

    Diagnosed = Callable[..., Record]
    PlanWith = Callable[[Sequence[Record], Sequence[Round]], Plan]


def by(
    records: Sequence[Record], plan: Plan | None = None
) -> dict[str, list[tuple[str, int, int]]]:
    return {
        found.by: [(group.label, group.asked, group.exact) for group in found.groups]
        for found in breakdowns(records, plan)
    }


def test_responses_are_counted_by_cell_in_their_order(diagnosed: Diagnosed) -> None:
    records = [
        diagnosed(0, o200k_tokens=9000),
        diagnosed(1, "garbled", o200k_tokens=5000),
        diagnosed(2, "garbled", n_needles=8, o200k_tokens=5000),
        diagnosed(3, o200k_tokens=9000),
    ]

    assert by(records)["needles and length"] == [
        ("n2/4K-8K", 1, 0),
        ("n2/8K-16K", 2, 2),
        ("n8/4K-8K", 1, 0),
    ]


def test_distances_double_from_bin_to_bin(diagnosed: Diagnosed) -> None:
    records = [diagnosed(at, distance=d) for at, d in enumerate([5, 512, 513, 1024, 3000, 4097])]

    assert [row[:2] for row in by(records)["tokens from the needle to the end"]] == [
        ("0–512", 2),
        ("512–1,024", 2),
        ("2,048–4,096", 1),
        ("4,096–8,192", 1),
    ]


def test_places_are_tenths_of_the_prompt(diagnosed: Diagnosed) -> None:
    records = [diagnosed(at, distance=d) for at, d in enumerate([8000, 7300, 7100, 1])]

    assert [row[:2] for row in by(records)["place of the needle in the prompt"]] == [
        ("0–10 %", 2),
        ("10–20 %", 1),
        ("90–100 %", 1),
    ]


def test_ordinals_order_and_rounds(diagnosed: Diagnosed, plan_with: PlanWith) -> None:
    records = [diagnosed(at, ordinal=1 + at % 2) for at in range(8)]
    records += [diagnosed(8 + at, "garbled", pass_name="warm") for at in range(8)]
    plan = plan_with(records, [Round(concurrency=4), Round(name="warm", kind="warm")])
    found = by(records, plan)

    assert found["which one was asked for"] == [("number 1", 12, 4), ("number 2", 4, 4)]
    assert found["order of the requests"][0] == ("part 1 of 4", 4, 4)
    assert found["order of the requests"][3] == ("part 4 of 4", 4, 0)
    assert found["round"] == [("cold, 4 at a time", 8, 8), ("warm, 8 at a time", 8, 0)]


def test_what_is_wrong_is_counted_by_its_form(diagnosed: Diagnosed) -> None:
    records = [
        diagnosed(0),
        diagnosed(1, "garbled"),
        diagnosed(2, "empty"),
        diagnosed(3, "garbled"),
    ]
    records += [diagnosed(4, n_needles=4), diagnosed(5, "failed", n_needles=4)]
    first, second = breakdowns(records, None)[0].groups

    assert first.forms == (("garbled", 2), ("empty", 1))
    assert second.forms == (("failed", 1),)


def test_one_group_alone_makes_no_table(diagnosed: Diagnosed) -> None:
    assert breakdowns([diagnosed(0)], None) == ()
    assert breakdowns([], None) == ()


def test_what_was_never_sent_is_not_counted(diagnosed: Diagnosed) -> None:
    records = [diagnosed(0), diagnosed(1, "failed", n_needles=4, attempts=0)]

    assert "needles and length" not in by(records)
