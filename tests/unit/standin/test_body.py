from __future__ import annotations

from typing import Any

import pytest

from mrcr_action.standin.body import BadRequest, parse_chat

MESSAGES = [{"role": "user", "content": "Hi!"}]


@pytest.mark.parametrize(
    ("body", "salt"),
    [({}, ""), ({"cache_salt": None}, ""), ({"cache_salt": "mrcr-1"}, "mrcr-1")],
)
def test_a_salt_may_be_left_out(body: dict[str, Any], salt: str) -> None:
    assert parse_chat({"messages": MESSAGES, **body}).cache_salt == salt


@pytest.mark.parametrize("salt", ["", 1, True, ["x"], "a/b", "a@b", "a\\b", "a\0b", "x" * 129])
def test_a_salt_that_vllm_refuses_is_refused(salt: Any) -> None:
    with pytest.raises(BadRequest, match="cache_salt must") as caught:
        parse_chat({"messages": MESSAGES, "cache_salt": salt})

    assert caught.value.param == "cache_salt"
