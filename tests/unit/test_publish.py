import pytest

from mrcr_action.config import RunConfig
from mrcr_action.publish import is_secret, mask_arguments, publishable, without_password


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "apikey"),
        *("--api-key", "--hf-token", "Authorization", "X-Api-Key", "db.password", "COOKIE"),
    ],
)
def test_a_name_with_a_word_for_a_secret_is_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("--max-num-batched-tokens", "--tokenizer", "max_tokens", "VLLM_USE_V1", "monkey"),
        *("--enable-keyed-cache", "author", "", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_name_that_only_resembles_one_is_not(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--api-key", "a", "--port", "1"], ["--api-key", "***", "--port", "1"]),
        (["--api-key=a", "b"], ["--api-key=***", "b"]),
        (["--api-key", "a", "b", "--port", "1"], ["--api-key", "***", "***", "--port", "1"]),
        (["--api-key", "-a", "--port"], ["--api-key", "***", "--port"]),
        (["--hf-token"], ["--hf-token"]),
        (["--hf-token", "--api-key=a"], ["--hf-token", "***"]),
        (["--max-num-batched-tokens", "8192"], ["--max-num-batched-tokens", "8192"]),
        (["token", "a=b"], ["token", "a=b"]),
        (["https://u:p@h/x", "--url=https://u:p@h"], ["https://***@h/x", "--url=https://***@h"]),
        (["--json", '{"a": "b=c"}', "--x={}=1"], ["--json", '{"a": "b=c"}', "--x={}=1"]),
        ([], []),
    ],
)
def test_values_of_secret_flags_are_masked(arguments: list[str], expected: list[str]) -> None:
    assert mask_arguments(arguments) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pw@host:1/p?q#f", "https://***@host:1/p?q#f"),
        ("https://pw@host", "https://***@host"),
        ("http://a:b@c@host", "http://***@host"),
        ("https://host/a@b", "https://host/a@b"),
        ("user:pw@host", "user:pw@host"),
        ("plain", "plain"),
        ("http://[::1", "http://[::1"),
        ("", ""),
    ],
)
def test_an_address_loses_its_user_and_password(text: str, expected: str) -> None:
    assert without_password(text) == expected


def test_no_secret_of_a_configuration_is_published() -> None:
    config = RunConfig(
        model_name="m",
        server_args="--api-key hunter2 --hf-token=hunter2 --port 1",
        env={"HF_TOKEN": "hunter2", "PROXY": "http://u:hunter2@p", "A": 1},
        extra_body={
            "api_key": "hunter2",
            "nested": [{"token": "hunter2", "n": 1}],
            "min_tokens": 5,
            "stop_token_ids": [1],
        },
        base_url="https://u:hunter2@host/v1",
    )
    shown = publishable(config)
    assert "hunter2" not in repr(shown)
    assert shown == RunConfig(
        model_name="m",
        server_args=("--api-key", "***", "--hf-token=***", "--port", "1"),
        env={"HF_TOKEN": "***", "PROXY": "http://***@p", "A": "1"},
        extra_body={
            "api_key": "***",
            "nested": [{"token": "***", "n": 1}],
            "min_tokens": 5,
            "stop_token_ids": [1],
        },
        base_url="https://***@host/v1",
    )


def test_what_holds_no_secret_is_published_as_it_is() -> None:
    config = RunConfig(model_name="m", match_ratio_threshold={2: 0.5}, extra_body={"top_k": 1})
    assert publishable(config) == RunConfig(
        model_name="m", match_ratio_threshold={2: 0.5}, extra_body={"top_k": 1}, server_args=()
    )


def test_publishing_leaves_the_configuration_that_is_run_untouched() -> None:
    config = RunConfig(env={"HF_TOKEN": "hunter2"}, extra_body={"token": "hunter2"})
    publishable(config)
    assert config.env == {"HF_TOKEN": "hunter2"}
    assert config.extra_body == {"token": "hunter2"}
