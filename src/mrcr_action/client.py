"""The OpenAI-compatible API as this program uses it: health, models, tokenize, chat.

What can go wrong is told apart here, because it decides what a sample becomes::

    ApiError
    ├── Rejected       the server refused this very request (400, 413, 422): not a zero
    ├── Denied         the key or the model name is wrong (401, 403, 404): stop the run
    ├── Unavailable    nothing was processed (connection refused or reset before the first
    │                  byte, 429, 503): safe to send again
    └── Broken         the answer was lost on the way (500, a cut stream, an error event,
                       a time-out): a failure of the server, not of the model
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx
import msgspec
from httpx_sse import EventSource, SSEError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from mrcr_action.sample import Message

CONNECT_SECONDS = 10.0
HEALTH_SECONDS = 5.0
QUERY_SECONDS = 120.0
"""Limit for /v1/models and /tokenize; counting a million tokens takes a while."""


class ApiError(Exception):
    """A request that did not end in an answer; the text is one line for a person."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Rejected(ApiError):
    """The server refused this request for what it is, such as a prompt over the window."""


class Denied(ApiError):
    """The server refuses every such request: wrong key, unknown model or route."""


class Unavailable(ApiError):
    """The server took nothing on; the same request may be sent again."""


class Broken(ApiError):
    """The server began and did not finish."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One entry of /v1/models."""

    id: str
    root: str | None
    max_model_len: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer that arrived whole."""

    text: str
    """The content alone; reasoning is counted, never graded."""
    finish_reason: str
    reasoning_chars: int
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds_to_first_token: float | None
    seconds: float


class Client:
    """One server. Used as an async context manager; safe for concurrent requests."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        request_timeout: float = 1800.0,
        connections: int = 8,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            base_url: root of the server, with or without a base path and ``/v1``.
            api_key: sent as a bearer token.
            request_timeout: seconds that one chat completion may take in all.
            connections: most connections to keep.
            transport: replaces the network in tests.
        """
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._request_timeout = request_timeout
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=self.base_url,
            headers=headers,
            transport=transport,
            # A proxy of the environment must never get between this program and a server on
            # this machine; see docs/architecture.md.
            trust_env=not is_loopback(base_url),
            follow_redirects=False,
            timeout=httpx.Timeout(QUERY_SECONDS, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=connections + 4, keepalive_expiry=30),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def healthy(self) -> bool:
        """Whether /health answers 200 within 5 seconds; never raises for a silent server."""
        try:
            response = await self._http.get("/health", timeout=HEALTH_SECONDS)
        except httpx.HTTPError:
            return False
        return response.status_code == httpx.codes.OK

    async def speaks(self) -> bool:
        """Whether /v1/models answers at all, be it with a refusal; some servers lack /health."""
        try:
            await self.models()
        except Denied as error:
            return error.status in {401, 403}
        except ApiError:
            return False
        return True

    async def models(self) -> list[ModelEntry]:
        """What the server serves, in its own order."""
        payload = await self._json("GET", "/v1/models")
        entries = payload.get("data")
        if not isinstance(entries, list):
            raise Broken("/v1/models answered without a list of models")
        return [
            ModelEntry(entry["id"], _text(entry.get("root")), _whole(entry.get("max_model_len")))
            for entry in entries
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        ]

    async def version(self) -> str | None:
        """vLLM's version, where the server tells it."""
        try:
            return _text((await self._json("GET", "/version")).get("version"))
        except ApiError:
            return None

    async def count_tokens(
        self, model: str, messages: Sequence[Message], *, template_kwargs: Mapping[str, Any]
    ) -> int:
        """Tokens of a conversation as the server's chat template renders it.

        Args:
            model: the served name.
            messages: the conversation; the generation prompt is counted too.
            template_kwargs: the request's own ``chat_template_kwargs``; with others the count
                would be off, since they may add tokens (vllm-project/vllm#40689).
        """
        body = {
            "model": model,
            "messages": as_json(messages),
            "add_generation_prompt": True,
            "chat_template_kwargs": dict(template_kwargs),
        }
        count = _whole((await self._json("POST", "/tokenize", body)).get("count"))
        if count is None:
            raise Broken("/tokenize answered without a count")
        return count

    async def chat(self, body: Mapping[str, Any]) -> Completion:
        """Ask for one completion, streamed, and return it once it has arrived whole.

        Raises:
            Rejected, Denied, Unavailable, Broken: see the head of this module.
        """
        request = {**body, "stream": True, "stream_options": {"include_usage": True}}
        limit = self._request_timeout
        timeout = httpx.Timeout(limit, connect=CONNECT_SECONDS, pool=None)
        started, begin = False, time.perf_counter()
        try:
            async with (
                asyncio.timeout(limit),
                self._http.stream(
                    "POST", "/v1/chat/completions", json=request, timeout=timeout
                ) as response,
            ):
                started = True
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise error_of(response)
                return await _read_stream(EventSource(response), begin=begin)
        except TimeoutError as error:
            raise Broken(f"no complete answer within {limit:g} s") from error
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise Unavailable("no connection within 10 s") from error
            raise Broken(f"no complete answer within {limit:g} s") from error
        except (
            httpx.ConnectError,
            httpx.ReadError,
            httpx.WriteError,
            httpx.RemoteProtocolError,
        ) as error:
            if started:
                raise Broken(f"the connection broke mid-answer ({_reason(error)})") from error
            raise Unavailable(f"no answer ({_reason(error)})") from error
        except (httpx.HTTPError, httpx.InvalidURL, SSEError) as error:
            raise Broken(f"not an event stream ({_reason(error)})") from error

    async def _json(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            response = await self._http.request(method, path, json=body)
        except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError) as error:
            raise Unavailable(f"{path}: no answer ({_reason(error)})") from error
        except httpx.HTTPError as error:
            raise Broken(f"{path}: {_reason(error)}") from error
        if response.status_code != httpx.codes.OK:
            raise error_of(response)
        try:
            payload = response.json()
        except ValueError as error:
            raise Broken(f"{path}: the answer is not JSON: {response.text[:80]!r}") from error
        if not isinstance(payload, dict):
            raise Broken(f"{path}: the answer is not a JSON object")
        return payload


