from __future__ import annotations

import pytest
from tests.unit.telemetry.exposing import exposed

from mrcr_action.telemetry.counters import between, read_counters
from mrcr_action.telemetry.document import Counted


def counted(before: str, after: str) -> Counted | None:
    return between(read_counters(before), read_counters(after))[0]


def gap(before: str, after: str) -> str:
    return between(read_counters(before), read_counters(after))[1]


def test_counters_tell_what_they_rose_by() -> None:
    before = exposed(prompt=1_000, output=50, hits=16, stop=3)
    after = exposed(prompt=9_000, output=450, hits=4_016, stop=11, preemptions=2)
    found = counted(before, after)
    assert found == Counted(
        prompt_tokens=8_000,
        output_tokens=400,
        prefix_cache_queries=8_000,
        prefix_cache_hits=4_000,
        preemptions=2,
        finished={"stop": 8},
        http_errors=None,
    )
    assert found.hit_share == 0.5


def test_several_engines_are_summed() -> None:
    before = exposed(0, prompt=100) + exposed(1, prompt=500)
    after = exposed(0, prompt=150) + exposed(1, prompt=507)
    found = counted(before, after)
    assert found is not None
    assert found.prompt_tokens == 57


def test_a_counter_that_fell_is_of_another_process_and_nothing_is_told() -> None:
    assert between(
        read_counters(exposed(prompt=100, output=7)), read_counters(exposed(prompt=99, output=70))
    ) == (None, "restarted")


def test_one_engine_that_began_anew_shows_although_the_sum_rose() -> None:
    before = exposed(0, prompt=100) + exposed(1, prompt=500)
    after = exposed(0, prompt=20) + exposed(1, prompt=9_000)
    assert gap(before, after) == "restarted"


def test_an_engine_that_is_gone_is_a_restart() -> None:
    assert gap(exposed(0) + exposed(1), exposed(0)) == "restarted"


def test_another_start_of_the_process_is_a_restart_although_no_counter_fell() -> None:
    started = "process_start_time_seconds 1.7e+09\n"
    later = "process_start_time_seconds 1.8e+09\n"
    assert gap(exposed() + started, exposed(prompt=5) + later) == "restarted"
    assert gap(exposed() + started, exposed(prompt=5) + started) == ""


def test_a_counter_with_labels_that_was_not_there_began_at_zero() -> None:
    new = 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 4.0\n'
    found = counted(exposed(), exposed() + new)
    assert found is not None
    assert found.finished == {"abort": 4}


@pytest.mark.parametrize("text", ["", "<html>no</html>", "\x00", "other_total 3\n"])
def test_without_vllms_counters_nothing_is_told(text: str) -> None:
    assert read_counters(text) is None
    assert between(None, read_counters(exposed())) == (None, "no metrics")
    assert between(read_counters(exposed()), None) == (None, "no metrics")


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "1e300", "1e16"])
def test_a_value_that_is_no_count_makes_all_unknown(value: str) -> None:
    planted = f'vllm:prompt_tokens_total{{engine="1",model_name="m"}} {value}\n'
    assert read_counters(exposed() + planted) is None


def test_the_old_names_of_the_prefix_cache_are_read() -> None:
    def old(queries: int, hits: int) -> str:
        return (
            f'vllm:gpu_prefix_cache_queries_total{{model_name="m"}} {queries}\n'
            f'vllm:gpu_prefix_cache_hits_total{{model_name="m"}} {hits}\n'
        )

    found = counted(old(10, 5), old(30, 15))
    assert found == Counted(prefix_cache_queries=20, prefix_cache_hits=10)
    # A version that has both counts the same under each.
    both = counted(exposed() + old(10, 5), exposed(prompt=64, hits=16) + old(74, 21))
    assert both is not None
    assert (both.prefix_cache_queries, both.prefix_cache_hits) == (64, 16)


def test_http_errors_are_responses_of_500_and_above() -> None:
    def responses(ok: int, *, broken: int) -> str:
        line = 'http_requests_total{{handler="/v1/chat/completions",method="POST",status="{}"}} {}'
        counts = {"2xx": ok, "4xx": 7, "5xx": broken, "503": broken}
        return "\n".join(line.format(*item) for item in counts.items()) + "\n"

    found = counted(responses(1, broken=0), responses(9, broken=2))
    assert found is not None
    assert found.http_errors == 4


def test_hostile_finish_reasons_are_counted_as_other() -> None:
    names = ["<script>", "x" * 40, "Stop", *(f"made_up_{'abcdefghijklmnop'[i]}" for i in range(16))]
    lines = "".join(
        f'vllm:request_success_total{{finished_reason="{name}"}} 1.0\n' for name in names
    )
    found = counted(exposed(), exposed() + lines)
    assert found is not None
    assert sum(found.finished.values()) == len(names)
    assert "other" in found.finished
    assert len(found.finished) <= 13
    assert all(len(reason) <= 32 and "<" not in reason for reason in found.finished)
