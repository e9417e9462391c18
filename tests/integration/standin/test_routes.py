from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import StartStandIn
    from tests.integration.standin.conftest import Ask, Conversation, Stream


def metric(url: str, name: str) -> float:
    text = httpx.get(f"{url}/metrics").text
    found = re.search(rf"^vllm:{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_health_is_200_and_empty(start_standin: StartStandIn) -> None:
    answer = httpx.get(f"{start_standin().url}/health")

    assert (answer.status_code, answer.content) == (200, b"")


def test_models_tells_each_served_name_with_its_root_and_length(
    start_standin: StartStandIn,
) -> None:
    server = start_standin(
        "org/Model", "--served-model-name", "alias", "other", "--max-model-len", "128K"
    )

    cards = httpx.get(f"{server.url}/v1/models").json()["data"]

    assert [
        (card["id"], card["root"], card["object"], card["max_model_len"]) for card in cards
    ] == [("alias", "org/Model", "model", 131072), ("other", "org/Model", "model", 131072)]


def test_tokenize_counts_what_the_usage_will_say(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    server = start_standin("m", "--max-model-len", "9000")
    body = {"model": "m", "messages": conversation.messages, "add_generation_prompt": True}

    counted = httpx.post(f"{server.url}/tokenize", json=body).json()

    expected = sum(-(-len(turn["content"]) // 4) + 4 for turn in conversation.messages)
    assert counted["count"] == expected == len(counted["tokens"])
    assert counted["max_model_len"] == 9000
    assert ask(server.url).json()["usage"]["prompt_tokens"] == expected


def test_tokenize_takes_a_text_as_well(start_standin: StartStandIn) -> None:
    url = start_standin("m").url

    counted = httpx.post(f"{url}/tokenize", json={"model": "m", "prompt": "Twelve chars"}).json()

    assert counted["count"] == len(counted["tokens"]) == 3


def test_tokens_tell_one_text_from_another(start_standin: StartStandIn) -> None:
    url = start_standin().url

    texts = ["abcdabce", "abcdabcd", "abcdabcd"]
    ids = [httpx.post(f"{url}/tokenize", json={"prompt": text}).json()["tokens"] for text in texts]

    assert ids[0] != ids[1] == ids[2]


def test_a_whole_answer_is_perfect(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    answer = ask(start_standin("m").url, model="m", max_tokens=2048, temperature=0).json()

    (choice,) = answer["choices"]
    assert choice["message"]["content"] == conversation.answer
    assert choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["completion_tokens"] == -(-len(conversation.answer) // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert (answer["object"], answer["model"]) == ("chat.completion", "m")


def test_a_streamed_answer_is_perfect_and_has_the_shape_of_vllms(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream
) -> None:
    got = stream(start_standin("m").url)

    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.joined() == conversation.answer
    assert got.chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    sizes = [len(chunk["choices"][0]["delta"]["content"]) for chunk in got.chunks[1:-2]]
    assert all(8 <= size <= 16 for size in sizes[:-1])
    assert got.chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert got.chunks[-1]["choices"] == []
    assert got.chunks[-1]["usage"]["completion_tokens"] == -(-len(conversation.answer) // 4)
    assert got.finish_reasons == ["stop"]
    assert got.done


def test_usage_is_streamed_only_when_asked_for(start_standin: StartStandIn, stream: Stream) -> None:
    got = stream(start_standin().url, stream_options=None)

    assert got.usages == []
    assert got.done


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_limit_of_tokens_ends_an_answer_with_length(
    start_standin: StartStandIn, conversation: Conversation, stream: Stream, field: str
) -> None:
    got = stream(start_standin().url, **{field: 10})

    assert got.joined() == conversation.answer[:40]
    assert got.finish_reasons == ["length"]
    assert got.usages[0]["completion_tokens"] == 10


def test_the_limit_of_tokens_is_clamped_silently_to_the_room_behind_the_prompt(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    length = sum(-(-len(turn["content"]) // 4) + 4 for turn in conversation.messages)
    server = start_standin("--max-model-len", str(length + 5))

    answer = ask(server.url, max_tokens=length).json()

    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_prompt_that_is_too_long_is_refused_as_by_vllm(
    start_standin: StartStandIn, ask: Ask, *, streamed: bool
) -> None:
    answer = ask(start_standin("--max-model-len", "100").url, stream=streamed)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == (
        "BadRequestError",
        "input_tokens",
        400,
    )
    assert "maximum context length is 100 tokens" in error["message"]


def test_more_tokens_than_the_window_are_refused(start_standin: StartStandIn, ask: Ask) -> None:
    answer = ask(start_standin("--max-model-len", "9000").url, max_tokens=9001)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "max_tokens"


@pytest.mark.parametrize("path", ["/tokenize", "/v1/chat/completions"])
def test_an_unknown_model_is_not_found(
    start_standin: StartStandIn, conversation: Conversation, path: str
) -> None:
    body = {"model": "other", "messages": conversation.messages}

    answer = httpx.post(f"{start_standin('m').url}{path}", json=body)

    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "NotFoundError"
    assert "`other`" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "{}",
        '{"messages": []}',
        '{"messages": [{"role": "user", "content": 1}]}',
        '{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}',
        '{"messages": [{"role": "user", "content": "x"}], "stream_options": 3}',
    ],
)
def test_a_body_that_cannot_be_used_is_a_bad_request(
    start_standin: StartStandIn, body: str
) -> None:
    answer = httpx.post(f"{start_standin().url}/v1/chat/completions", content=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestError"


def test_content_in_parts_and_half_a_surrogate_pair_are_understood(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    parts = [{"type": "text", "text": conversation.messages[-1]["content"]}]
    pair = r'{"role":"user","content":"write a poem about fields"},'
    pair += r'{"role":"assistant","content":"half \ud83d"}'
    question = str(parts).replace("'", '"')
    body = f'{{"messages":[{pair},{pair},{{"role":"user","content":{question}}}]}}'

    answer = httpx.post(f"{start_standin().url}/v1/chat/completions", content=body)

    assert r"half \ud83d" in answer.text
    assert answer.json()["choices"][0]["message"]["content"].startswith(conversation.nonce)


def test_small_talk_gets_a_polite_reply(start_standin: StartStandIn, ask: Ask) -> None:
    answer = ask(start_standin().url, messages=[{"role": "user", "content": "Hi!"}])

    assert "not a model" in answer.json()["choices"][0]["message"]["content"]


def test_a_key_guards_v1_and_nothing_else(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    url = start_standin("--api-key", "sesame").url
    key = {"Authorization": "Bearer sesame"}

    refused = httpx.get(f"{url}/v1/models")
    wrong = httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer wrong"})

    assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
    assert wrong.status_code == 401
    assert httpx.get(f"{url}/v1/models", headers=key).status_code == 200
    assert httpx.get(f"{url}/health").status_code == 200
    assert httpx.get(f"{url}/metrics").status_code == 200
    body = {"messages": conversation.messages}
    assert httpx.post(f"{url}/tokenize", json=body).status_code == 200
    assert httpx.post(f"{url}/v1/chat/completions", json=body).status_code == 401
    assert httpx.post(f"{url}/v1/chat/completions", json=body, headers=key).status_code == 200


def test_the_key_may_come_from_the_environment(
    start_standin: StartStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sesame")

    assert httpx.get(f"{start_standin().url}/v1/models").status_code == 401


def test_routes_start_at_the_root_path(start_standin: StartStandIn, ask: Ask) -> None:
    url = start_standin("--root-path", "/base/").url

    assert url.endswith("/base")
    assert httpx.get(f"{url}/health").status_code == 200
    assert ask(url).status_code == 200
    root = url.removesuffix("/base")
    for elsewhere in ("/health", "/basement/health", "/v1/models"):
        assert httpx.get(f"{root}{elsewhere}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/health", 405),
        ("HEAD", "/metrics", 405),
    ],
)
def test_other_paths_and_methods_are_refused(
    start_standin: StartStandIn, method: str, path: str, status: int
) -> None:
    assert httpx.request(method, f"{start_standin().url}{path}").status_code == status


def test_metrics_count_requests_and_tokens(
    start_standin: StartStandIn, ask: Ask, stream: Stream
) -> None:
    url = start_standin("m").url
    usages = [ask(url).json()["usage"], *stream(url).usages]
    ask(url, max_tokens=3)

    text = httpx.get(f"{url}/metrics").text
    assert metric(url, "prompt_tokens_total") == 3 * usages[0]["prompt_tokens"]
    assert metric(url, "generation_tokens_total") == 2 * usages[0]["completion_tokens"] + 3
    assert metric(url, "num_requests_running") == 0
    assert metric(url, "num_requests_waiting") == 0
    assert (
        'vllm:request_success_total{engine="0",model_name="m",finished_reason="stop"} 2.0' in text
    )
    assert (
        'vllm:request_success_total{engine="0",model_name="m",finished_reason="length"} 1.0' in text
    )
