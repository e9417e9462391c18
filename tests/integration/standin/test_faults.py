from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import StartStandIn
    from tests.integration.standin.conftest import Ask, Conversation, Stream


def test_a_window_loses_needles_that_lie_further_back(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    wide = stream(start_standin("--fault", "window=1000").url)
    narrow = stream(start_standin("--fault", "window=350").url)

    assert wide.joined() == conversation.answer
    assert narrow.joined().startswith(conversation.nonce)
    assert narrow.joined() != conversation.answer
    assert narrow.finish_reasons == ["stop"]


def test_the_nonce_is_dropped(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "drop-nonce").url)

    assert got.joined() == conversation.needles[1]


def test_the_wrong_needle_is_another_of_the_three(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "wrong-needle").url)

    assert got.joined() == conversation.nonce + conversation.needles[2]


def test_a_garbled_answer_keeps_its_nonce_and_length(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    text = stream(start_standin("--fault", "garble").url).joined()

    assert text.startswith(conversation.nonce)
    assert len(text) == len(conversation.answer)
    assert text != conversation.answer


@pytest.mark.parametrize(("fault", "reason"), [("truncate", "length"), ("stop-early", "stop")])
def test_an_answer_ends_after_so_many_tokens(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream, fault: str, reason: str
) -> None:
    got = stream(start_standin("--fault", f"{fault}=7").url)

    assert got.joined() == conversation.answer[:28]
    assert got.finish_reasons == [reason]
    assert got.usages[0]["completion_tokens"] == 7


def test_a_truncation_beyond_the_end_changes_nothing(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "truncate=9000").url)

    assert got.joined() == conversation.answer
    assert got.finish_reasons == ["stop"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "BadRequestError"),
        (404, "NotFoundError"),
        (500, "InternalServerError"),
        (503, "ServiceUnavailableError"),
        (504, "Gateway Timeout"),
        (599, "Unknown status"),
    ],
)
def test_a_status_comes_with_a_body_like_vllms(
    start_standin: StartStandIn, ask: Ask, status: int, kind: str
) -> None:
    answer = ask(start_standin("--fault", f"status={status}").url, stream=True)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status
    assert answer.json()["error"]["type"] == kind
    assert answer.json()["error"]["message"]


def test_a_status_that_allows_no_body_has_none(start_standin: StartStandIn, ask: Ask) -> None:
    answer = ask(start_standin("--fault", "status=204").url)

    assert (answer.status_code, answer.content) == (204, b"")


def test_a_401_has_the_body_that_vllm_sends(start_standin: StartStandIn, ask: Ask) -> None:
    assert ask(start_standin("--fault", "status=401").url).json() == {"error": "Unauthorized"}


def test_retry_after_is_429_with_the_header_or_another_status(
    start_standin: StartStandIn, ask: Ask
) -> None:
    url = start_standin("--fault", "retry-after=7@1-2", "--fault", "status=503@2").url

    answers = [ask(url) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [429, 503, 200]
    assert [answer.headers.get("retry-after") for answer in answers] == ["7", "7", None]


def test_when_picks_requests_in_the_order_they_arrive(
    start_standin: StartStandIn, ask: Ask
) -> None:
    url = start_standin("--fault", "status=500@2,%3", "--fault", "status=502@5-").url

    assert [ask(url).status_code for _ in range(6)] == [200, 500, 500, 200, 502, 502]


def test_small_talk_has_no_number_and_is_hit_by_faults_without_one_only(
    start_standin: StartStandIn, ask: Ask
) -> None:
    url = start_standin("--fault", "status=500@1,3").url
    broken = start_standin("--fault", "status=503").url
    talk = [{"role": "user", "content": "Hi!"}]

    statuses = [ask(url, messages=talk).status_code, ask(url).status_code, ask(url).status_code]
    statuses += [ask(url, messages=talk).status_code, ask(url).status_code]

    assert statuses == [200, 500, 200, 200, 500]
    assert ask(broken, messages=talk).status_code == 503


def test_a_body_that_cannot_be_read_has_a_number(start_standin: StartStandIn, ask: Ask) -> None:
    url = start_standin("--fault", "status=500@2").url

    assert [ask(url, messages=[]).status_code, ask(url).status_code] == [400, 500]


def test_a_stall_keeps_the_headers_back_and_then_answers(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "stall=0.3").url
    began = time.monotonic()

    answer = ask(url)

    assert 0.3 <= time.monotonic() - began < 3
    assert answer.json()["choices"][0]["message"]["content"] == conversation.answer


def test_a_client_can_give_up_on_a_stall(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin("m", "--fault", "stall=60")
    body = {"messages": conversation.messages}

    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=0.2)

    deadline = time.monotonic() + 5
    idle = 'vllm:num_requests_waiting{engine="0",model_name="m"} 0.0'
    while idle not in httpx.get(f"{server.url}/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stall_midway_comes_between_two_halves_of_the_answer(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    url = start_standin("--fault", "stall-mid=0.4").url
    body = {"messages": conversation.messages, "stream": True}
    arrivals: list[float] = []
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body) as got:
        arrivals.extend(time.monotonic() for line in got.iter_lines() if "content" in line)

    gaps = [after - before for before, after in pairwise(arrivals)]
    assert max(gaps) >= 0.3
    assert len(arrivals) / 4 < gaps.index(max(gaps)) < len(arrivals) * 3 / 4


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reset_comes_before_any_answer(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    server = start_standin("--fault", "reset@1")

    with pytest.raises(httpx.ReadError, match="reset by peer"):
        ask(server.url, stream=streamed)

    assert ask(server.url).status_code == 200
    assert server.log.endswith("Application startup complete.\n")


def test_a_reset_midway_leaves_half_a_stream(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "reset-mid").url)

    assert isinstance(got.error, httpx.ReadError)
    assert conversation.answer.startswith(got.joined())
    assert got.finish_reasons == []
    assert not got.done


def test_a_reset_midway_leaves_half_a_body(start_standin: StartStandIn, ask: Ask) -> None:
    with pytest.raises(httpx.ReadError):
        ask(start_standin("--fault", "reset-mid").url)


def test_a_cut_stream_ends_cleanly_without_its_end(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "cut").url)

    assert got.error is None
    assert 0 < len(got.joined()) < len(conversation.answer)
    assert conversation.answer.startswith(got.joined())
    assert got.finish_reasons == []
    assert got.usages == []
    assert not got.done
    assert got.headers["connection"] == "close"


