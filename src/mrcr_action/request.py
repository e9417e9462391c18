"""The body of a chat completion as a run sends it, whatever conversation it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrcr_action.config import RunConfig
    from mrcr_action.sample import Message


def request_body(
    config: RunConfig,
    model: str,
    messages: Sequence[Message],
    *,
    salt: str | None = None,
    asks_margin: bool = False,
) -> dict[str, Any]:
    """The body of one chat completion.

    Args:
        config: what is sent with every request.
        model: the served name.
        messages: the conversation.
        salt: requests share cached prefixes only with those of the same one (vLLM's
            ``cache_salt``); None sends none.
        asks_margin: ask for the log-probabilities of the two best tokens each time.

    Every sampling parameter is sent with its neutral value, since a server takes what is not
    sent from the model's generation_config.json. ``extra_body`` overrides everything but the
    seed, as in vLLM's script; a null in it drops the field, for servers that refuse it.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": as_json(messages),
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "cache_salt": salt,
        "logprobs": True if asks_margin else None,
        "top_logprobs": 2 if asks_margin else None,
        **config.request_extras,
        "seed": config.seed,
    }
    return {key: value for key, value in body.items() if value is not None}


def as_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as the API takes them."""
    return [{"role": m.role, "content": m.content} for m in messages]


def template_kwargs(config: RunConfig) -> Mapping[str, Any]:
    """The ``chat_template_kwargs`` of every request; empty without any."""
    kwargs = config.request_extras.get("chat_template_kwargs")
    return kwargs if isinstance(kwargs, Mapping) else {}
