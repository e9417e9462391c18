"""A streamed chat completion: server-sent events up to ``[DONE]``, read into one answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from mrcr_action.client.errors import Broken

if TYPE_CHECKING:
    from httpx_sse import EventSource


NO_ANSWERS = {"abort", "error", "content_filter", "tool_calls", "function_call"}
"""Finish reasons that come with something else than the model's own whole or cut text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer that arrived whole."""

    text: str
    """The content alone; reasoning is counted, never graded."""
    finish_reason: str
    reasoning_chars: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None = None
    """Of the prompt, from the prefix cache; None where the server does not tell."""
    seconds_to_first_token: float | None
    seconds: float


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Chunk(msgspec.Struct):
    """One event of a streamed completion, with the fields that are read; others are ignored."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


async def read_stream(source: EventSource, *, begin: float) -> Completion:
    """Read events up to ``[DONE]``; anything short of a finished answer is `Broken`."""
    parts: list[str] = []
    reasoning_chars = 0
    finish: str | None = None
    first: float | None = None
    usage = _Usage()
    done = False
    async for event in source.aiter_sse():
        if not event.data:
            continue  # a blank line behind a comment, in a stream whose events have ids
        if event.data == "[DONE]":
            done = True
            break
        chunk = _chunk(event.data)
        usage = chunk.usage or usage
        for choice in chunk.choices or []:
            if choice.index:
                continue  # one completion is asked for and read
            delta = choice.delta or _Delta()
            content = delta.content or ""
            thought = delta.reasoning or delta.reasoning_content or ""
            if (content or thought) and first is None:
                first = time.perf_counter() - begin
            parts.append(content)
            reasoning_chars += len(thought)
            finish = choice.finish_reason or finish
    if finish is None:
        raise Broken(
            "the stream ended without a finish reason" if done or parts else "an empty answer"
        )
    if not done:
        raise Broken("the stream was cut off before its end")
    if finish in NO_ANSWERS:
        raise Broken(f"the server ended the answer with finish_reason {finish}")
    return Completion(
        text="".join(parts),
        finish_reason=finish,
        reasoning_chars=reasoning_chars,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=(usage.prompt_tokens_details or _Details()).cached_tokens,
        seconds_to_first_token=first,
        seconds=time.perf_counter() - begin,
    )


def _chunk(data: str) -> _Chunk:
    try:
        chunk = _decode_chunk(data)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Broken(f"the stream carried something unreadable: {data[:80]!r}") from error
    if chunk.error:
        text = chunk.error.get("message") if isinstance(chunk.error, dict) else chunk.error
        raise Broken(f"the stream carried an error: {' '.join(str(text).split())[:500]}")
    return chunk
