from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from mrcr_action.client import (
    ApiError,
    Broken,
    Client,
    Denied,
    Health,
    ModelEntry,
    Rejected,
    Tokenized,
    Unavailable,
)
from mrcr_action.proxies import is_loopback
from mrcr_action.sample import Message

Answer = Callable[[httpx.Request], httpx.Response]


def ask(answer: Answer, work: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """What some work with a client of this server returns."""

    async def body() -> Any:
        transport = httpx.MockTransport(answer)
        async with Client("http://server", transport=transport, **options) as client:
            return await work(client)

    return asyncio.run(body())


def chat(client: Client) -> Awaitable[Any]:
    return client.chat({"model": "m"})


def replying(status: int, **content: Any) -> Answer:
    return lambda _: httpx.Response(status, **content)


def failing(error: Exception) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    return answer


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Rejected),
        (413, Rejected),
        (422, Rejected),
        (401, Denied),
        (403, Denied),
        (404, Denied),
        (405, Denied),
        (429, Unavailable),
        (503, Unavailable),
        (301, Broken),
        (418, Broken),
        (500, Broken),
        (502, Broken),
        (504, Broken),
    ],
)
def test_a_status_says_what_becomes_of_a_request(status: int, kind: type[ApiError]) -> None:
    with pytest.raises(kind, match=f"^HTTP {status}: no") as caught:
        ask(replying(status, json={"error": {"message": "no"}}), chat)

    assert caught.value.status == status


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"json": {"error": {"message": "too\nlong", "code": 400}}}, "too long"),
        ({"json": {"error": "Unauthorized"}}, "Unauthorized"),
        ({"json": {"detail": "Not Found"}}, "Not Found"),
        ({"json": {"message": "plain"}}, "plain"),
        ({"json": {"error": None, "detail": ["a"]}}, '{"error":null,"detail":["a"]}'),
        ({"json": ["a"]}, '["a"]'),
        ({"text": "<html>\n Bad  Gateway"}, "<html> Bad Gateway"),
        ({"content": b""}, "Bad Request"),
        ({"content": b"\xff\xfe"}, "\ufffd\ufffd"),
        ({"text": "x" * 9000}, "x" * 500),
    ],
)
def test_the_servers_own_words_are_kept_on_one_line(content: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as caught:
        ask(replying(400, **content), chat)

    assert str(caught.value) == f"HTTP 400: {message}"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3), ("0", 0), ("-1", 0), ("soon", 0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("²", 0)],
)
def test_retry_after_is_read_in_seconds(header: str, seconds: float) -> None:
    with pytest.raises(Unavailable) as caught:
        ask(replying(429, headers=[(b"retry-after", header.encode("latin-1"))]), chat)

    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (httpx.ConnectError("refused"), Unavailable, "no answer (refused)"),
        (httpx.ReadError(""), Unavailable, "no answer (ReadError)"),
        (httpx.WriteError("gone"), Unavailable, "no answer (gone)"),
        (httpx.RemoteProtocolError("closed"), Unavailable, "no answer (closed)"),
        (httpx.ConnectTimeout(""), Unavailable, "no connection within 10 s"),
        (httpx.ReadTimeout(""), Broken, "no complete answer within 1800 s"),
        (httpx.ProxyError("407"), Broken, "not an event stream (407)"),
    ],
)
def test_a_connection_that_fails_before_the_answer(
    error: Exception, kind: type[ApiError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        ask(failing(error), chat)

    assert str(caught.value) == message


class Breaking(httpx.AsyncByteStream):
    """A body that ends in an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'
        raise self.error


@pytest.mark.parametrize("status", [200, 503])
def test_a_connection_that_breaks_within_the_answer_is_never_tried_again(status: int) -> None:
    stream = Breaking(httpx.ReadError("reset"))
    headers = {"content-type": "text/event-stream"}

    with pytest.raises(Broken, match=r"the connection broke mid-answer \(reset\)"):
        ask(replying(status, stream=stream, headers=headers), chat)


def test_a_whole_request_has_a_limit_however_much_trickles_in() -> None:
    class Trickle(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b": keep-alive\n\n"
                await asyncio.sleep(0.01)

    answer = replying(200, stream=Trickle(), headers={"content-type": "text/event-stream"})

    with pytest.raises(Broken, match=r"no complete answer within 0\.1 s"):
        ask(answer, chat, request_timeout=0.1)


def test_a_request_asks_for_a_stream_with_usage_and_carries_the_key() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(500)

    with pytest.raises(Broken):
        ask(answer, chat, api_key="sesame")

    assert seen[0].headers["authorization"] == "Bearer sesame"
    assert json.loads(seen[0].content) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h:1", "http://h:1/v1/models"),
        ("http://h:1/", "http://h:1/v1/models"),
        ("https://h/base", "https://h/base/v1/models"),
        ("https://h/base/v1/", "https://h/base/v1/models"),
    ],
)
def test_an_address_may_have_a_base_path_and_end_in_v1(base_url: str, url: str) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, json={"data": []})

    async def body() -> None:
        async with Client(base_url, transport=httpx.MockTransport(answer)) as client:
            await client.models()

    asyncio.run(body())

    assert seen == [url]


def test_models_are_read_and_what_is_none_is_passed_over() -> None:
    data = [
        {"id": "alias", "root": "org/Model", "max_model_len": 40960},
        {"id": "lora", "parent": "alias", "max_model_len": None},
        {"id": "odd", "root": 3, "max_model_len": "many"},
        {"id": "true", "max_model_len": True},
        {"id": 7},
        "text",
    ]

    assert ask(replying(200, json={"data": data}), lambda client: client.models()) == [
        ModelEntry("alias", "org/Model", 40960),
        ModelEntry("lora", None, None),
        ModelEntry("odd", None, None),
        ModelEntry("true", None, None),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"text": "<html>"}, "/v1/models: the answer is not JSON: '<html>'"),
        ({"json": []}, "/v1/models: the answer is not a JSON object"),
        ({"json": {"data": None}}, "/v1/models answered without a list of models"),
    ],
)
def test_models_of_another_shape_are_a_broken_answer(content: dict[str, Any], message: str) -> None:
    with pytest.raises(Broken) as caught:
        ask(replying(200, **content), lambda client: client.models())

    assert str(caught.value) == message


def test_tokens_are_counted_with_the_template_arguments_and_the_generation_prompt() -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"count": 12, "tokens": [1] * 12})

    def count(client: Client) -> Awaitable[int]:
        return client.count_tokens("m", [Message("user", "Hi")], template_kwargs={"a": False})

    assert ask(answer, count) == 12
    assert seen == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "add_generation_prompt": True,
            "chat_template_kwargs": {"a": False},
        }
    ]
    with pytest.raises(Broken, match="without a count"):
        ask(replying(200, json={"count": "12"}), count)


@pytest.mark.parametrize(
    ("answer", "health"),
    [
        (replying(200), Health(200, "")),
        (replying(503), Health(503, "/health says HTTP 503")),
        (replying(302), Health(302, "/health says HTTP 302")),
        (failing(httpx.ConnectError("refused")), Health(None, "no answer: refused")),
        (failing(httpx.ReadTimeout("")), Health(None, "no answer: ReadTimeout")),
    ],
)
def test_health_is_a_200_and_its_trouble_is_named(answer: Answer, health: Health) -> None:
    assert ask(answer, lambda client: client.health()) == health


@pytest.mark.parametrize(
    ("answer", "speaks"),
    [
        (replying(200, json={"data": []}), True),
        (replying(401, json={"error": "Unauthorized"}), True),
        (replying(404), False),
        (replying(200, text="<html>"), False),
        (failing(httpx.ConnectError("refused")), False),
    ],
)
def test_a_server_without_health_shows_that_it_is_there_by_its_models(
    answer: Answer, *, speaks: bool
) -> None:
    assert ask(answer, lambda client: client.speaks()) is speaks


def test_metrics_that_hang_are_not_waited_for_as_an_answer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mrcr_action.client.api.METRICS_SECONDS", 0.0)

    async def hang(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def body() -> None:
        transport = httpx.MockTransport(hang)
        async with Client("http://server", transport=transport) as client:
            with pytest.raises(Broken, match="/metrics: no complete answer within 0 s"):
                await client.metrics()

    asyncio.run(asyncio.wait_for(body(), 20))


def test_metrics_without_an_end_are_refused_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrcr_action.client.api.METRICS_BYTES", 1_000)
    sent: list[bytes] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            sent.append(b"vllm:prompt_tokens_total 1\n")
            yield sent[-1]

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=endless())

    with pytest.raises(Broken, match="/metrics: more than 1,000 bytes"):
        ask(answer, lambda client: client.metrics())
    assert sum(map(len, sent)) < 2_000


def test_metrics_are_asked_for_uncompressed_and_text_that_is_none_is_replaced() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, content=b"a\xff 1\n")

    assert ask(answer, lambda client: client.metrics()) == "a\ufffd 1\n"


def test_compressed_metrics_are_refused_since_their_length_is_not_bounded() -> None:
    answer = replying(200, content=gzip.compress(b" " * 100), headers={"content-encoding": "gzip"})
    with pytest.raises(Broken, match="/metrics: compressed"):
        ask(answer, lambda client: client.metrics())


def test_a_server_without_metrics_says_so() -> None:
    with pytest.raises(Denied, match="HTTP 404: none here"):
        ask(replying(404, text="none here"), lambda client: client.metrics())


def test_the_version_is_told_where_there_is_one() -> None:
    def version(client: Client) -> Awaitable[str | None]:
        return client.version()

    assert ask(replying(200, json={"version": "0.33.0"}), version) == "0.33.0"
    assert ask(replying(404), version) is None
    assert ask(replying(200, json={"version": 3}), version) is None


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9/base", True),
        ("http://localhost:8000/v1", True),
        ("http://LOCALHOST", True),
        ("http://[::1]:8000", True),
        ("http://0.0.0.0:8000", True),
        ("http://user:pw@127.0.0.1", True),
        ("http://10.0.0.1:8000", False),
        ("http://localhost.example.com", False),
    ],
)
def test_proxies_of_the_environment_are_for_other_machines_only(
    monkeypatch: pytest.MonkeyPatch, url: str, *, here: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    client = Client(url)

    assert is_loopback(url) is here
    assert bool(client._http._mounts) is not here


def test_a_connection_that_breaks_late_may_have_cost_a_prefill_and_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mrcr_action.client.api.AT_ONCE_SECONDS", 0.0)
    with pytest.raises(Broken, match=r"no answer after 0 s \(reset\)"):
        ask(failing(httpx.ReadError("reset")), chat)
    with pytest.raises(Unavailable):
        ask(failing(httpx.ConnectError("refused")), chat)


def test_a_query_is_sent_again_while_the_server_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrcr_action.client.retry.FIRST_PAUSE", 0.0)
    answers = [httpx.Response(503), httpx.Response(429), httpx.Response(200, json={"data": []})]
    assert ask(lambda _: answers.pop(0), lambda client: client.models()) == []
    assert answers == []


def test_a_query_is_given_up_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrcr_action.client.retry.FIRST_PAUSE", 0.0)
    asked = []

    def busy(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(503)

    with pytest.raises(Unavailable):
        ask(busy, lambda client: client.models())
    assert asked == ["/v1/models"] * 4


def test_the_tokens_of_a_conversation_are_asked_for_as_they_are_counted() -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        tokens = {"tokens": [5, 9], "token_strs": ["<|user|>", "Hi"]}
        return httpx.Response(200, json={"count": 2, **tokens})

    def tokenize(client: Client) -> Awaitable[Tokenized]:
        return client.tokenize("m", [Message("user", "Hi")], template_kwargs={"a": False})

    assert ask(answer, tokenize) == Tokenized(2, (5, 9), "<|user|>Hi")
    assert seen == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "add_generation_prompt": True,
            "chat_template_kwargs": {"a": False},
            "return_token_strs": True,
        }
    ]


def test_the_tokens_of_a_text_come_without_template_and_special_tokens() -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"count": 1, "tokens": [9], "token_strs": None})

    assert ask(answer, lambda client: client.tokenize_text("m", "Hi")) == Tokenized(1, (9,), "")
    assert seen == [{"model": "m", "prompt": "Hi", "add_special_tokens": False}]


@pytest.mark.parametrize("tokens", [None, "ids", ["a"], [True], [1.5]])
def test_a_tokenize_that_only_counts_tells_no_ids(tokens: Any) -> None:
    answer = replying(200, json={"count": 3, "tokens": tokens, "token_strs": 7})

    assert ask(answer, lambda client: client.tokenize_text("m", "Hi")) == Tokenized(3, None, "")


def test_tokens_without_a_count_are_a_broken_answer() -> None:
    with pytest.raises(Broken, match="without a count"):
        ask(replying(200, json={"tokens": [1]}), lambda client: client.tokenize_text("m", "Hi"))
