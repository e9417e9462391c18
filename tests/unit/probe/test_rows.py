"""Rows for the probe: what it can read, in the dataset's shape."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from mrcr_action.probe.rows import MOST_ALIKE, SIZES, rows, sizes
from mrcr_action.sample import Sample


@pytest.mark.parametrize("longest", [2048, 8192, 65536])
def test_rows_keep_the_dataset_s_invariants_and_are_not_too_long(longest: int) -> None:
    made = [*rows(longest)]
    samples = [Sample.from_row(row, shard="s", index=at) for at, row in enumerate(made)]
    assert [sample.violations() for sample in samples] == [[]] * len(samples)
    assert {sample.n_needles for sample in samples} == {2, 4, 8}
    # A token is a byte, and each turn has two more.
    tokens = [s.n_chars + 2 * len(s.messages) for s in samples]
    assert max(tokens) <= longest * 1.02
    assert max(tokens) >= longest * 0.8


@pytest.mark.parametrize("longest", [8192, 65536])
def test_no_request_comes_more_often_than_the_probe_can_count(longest: int) -> None:
    for row in rows(longest):
        asked = Counter(m["content"] for m in json.loads(row["prompt"]) if m["role"] == "user")
        assert max(asked.values()) <= MOST_ALIKE


def test_every_needle_of_a_conversation_has_its_turn() -> None:
    wanted: Counter[tuple[int, int]] = Counter()
    for row in rows():
        messages = json.loads(row["prompt"])
        request = messages[row["desired_msg_index"]]["content"]
        places = [at for at, m in enumerate(messages) if m["content"] == request]
        wanted[row["n_needles"], places.index(row["desired_msg_index"])] += 1
    for n_needles in (2, 4, 8):
        counts = [wanted[n_needles, at] for at in range(n_needles)]
        assert counts == [len(SIZES) // n_needles] * n_needles


def test_the_same_rows_come_every_time_and_others_under_another_name() -> None:
    assert [*rows()] == [*rows()]
    assert [*rows()] != [*rows(name="other")]


def test_longer_ones_are_added_to_the_usual_ones() -> None:
    assert sizes(8192) == list(SIZES)
    assert sizes(16384)[: len(SIZES)] == list(SIZES)
    assert max(sizes(32768)) <= 32768