def is_loopback(url: str) -> bool:
    """Whether an address names this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def as_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Messages as the API takes them."""
    return [{"role": m.role, "content": m.content} for m in messages]


def error_of(response: httpx.Response) -> ApiError:
    """The error that an HTTP status stands for, with the server's own words."""
    status = response.status_code
    message = f"HTTP {status}: {_message(response)}"
    if status in {400, 413, 422}:
        return Rejected(message, status=status)
    if status in {401, 403, 404, 405}:
        return Denied(message, status=status)
    if status in {429, 503}:
        return Unavailable(message, status=status, retry_after=_retry_after(response))
    return Broken(message, status=status)


def _message(response: httpx.Response) -> str:
    """What the server says, from vLLM's ``{"error": {"message": …}}`` or whatever came."""
    try:
        payload = response.json()
    except ValueError:
        payload = None
    text: Any = None
    if isinstance(payload, dict):
        inner = payload.get("error", payload)
        text = inner.get("message") if isinstance(inner, dict) else inner
        text = text or payload.get("detail")
    if not isinstance(text, str):
        text = response.text or response.reason_phrase
    return " ".join(text.split())[:500]


def _retry_after(response: httpx.Response) -> float:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct):
    """One event of a streamed completion, with the fields that are read; others are ignored."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


async def _read_stream(source: EventSource, *, begin: float) -> Completion:
    """Read events up to ``[DONE]``; anything short of a finished answer is `Broken`."""
    parts: list[str] = []
    reasoning_chars = 0
    finish: str | None = None
    first: float | None = None
    usage = _Usage()
    done = False
    async for event in source.aiter_sse():
        if event.data == "[DONE]":
            done = True
            break
        chunk = _chunk(event.data)
        usage = chunk.usage or usage
        for choice in chunk.choices or []:
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
    if finish in {"abort", "error"}:
        raise Broken(f"the server gave up on the request (finish_reason {finish})")
    return Completion(
        text="".join(parts),
        finish_reason=finish,
        reasoning_chars=reasoning_chars,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
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


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
