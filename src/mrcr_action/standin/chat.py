"""Chat completions: what is said, and its shape over the wire."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from mrcr_action.standin.mistakes import FURTHER, REFUSAL, derailed, looped, other_nonce
from mrcr_action.standin.reader import edit, garble, read
from mrcr_action.standin.steps import Data, Die, Head, Reset, Step, Wait, json_bytes
from mrcr_action.standin.tokens import CHARACTERS_PER_TOKEN, text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mrcr_action.standin.body import ChatRequest
    from mrcr_action.standin.faults import Effects
    from mrcr_action.standin.slips import Slip

_DELTA_SIZES = (8, 12, 16, 10, 14)
"""Characters a delta holds, in turn: uneven, so that no reader can rely on a size."""

_LEAD = 56.0
"""Nats by which each token leads the second best."""

_THOUGHT = "The user wants one of several identical requests, so I count them from the start. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What every chunk of a completion repeats."""

    id: str
    created: int
    """Seconds since 1970."""
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What is said, however it will be sent."""

    reasoning: str
    content: str | None
    finish_reason: str
    """``stop``, ``length`` or ``abort``."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    """How many of the prompt's came from the cache; None where the server does not tell."""
    tells_lead: bool = False
    """Whether log-probabilities come with it; of a stream only."""

    @property
    def usage(self) -> dict[str, Any]:
        """The token counts under the API's names."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
        }
        if self.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return usage


def compose(
    request: ChatRequest,
    effects: Effects,
    slip: Slip,
    *,
    prompt_tokens: int,
    cached_tokens: int | None,
    room: int,
) -> Completion:
    """Decide what is said.

    Args:
        request: what was asked.
        effects: what goes wrong meanwhile.
        slip: what else is wrong with the answer.
        prompt_tokens: the length of the prompt, for the usage.
        cached_tokens: what the usage tells of the cache, if anything.
        room: how many tokens fit behind the prompt; ``max_tokens`` is clamped to it silently.
    """
    budget = room if request.max_tokens is None else min(request.max_tokens, room)
    if effects.truncate is not None:
        budget = min(budget, effects.truncate)
    thought = _filler(effects.think or effects.think_old or 0)
    reasoning = thought[: budget * CHARACTERS_PER_TOKEN]
    left = budget - text_tokens(len(reasoning))
    if effects.null_content:
        return Completion(
            reasoning=reasoning,
            content=None,
            finish_reason="length",
            prompt_tokens=prompt_tokens,
            completion_tokens=budget,
            cached_tokens=cached_tokens,
            tells_lead=request.wants_logprobs,
        )
    text, finish = _said(request, effects, slip), "stop"
    if effects.stop_early is not None:
        text = text[: effects.stop_early * CHARACTERS_PER_TOKEN]
    if effects.abort:
        text, finish = text[: len(text) // 2], "abort"
    if text_tokens(len(text)) > left or reasoning != thought:
        text, finish = text[: left * CHARACTERS_PER_TOKEN], "length"
    return Completion(
        reasoning=reasoning,
        content=text if text or not reasoning else None,
        finish_reason=finish,
        prompt_tokens=prompt_tokens,
        completion_tokens=text_tokens(len(reasoning)) + text_tokens(len(text)),
        cached_tokens=cached_tokens,
        tells_lead=request.wants_logprobs,
    )


def whole_steps(completion: Completion, stamp: Stamp, effects: Effects) -> Iterator[Step]:
    """The completion as one JSON object; what goes wrong midway does so within its text."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": completion.content,
        "refusal": None,
        "tool_calls": [],
        _reasoning_key(effects): completion.reasoning or None,
    }
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": completion.finish_reason,
        "stop_reason": None,
    }
    body = json_bytes(
        {
            "id": stamp.id,
            "object": "chat.completion",
            "created": stamp.created,
            "model": stamp.model,
            "choices": [choice],
            "usage": None if effects.no_usage else completion.usage,
        }
    )
    if effects.slow is not None:
        yield Wait(completion.completion_tokens / effects.slow)
    half = len(body) // 2
    length = half if effects.cut else len(body)
    headers = [("content-type", "application/json"), ("content-length", str(length))]
    yield Head(200, tuple(headers))
    yield Data(body[:half])
    yield from _midway(effects)
    if not effects.cut:
        yield Data(body[half:], completion.completion_tokens)


