"""The cache as a client sees it: in a usage, in /metrics, and in the faults that depend on it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import StartStandIn
    from tests.integration.standin.conftest import Ask, Conversation, Stream

DETAILS = "--enable-prompt-tokens-details"


def length_of(messages: list[dict[str, str]]) -> int:
    return sum(-(-len(turn["content"]) // 4) + 4 for turn in messages)


def cached(answer: httpx.Response) -> int:
    tokens = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert isinstance(tokens, int)
    return tokens


def said(answer: httpx.Response) -> str:
    content = answer.json()["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def metric(url: str, name: str) -> float:
    text = httpx.get(f"{url}/metrics").text
    found = re.search(rf"^vllm:{name}\{{[^}}]*\}} (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def padded(messages: list[dict[str, str]], tokens: int) -> list[dict[str, str]]:
    """The conversation with so many tokens more in its first message, in front of all else."""
    first, *rest = messages
    return [{**first, "content": "pad " * tokens + first["content"]}, *rest]


def test_the_usage_tells_what_was_cached_where_it_is_asked_to(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask, stream: Stream
) -> None:
    url = start_standin(DETAILS).url
    whole = (length_of(conversation.messages) - 1) // 16 * 16

    answers = [ask(url), ask(url), ask(url, cache_salt="x"), ask(url, cache_salt="x")]

    assert [cached(answer) for answer in answers] == [0, whole, 0, whole]
    usages: list[Any] = [*stream(url).usages]
    assert [usage["prompt_tokens_details"] for usage in usages] == [{"cached_tokens": whole}]


def test_the_usage_does_not_tell_by_default(start_standin: StartStandIn, ask: Ask) -> None:
    assert "prompt_tokens_details" not in ask(start_standin().url).json()["usage"]


def test_a_conversation_that_goes_on_hits_what_was_read_of_it(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin(DETAILS, "--block-size", "8").url
    begin = conversation.messages[:5]
    ask(url, messages=begin)

    assert cached(ask(url)) == length_of(begin) // 8 * 8


@pytest.mark.parametrize("flag", ["--no-prefix-cache", "--no-enable-prefix-caching"])
def test_the_cache_can_be_switched_off(start_standin: StartStandIn, ask: Ask, flag: str) -> None:
    url = start_standin(DETAILS, flag).url

    assert [cached(ask(url)) for _ in range(2)] == [0, 0]
    assert metric(url, "prefix_cache_queries_total") == 0
    assert 'enable_prefix_caching="False"' in httpx.get(f"{url}/metrics").text


def test_another_template_shares_nothing(start_standin: StartStandIn, ask: Ask) -> None:
    url = start_standin(DETAILS).url
    ask(url)

    assert cached(ask(url, chat_template_kwargs={"enable_thinking": False})) == 0


def test_a_salt_of_another_type_is_a_bad_request(start_standin: StartStandIn, ask: Ask) -> None:
    answer = ask(start_standin().url, cache_salt=7)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "cache_salt"


def test_metrics_count_what_was_sought_and_found(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--block-size", "32", "--num-gpu-blocks-override", "5000").url
    length = length_of(conversation.messages)
    for _ in range(3):
        ask(url)

    assert metric(url, "prefix_cache_queries_total") == 3 * length
    assert metric(url, "prefix_cache_hits_total") == 2 * ((length - 1) // 32 * 32)
    assert metric(url, "kv_cache_usage_perc") == 0
    assert metric(url, "num_preemptions_total") == 0
    text = httpx.get(f"{url}/metrics").text
    info = re.search(r"^vllm:cache_config_info\{(.*)\} 1\.0$", text, re.MULTILINE)
    assert info, text
    labels = info[1].split(",")
    assert 'block_size="32"' in labels
    assert 'enable_prefix_caching="True"' in labels
    assert 'num_gpu_blocks="5000"' in labels


def test_the_size_of_a_chunk_is_in_the_log(start_standin: StartStandIn) -> None:
    log = start_standin("--max-num-batched-tokens", "8K").log

    assert "Chunked prefill is enabled with max_num_batched_tokens=8192.\n" in log


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--max-model-len", "1024", "--num-gpu-blocks-override", "64"), 1),
        (("--max-model-len", "1K", "--num-gpu-blocks-override", "8", "--block-size", "128"), 1),
        (("--num-gpu-blocks-override", "0"), 2),
        (("--block-size", "-16"), 2),
        (("--max-num-batched-tokens", "many"), 2),
    ],
)
def test_a_pool_that_cannot_hold_the_longest_prompt_does_not_start(
    flags: tuple[str, ...], code: int
) -> None:
    command = [sys.executable, "-m", "mrcr_action.standin", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    assert ended.returncode == code
    assert "Traceback" not in ended.stderr
    if code == 1:
        assert "To serve at least one request with the model's max seq len (1024)" in ended.stderr


def test_a_pool_that_just_holds_it_starts(start_standin: StartStandIn) -> None:
    start_standin("--max-model-len", "1024", "--num-gpu-blocks-override", "65")


def small_pool(messages: list[dict[str, str]]) -> tuple[str, ...]:
    """Flags for a pool that holds the conversation with its answer, and no two of them."""
    length = length_of(messages) + 150
    return (
        *("--max-model-len", str(length)),
        *("--num-gpu-blocks-override", str(-(-length // 16) + 1)),
    )


def test_a_small_pool_evicts_what_was_asked_before(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin(DETAILS, *small_pool(conversation.messages)).url
    roomy = start_standin(DETAILS).url
    other = padded(conversation.messages, 9)

    for address, found in ((url, False), (roomy, True)):
        ask(address)
        ask(address, messages=other)
        assert (cached(ask(address)) > length_of(conversation.messages) / 2) is found


def test_requests_wait_for_room_in_a_small_pool_and_leave_none_behind(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin(*small_pool(conversation.messages), "--fault", "stall-mid=60@1").url
    body = {"messages": conversation.messages, "stream": True, "cache_salt": "first"}
    with ThreadPoolExecutor(1) as pool:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body):
            assert metric(url, "kv_cache_usage_perc") > 0.5
            second = pool.submit(ask, url, cache_salt="second")
            deadline = time.monotonic() + 20
            while not metric(url, "num_requests_waiting"):
                assert time.monotonic() < deadline
                assert not second.done()
        assert said(second.result(20)) == conversation.answer

    assert metric(url, "kv_cache_usage_perc") == 0
    assert metric(url, "num_requests_waiting") == 0


def test_a_client_that_leaves_the_queue_does_not_stay_in_it(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    url = start_standin(*small_pool(conversation.messages), "--fault", "stall-mid=60@1").url
    body: dict[str, Any] = {"messages": conversation.messages, "stream": True}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json={**body, "cache_salt": "first"}):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/chat/completions", json=body, timeout=0.5)
        deadline = time.monotonic() + 20
        while metric(url, "num_requests_waiting"):
            assert time.monotonic() < deadline


def test_a_stale_hit_is_wrong_from_the_cache_only(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "stale-hit").url

    answers = [said(ask(url, cache_salt=salt)) for salt in ("1", "1", "1", "2")]

    assert [answer == conversation.answer for answer in answers] == [True, False, False, True]
    assert answers[1] == answers[2]


def test_a_stale_hit_can_leave_a_short_common_beginning_alone(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "stale-hit=1000").url
    longer = padded(conversation.messages, 4000)
    length = length_of(conversation.messages)
    assert 100 < length < 1000

    answers = [said(ask(url)), said(ask(url))]
    answers += [said(ask(url, messages=longer)), said(ask(url, messages=longer))]

    assert [answer == conversation.answer for answer in answers] == [True, True, True, False]


def test_a_fault_of_the_cache_takes_a_when(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "stale-hit@3").url

    answers = [said(ask(url)) for _ in range(4)]

    assert [answer == conversation.answer for answer in answers] == [True, True, False, True]


def test_an_evicted_hit_is_wrong_when_a_prompt_comes_back(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    one, other = conversation.messages, padded(conversation.messages, 9)
    url = start_standin(*small_pool(one), "--fault", "evicted-hit").url

    answers = [said(ask(url, messages=messages)) for messages in (one, other, one, one, other)]

    right = [answer == conversation.answer for answer in answers]
    assert right == [True, True, False, True, False]


def test_nothing_is_evicted_from_a_large_pool(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "evicted-hit").url

    assert [said(ask(url)) for _ in range(3)] == [conversation.answer] * 3


def test_an_edge_is_wrong_just_past_a_multiple(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "block-edge=256").url
    short = -length_of(conversation.messages) % 256

    answers = {
        past: said(ask(url, messages=padded(conversation.messages, short + past)))
        for past in (0, 1, 24, 25)
    }

    right = {past: answer == conversation.answer for past, answer in answers.items()}
    assert right == {0: True, 1: False, 24: False, 25: True}


def test_a_batch_has_other_characters_from_so_many_requests_on(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "batch=2", "--fault", "stall-mid=60@1").url
    body = {"messages": conversation.messages, "stream": True}

    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body):
        crowded = said(ask(url))
    deadline = time.monotonic() + 20
    while metric(url, "num_requests_running"):
        assert time.monotonic() < deadline

    assert crowded != conversation.answer == said(ask(url))
    assert crowded.startswith(conversation.nonce)
    differing = sum(a != b for a, b in zip(crowded, conversation.answer, strict=True))
    assert 1 <= differing <= 8


def test_noise_makes_the_same_question_come_out_differently(
    start_standin: StartStandIn, conversation: Conversation, ask: Ask
) -> None:
    url = start_standin("--fault", "noise=0.5").url

    answers = [said(ask(url)) for _ in range(40)]

    perfect = sum(answer == conversation.answer for answer in answers)
    assert 8 <= perfect <= 32
    assert len(set(answers)) > 10
    again = start_standin("--fault", "noise=0.5").url
    assert [said(ask(again)) for _ in range(40)] == answers
