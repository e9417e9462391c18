"""The OpenAI-compatible API as this program uses it: health, models, tokenize, chat."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpx
from httpx_sse import EventSource, SSEError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from mrcr_action.sample import Message
from mrcr_action.client.errors import (
    ApiError,
    Broken,
    Denied,
    TimedOut,
    Unavailable,
    error_of,
    reason_of,
)
from mrcr_action.client.retry import retried
from mrcr_action.client.stream import Completion, read_stream
from mrcr_action.errors import UsageError
from mrcr_action.proxies import proxy_for
from mrcr_action.request import as_json

CONNECT_SECONDS = 10.0

AT_ONCE_SECONDS = 2.0
"""A connection that breaks this soon after a request took nothing on: a server restarts, a proxy
is full. Later, a long prompt may have been worked on, and is not sent again."""

HEALTH_SECONDS = 5.0
QUERY_SECONDS = 120.0
"""Limit for /v1/models and /tokenize; counting a million tokens takes a while."""
METRICS_SECONDS = 20.0
"""Limit for /metrics, without which a run can do."""
METRICS_BYTES = 16_000_000
"""Most of /metrics that is read; vLLM's with 64 engines has some 2 MB."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One entry of /v1/models."""

    id: str
    root: str | None
    max_model_len: int | None


@dataclass(frozen=True, slots=True)
class Tokenized:
    """What /tokenize says about a text or a conversation."""

    count: int
    ids: tuple[int, ...] | None
    """None where the server counts only."""
    text: str
    """The tokens' own spelling, joined: special tokens show, blanks may be spelt in other letters.
    Empty where the server does not tell."""


