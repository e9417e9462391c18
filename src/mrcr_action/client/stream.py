"""A streamed chat completion: server-sent events up to ``[DONE]``, read into one answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from mrcr_action.client.errors import Broken
from mrcr_action.client.logprobs import least_margin
from mrcr_action.cutting import CUT

if TYPE_CHECKING:
    from httpx_sse import EventSource


NO_ANSWERS = {"abort", "error", "content_filter", "tool_calls", "function_call"}
"""Finish reasons that come with something else than the model's own whole or cut text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer that arrived whole, or as far as it was wanted."""

    text: str
    """The content alone; reasoning is counted, never graded."""
    finish_reason: str
    reasoning_chars: int
    prompt_tokens: int | None
    completion_tokens: int | None
    """As the server counted them; of an answer that was cut, the pieces that came, each of which
    holds a token at least."""
    cached_tokens: int | None = None
    """Of the prompt, from the prefix cache; None where the server does not tell."""
    seconds_to_first_token: float | None
    seconds: float
    is_cut: bool = False
    """Whether the stream was closed since the text could no longer start as it must."""
    logit_margin: float | None = None
    """Nats by which each token led the best other one, at least; negative where it did not lead.
    None where the server sends no log-probabilities of two tokens."""


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    delta: _Delta | None = None
    logprobs: Any = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Any = None
    """Of any form: no answer is to be lost for what it says beside its text."""


class _Chunk(msgspec.Struct):
    """One event of a streamed completion, with the fields that are read; others are ignored."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class _Reading:
    """What has arrived of an answer so far."""

    def __init__(self, begin: float, start: str | None) -> None:
        self.parts: list[str] = []
        self.pieces = self.reasoning_chars = 0
        self.finish: str | None = None
        self.first: float | None = None
        self.is_cut = False
        """Whether nothing more is wanted."""
        self.margin: float | None = None
        self._begin = begin
        self._start = start
        self._head = ""

    def take(self, choice: _Choice) -> None:
        """Add a piece."""
        delta = choice.delta or _Delta()
        content = delta.content or ""
        thought = delta.reasoning or delta.reasoning_content or ""
        if content or thought:
            self.pieces += 1
            if self.first is None:
                self.first = time.perf_counter() - self._begin
        self.parts.append(content)
        self.reasoning_chars += len(thought)
        self.finish = choice.finish_reason or self.finish
        if choice.logprobs:
            self.margin = min(
                (m for m in (self.margin, least_margin(choice.logprobs)) if m is not None),
                default=None,
            )
        # An answer that has come to its end anyway is read like any other.
        if self.finish is None and self._is_lost(content):
            self.finish, self.is_cut = CUT, True

    def _is_lost(self, content: str) -> bool:
        """Whether the text cannot start as it must any more."""
        if self._start is None or len(self._head) == len(self._start):
            return False
        self._head += content[: len(self._start) - len(self._head)]
        return not self._start.startswith(self._head)


async def read_stream(source: EventSource, *, begin: float, start: str | None = None) -> Completion:
    """Read events up to ``[DONE]``; anything short of a finished answer is `Broken`.

    Args:
        source: the events.
        begin: when the request was sent, by `time.perf_counter`.
        start: what the text has to start with; as soon as it cannot any more, reading ends. None
            reads everything.
    """
    reading = _Reading(begin, start)
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
            if not choice.index:  # one completion is asked for and read
                reading.take(choice)
        if reading.is_cut:
            break
    finish = reading.finish
    if finish is None:
        has_begun = done or reading.parts
        raise Broken("the stream ended without a finish reason" if has_begun else "an empty answer")
    if not done and not reading.is_cut:
        raise Broken("the stream was cut off before its end")
    if finish in NO_ANSWERS:
        raise Broken(f"the server ended the answer with finish_reason {finish}")
    return Completion(
        text="".join(reading.parts),
        finish_reason=finish,
        reasoning_chars=reading.reasoning_chars,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=reading.pieces if reading.is_cut else usage.completion_tokens,
        cached_tokens=_cached(usage),
        seconds_to_first_token=reading.first,
        seconds=time.perf_counter() - begin,
        is_cut=reading.is_cut,
        logit_margin=reading.margin,
    )


def _cached(usage: _Usage) -> int | None:
    details = usage.prompt_tokens_details
    count = details.get("cached_tokens") if isinstance(details, dict) else None
    return count if type(count) is int and count >= 0 else None


def _chunk(data: str) -> _Chunk:
    try:
        chunk = _decode_chunk(data)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Broken(f"the stream carried something unreadable: {data[:80]!r}") from error
    if chunk.error:
        text = chunk.error.get("message") if isinstance(chunk.error, dict) else chunk.error
        raise Broken(f"the stream carried an error: {' '.join(str(text).split())[:500]}")
    return chunk