def stream_steps(
    completion: Completion, stamp: Stamp, effects: Effects, *, include_usage: bool
) -> Iterator[Step]:
    """The completion as server-sent events."""
    headers = [("content-type", "text/event-stream; charset=utf-8")]
    if effects.cut:
        headers.append(("connection", "close"))
    yield Head(200, tuple(headers))
    if effects.error_event:
        error = {"message": "Internal server error", "type": "InternalServerError"}
        yield _event({"error": {**error, "param": None, "code": 500}}, effects)
        yield _event("[DONE]", effects)
        return
    opening = None if effects.null_content else ""
    yield _event(_chunk(stamp, {"role": "assistant", "content": opening}), effects)
    deltas = [
        *_deltas(_reasoning_key(effects), completion.reasoning),
        *_deltas("content", completion.content or ""),
    ]
    half = len(deltas) // 2
    lead = (effects.lead or _LEAD) if completion.tells_lead else None
    for delta in deltas[:half]:
        yield from _spoken(delta, stamp, effects, lead)
    yield from _midway(effects)
    if effects.cut:
        return
    for delta in deltas[half:]:
        yield from _spoken(delta, stamp, effects, lead)
    # Tokens that showed nowhere, as when the content is null, count as well.
    rest = completion.completion_tokens - sum(tokens for _, _, tokens in deltas)
    yield _event(_chunk(stamp, {}, completion.finish_reason), effects, rest)
    if include_usage and not effects.no_usage:
        yield _event({**_chunk(stamp), "choices": [], "usage": completion.usage}, effects)
    if not effects.no_done:
        yield _event("[DONE]", effects)


def _said(request: ChatRequest, effects: Effects, slip: Slip) -> str:
    if effects.refuse:
        return REFUSAL
    answer = read(
        request.turns,
        window=effects.window,
        wrong_needle=effects.wrong_needle or slip.wrong_needle,
        distractor=effects.distractor,
    )
    text = garble(answer.text) if effects.garble or slip.garble else answer.text
    text = edit(text, places=slip.edits, seed=slip.seed)
    if effects.derail is not None:
        text = derailed(text, effects.derail)
    if effects.loop is not None:
        text = looped(text, effects.loop)
    if effects.run_on:
        text += FURTHER
    nonce = other_nonce(answer.nonce) if effects.wrong_nonce else answer.nonce
    said = text if effects.drop_nonce or slip.drop_nonce else nonce + text
    if effects.think_aloud is not None:
        return f"<think>\n{_filler(effects.think_aloud)}\n</think>\n\n{said}"
    return said


def _filler(characters: int) -> str:
    return (_THOUGHT * (characters // len(_THOUGHT) + 1))[:characters]


def _reasoning_key(effects: Effects) -> str:
    return "reasoning_content" if effects.think_old is not None else "reasoning"


def _midway(effects: Effects) -> Iterator[Step]:
    if effects.stall_mid is not None:
        yield Wait(effects.stall_mid)
    if effects.reset_mid:
        yield Reset()
    if effects.die is not None:
        yield Die(effects.die)


def _spoken(
    delta: tuple[str, str, int], stamp: Stamp, effects: Effects, lead: float | None
) -> Iterator[Step]:
    key, piece, tokens = delta
    if effects.slow is not None:
        yield Wait(tokens / effects.slow)
    chunk = _chunk(stamp, {key: piece})
    if lead is not None:
        best, second = ({"token": text, "logprob": at} for text, at in ((piece, 0.0), ("", -lead)))
        chunk["choices"][0]["logprobs"] = {"content": [{**best, "top_logprobs": [best, second]}]}
    yield _event(chunk, effects, tokens)


def _deltas(key: str, text: str) -> Iterator[tuple[str, str, int]]:
    """Pieces of a text with the tokens each completes, which add up to those of the text."""
    start = 0
    for size in cycle(_DELTA_SIZES):
        if start >= len(text):
            return
        end = min(start + size, len(text))
        yield key, text[start:end], text_tokens(end) - text_tokens(start)
        start = end


def _chunk(
    stamp: Stamp, delta: dict[str, Any] | None = None, finish_reason: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": stamp.id,
        "object": "chat.completion.chunk",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [choice],
    }


def _event(payload: dict[str, Any] | str, effects: Effects, tokens: int = 0) -> Data:
    end = b"\r\n" if effects.crlf else b"\n"
    data = payload.encode() if isinstance(payload, str) else json_bytes(payload)
    comment = b": keep-alive" + end * 2 if effects.keepalive else b""
    return Data(comment + b"data: " + data + end * 2, tokens)
