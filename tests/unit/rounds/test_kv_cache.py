from pathlib import Path

import pytest

from mrcr_action.result import CacheInfo
from mrcr_action.rounds.kv_cache import _of_arguments, _of_log, read_metrics, since

VLLM = """\
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",\
kv_cache_size_tokens="32752",num_gpu_blocks="2048"} 1.0
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 300.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 100.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 128.0
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 0.0
"""


def test_the_cache_is_read_from_vllms_metrics_over_all_engines() -> None:
    assert read_metrics(VLLM) == CacheInfo(
        block_size=16,
        blocks=2048,
        capacity=32_752,
        prefix_caching=True,
        queried_tokens=400.0,
        hit_tokens=128.0,
    )


def test_lines_that_are_none_of_the_format_hide_nothing() -> None:
    strange = VLLM + 'other{a="\n# TYPE other bogus bogus\nx 1 2 3 4\n'
    assert read_metrics(strange) == read_metrics(VLLM)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>no</html>",
        "a{b=",
        "\x00\x01",
        "x 1 2 3 4",
        "# TYPE x histogram\nx_bucket 1",
        'vllm:cache_config_info{block_size="-4",num_gpu_blocks="None"} 1.0\n',
    ],
)
def test_anything_else_is_unknown_and_no_error(text: str) -> None:
    assert read_metrics(text) == CacheInfo()


def test_counters_are_those_of_the_time_between_two_looks() -> None:
    before = CacheInfo(block_size=16, queried_tokens=400.0, hit_tokens=128.0)
    after = CacheInfo(block_size=16, queried_tokens=1_000.0, hit_tokens=428.0)
    assert since(before, after) == CacheInfo(block_size=16, queried_tokens=600.0, hit_tokens=300.0)


def test_counters_that_fell_are_those_of_another_server_and_say_nothing() -> None:
    found = since(CacheInfo(queried_tokens=400.0), CacheInfo(queried_tokens=10.0))
    assert found.queried_tokens is None


@pytest.mark.parametrize(
    ("words", "chunk"),
    [
        (["--max-num-batched-tokens", "4096"], 4096),
        (["--max_num_batched_tokens=4096"], 4096),
        (["--max-num-batched-tokens", "1", "--max-num-batched-tokens", "2"], 2),
        (["--max-num-batched-tokens"], None),
        (["--max-num-seqs", "4"], None),
    ],
)
def test_the_size_of_a_chunk_is_in_the_arguments(words: list[str], chunk: int | None) -> None:
    assert _of_arguments(words) == chunk


def test_the_size_of_a_chunk_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\xff\nChunked prefill is enabled with max_num_batched_tokens=2048.\n")
    assert _of_log(log) == 2048
    log.write_text("nothing")
    assert _of_log(log) is None
    assert _of_log(tmp_path / "none") is None
    assert _of_log(None) is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300"])
def test_a_counter_that_is_no_count_is_left_out(value: str) -> None:
    assert read_metrics(f"vllm:prefix_cache_hits_total {value}\n") == CacheInfo()
