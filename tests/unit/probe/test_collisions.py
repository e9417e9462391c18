"""Rows that cannot be read because of a hash of few bits are named, and are those misread."""

from __future__ import annotations

from tests.unit.probe.bees import PROMPT, QUESTION, REQUEST, turn

from mrcr_action.probe import layout as at
from mrcr_action.probe.build import weights
from mrcr_action.probe.collisions import identity, rivals, shown
from mrcr_action.probe.reference import Trace, computed, forward, prepared
from mrcr_action.probe.variant import Variant
from mrcr_action.probe.vocabulary import ASSISTANT, BOS, END, USER, encode

NARROW = Variant(head_size=64)


def hashed(text: str) -> list[int]:
    return shown(identity(text), at.WIDE)


def test_hashes_are_those_that_the_model_computes() -> None:
    trace: Trace = forward(PROMPT, weights(), dtype="bfloat16")
    first = PROMPT.index(ASSISTANT)
    requests = trace.residuals[10][:, at.REQUEST_HASH]
    assert requests[first].tolist() == hashed(REQUEST)
    assert requests[-1].tolist() == hashed(QUESTION)
    assert trace.residuals[10][-1, at.WANTED_HASH].tolist() == hashed(REQUEST)


def test_no_hash_covers_more_than_64_tokens() -> None:
    assert len(identity("write a " + "long " * 30)) == 64
    assert identity("Hello.") == []


def test_a_row_with_two_requests_of_one_hash_is_named_and_misread() -> None:
    other = "write a poem about 195852"  # found by trying numbers
    asked = [other, REQUEST, REQUEST, QUESTION]
    assert rivals(asked, at.NARROW) == [other]
    assert rivals(asked, at.WIDE) == []
    assert rivals([REQUEST, "write a poem about fields", QUESTION], at.NARROW) == []

    prompt = [BOS]
    for n, text in enumerate(asked[:-1]):
        prompt += [*turn(USER, text), *turn(ASSISTANT, f"{n}. Hum")]
    prompt += [*turn(USER, QUESTION), ASSISTANT]
    for variant, piece in ((Variant(), "2. Hum"), (NARROW, "1. Hum")):
        answer = [*encode("aYooSG8CQg" + piece), END]
        trace = computed(
            prompt + answer[:-1], prepared(weights(variant), "bfloat16"), dtype="bfloat16"
        )
        assert trace.greedy()[len(prompt) - 1 :] == answer
