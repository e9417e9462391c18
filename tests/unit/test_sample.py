import dataclasses
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcr_action.sample import Message, Sample, SampleId, content_hash, parse_prompt

REQUEST = "write a poem about fields"
TURNS = (
    ("user", "Here are some examples"),
    ("user", REQUEST),
    ("assistant", "Green."),
    ("user", "write a song about fields"),
    ("assistant", "La la."),
    ("user", REQUEST),
    ("assistant", "Gold."),
    ("user", "Prepend abcdefghij to the 2nd (1 indexed) poem about fields."),
)


def row(**changes: Any) -> dict[str, Any]:
    prompt = json.dumps([{"role": role, "content": content} for role, content in TURNS])
    return {
        "prompt": prompt,
        "answer": "abcdefghijGold.",
        "random_string_to_prepend": "abcdefghij",
        "n_needles": 2,
        "desired_msg_index": 5,
        "total_messages": len(TURNS),
        "n_chars": sum(len(content) for _, content in TURNS),
        "date_added": "04-12-2025",
        **changes,
    }


def sample(**changes: Any) -> Sample:
    return Sample.from_row(row(**changes), shard="2needle/2needle_0.parquet", index=7)


def test_a_row_is_read_into_a_sample_with_its_identity() -> None:
    read = sample()
    digest = hashlib.sha256(row()["prompt"].encode() + b"\0" + b"abcdefghijGold.").hexdigest()
    assert read == Sample(
        id=SampleId("2needle/2needle_0.parquet", 7, digest),
        messages=tuple(
            Message("user" if role == "user" else "assistant", content) for role, content in TURNS
        ),
        answer="abcdefghijGold.",
        nonce="abcdefghij",
        n_needles=2,
        desired_msg_index=5,
        n_chars=row()["n_chars"],
    )
    assert str(read.id) == f"2needle/2needle_0.parquet#7@{digest[:12]}"


def test_a_sound_row_breaks_no_invariant() -> None:
    assert sample().violations() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"answer": "abcdefghijGreen."},
            "the answer is not the nonce followed by the wanted reply",
        ),
        ({"answer": "Gold."}, "the answer is not the nonce followed by the wanted reply"),
        ({"n_needles": 4}, "the wanted request occurs 2 times, not 4"),
        ({"n_chars": 1}, "n_chars is 1, the contents hold"),
    ],
)
def test_each_broken_invariant_is_named_alone(changes: dict[str, Any], expected: str) -> None:
    (found,) = sample(**changes).violations()
    assert found.startswith(expected)


@pytest.mark.parametrize("where", [-1, 7, 8, 99])
def test_an_index_outside_the_conversation_is_named(where: int) -> None:
    (found,) = sample(desired_msg_index=where).violations()
    assert found == f"desired_msg_index {where} lies outside the 8 messages"


def test_an_index_of_a_reply_is_named() -> None:
    assert "the turns are not a preamble, pairs of turns and a question" in (
        sample(desired_msg_index=4).violations()
    )


def test_an_odd_number_of_turns_is_named() -> None:
    short = dataclasses.replace(sample(), messages=sample().messages[:-1])
    assert "the turns are not a preamble, pairs of turns and a question" in short.violations()


def test_several_broken_invariants_are_all_named() -> None:
    assert len(sample(answer="no", n_needles=8, n_chars=0).violations()) == 3


def test_a_reply_that_repeats_the_request_is_not_counted_as_a_needle() -> None:
    turns = [{"role": role, "content": content} for role, content in TURNS]
    turns[4]["content"] = REQUEST
    n_chars = sum(len(turn["content"]) for turn in turns)
    assert sample(prompt=json.dumps(turns), n_chars=n_chars).violations() == []


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "{",
        "{}",
        "[]",
        "null",
        '["text"]',
        '[{"role": "user"}]',
        '[{"content": "x"}]',
        '[{"role": "tool", "content": "x"}]',
        '[{"role": "user", "content": ["x"]}]',
        '[{"role": "user", "content": null}]',
    ],
)
def test_what_is_no_conversation_is_a_value_error(prompt: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_prompt(prompt)


# A prompt is JSON, which holds no zero byte as such: that is what stands between the two.
_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(prompt=_TEXT, answer=_TEXT, moved=_TEXT.filter(bool))
@settings(max_examples=50, deadline=None)
def test_hash_tells_prompt_from_answer(prompt: str, answer: str, moved: str) -> None:
    first = content_hash(prompt, moved + answer)
    second = content_hash(prompt + moved, answer)
    assert (first == second) == ((prompt, moved + answer) == (prompt + moved, answer))


def test_hash_takes_lone_surrogates() -> None:
    assert len(content_hash("\ud800", "\udfff")) == 64


def test_prompt_with_an_unpaired_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="the prompt is not a list of messages: "):
        parse_prompt('[{"role": "user", "content": "half a pair: \\uD83D"}]')


def test_prompt_with_an_escaped_pair_of_surrogates_is_read() -> None:
    (message,) = parse_prompt('[{"role": "user", "content": "\\ud83d\\ude00"}]')
    assert message.content == "\N{GRINNING FACE}"