@dataclass(frozen=True, slots=True)
class Health:
    """What a look at /health found."""

    status: int | None
    """None for no answer."""
    trouble: str
    """Why the server is not healthy, in a few words; empty when it is."""


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

        Raises:
            UsageError: the address, or a proxy of the environment, is none.
        """
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._request_timeout = request_timeout
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = httpx.AsyncClient(
                base_url=self.base_url,
                headers=headers,
                transport=transport,
                # A proxy of the environment must never get between this program and a server on
                # this machine; see docs/architecture.md.
                proxy=proxy_for(self.base_url),
                verify=httpx.create_ssl_context(),
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(QUERY_SECONDS, connect=CONNECT_SECONDS, pool=None),
                limits=httpx.Limits(max_connections=connections + 4, keepalive_expiry=30),
            )
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
            raise UsageError(
                f"the server cannot be addressed: {reason_of(error)}",
                hint="Check --base-url, and the proxy variables of the environment (HTTP_PROXY,"
                " HTTPS_PROXY, ALL_PROXY, NO_PROXY).",
            ) from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def health(self) -> Health:
        """What /health says within 5 seconds; never an exception."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                response = await self._http.get("/health", timeout=HEALTH_SECONDS)
        except (httpx.HTTPError, TimeoutError) as error:
            return Health(None, f"no answer: {reason_of(error)}")
        status = response.status_code
        return Health(status, "" if status == httpx.codes.OK else f"/health says HTTP {status}")

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

    async def metrics(self, *, seconds: float | None = None) -> str:
        """The text of /metrics, in Prometheus' format.

        Args:
            seconds: limit; None for `METRICS_SECONDS`.

        Raises:
            ApiError: no answer in time, a refusal, or more than `METRICS_BYTES`.
        """
        limit = METRICS_SECONDS if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                status, body = await self._bounded("/metrics", METRICS_BYTES)
        except TimeoutError as error:
            raise TimedOut(f"/metrics: no complete answer within {limit:g} s") from error
        except httpx.HTTPError as error:
            raise Unavailable(f"/metrics: no answer ({reason_of(error)})") from error
        if status != httpx.codes.OK:
            raise error_of(httpx.Response(status, content=body))
        return body.decode("utf-8", "replace")

    async def _bounded(self, path: str, most: int) -> tuple[int, bytes]:
        """Status and body of what may be of any length; compressed, it could be longer still."""
        body = bytearray()
        plain = {"Accept-Encoding": "identity"}
        async with self._http.stream("GET", path, headers=plain) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Broken(f"{path}: compressed, though it was asked for as it is")
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > most:
                    raise Broken(f"{path}: more than {most:,} bytes")
        return response.status_code, bytes(body)

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
        body = _conversation(model, messages, template_kwargs)
        return _count(await self._json("POST", "/tokenize", body))

    async def tokenize(
        self, model: str, messages: Sequence[Message], *, template_kwargs: Mapping[str, Any]
    ) -> Tokenized:
        """The tokens themselves of a conversation, as `count_tokens` counts them.

        Raises:
            Rejected: also what a chat template raises.
        """
        body = _conversation(model, messages, template_kwargs) | {"return_token_strs": True}
        return _tokenized(await self._json("POST", "/tokenize", body))

    async def tokenize_text(self, model: str, text: str) -> Tokenized:
        """The tokens of a text alone, without a chat template and without special tokens."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return _tokenized(await self._json("POST", "/tokenize", body))

    async def chat(self, body: Mapping[str, Any], *, start: str | None = None) -> Completion:
        """Ask for one completion, streamed, and return it once it has arrived whole.

        Args:
            body: of the request.
            start: what the text has to start with; a response that cannot any more is cut there,
                and its connection closed.

        Raises:
            Rejected, Denied, Unavailable, Broken: see `mrcr_action.client.errors`.
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
                return await read_stream(EventSource(response), begin=begin, start=start)
        except TimeoutError as error:
            raise TimedOut(f"no complete answer within {limit:g} s") from error
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise Unavailable("no connection within 10 s") from error
            raise TimedOut(f"no complete answer within {limit:g} s") from error
        except (
            httpx.ConnectError,
            httpx.ReadError,
            httpx.WriteError,
            httpx.RemoteProtocolError,
        ) as error:
            if started:
                raise Broken(f"the connection broke mid-answer ({reason_of(error)})") from error
            waited = time.perf_counter() - begin
            if isinstance(error, httpx.ConnectError) or waited < AT_ONCE_SECONDS:
                raise Unavailable(f"no answer ({reason_of(error)})") from error
            raise Broken(f"no answer after {waited:.0f} s ({reason_of(error)})") from error
        except (httpx.HTTPError, httpx.InvalidURL, SSEError) as error:
            raise Broken(f"not an event stream ({reason_of(error)})") from error

    async def _json(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return await retried(lambda: self._json_once(method, path, body))

    async def _json_once(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        try:
            # httpx limits each read only, and a server can trickle.
            async with asyncio.timeout(QUERY_SECONDS):
                response = await self._http.request(method, path, json=body)
        except TimeoutError as error:
            raise TimedOut(f"{path}: no complete answer within {QUERY_SECONDS:g} s") from error
        except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError) as error:
            raise Unavailable(f"{path}: no answer ({reason_of(error)})") from error
        except httpx.HTTPError as error:
            raise Broken(f"{path}: {reason_of(error)}") from error
        if response.status_code != httpx.codes.OK:
            raise error_of(response)
        try:
            payload = response.json()
        except ValueError as error:
            raise Broken(f"{path}: the answer is not JSON: {response.text[:80]!r}") from error
        if not isinstance(payload, dict):
            raise Broken(f"{path}: the answer is not a JSON object")
        return payload


def _conversation(
    model: str, messages: Sequence[Message], template_kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "model": model,
        "messages": as_json(messages),
        "add_generation_prompt": True,
        "chat_template_kwargs": dict(template_kwargs),
    }


def _count(payload: Mapping[str, Any]) -> int:
    count = _whole(payload.get("count"))
    if count is None:
        raise Broken("/tokenize answered without a count")
    return count


def _tokenized(payload: Mapping[str, Any]) -> Tokenized:
    ids, pieces = payload.get("tokens"), payload.get("token_strs")
    if not isinstance(ids, list) or any(_whole(item) is None for item in ids):
        ids = None
    if not isinstance(pieces, list):
        pieces = []
    return Tokenized(
        count=_count(payload),
        ids=None if ids is None else tuple(ids),
        text="".join(piece for piece in pieces if isinstance(piece, str)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
