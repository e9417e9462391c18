from __future__ import annotations

import msgspec
import pytest

from mrcr_action.diagnosis.evidence import Piece
from mrcr_action.diagnosis.outline import MOST, outline_of
from mrcr_action.sample import Message, Role, Sample, SampleId


def sample_of(pairs: int, needles: tuple[int, ...]) -> Sample:
    """A row of so many pairs of turns between preamble and question; some of them are needles."""
    messages = [Message("user", "p" * 100)]
    for at in range(pairs):
        request = "write a poem" if at in needles else f"write essay {at}"
        messages += [Message("user", request), Message("assistant", "x" * (at + 1))]
    messages.append(Message("user", "which?"))
    wanted = 1 + 2 * needles[0]
    return Sample(
        id=SampleId("s", 0, "0"),
        messages=tuple(messages),
        answer="n" + messages[wanted + 1].content,
        nonce="n",
        n_needles=len(needles),
        desired_msg_index=wanted,
        n_chars=sum(len(m.content) for m in messages),
    )


def test_of_a_short_conversation_every_turn_is_a_piece() -> None:
    assert outline_of(sample_of(3, (0, 2))) == (
        Piece(speaker="u", chars=100),
        Piece(speaker="u", chars=len("write a poem")),
        Piece(speaker="a", chars=1, needle=1),
        Piece(speaker="u", chars=len("write essay 1")),
        Piece(speaker="a", chars=2),
        Piece(speaker="u", chars=len("write a poem")),
        Piece(speaker="a", chars=3, needle=2),
        Piece(speaker="u", chars=len("which?")),
    )


@pytest.mark.parametrize("pairs", [22, 23, 24, 25, 60, 3_000])
@pytest.mark.parametrize("needles", [(0, 1), (3, 5, 9, 20), (0, 1, 2, 3, 15, 16, 18, 21)])
def test_however_long_it_is_it_has_few_pieces_and_loses_no_turn(
    pairs: int, needles: tuple[int, ...]
) -> None:
    sample = sample_of(pairs, needles)
    pieces = outline_of(sample)
    assert len(pieces) <= MOST
    assert sum(piece.turns for piece in pieces) == len(sample.messages)
    assert sum(piece.chars for piece in pieces) == sample.n_chars
    turn, found = 0, {}
    for piece in pieces:
        if piece.needle is not None:
            assert piece.turns == 1
            found[piece.needle] = turn
        turn += piece.turns
    assert found == {at: 2 + 2 * pair for at, pair in enumerate(sorted(needles), start=1)}
    assert pieces[-1] == Piece(speaker="u", chars=len("which?"))


def test_a_run_of_several_roles_says_so() -> None:
    preamble_and_request, *_, last_run, question = outline_of(sample_of(500, (0, 1)))
    assert (preamble_and_request.speaker, preamble_and_request.turns) == ("u", 2)
    assert last_run.speaker == "m"
    assert question.turns == 1


@pytest.mark.parametrize(("role", "speaker"), [("system", "s"), ("user", "u")])
def test_who_speaks_is_told(role: Role, speaker: str) -> None:
    sample = sample_of(3, (0, 2))
    first = Message(role, "be kind")
    changed = Sample(
        id=sample.id,
        messages=(first, *sample.messages[1:]),
        answer=sample.answer,
        nonce=sample.nonce,
        n_needles=2,
        desired_msg_index=1,
        n_chars=0,
    )
    assert outline_of(changed)[0].speaker == speaker


def test_in_json_a_piece_is_a_short_list() -> None:
    piece = Piece(speaker="a", chars=1_200, needle=2)
    assert msgspec.json.encode(piece) == b'["a",1200,1,2]'
    assert msgspec.json.decode(b'["a",1200,1,2]', type=Piece) == piece
