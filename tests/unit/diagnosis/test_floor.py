import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mrcr_action.diagnosis.evidence import Diagnosis, Floor, Wanted
from mrcr_action.diagnosis.floor import LONGEST, floor_of, mean_floors
from mrcr_action.diagnosis.forms import diagnose, lost
from mrcr_action.grade import grade
from mrcr_action.result import Record
from mrcr_action.sample import Sample

NONCE = "abcdefghij"


def sample(*needles: str, wanted: int = 0) -> Sample:
    turns = [{"role": "user", "content": "Examples:"}, {"role": "assistant", "content": "Yes."}]
    for needle in needles:
        turns.append({"role": "user", "content": "write a poem"})
        turns.append({"role": "assistant", "content": needle})
    turns.append({"role": "user", "content": f"Prepend {NONCE} to a poem."})
    row: dict[str, Any] = {
        "prompt": json.dumps(turns),
        "answer": NONCE + needles[wanted],
        "random_string_to_prepend": NONCE,
        "n_needles": len(needles),
        "desired_msg_index": 2 + 2 * wanted,
        "n_chars": sum(len(turn["content"]) for turn in turns),
    }
    return Sample.from_row(row, shard="s", index=0)


POEMS = ("the lamp was lit at nine", "a river goes where it will", "no stone is ever alone")


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_the_floor_is_the_mean_grade_of_all_needles(wanted: int) -> None:
    row = sample(*POEMS, wanted=wanted)
    grades = [grade(NONCE + poem, row.answer, NONCE) for poem in POEMS]
    found = floor_of(row)
    assert found is not None
    assert found.openai == pytest.approx(sum(g.match_ratio_openai for g in grades) / 3, abs=1e-4)
    assert found.vllm == pytest.approx(sum(g.match_ratio_vllm for g in grades) / 3, abs=1e-4)
    assert 1 / 3 < found.openai < 1


def test_needles_that_are_alike_cannot_be_mistaken() -> None:
    floor = floor_of(sample("same", "same"))
    assert floor is not None
    assert floor.openai == 1.0
    assert floor.vllm < 1.0


def test_very_long_needles_have_none() -> None:
    half = "x" * (LONGEST // 2)
    assert floor_of(sample(half, half + "y")) is None


def test_whatever_came_back_the_floor_is_that_of_the_sample() -> None:
    row = sample(*POEMS)
    for response in (row.answer, "", NONCE + POEMS[1]):
        wanted = diagnose(response, row).wanted
        assert wanted is not None
        assert wanted.floor == floor_of(row)
    wanted = lost("failed", row).wanted
    assert wanted is not None
    assert wanted.floor is None


def test_floors_are_averaged_by_needle_count_over_what_was_graded(
    make_record: Callable[..., Record],
) -> None:
    def record(ask: int, n: int, floor: float | None, ratio: float | None = 0.5) -> Record:
        known = None if floor is None else Floor(openai=floor, vllm=floor / 2)
        wanted = Wanted(ordinal=1, of=n, turn=1, depth=0.5, floor=known)
        diagnosis = Diagnosis(form="unrelated", wanted=wanted)
        return make_record(ask, ratio, n_needles=n, diagnosis=diagnosis)

    records = [
        record(0, 4, 0.2),
        record(1, 4, 0.4),
        record(2, 4, None),
        record(3, 4, 0.9, None),
        record(4, 2, 0.5),
        make_record(5),
    ]
    assert mean_floors(records, "openai") == pytest.approx({2: 0.5, 4: 0.3})
    assert mean_floors(records, "vllm") == pytest.approx({2: 0.25, 4: 0.15})
    assert mean_floors([], "openai") == {}


def test_documents_of_before_are_read() -> None:
    old = b'{"ordinal": 1, "of": 2, "turn": 4, "depth": 0.5}'
    assert msgspec.json.decode(old, type=Wanted).floor is None
