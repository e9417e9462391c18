from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from mrcr_action.client import Broken, Client, Completion
from mrcr_action.client.stream import read_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from httpx_sse import EventSource

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


def complete(body: bytes, *, start: str | None = None, **headers: str) -> Completion:
    """What a server's answer of these bytes becomes, where it has to start with ``start``."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=body, headers={**EVENTS, **headers})

    async def ask() -> Completion:
        async with Client("http://server", transport=httpx.MockTransport(answer)) as client:
            return await client.chat({"model": "m"}, start=start)

    return asyncio.run(ask())


def events(*chunks: Any, end: str = "\n", done: bool = True) -> bytes:
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    texts += ["[DONE]"] if done else []
    return "".join(f"data: {text}{end}{end}" for text in texts).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


HELLO = (delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"))
STOP = delta("stop")
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}


def test_deltas_are_joined_and_the_usage_is_kept() -> None:
    got = complete(events(*HELLO, STOP, USAGE))

    assert (got.text, got.finish_reason) == ("Hello", "stop")
    assert (got.prompt_tokens, got.completion_tokens) == (7, 2)
    assert got.reasoning_chars == 0
    assert got.seconds_to_first_token is not None
    assert 0 <= got.seconds_to_first_token <= got.seconds


class Source:
    """Events, each at its own second of a clock that stands still between them."""

    def __init__(self, timed: list[tuple[float, Any]]) -> None:
        self.timed, self.now = timed, 0.0

    async def aiter_sse(self) -> AsyncIterator[SimpleNamespace]:
        for moment, chunk in self.timed:
            self.now = moment
            yield SimpleNamespace(data=chunk if isinstance(chunk, str) else json.dumps(chunk))


def test_the_mean_from_token_to_token_is_over_the_servers_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 6}}
    timed = [(11.0, delta(content="Hel")), (12.0, delta(content="lo")), (12.5, STOP)]
    source = Source([*timed, (19.0, usage), (20.0, "[DONE]")])
    clock = SimpleNamespace(perf_counter=lambda: source.now)
    monkeypatch.setattr("mrcr_action.client.stream.time", clock)
    got = asyncio.run(read_stream(cast("EventSource", source), begin=10.0))
    assert (got.seconds_to_first_token, got.seconds) == (1.0, 10.0)
    assert got.inter_token_seconds == (12.5 - 11.0) / 5


def test_one_token_has_no_next() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    assert complete(events(delta("stop", content="a"), usage)).inter_token_seconds is None
    assert complete(events(STOP, USAGE)).inter_token_seconds is None


@pytest.mark.parametrize("count", [-1, 10**10, 10**400])
def test_a_count_that_can_be_none_is_unknown(count: int) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count}
    details = {"prompt_tokens_details": {"cached_tokens": count}}
    got = complete(events(*HELLO, STOP, {"choices": [], "usage": usage | details}))
    assert (got.prompt_tokens, got.completion_tokens, got.cached_tokens) == (None, None, None)
    assert got.inter_token_seconds is not None


def test_without_usage_the_counts_are_unknown() -> None:
    got = complete(events(*HELLO, STOP))

    assert (got.prompt_tokens, got.completion_tokens) == (None, None)


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({"cached_tokens": 4}, 4),
        ({"cached_tokens": 0, "audio_tokens": 0}, 0),
        ({"cached_tokens": None}, None),
        ({"cached_tokens": "4"}, None),
        ({"cached_tokens": True}, None),
        ({"cached_tokens": -1}, None),
        ({}, None),
        ([], None),
        ("none", None),
        (None, None),
    ],
)
def test_whatever_is_told_of_the_cache_no_answer_is_lost_for_it(
    details: Any, cached: int | None
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "prompt_tokens_details": details}}
    got = complete(events(*HELLO, STOP, usage))
    assert (got.text, got.prompt_tokens, got.cached_tokens) == ("Hello", 7, cached)


def test_usage_in_every_chunk_counts_once_with_its_last_figures() -> None:
    growing = [{**chunk, "usage": {"completion_tokens": n}} for n, chunk in enumerate(HELLO)]

    assert complete(events(*growing, STOP)).completion_tokens == 2


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_every_line_end_of_the_standard_is_understood(end: str) -> None:
    assert complete(events(*HELLO, STOP, USAGE, end=end)).text == "Hello"


def test_comments_other_fields_and_a_missing_space_are_no_obstacle() -> None:
    body = b": keep-alive\n\nid: 1\nevent: message\nretry: 5\n" + events(*HELLO)
    body = body.removesuffix(b"data: [DONE]\n\n").replace(b"data: ", b"data:")

    assert complete(body + b":\n\n" + events(STOP)).text == "Hello"


def test_text_in_any_script_and_lines_within_it_survive() -> None:
    text = "Zeile\r\nzwei \u2028 drei \x85 🌾 \u0000"

    assert complete(events(delta(content=text), STOP)).text == text
    raw = json.dumps(delta(content=text), ensure_ascii=False)
    assert complete(events(raw, STOP)).text == text


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_counted_and_kept_out_of_the_text(key: str) -> None:
    got = complete(events(delta(**{key: "hm " * 5}), delta(content="Yes"), STOP))

    assert (got.text, got.reasoning_chars) == ("Yes", 15)


def test_no_content_at_all_is_an_empty_answer_if_the_server_says_it_is_whole() -> None:
    got = complete(events(delta(content=None), delta("length", reasoning="hm")))

    assert (got.text, got.finish_reason, got.reasoning_chars) == ("", "length", 2)


def test_a_finish_reason_may_come_with_the_last_delta() -> None:
    assert complete(events(delta("stop", content="Hi"))).text == "Hi"


def test_what_comes_after_done_is_not_read() -> None:
    assert complete(events(*HELLO, STOP) + b"data: nonsense\n\n").text == "Hello"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "an empty answer"),
        (b": keep-alive\n\n", "an empty answer"),
        (events(*HELLO, done=False), "the stream ended without a finish reason"),
        (events(*HELLO), "the stream ended without a finish reason"),
        (events(), "the stream ended without a finish reason"),
        (events(*HELLO, STOP, done=False), "the stream was cut off before its end"),
        (events(*HELLO, STOP)[:-2], "the stream was cut off before its end"),
        (events(delta("abort")), "the server ended the answer with finish_reason abort"),
        (events(delta("error")), "the server ended the answer with finish_reason error"),
        (
            events(delta("content_filter")),
            "the server ended the answer with finish_reason content_filter",
        ),
        (events(delta("tool_calls")), "the server ended the answer with finish_reason tool_calls"),
    ],
)
def test_anything_short_of_a_whole_answer_is_lost(body: bytes, message: str) -> None:
    with pytest.raises(Broken) as caught:
        complete(body)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"message": "out\nof memory", "code": 500}, "out of memory"),
        ("Unauthorized", "Unauthorized"),
        ({"code": 500}, "None"),
        (["a"], "['a']"),
    ],
)
def test_an_error_within_the_stream_is_told(error: Any, message: str) -> None:
    with pytest.raises(Broken) as caught:
        complete(events(*HELLO, {"error": error}))

    assert str(caught.value) == f"the stream carried an error: {message}"


@pytest.mark.parametrize(
    "event",
    [
        "nonsense",
        "[]",
        "3",
        "null",
        '{"choices": 3}',
        '{"choices": [3]}',
        '{"choices": [{"delta": []}]}',
        '{"choices": [{"delta": {"content": 3}}]}',
        '{"choices": [{"delta": {"content": ["a"]}}]}',
        '{"choices": [{"delta": {}, "finish_reason": true}]}',
        '{"usage": {"prompt_tokens": "7"}}',
        '{"choices": [{"delta": {"content": "half',
        r'{"choices": [{"delta": {"content": "half \ud83d"}}]}',
        "[" * 5000,
    ],
)
def test_an_event_of_another_shape_is_lost_and_quoted(event: str) -> None:
    with pytest.raises(Broken, match="the stream carried something unreadable: ") as caught:
        complete(events(*HELLO, event, STOP))

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>Sign in</html>", "text/html"),
        (b'{"choices": [{"message": {"content": "Hi"}}]}', "application/json"),
        (b"", ""),
    ],
)
def test_an_answer_that_is_no_event_stream_is_lost(body: bytes, kind: str) -> None:
    with pytest.raises(Broken, match="not an event stream"):
        complete(body, **{"content-type": kind})


def test_another_choice_than_the_first_is_not_mixed_in() -> None:
    second = '{"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}'
    assert complete(events(delta(content="Hello"), second, STOP)).text == "Hello"


NONCE = "0123456789"


def pieces(*texts: str) -> list[dict[str, Any]]:
    return [delta(content=text) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        (NONCE + "Hello",),
        ("0", "123456789Hel", "lo"),
        ("", "01234", "", "56789", "", "Hello"),
        (*NONCE, "x" * 99),
        ("01234",),  # shorter than the nonce, and at its end
        ("",),
    ],
)
def test_a_text_that_starts_as_it_must_so_far_is_read_to_its_end(texts: tuple[str, ...]) -> None:
    got = complete(events(*pieces(*texts), STOP, USAGE), start=NONCE)

    assert (got.text, got.finish_reason, got.is_cut) == ("".join(texts), "stop", False)
    assert got.completion_tokens == 2


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (("Hello", "more"), "Hello"),
        (("", "01234", "x5", "more"), "01234x5"),
        (("012345678", "", "8", "more"), "0123456788"),
        ((" " + NONCE, "more"), " " + NONCE),
        (("<think>", "more"), "<think>"),
    ],
)
def test_a_text_that_can_no_longer_start_as_it_must_is_cut_there(
    texts: tuple[str, ...], read: str
) -> None:
    # Whatever comes later is not looked at, be it broken.
    got = complete(events(*pieces(*texts), "{", done=False), start=NONCE)

    assert (got.text, got.finish_reason, got.is_cut) == (read, "cut", True)
    assert got.completion_tokens == sum(map(bool, texts[:-1]))


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_no_start_of_a_text(key: str) -> None:
    thought = [delta(**{key: "hm"}), delta(content="", **{key: " hm"})]

    got = complete(events(*thought, *pieces(NONCE), STOP), start=NONCE)
    assert (got.text, got.is_cut) == (NONCE, False)
    got = complete(events(*thought, *pieces("Well")), start=NONCE)
    assert (got.text, got.is_cut, got.completion_tokens) == ("Well", True, 3)


def test_a_wrong_text_that_ends_with_its_first_piece_is_read_like_any_other() -> None:
    got = complete(events(delta("length", content="Hello"), USAGE), start=NONCE)

    assert (got.finish_reason, got.is_cut, got.completion_tokens) == ("length", False, 2)


def test_a_finish_reason_of_the_servers_own_is_no_cut() -> None:
    got = complete(events(*pieces(NONCE), delta("cut"), USAGE), start=NONCE)

    assert (got.finish_reason, got.is_cut) == ("cut", False)


def test_without_a_start_nothing_is_cut() -> None:
    assert complete(events(*HELLO, STOP)).is_cut is False
