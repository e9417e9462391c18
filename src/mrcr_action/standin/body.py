"""The body of a request, as far as the stand-in heeds it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mrcr_action.standin.reader import Turn

_LONGEST_SALT = 128
_NEVER_IN_SALTS = frozenset("@/\\\0")


class BadRequest(Exception):
    """The body of a request cannot be used; the text says why, ``param`` which part of it."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """The part of a request's body that the stand-in heeds."""

    model: str | None
    turns: tuple[Turn, ...]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    wants_logprobs: bool
    template_kwargs: Any
    """``chat_template_kwargs``, as they came."""
    cache_salt: str
    """Prompts of different salts share nothing in the cache; empty for none."""


def parse_json(body: bytes) -> dict[str, Any]:
    """The object that a body holds.

    Raises:
        BadRequest: it holds none.
    """
    try:
        value = json.loads(body)
    except ValueError as error:
        raise BadRequest(f"The body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest("The body is not a JSON object")
    return value


def parse_turns(body: dict[str, Any]) -> tuple[Turn, ...]:
    """The ``messages`` of a body; a content in parts is joined.

    Raises:
        BadRequest: there are none, or one lacks a role or a text content.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages must be a list of at least one message", "messages")
    return tuple(_turn(message) for message in messages)


def parse_chat(body: dict[str, Any]) -> ChatRequest:
    """Read the body of a chat request.

    Raises:
        BadRequest: a field has the wrong type.
    """
    turns = parse_turns(body)
    limit = body.get("max_completion_tokens")
    if limit is None:
        limit = body.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise BadRequest(f"max_tokens must be at least 1, got {limit}.", "max_tokens")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadRequest("stream_options must be an object", "stream_options")
    return ChatRequest(
        model=body.get("model"),
        turns=turns,
        stream=bool(body.get("stream")),
        include_usage=bool(options.get("include_usage")),
        max_tokens=limit,
        wants_logprobs=bool(body.get("logprobs")),
        template_kwargs=body.get("chat_template_kwargs"),
        cache_salt=_cache_salt(body.get("cache_salt")),
    )


def _cache_salt(value: Any) -> str:
    """Which salts are refused is vLLM's choice (0.32)."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        raise BadRequest("cache_salt must be a text that is not empty.", "cache_salt")
    if len(value) > _LONGEST_SALT or not _NEVER_IN_SALTS.isdisjoint(value):
        raise BadRequest(
            f"cache_salt must not be longer than {_LONGEST_SALT} characters, nor hold any of"
            " @, /, \\ and NUL.",
            "cache_salt",
        )
    return value


def _turn(message: Any) -> Turn:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise BadRequest("every message needs a role", "messages")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if content is None:
        content = ""
    if not isinstance(content, str):
        raise BadRequest("the content of a message must be text", "messages")
    return Turn(message["role"], content)
