"""What is said of a conversation agrees with what the probe makes of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.unit.probe.conversations import NONCE, answer_of, misleading, tokens_of, wild

from mrcr_action.bins import Bin
from mrcr_action.probe.build import weights
from mrcr_action.probe.readable import cannot_read, unreadable
from mrcr_action.probe.reference import forward
from mrcr_action.probe.rows import rows
from mrcr_action.probe.vocabulary import SPECIALS, encode_chat
from mrcr_action.sample import Message, Sample
from mrcr_action.synthetic import SyntheticSpec, question, request, synthetic_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.probe import layout
    from mrcr_action.probe.checkpoint import Dtype

FIELDS = ("poem", "fields")
ASK = request(*FIELDS)
LAST = question(NONCE, 2, *FIELDS)
LONGEST = "riddle about " + "x" * 50
"""As many bytes as what is asked for may have."""

MOST_TOKENS = 1_200
"""Of a prompt that is computed: numpy takes long."""


@cache
def parameters() -> dict[str, layout.Matrix]:
    return weights()


def is_exact(messages: list[Message], answer: str, dtype: Dtype = "bfloat16") -> bool:
    """Whether greedy decoding gives the answer and its end."""
    prompt, expected = tokens_of(messages, answer)
    trace = forward(prompt + expected[:-1], parameters(), dtype=dtype)
    return trace.greedy()[len(prompt) - 1 :] == expected


def talk(
    *, ask: str = ASK, pieces: Sequence[str] = ("First.", "Second, of two."), last: str = LAST
) -> list[Message]:
    """A short conversation; message 3 is the second request."""
    messages = [Message("user", "Hello.")]
    for piece in pieces:
        messages += [Message("user", ask), Message("assistant", piece)]
    return [*messages, Message("user", last)]


def with_extra(at: int, *extra: Message) -> list[Message]:
    messages = talk()
    return [*messages[:at], *extra, *messages[at:]]


def short(made: Callable[[int], tuple[list[Message], int]], seed: int) -> tuple[list[Message], int]:
    """One of the conversations that are not called unreadable and are quickly computed."""
    several = (made(seed + 1_000 * tries) for tries in range(1_000))
    return next(
        (messages, wanted)
        for messages, wanted in several
        if unreadable(messages, wanted) is None and len(encode_chat(messages)) <= MOST_TOKENS
    )


def test_misleading_texts_are_not_called_unreadable() -> None:
    assert {unreadable(*misleading(seed)) for seed in range(300)} == {None}


@pytest.mark.parametrize("seed", range(6))
def test_misleading_texts_are_read_exactly(seed: int) -> None:
    messages, wanted = short(misleading, seed)
    dtype: Dtype = "float32" if seed % 2 else "bfloat16"
    assert is_exact(messages, answer_of(messages, wanted), dtype)


def test_the_8th_of_requests_as_long_as_may_be_is_found_in_float32() -> None:
    last = question(NONCE, 8, *FIELDS).replace("poem about fields", LONGEST)
    messages = talk(ask=f"write a {LONGEST}", pieces=[f"No. {n}" for n in range(8)], last=last)
    assert is_exact(messages, NONCE + "No. 7", "float32")


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_called_unreadable_is_read_exactly(seed: int) -> None:
    messages, wanted = short(wild, seed)
    nonce = messages[-1].content.split()[1]
    assert is_exact(messages, answer_of(messages, wanted, nonce), "bfloat16")


@pytest.mark.parametrize(("n_needles", "index", "dtype"), [(2, 0, "float32"), (4, 1, "bfloat16")])
def test_hostile_rows_in_the_dataset_s_shape_are_read_exactly(
    n_needles: int, index: int, dtype: Dtype
) -> None:
    spec = SyntheticSpec(
        n_needles=n_needles, bin=Bin(256, 384), seed=5, index=index, hostile=True, non_latin=30
    )
    sample = Sample.from_row(synthetic_row(spec), shard="s", index=0)
    assert cannot_read(sample, max_tokens=4096) is None
    assert is_exact([*sample.messages], sample.answer, dtype)


def test_the_probe_can_read_its_own_rows() -> None:
    samples = [Sample.from_row(row, shard="s", index=0) for row in rows(32768)]
    assert {cannot_read(sample, max_tokens=256) for sample in samples} == {None}


@pytest.mark.parametrize("pieces", [[f"No. {n}" for n in range(16)], ["Equal."] * 10])
def test_more_equal_requests_than_can_be_counted_do_no_harm(pieces: list[str]) -> None:
    messages = talk(pieces=pieces, last=question(NONCE, 8, *FIELDS))
    assert unreadable(messages, 15) is None
    assert is_exact(messages, NONCE + pieces[7])


def test_turns_of_other_kinds_do_no_harm() -> None:
    messages = with_extra(
        1, Message("system", "Be brief."), Message("user", "Once more."), Message("system", "")
    )
    assert unreadable(messages, 6) is None
    assert is_exact(messages, NONCE + "Second, of two.")


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (LAST + " ", "not worded as"),
        (LAST.lower(), "not worded as"),
        (LAST.replace("(1 indexed) ", ""), "not worded as"),
        (LAST.replace("2nd", "٢nd"), "not worded as"),
        (LAST.replace("2nd", "9th"), "before the 1st or after the 8th"),
        (LAST.replace("2nd", "12th"), "before the 1st or after the 8th"),
        (LAST.replace("2nd", "02nd"), "before the 1st or after the 8th"),
        (LAST.replace("2nd", "0th"), "before the 1st or after the 8th"),
        (question("123456789", 2, *FIELDS), "the nonce has not 10 bytes"),
        (question("12345678é0", 2, *FIELDS), "the nonce has not 10 bytes"),
        (question("Prepend ab", 2, *FIELDS), "words with which another question"),
        (question("012Prepend", 2, *FIELDS), "words with which another question"),
        (question(NONCE, 2, "poem", "how to write a poem"), "words with which another question"),
        (question(NONCE, 2, "poem", "x" * 53), "more than 63 bytes"),
        (question(NONCE, 2, "poem", "bees"), "in the words of its request"),
        (question(NONCE, 1, *FIELDS), "more or fewer requests"),
    ],
)
def test_a_question_that_is_not_understood_is_told(last: str, reason: str) -> None:
    assert reason in str(unreadable(talk(last=last), 3))


@pytest.mark.parametrize(
    ("messages", "wanted", "reason"),
    [
        (talk(pieces=("First.", f"a{SPECIALS[1]}b")), 3, "a special token of the probe"),
        (talk(pieces=("x" * 131_000, "b")), 3, "more than 131,072 tokens"),
        (talk(pieces=("a", "x" * 8_801)), 3, "the wanted reply has more than 8,800 bytes"),
        (talk(pieces=("a", "é" * 4_401)), 3, "the wanted reply has more than 8,800 bytes"),
        (talk(pieces=("a", "b\ufffd")), 3, "ends with U+FFFD"),
        ([Message("assistant", "Hi."), *talk()], 4, "begins with a reply"),
        (with_extra(5, Message("user", "Thanks"), Message("assistant", "?")), 3, "than 7 bytes"),
        (with_extra(5, Message("assistant", "And more.")), 3, "a reply follows on a reply"),
        (
            with_extra(1, Message("user", "please " + ASK), Message("assistant", "?")),
            5,
            "more or fewer requests",
        ),
        (talk(ask="Tell me of fields"), 3, "in the words of its request"),
        (talk(ask=ASK + "x"), 3, "in the words of its request"),
    ],
)
def test_a_conversation_that_is_misread_is_told(
    messages: list[Message], wanted: int, reason: str
) -> None:
    assert reason in str(unreadable(messages, wanted))


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        (talk(pieces=("a", "x" * 8_800)), 3),
        (talk(pieces=("x" * 20_000, "b")), 3),
        (talk(ask=f"write a {LONGEST}", last=LAST.replace("poem about fields", LONGEST)), 3),
        (with_extra(5, Message("user", "Thanks."), Message("assistant", "?")), 3),
        (talk(ask="Write an poem about fields"), 3),
        (talk(pieces=("a", "a \ufffd b")), 3),
    ],
)  # fmt: skip
def test_the_limits_themselves_are_within(messages: list[Message], wanted: int) -> None:
    assert unreadable(messages, wanted) is None


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        (with_extra(5, Message("user", "Thanks"), Message("assistant", "?")), 3),
        (with_extra(5, Message("assistant", "And more.")), 3),
        (talk(last=question("123456789", 2, *FIELDS)), 3),
        (with_extra(1, Message("user", "please " + ASK), Message("assistant", "?")), 5),
    ],
)
def test_what_is_called_unreadable_is_misread(messages: list[Message], wanted: int) -> None:
    assert unreadable(messages, wanted) is not None
    nonce = messages[-1].content.split()[1]
    assert not is_exact(messages, answer_of(messages, wanted, nonce))


def test_an_answer_longer_than_max_tokens_is_told() -> None:
    sample = Sample.from_row(next(rows()), shard="s", index=0)
    needed = len(sample.answer.encode()) + 1
    assert cannot_read(sample, max_tokens=needed) is None
    assert "longer than max_tokens" in str(cannot_read(sample, max_tokens=needed - 1))
