from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.config import DEFAULT_EXTRA_BODY, RunConfig


def test_defaults_are_those_of_vllms_own_script() -> None:
    config = RunConfig()
    assert config.protocol == "vllm"
    assert sum(config.quotas().values()) == 40
    assert config.needles == (2, 4, 8)
    assert config.max_tokens == 2048
    assert config.concurrency == 8
    assert config.temperature == 0
    assert config.seed == 42
    assert config.tolerance == 0.05
    assert config.startup_max_wait_seconds == 600
    assert config.request_timeout_seconds == 1800
    assert config.request_extras == {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("num_samples", "needles", "expected"),
    [
        (40, (2, 4, 8), {2: 14, 4: 13, 8: 13}),
        (41, (2, 4, 8), {2: 14, 4: 14, 8: 13}),
        (40, (8, 2), {8: 20, 2: 20}),
        (5, (8, 2), {8: 3, 2: 2}),
        (1, (2, 4, 8), {2: 1, 4: 0, 8: 0}),
    ],
)
def test_the_remainder_goes_to_the_needle_counts_listed_first(
    num_samples: int, needles: tuple[Any, ...], expected: dict[int, int]
) -> None:
    assert RunConfig(num_samples=num_samples, needles=needles).quotas() == expected


@given(num_samples=st.integers(1, 10_000), needles=st.permutations([2, 4, 8]))
def test_quotas_add_up_and_differ_by_one_at_most(num_samples: int, needles: list[Any]) -> None:
    quotas = RunConfig(num_samples=num_samples, needles=tuple(needles)).quotas()
    assert sum(quotas.values()) == num_samples
    assert max(quotas.values()) - min(quotas.values()) <= 1


def test_the_openai_protocol_counts_by_cell_unless_a_number_in_all_is_given() -> None:
    assert RunConfig(protocol="openai").per_cell == 10
    assert RunConfig(protocol="openai", samples_per_cell=3).per_cell == 3
    assert RunConfig(protocol="openai", num_samples=9).per_cell is None
    assert RunConfig(protocol="vllm").per_cell is None
    assert RunConfig(protocol="openai", samples_per_cell=3).quotas() == {2: 3, 4: 3, 8: 3}
    assert RunConfig(protocol="openai", num_samples=9).quotas() == {2: 3, 4: 3, 8: 3}


@pytest.mark.parametrize(
    ("window", "max_tokens", "expected"),
    [
        (32_768, 2048, 30_464),
        (131_072, 2048, 128_768),
        (2816, 2048, 512),
        (2817, 2048, 513),
        (1024, 2048, 512),
        (None, 2048, None),
    ],
)
def test_the_prompt_limit_is_the_window_less_the_answer_and_a_margin(
    window: int | None, max_tokens: int, expected: int | None
) -> None:
    assert RunConfig(max_tokens=max_tokens).prompt_limit(window) == expected


@pytest.mark.parametrize("window", [None, 1000, 1_000_000])
def test_a_prompt_limit_of_ones_own_wins_over_the_window(window: int | None) -> None:
    assert RunConfig(max_prompt_tokens=300).prompt_limit(window) == 300


def test_an_empty_extra_body_sends_nothing_extra() -> None:
    assert RunConfig(extra_body={}).request_extras == {}
    assert RunConfig(extra_body=None).request_extras is DEFAULT_EXTRA_BODY
