import hashlib
import json
import re
import statistics
import subprocess
import sys
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mrcr_action
from mrcr_action.bins import BINS, Bin, parse_bin
from mrcr_action.errors import UsageError
from mrcr_action.sample import NEEDLE_COUNTS, Sample
from mrcr_action.synthetic import (
    MOST_NEEDLES,
    SyntheticSpec,
    question,
    request,
    synthetic_row,
    synthetic_rows,
)
from mrcr_action.synthetic.forms import FORMS
from mrcr_action.synthetic.grammar import Dice, fill
from mrcr_action.synthetic.prose import LONGEST_PIECE, piece
from mrcr_action.synthetic.scripts import SCRIPTS, Script
from mrcr_action.synthetic.sentences import RULES
from mrcr_action.synthetic.topics import FORMATS, TOPICS
from mrcr_action.synthetic.words import HOSTILE
from mrcr_action.tokens import count_sample

PINNED = "dadfd52498fe4ec71cf08b1a8a6e1282b12d077cb77db523d0ab221c7d7e8c95"
TINY = ("256-512", "512-1K", "1K-2K")
QUESTION = re.compile(
    r"Prepend ([A-Za-z0-9]{10}) to the (\d+)(st|nd|rd|th) \(1 indexed\) (.+) about (.+)\. "
    r"Do not include any other text in your response\."
)


def row(n_needles: int = 2, bin_: str = "1K-2K", seed: int = 0, index: int = 0) -> dict[str, Any]:
    spec = SyntheticSpec(n_needles=n_needles, bin=parse_bin(bin_), seed=seed, index=index)
    return synthetic_row(spec)


def sample(of: dict[str, Any]) -> Sample:
    return Sample.from_row(of, shard="synthetic", index=0)


def replies(of: Sample) -> list[str]:
    return [m.content for m in of.messages if m.role == "assistant"]


@pytest.fixture(scope="module")
def long() -> Sample:
    return sample(row(8, "64K-128K", seed=5))


specs = st.builds(
    SyntheticSpec,
    n_needles=st.integers(1, MOST_NEEDLES),
    bin=st.sampled_from([parse_bin(text) for text in [*TINY, "2K-4K", "4K-8K", "8K-16K"]]),
    seed=st.integers(0, 1 << 32),
    index=st.integers(0, 500),
    non_latin=st.sampled_from([0, 0, 30, 100]),
)