def test_a_cut_body_is_half_of_its_json(start_standin: StartStandIn, ask: Ask) -> None:
    answer = ask(start_standin("--fault", "cut").url)

    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"JSON|Unterminated|Expecting"):
        answer.json()


def test_done_can_be_missing_behind_a_whole_answer(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "no-done").url)

    assert got.joined() == conversation.answer
    assert got.finish_reasons == ["stop"]
    assert got.usages
    assert not got.done


def test_an_aborted_answer_says_so_and_is_partial(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask, stream: Stream
) -> None:
    url = start_standin("--fault", "abort").url

    got, whole = stream(url), ask(url).json()["choices"][0]

    assert (got.status, got.finish_reasons, got.done) == (200, ["abort"], True)
    assert 0 < len(got.joined()) < len(conversation.answer)
    assert (whole["finish_reason"], whole["message"]["content"]) == ("abort", got.joined())


def test_an_error_comes_inside_a_stream_of_status_200(
    start_standin: StartStandIn, ask: Ask, stream: Stream
) -> None:
    url = start_standin("--fault", "error-event").url

    got = stream(url)

    assert (got.status, len(got.data), got.done) == (200, 2, True)
    assert got.chunks[0]["error"]["code"] == 500
    assert ask(url).status_code == 500


@pytest.mark.parametrize("streamed", [False, True])
def test_an_empty_answer_is_200_without_a_body(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    answer = ask(start_standin("--fault", "empty").url, stream=streamed)

    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    ("fault", "key"), [("think", "reasoning"), ("think-old", "reasoning_content")]
)
def test_reasoning_comes_first_under_the_key_of_its_time(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream, fault: str, key: str
) -> None:
    got = stream(start_standin("--fault", f"{fault}=203").url)

    assert len(got.joined(key)) == 203
    assert got.joined() == conversation.answer
    assert got.usages[0]["completion_tokens"] == 51 + -(-len(conversation.answer) // 4)
    kinds = [next(iter(chunk["choices"][0]["delta"]), "") for chunk in got.chunks[1:-2]]
    assert kinds == sorted(kinds, key=lambda kind: kind == "content")


@pytest.mark.parametrize(
    ("fault", "key"), [("think", "reasoning"), ("think-old", "reasoning_content")]
)
def test_reasoning_stands_beside_the_content_of_a_whole_answer(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask, fault: str, key: str
) -> None:
    message = ask(start_standin("--fault", f"{fault}=203").url).json()["choices"][0]["message"]

    assert len(message[key]) == 203
    assert message["content"] == conversation.answer


def test_reasoning_can_stand_in_the_content(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    text = stream(start_standin("--fault", "think-aloud=50").url).joined()

    thought, _, said = text.partition("\n</think>\n\n")
    assert thought.startswith("<think>\nThe user wants")
    assert said == conversation.answer


def test_reasoning_that_eats_all_tokens_leaves_content_null(
    start_standin: StartStandIn, ask: Ask, stream: Stream
) -> None:
    url = start_standin("--fault", "think=4000").url

    choice, got = ask(url, max_tokens=20).json()["choices"][0], stream(url, max_tokens=20)

    assert choice["message"]["content"] is None
    assert choice["finish_reason"] == "length"
    assert len(got.joined("reasoning")) == 80
    assert got.joined() == ""
    assert got.finish_reasons == ["length"]


def test_content_can_be_null_with_all_tokens_spent(
    start_standin: StartStandIn, ask: Ask, stream: Stream
) -> None:
    url = start_standin("--fault", "null-content").url

    answer, got = ask(url, max_tokens=64).json(), stream(url, max_tokens=64)

    assert answer["choices"][0]["message"]["content"] is None
    assert answer["choices"][0]["finish_reason"] == "length"
    assert got.chunks[0]["choices"][0]["delta"]["content"] is None
    assert got.finish_reasons == ["length"]
    assert got.usages[0]["completion_tokens"] == answer["usage"]["completion_tokens"] == 64


def test_comments_keep_the_stream_alive_between_events(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "keepalive").url)

    assert got.joined() == conversation.answer
    assert got.raw.count(b": keep-alive\n\n") == len(got.data)


def test_lines_can_end_in_crlf(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("--fault", "crlf").url)

    assert got.joined() == conversation.answer
    assert got.raw.count(b"\r\n\r\n") == len(got.data)
    assert got.raw.count(b"\n") == got.raw.count(b"\r\n")


def test_usage_can_be_missing(start_standin: StartStandIn, ask: Ask, stream: Stream) -> None:
    url = start_standin("--fault", "no-usage").url

    assert stream(url).usages == []
    assert ask(url).json()["usage"] is None


@pytest.mark.parametrize("streamed", [False, True])
def test_tokens_come_at_the_speed_that_is_asked_for(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    url = start_standin("--fault", "slow=150").url
    began = time.monotonic()

    ask(url, max_tokens=60, stream=streamed)

    assert 0.4 <= time.monotonic() - began < 3


@pytest.mark.parametrize("streamed", [False, True])
def test_the_server_dies_midway_with_the_exit_code_that_is_asked_for(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    server = start_standin("--fault", "die=0@2", "--fault", "die=137@3-")
    assert ask(server.url, stream=streamed).status_code == 200

    with pytest.raises(httpx.RemoteProtocolError, match=r"without sending complete|incomplete"):
        ask(server.url, stream=streamed)

    assert server.process.wait(5) == 0
    assert "dying in the middle of an answer" in server.log


def test_a_death_can_have_any_exit_code(start_standin: StartStandIn, stream: Stream) -> None:
    server = start_standin("--fault", "die=139")

    got = stream(server.url)

    assert isinstance(got.error, httpx.RemoteProtocolError)
    assert got.joined()
    assert server.process.wait(5) == 139


def test_health_turns_bad_for_good_with_the_request_that_is_hit(
    start_standin: StartStandIn, ask: Ask
) -> None:
    url = start_standin("--fault", "unhealthy@2").url

    seen = [httpx.get(f"{url}/health").status_code]
    for _ in range(3):
        assert ask(url).status_code == 200
        seen.append(httpx.get(f"{url}/health").status_code)

    assert seen == [200, 200, 503, 503]


def test_health_is_bad_from_the_start_without_a_when(start_standin: StartStandIn) -> None:
    assert httpx.get(f"{start_standin('--fault', 'unhealthy').url}/health").status_code == 503


@pytest.mark.parametrize("path", ["/tokenize", "/v1/chat/completions"])
def test_strict_roles_refuse_two_user_turns_and_take_them_merged(
    start_standin: StartStandIn, conversation: Conversation, path: str
) -> None:
    url = start_standin("--fault", "strict-roles").url + path
    first, second, *rest = conversation.messages
    merged = {"role": "user", "content": f"{first['content']}\n\n{second['content']}"}

    refused = httpx.post(url, json={"messages": conversation.messages})
    taken = httpx.post(url, json={"messages": [merged, *rest]})

    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "BadRequestError"
    words = "Conversation roles must alternate user/assistant/user/assistant/..."
    assert refused.json()["error"]["message"] == words
    assert taken.status_code == 200


def test_tokenize_can_be_missing(start_standin: StartStandIn) -> None:
    url = start_standin("--fault", "no-tokenize").url

    assert httpx.post(f"{url}/tokenize", json={"prompt": "x"}).status_code == 404


def test_models_can_lack_a_length(start_standin: StartStandIn) -> None:
    url = start_standin("m", "--fault", "no-max-model-len").url

    (card,) = httpx.get(f"{url}/v1/models").json()["data"]
    assert card["id"] == "m"
    assert "max_model_len" not in card


@pytest.mark.parametrize("streamed", [False, True])
def test_a_proxys_page_can_come_in_place_of_an_answer(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    answer = ask(start_standin("--fault", "html").url, stream=streamed)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "Sign in" in answer.text
