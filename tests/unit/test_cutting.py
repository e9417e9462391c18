from collections.abc import Callable

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.cutting import cut_notes, is_cut
from mrcr_action.result import Record

MakeRecord = Callable[..., Record]


def cut(make_record: MakeRecord, ask: int, tokens: int) -> Record:
    return make_record(ask, 0.0, finish_reason="cut", digest=None, completion_tokens=tokens)


def test_a_note_says_how_many_were_cut_and_what_that_saved_at_most(make_record: MakeRecord) -> None:
    records = [
        cut(make_record, 0, 3),
        cut(make_record, 1, 2),
        make_record(2),
        make_record(3, None),
    ]
    (note,) = cut_notes(records, RunConfig(max_tokens=100))
    assert note == (
        "2 of 3 responses were cut, since they could no longer start with the nonce, after about 5"
        " tokens in all, which saved at most 195 tokens (max_tokens 100)."
    )


@pytest.mark.parametrize(
    "extra", [{"max_tokens": None}, {"max_tokens": None, "max_completion_tokens": 9}]
)
def test_without_max_tokens_nobody_knows_what_was_saved(
    make_record: MakeRecord, extra: dict[str, int | None]
) -> None:
    (note,) = cut_notes([cut(make_record, 0, 3)], RunConfig(extra_body=extra))
    assert note.endswith("after about 3 tokens in all.")


def test_without_a_cut_there_is_no_note(make_record: MakeRecord) -> None:
    of_the_server = make_record(1, finish_reason="cut", digest="0")
    assert not is_cut(of_the_server)
    assert cut_notes([make_record(0), of_the_server, make_record(2, None)], RunConfig()) == []
