import json
import re
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.config import RunConfig
from mrcr_action.publish import (
    is_secret,
    mask_arguments,
    publishable,
    scrub,
    secrets_of,
    without_password,
)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "apikey"),
        *("--api-key", "--hf-token", "Authorization", "X-Api-Key", "db.password", "COOKIE"),
        *("apiKey", "accessToken", "APIKey", "OpenAIKey", "apiKEY", "clientSecret2", "authToken"),
        *("api_keys", "API_KEYs", "apiKeys", "passwords", "secrets", "cookies", "credentials"),
        *("--kv-transfer-config.password", "token_id_token"),
    ],
)
def test_a_name_with_a_word_for_a_secret_is_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("--max-num-batched-tokens", "--tokenizer", "max_tokens", "VLLM_USE_V1", "monkey"),
        *("--enable-keyed-cache", "author", "", "CUDA_VISIBLE_DEVICES", "maxTokens", "tokens"),
        *("stop_token_ids", "tokenIds", "thinking_token_budget", "--long-prefill-token-threshold"),
        *("--return-tokens-as-token-ids", "TOKENIZERS_PARALLELISM", "passes", "pass"),
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
        (["--url", "https://h/v1?api_key=a"], ["--url", "https://h/v1?api_key=***"]),
        (["--api-keys", "a", "--accessToken=b"], ["--api-keys", "***", "--accessToken=***"]),
        ([], []),
    ],
)
def test_values_of_secret_flags_are_masked(arguments: list[str], expected: list[str]) -> None:
    assert mask_arguments(arguments) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"token": "x", "n": 1}', '{"token": "***", "n": 1}'),
        ('{"a":{"apiKey":["x"]},"é":null}', '{"a": {"apiKey": "***"}, "é": null}'),
        (
            '[{"password": 1}, {"url": "http://u:x@h"}]',
            '[{"password": "***"}, {"url": "http://***@h"}]',
        ),
        ('{"a": {"token": "x"}, "a": 1}', '{"a": 1}'),
        ("{token: x}", "***"),
        ("{size: 1}", "{size: 1}"),
        ("{{ bos_token }}", "{{ bos_token }}"),
        ("{% if key %}", "{% if key %}"),
    ],
)
def test_json_in_an_argument_or_a_variable_is_masked_where_it_is_secret(
    value: str, expected: str
) -> None:
    assert mask_arguments(["--hf-overrides", value]) == ["--hf-overrides", expected]
    assert mask_arguments([f"--hf-overrides={value}"]) == [f"--hf-overrides={expected}"]
    assert publishable(RunConfig(env={"A": value})).env == {"A": expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pw@host:1/p?q#f", "https://***@host:1/p?q#f"),
        ("https://host/v1?api_key=x&n=1&e=#f", "https://host/v1?api_key=***&n=***&e=#f"),
        ("https://u:p@host?sig=a=b", "https://***@host?sig=***"),
        ("http://u:p@a,http://u:p@b", "http://***@a,http://***@b"),
        ("what?a=b", "what?a=b"),
        ("https://pw@host", "https://***@host"),
        ("http://a:b@c@host", "http://***@host"),
        ("https://host/a@b", "https://host/a@b"),
        ("user:pw@host", "user:pw@host"),
        ("plain", "plain"),
        ("http://[::1", "http://[::1"),
        ("", ""),
    ],
)
def test_an_address_loses_its_user_its_password_and_the_values_of_its_query(
    text: str, expected: str
) -> None:
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"authorization": ["Bearer x"]}, {"authorization": "***"}),
        ({"api_keys": {"a": "x"}, "pin": 1}, {"api_keys": "***", "pin": 1}),
        ({"accessToken": 1234, "auth": True}, {"accessToken": "***", "auth": "***"}),
        ({"a": [[{"apiKey": "x"}]], "token": None}, {"a": [[{"apiKey": "***"}]], "token": None}),
        ({"url": "https://u:x@h/?key=x"}, {"url": "https://***@h/?key=***"}),
    ],
)
def test_whatever_stands_under_a_secret_name_is_masked_but_null(
    body: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert publishable(RunConfig(extra_body=body)).extra_body == expected


def test_every_secret_of_a_run_is_known_longest_first() -> None:
    config = RunConfig(
        server_args=(
            *("--api-key", "argument-1", "argument-2", "--hf-token=argument-3", "--port", "8000"),
            *("--hf-overrides", '{"token": "argument-4", "a": "plain"}'),
            "--url=https://u:argument-5@h/v1?api_key=argument%2D6&size=plain",
        ),
        env={
            "HF_TOKEN": "variable-1",
            "A": "plain",
            "PROXY": "http://user:variable-2@p",
            "PIN_SECRET": 12345,
            "J": '{"password": "variable-3"}',
        },
        extra_body={
            "authorization": ["Bearer body-1"],
            "nested": [{"apiKey": {"a": "body-2"}}],
            "url": "https://body-3@host",
            "max_tokens": 5,
        },
        base_url="https://user:addr%40ess@host/v1?token=address-2",
    )
    environ = {
        "HF_TOKEN": "environ-1",
        "HUGGING_FACE_HUB_TOKEN": "environ-2\n",
        "VLLM_API_KEY": "environ-3",
        "HOME": "/root",
    }
    secrets = secrets_of(config, api_key="the-servers-key", environ=environ)
    assert sorted(secrets) == sorted(
        [
            *(f"argument-{number}" for number in range(1, 7)),
            *("argument%2D6", "variable-1", "variable-2", "variable-3", "12345"),
            *("Bearer body-1", "body-1", "body-2", "body-3"),
            *("addr%40ess", "addr@ess", "address-2"),
            *("environ-1", "environ-2", "environ-3", "the-servers-key"),
        ]
    )
    assert [len(secret) for secret in secrets] == sorted(map(len, secrets), reverse=True)


def test_what_would_destroy_ordinary_text_is_no_secret_to_look_for() -> None:
    config = RunConfig(
        server_args="--api-key abc --enable-auth True",
        env={"API_KEY": "EMPTY", "TOKEN": ""},
        extra_body={"key": "none", "auth": True},
    )
    assert secrets_of(config, api_key="abc", environ={"HF_TOKEN": ""}) == ()


def test_a_configuration_without_secrets_has_none() -> None:
    assert secrets_of(RunConfig(model_name="m"), api_key=None, environ={}) == ()


def test_every_secret_in_a_text_is_masked_and_the_longer_one_first() -> None:
    text = "key abcd-efgh, abcd, again abcd-efgh."
    assert scrub(text, ["abcd", "abcd-efgh"]) == "key ***, ***, again ***."
    assert scrub(text, []) == scrub(text, [""]) == text
    assert scrub("", ["abcd"]) == ""
    assert scrub("a.c [d] aXc", ["a.c [d]"]) == "*** aXc"


@pytest.mark.parametrize(
    "secret",
    ['a"b\\c/d', "a b&c=d+e%f", "zoë 😀", "tab\there\n", "<it's>", "plain1234", "sk-a_b.c~d"],
)
def test_a_secret_is_found_however_json_a_quotation_or_an_address_writes_it(secret: str) -> None:
    escaped = "".join(c if c.isalnum() and c.isascii() else f"\\u{ord(c):04X}" for c in secret)
    forms = [
        *(secret, repr(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False)),
        *(json.dumps(json.dumps(secret)), json.dumps({"a": json.dumps({"b": secret})})),
        *(quote(secret), quote(secret, safe=""), quote_plus(secret)),
        *(escaped if max(secret) < "\U00010000" else secret, quote(secret).replace("%2F", "%2f")),
    ]
    for form in forms:
        shown = scrub(f"before {form} after", [secret])
        assert re.fullmatch(r"before \W*(a\W+b\W+)?\*\*\*\W* after", shown), form


@given(st.text(max_size=20), st.text(min_size=4, max_size=12), st.text(max_size=20))
def test_no_secret_is_left_in_a_scrubbed_text(before: str, secret: str, after: str) -> None:
    for form in (secret, json.dumps(secret)[1:-1]):
        shown = scrub(before + form + after, [secret])
        assert "***" in shown
        assert secret not in shown or "*" in secret


def test_a_long_run_of_backslashes_is_searched_in_no_time() -> None:
    text = "\\" * 200_000
    assert scrub(text, ['"quoted"', "-dashed-"]) == text
