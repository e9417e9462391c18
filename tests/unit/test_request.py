from __future__ import annotations

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.request import request_body, template_kwargs
from mrcr_action.sample import Message

MESSAGES = [Message("user", "Hi"), Message("assistant", "Hm")]


def test_neutral_sampling_is_sent_unless_extra_body_says_otherwise() -> None:
    config = RunConfig(
        seed=3,
        max_tokens=9,
        extra_body={"temperature": 0.7, "top_k": None, "seed": 8, "stop": ["x"]},
    )

    assert request_body(config, "m", MESSAGES) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hm"}],
        "max_tokens": 9,
        "temperature": 0.7,
        "top_p": 1.0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "stop": ["x"],
        "seed": 3,
    }


def test_thinking_is_forbidden_by_default() -> None:
    body = request_body(RunConfig(), "m", MESSAGES)

    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert template_kwargs(RunConfig()) == {"enable_thinking": False}


@pytest.mark.parametrize("extra", [{}, {"chat_template_kwargs": None}, {"chat_template_kwargs": 1}])
def test_a_run_may_have_no_arguments_for_the_template(extra: dict[str, object]) -> None:
    assert template_kwargs(RunConfig(extra_body=extra)) == {}
