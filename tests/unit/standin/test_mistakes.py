from __future__ import annotations

from mrcr_action.diagnosis.repeats import repeat_at_end
from mrcr_action.standin.mistakes import derailed, looped, other_nonce
from mrcr_action.standin.reader import Turn, read

TEXT = "A lamp is lit; the night is long, and nobody is at the door."


def test_what_goes_wrong_after_some_tokens_is_right_before() -> None:
    for made in (derailed(TEXT, 5), looped(TEXT, 5)):
        assert made.startswith(TEXT[:20])
        assert TEXT[20:40] not in made


def test_a_loop_says_one_thing_up_to_its_end() -> None:
    found = repeat_at_end(looped(TEXT, 5))

    assert found is not None
    assert found.times >= 60


def test_another_nonce_has_the_same_form_and_no_character_of_it() -> None:
    made = other_nonce("aB3dE6gH9k")

    assert made == other_nonce("aB3dE6gH9k")
    assert len(made) == 10
    assert made.isalnum()
    assert all(one != own for one, own in zip(made, "aB3dE6gH9k", strict=True))


def test_a_distractor_is_the_reply_to_another_request() -> None:
    question = (
        "Prepend aB3dE6gH9k to the 1st (1 indexed) poem about lamps. Do not include any other text"
        " in your response."
    )
    turns = [
        Turn("user", "write a poem about lamps"),
        Turn("assistant", TEXT),
        Turn("user", "write a poem about rivers"),
        Turn("assistant", "The river runs."),
        Turn("user", question),
    ]

    assert read(turns, distractor=True).text == "The river runs."
    assert "lamps" in read([*turns[:2], turns[4]], distractor=True).text
