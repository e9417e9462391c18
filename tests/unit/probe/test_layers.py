"""What each stage leaves in the residual stream, and whole answers, computed by numpy."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from mrcr_action.probe import layout as at
from mrcr_action.probe.build import weights
from mrcr_action.probe.checkpoint import Dtype
from mrcr_action.probe.codes import sequence_code, tables
from mrcr_action.probe.layers import all_layers
from mrcr_action.probe.reference import Rounding, Trace, forward
from mrcr_action.probe.vocabulary import ASSISTANT, END, encode, encode_chat
from mrcr_action.sample import Message

NONCE = "aYooSG8CQg"
FIELDS, BEES = "poem about fields", "email about bees"
PIECES = (
    (FIELDS, "# Fields 🌾\n\nGreen **waves**"),
    (BEES, "Dear bees,\n\n- hum\n- hum\n"),
    (FIELDS, "# Fields 🌾\n\nGreen **rows**, and rows"),
    (FIELDS, "I can’t write a poem."),
)
PREAMBLE = (
    "======EXAMPLE======\n\nUser: write a poem about fields\n\nAssistant: Hay.\n\n"
    "User: Prepend 0123456789 to the 1st (1 indexed) poem about fields.\n\n"
    "Assistant: 0123456789Hay.\n\n======END EXAMPLE======\n\n"
)
WANTED = PIECES[2][1]


def question(ordinal: str, request: str) -> str:
    return (
        f"Prepend {NONCE} to the {ordinal} (1 indexed) {request}. "
        "Do not include any other text in your response."
    )


def conversation(last: str, pieces: Sequence[tuple[str, str]] = PIECES) -> list[int]:
    messages = [Message("user", PREAMBLE)]
    for ask, piece in pieces:
        messages += [Message("user", f"write a {ask}"), Message("assistant", piece)]
    return encode_chat([*messages, Message("user", last)])


@cache
def parameters() -> dict[str, at.Matrix]:
    return weights()


USUAL = Rounding()


def answered(prompt: list[int], answer: str, dtype: Dtype, rounding: Rounding = USUAL) -> bool:
    """Whether greedy decoding gives the answer: it does if each next token is right."""
    wanted = [*encode(answer), END]
    trace = forward(prompt + wanted[:-1], parameters(), dtype=dtype, rounding=rounding)
    predicted = trace.greedy()
    return predicted[len(prompt) - 1 :] == wanted


@cache
def looked_into() -> tuple[list[int], Trace]:
    ids = conversation(question("2nd", FIELDS)) + encode(NONCE + WANTED)
    return ids, forward(ids, parameters(), dtype="bfloat16")


def replies(ids: list[int]) -> list[int]:
    return [n for n, token in enumerate(ids) if token == ASSISTANT]


def test_the_wanted_piece_is_copied_exactly_in_bfloat16() -> None:
    ids, trace = looked_into()
    assert trace.greedy()[replies(ids)[-1] :] == [*encode(NONCE + WANTED), END]


@pytest.mark.parametrize(
    ("dtype", "ordinal", "request_", "piece"),
    [("float16", "3rd", FIELDS, 3), ("float32", "1st", BEES, 1)],
)
def test_other_pieces_are_copied_in_other_dtypes(
    dtype: Dtype, ordinal: str, request_: str, piece: int
) -> None:
    prompt = conversation(question(ordinal, request_))
    assert answered(prompt, NONCE + PIECES[piece][1], dtype)


def test_eight_equal_requests_are_told_apart() -> None:
    pieces = [(BEES, f"{n} buzz {n}") for n in range(8)]
    prompt = conversation(question("8th", BEES), pieces)
    assert answered(prompt, NONCE + pieces[7][1], "bfloat16")


@pytest.mark.parametrize(
    "rounding",
    [
        Rounding(scales_query=True),
        Rounding(rounds_shares=True),
        Rounding(rounds_turns=True),
        Rounding(drops_bits=True),
        Rounding(scales_query=True, rounds_shares=True, rounds_turns=True, drops_bits=True),
    ],
    ids=str,
)
def test_kernels_that_round_elsewhere_read_the_same(rounding: Rounding) -> None:
    pieces = [(FIELDS, f"Field {n}.") for n in range(8)]
    for ordinal, wanted in (("1st", 0), ("7th", 6), ("8th", 7)):
        prompt = conversation(question(ordinal, FIELDS), pieces)
        assert answered(prompt, NONCE + pieces[wanted][1], "bfloat16", rounding)


def test_openings_are_spotted_where_they_end() -> None:
    ids, trace = looked_into()
    text = "".join(chr(max(token - 5, 0)) for token in ids)  # one character a token
    expected = set(replies(ids)) | {0}
    for phrase in ("write a ", "Prepend ", "ndexed) "):
        start = text.find(phrase)
        while start >= 0:
            expected.add(start + len(phrase) - 1)
            start = text.find(phrase, start + 1)
    assert set(np.flatnonzero(trace.residuals[3][:, at.OPENED[0]]).tolist()) == expected


def test_the_hash_of_a_request_is_exact_and_counts_from_its_opening() -> None:
    ids, trace = looked_into()
    end = replies(ids)[0] - 2
    hashed, counted = (trace.residuals[9][end, dims] for dims in (at.HASH, at.COUNT))
    opening = encode(" " + FIELDS)  # the last token of the opening is counted too
    assert hashed.tolist() == sequence_code(tables().hash, opening).tolist()
    assert counted.tolist() == tables().count[len(opening) - 1].tolist()


def test_replies_know_their_request_and_the_question_its_own() -> None:
    ids, trace = looked_into()
    first, bees, second, third, last = replies(ids)
    requests = trace.residuals[11][:, at.REQUEST_HASH]
    assert np.array_equal(requests[first], requests[second])
    assert np.array_equal(requests[first], requests[third])
    assert np.array_equal(requests[first], trace.residuals[11][last, at.WANTED_HASH])
    assert float(requests[first] @ requests[bees]) < 24
    thermometers = np.sign(trace.residuals[11][:, at.REQUEST_ORDINAL])
    assert [int((thermometers[n] > 0).sum()) for n in (first, bees, second, third)] == [0, 0, 1, 2]
    assert int((trace.residuals[11][last, at.WANTED_ORDINAL] > 0).sum()) == 1


def test_every_token_knows_its_segment_exactly() -> None:
    ids, trace = looked_into()
    starts = replies(ids)
    # What is 0 in theory may be 1e-7.
    segment = trace.residuals[14][:, (*at.SEGMENT_HASH, *at.SEGMENT_ORDINAL)].round(6)
    assert not segment[: starts[0]].any()
    for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
        assert set(np.abs(segment[start]).tolist()) == {1}
        assert (segment[start:end] == segment[start]).all()
    inside = trace.residuals[14][:, at.INSIDE].round(6)
    assert inside.tolist() == [0.0] * starts[0] + [1.0] * (len(ids) - starts[0])


def test_phases_turn_with_the_offset_in_the_segment() -> None:
    ids, trace = looked_into()
    start = replies(ids)[2]
    for offset in (0, 1, 17):
        found = trace.residuals[19][start + offset, at.PHASE]
        angles = np.array([at.TURN[pair] * offset for pair in at.PHASE_PAIRS])
        expected = np.stack([np.cos(angles), np.sin(angles)], axis=1).flatten()
        assert found == pytest.approx(expected, abs=0.06)


def test_the_right_token_wins_by_a_wide_margin() -> None:
    ids, trace = looked_into()
    logits = np.sort(trace.logits[replies(ids)[-1] :], axis=1)
    assert float((logits[:, -1] - logits[:, -2]).min()) >= 56


def test_there_are_21_layers() -> None:
    assert len(all_layers()) == 21