@given(spec=specs)
@settings(max_examples=60, deadline=None)
def test_every_row_has_the_shape_of_the_dataset(spec: SyntheticSpec) -> None:
    made = synthetic_row(spec)
    read = sample(made)
    assert read.violations() == []
    assert count_sample(read) in spec.bin
    assert len(read.messages) == made["total_messages"]
    assert [m.role for m in read.messages] == [
        "user",
        *["user", "assistant"] * (len(read.messages) // 2 - 1),
        "user",
    ]
    match = QUESTION.fullmatch(read.messages[-1].content)
    assert match
    nonce, position, _, kind, topic = match.groups()
    assert nonce == read.nonce
    assert read.messages[read.desired_msg_index].content == request(kind, topic)
    hits = [at for at, m in enumerate(read.messages) if m.content == request(kind, topic)]
    assert hits[int(position) - 1] == read.desired_msg_index
    assert question(nonce, int(position), kind, topic) == match[0]
    assert not any(read.nonce in m.content for m in read.messages[:-1])
    assert len(set(replies(read))) == len(replies(read))
    assert all(len(reply.encode()) <= 8000 for reply in replies(read))


@given(spec=specs)
@settings(max_examples=20, deadline=None)
def test_preamble_holds_two_demonstrations_answered_correctly(spec: SyntheticSpec) -> None:
    preamble = sample(synthetic_row(spec)).messages[0].content
    assert preamble.startswith(
        "Here are some examples of conversations succeeded by a follow-up question answered "
        "correctly:\n\n======EXAMPLE======\n"
    )
    examples = re.findall(
        r"^======EXAMPLE======\n\n(.*?)\n\n======END EXAMPLE======$",
        preamble,
        re.DOTALL | re.MULTILINE,
    )
    assert len(examples) == 2
    for example in examples:
        turns = re.split(r"(?:^|\n\n)(?:User|Assistant): ", example)[1:]
        match = QUESTION.fullmatch(turns[-2])
        assert match
        nonce, position, _, kind, topic = match.groups()
        asked, given = turns[:-2:2], turns[1:-2:2]
        hits = [at for at, turn in enumerate(asked) if turn == request(kind, topic)]
        assert turns[-1] == nonce + given[hits[int(position) - 1]]


def test_columns_have_the_datasets_names_and_types() -> None:
    assert {name: type(value).__name__ for name, value in row().items()} == {
        "prompt": "str",
        "answer": "str",
        "random_string_to_prepend": "str",
        "n_needles": "int",
        "desired_msg_index": "int",
        "total_messages": "int",
        "n_chars": "int",
        "date_added": "str",
    }
    assert re.fullmatch(r"\d\d-\d\d-\d{4}", row()["date_added"])


def digest(of: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()


def test_a_row_is_the_same_bytes_everywhere() -> None:
    # A new hash is a new data set: raise the version that enters the seeds along with it.
    assert digest(row(4, "512-1K", seed=7, index=3)) == PINNED


def test_a_row_does_not_depend_on_the_hash_seed_of_the_process() -> None:
    code = (
        "import hashlib, json; from mrcr_action.bins import Bin; "
        "from mrcr_action.synthetic import SyntheticSpec, synthetic_row; "
        "row = synthetic_row(SyntheticSpec(n_needles=4, bin=Bin(512, 1024), seed=7, index=3)); "
        "print(hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest())"
    )
    source = str(Path(mrcr_action.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": source},
    )
    assert ran.stdout.strip() == PINNED


def test_seed_index_bin_and_needles_each_make_another_row() -> None:
    rows = [
        row(),
        row(seed=1),
        row(index=1),
        row(bin_="2K-4K"),
        row(n_needles=4),
    ]
    assert len({made["prompt"] for made in rows}) == 5
    assert len({made["random_string_to_prepend"] for made in rows}) == 5


def test_more_rows_leave_the_earlier_ones_as_they_were() -> None:
    few = list(synthetic_rows([2], [Bin(512, 1024)], 3, 0))
    many = list(synthetic_rows([8, 2], [Bin(1024, 2048), Bin(512, 1024)], 5, 0))
    assert many[15:18] == few


def test_rows_come_by_needle_count_then_bin() -> None:
    made = list(synthetic_rows([2, 4], [Bin(512, 1024), Bin(1024, 2048)], 2, 0))
    assert [m["n_needles"] for m in made] == [2] * 4 + [4] * 4
    low = [count_sample(sample(m)) <= 1024 for m in made]
    assert low == [True, True, False, False] * 2


@pytest.mark.parametrize("n_needles", NEEDLE_COUNTS)
@pytest.mark.parametrize("bin_", ["512-1K", "4K-8K"])
def test_rows_of_a_cell_spread_over_its_bin(n_needles: int, bin_: str) -> None:
    bounds = parse_bin(bin_)
    counts = sorted(
        count_sample(sample(made)) for made in synthetic_rows([n_needles], [bounds], 16, 3)
    )
    width = bounds.high - bounds.low
    quarters = Counter(min(3, 4 * (tokens - bounds.low) // width) for tokens in counts)
    assert all(quarters[at] >= 2 for at in range(4))
    assert max(after - before for before, after in pairwise(counts)) < width / 4


@pytest.mark.parametrize("n_needles", [1, 2, 4, 8, 16])
def test_rows_of_a_cell_ask_for_every_position_equally_often(n_needles: int) -> None:
    positions: Counter[str] = Counter()
    for made in synthetic_rows([n_needles], [Bin(1024, 2048)], 2 * n_needles, 0):
        match = QUESTION.fullmatch(sample(made).messages[-1].content)
        assert match
        positions[match[2]] += 1
    assert set(positions.values()) == {2}
    assert len(positions) == n_needles


def test_needles_are_spread_over_the_conversation(long: Sample) -> None:
    wanted = long.messages[long.desired_msg_index].content
    places = [at for at, m in enumerate(long.messages) if m.content == wanted]
    parts = [8 * at // len(long.messages) for at in places]
    assert len(places) == 8
    assert all(abs(part - at) <= 1 for at, part in enumerate(parts))


def test_distractors_share_the_format_or_the_topic(long: Sample) -> None:
    wanted = re.fullmatch(r"write a (.+) about (.+)", long.messages[long.desired_msg_index].content)
    assert wanted
    others = [m.content for m in long.messages[1:-1] if m.role == "user" and m.content != wanted[0]]
    same_format = sum(text.startswith(f"write a {wanted[1]} about ") for text in others)
    same_topic = sum(text.endswith(f" about {wanted[2]}") for text in others)
    assert same_format > len(others) / 5
    assert same_topic > len(others) / 5


def test_long_rows_have_pieces_and_preamble_of_the_real_sizes(long: Sample) -> None:
    sizes = [len(reply) for reply in replies(long)]
    assert 1500 < statistics.mean(sizes) < 2000
    assert max(sizes) <= LONGEST_PIECE
    # The shorter ones refuse or ask back.
    assert sum(size < 120 for size in sizes) < len(sizes) / 10
    assert 13_000 < len(long.messages[0].content) < 15_500


def test_some_replies_refuse_or_ask_back_but_never_a_needle(long: Sample) -> None:
    def is_reluctant(text: str) -> bool:
        return any(
            mark in text for mark in ("I can't", "have to leave", "I'd rather", "?\n\n-")
        ) or (text.startswith(("Happy to!", "A ", "An ")) and text.rstrip().endswith("?"))

    wanted = long.messages[long.desired_msg_index].content
    needles = [
        after.content for before, after in pairwise(long.messages) if before.content == wanted
    ]
    assert 1 <= sum(map(is_reluctant, replies(long))) < len(replies(long)) / 5
    assert not any(map(is_reluctant, needles))


def test_pieces_are_of_varied_form(long: Sample) -> None:
    text = "\n".join(replies(long))
    for mark in (
        "\n## ",
        "\n- ",
        "|---|",
        "```python",
        "\n> ",
        "🦊",
        "東京",
        "**Chorus**",
        "\n1. ",
    ):
        assert mark in text


def test_special_tokens_and_markup_stay_out_unless_asked_for(long: Sample) -> None:
    text = "".join(m.content for m in long.messages)
    assert not re.search(r"<\||\|>|<script|::error|[\x00-\x08\x0b-\x1f\x7f\u202e\u200f]", text)


def test_hostile_rows_hold_what_must_be_escaped_and_keep_every_invariant() -> None:
    made = list(synthetic_rows([2, 8], [Bin(2048, 4096)], 10, 0, hostile=True))
    for one in made:
        assert sample(one).violations() == []
        assert count_sample(sample(one)) in Bin(2048, 4096)
        assert one["answer"].encode()
    text = "".join(reply for one in made for reply in replies(sample(one)))
    for mark in ("<|endoftext|>", "<script>", "\x1b[", "\x00", "\u202e", "\n::error ", "]]>"):
        assert mark in text


@pytest.mark.parametrize("n_needles", [-1, 0, 17])
def test_needle_counts_that_no_row_has_are_a_usage_error(n_needles: int) -> None:
    with pytest.raises(UsageError, match="a synthetic row has 1 to 16"):
        row(n_needles)


def test_a_bin_longer_than_the_datasets_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="at most 1M tokens"):
        row(bin_="1M-2M")


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_share_of_scripts_that_is_none_is_a_usage_error(percent: int) -> None:
    spec = SyntheticSpec(n_needles=2, bin=BINS[0], seed=0, non_latin=percent)
    with pytest.raises(UsageError, match=f"{percent} percent"):
        synthetic_row(spec)


def test_what_is_out_of_range_is_said_before_the_first_row_is_made() -> None:
    with pytest.raises(UsageError, match="17 needles"):
        synthetic_rows([2, 17], [BINS[-1]], 1, 0)


@pytest.mark.parametrize(
    ("position", "said"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")],
)
def test_questions_name_the_position_as_english_does(position: int, said: str) -> None:
    assert f" to the {said} (1 indexed) poem about owls. " in question(
        "n0nce", position, "poem", "owls"
    )


@pytest.mark.parametrize("bin_", ["16-64", "100-200", "300-310"])
def test_a_bin_too_small_for_the_needles_is_a_usage_error(bin_: str) -> None:
    with pytest.raises(UsageError, match=f"8 needles fits the bin {bin_}"):
        row(8, bin_)


@pytest.mark.parametrize("n_needles", NEEDLE_COUNTS)
@pytest.mark.parametrize("bin_", TINY)
def test_tiny_bins_hold_every_needle_count(n_needles: int, bin_: str) -> None:
    for made in synthetic_rows([n_needles], [parse_bin(bin_)], 12, 1):
        assert count_sample(sample(made)) in parse_bin(bin_)


@pytest.mark.parametrize("bin_", BINS, ids=str)
def test_every_bin_of_the_card_can_be_filled(bin_: Bin) -> None:
    for made in synthetic_rows(NEEDLE_COUNTS, [bin_], 1, 0):
        assert sample(made).violations() == []
        assert count_sample(sample(made)) in bin_


def test_requests_are_short_and_none_begins_another() -> None:
    assert len(FORMATS) == 10
    assert len(set(TOPICS)) == len(TOPICS) >= 438
    assert all(1 <= len(topic.split()) <= 3 for topic in TOPICS)
    identities = sorted(f"{kind} about {topic}" for kind in FORMATS for topic in TOPICS)
    assert max(len(identity.encode()) for identity in identities) <= 55
    assert not any(after.startswith(before) for before, after in pairwise(identities))


def test_every_format_has_a_form() -> None:
    assert tuple(FORMS) == FORMATS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_pieces_in_another_script_are_written_in_it(script: Script) -> None:
    names = {"Han": "CJK", "Kana": "HIRAGANA"}
    wanted = names.get(script.name, script.name.upper())
    for chars in (400, 1800, LONGEST_PIECE):
        text = piece(Dice(chars), "essay", "owls", chars=chars, script=script)
        letters = [unicodedata.name(letter) for letter in text if letter.isalpha()]
        latin = sum(name.startswith("LATIN") for name in letters)
        assert any(name.startswith(wanted) for name in letters)
        assert latin < len(letters) / 4
        assert len(text) <= chars
        assert not re.search(r"\{[A-Za-z_]+\}", text)


def test_as_many_pieces_are_in_other_scripts_as_asked_for() -> None:
    def foreign(percent: int) -> float:
        spec = SyntheticSpec(n_needles=4, bin=BINS[4], seed=1, non_latin=percent)
        made = sample(synthetic_row(spec))
        assert made.violations() == []
        assert count_sample(made) in BINS[4]
        texts = [text for text in replies(made) if len(text) > 200]
        latin = [sum(letter < "\u0250" for letter in text) / len(text) for text in texts]
        return sum(share < 0.6 for share in latin) / len(latin)

    assert foreign(0) == 0
    assert 0.2 < foreign(40) < 0.6
    assert foreign(100) > 0.95


@pytest.mark.parametrize("rule", [*RULES, "hostile"])
def test_every_template_can_be_filled(rule: str) -> None:
    for template in HOSTILE if rule == "hostile" else RULES[rule]:
        filled = fill(Dice(template), template, {"topic": "owls", "format": "essay"}, RULES)
        assert not re.search(r"\{[A-Za-z_]+\}", filled)


def test_articles_and_capitals_follow_what_is_filled_in() -> None:
    given = {"thing": "otter"}
    assert fill(Dice(0), "A {thing}, a {thing}, the {Thing}, a {Thing}", given, {}) == (
        "An otter, an otter, the Otter, an Otter"
    )


@given(chars=st.integers(40, 5000), kind=st.sampled_from(FORMATS), topic=st.sampled_from(TOPICS))
@settings(max_examples=60, deadline=None)
def test_a_piece_is_no_longer_than_asked_for(chars: int, kind: str, topic: str) -> None:
    text = piece(Dice(chars), kind, topic, chars=chars)
    assert 0 < len(text) <= max(chars, 80)
    assert len(text) <= LONGEST_PIECE
    assert len(text.encode()) <= 8000
