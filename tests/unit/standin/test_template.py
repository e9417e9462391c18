from __future__ import annotations

import pytest

from mrcr_action.standin.body import BadRequest
from mrcr_action.standin.reader import Turn
from mrcr_action.standin.template import rendered, rendered_ids, require_alternation
from mrcr_action.standin.tokens import prompt_tokens


def turns(roles: str) -> list[Turn]:
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [Turn(names[role], f"text {index}") for index, role in enumerate(roles)]


@pytest.mark.parametrize("roles", ["u", "ua", "uau", "s", "su", "suau"])
def test_roles_that_alternate_are_taken(roles: str) -> None:
    require_alternation(turns(roles))


@pytest.mark.parametrize("roles", ["uu", "uuau", "a", "au", "sa", "us", "suu", "uaa"])
def test_roles_that_do_not_alternate_are_refused_in_the_usual_words(roles: str) -> None:
    with pytest.raises(BadRequest, match=r"^Conversation roles must alternate user/assistant/"):
        require_alternation(turns(roles))


def test_a_conversation_has_as_many_ids_as_it_counts() -> None:
    asked = turns("uuau")

    assert len(rendered_ids(asked, None)) == prompt_tokens(turn.content for turn in asked)


def test_ids_change_with_roles_and_with_the_arguments_of_the_template() -> None:
    plain = rendered_ids(turns("uau"), {"a": 1, "b": 2})

    assert rendered_ids(turns("uau"), {"b": 2, "a": 1}) == plain
    assert rendered_ids(turns("uau"), {"a": 1}) != plain
    assert rendered_ids(turns("usu"), {"a": 1, "b": 2}) != plain


def test_a_rendered_conversation_has_four_characters_for_each_token() -> None:
    asked = [Turn("user", "five!"), Turn("assistant", ""), Turn("user", "half a pair \ud83d")]

    assert len(rendered(asked, None)) == 4 * len(rendered_ids(asked, None))


def test_a_conversation_that_goes_on_begins_with_the_same_tokens() -> None:
    asked = turns("uau")

    assert rendered_ids(asked, None)[:12] == rendered_ids(asked[:2], None)
    assert rendered(asked, None).startswith(rendered(asked[:2], None))
