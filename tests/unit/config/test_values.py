from datetime import date
from typing import Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.config.faults import faults
from mrcr_action.config.values import SWITCHES, TYPES, convert, describe, read_text
from mrcr_action.errors import ConfigError

INF = float("inf")
NAN = float("nan")
NEEDLES = "needle counts are 2, 4 and 8 (1 to 16 in synthetic samples)"


def reason(key: str, value: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        convert(key, value, origin="here")
    assert str(caught.value).startswith("here: ")
    return str(caught.value).removeprefix("here: ")


@pytest.mark.parametrize("key", TYPES)
def test_every_key_says_what_it_means(key: str) -> None:
    assert describe(key).endswith(".")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("match_ratio_threshold", 1.5, "1.5: expected a number <= 1.0"),
        ("match_ratio_threshold", -0.1, "-0.1: expected a number >= 0.0"),
        ("match_ratio_threshold", NAN, "nan: expected a number >= 0.0"),
        ("match_ratio_threshold", INF, "inf: expected a number <= 1.0"),
        ("match_ratio_threshold", {4: 1.5}, "{4: 1.5}: expected a number <= 1.0"),
        ("match_ratio_threshold", {4: NAN}, "{4: nan}: expected a number >= 0.0"),
        ("match_ratio_threshold", {0: 0.5}, f"{{0: 0.5}}: {NEEDLES}"),
        ("match_ratio_threshold", {17: 0.5}, f"{{17: 0.5}}: {NEEDLES}"),
        ("match_ratio_threshold", {2: True}, "{2: True}: expected a number, got true or false"),
        ("tolerance", -0.05, "-0.05: expected a number >= 0.0"),
        ("tolerance", 5, "5: expected a number <= 1.0"),
        ("needles", [0], f"[0]: {NEEDLES}"),
        ("needles", [2, 17], f"[2, 17]: {NEEDLES}"),
        ("needles", [], "[]: expected a list of length >= 1"),
        ("needles", 2, "2: expected a list, got a whole number"),
        ("needles", ["2"], "['2']: expected a whole number, got text"),
        ("needles", [True], "[True]: expected a whole number, got true or false"),
        ("num_samples", -1, "-1: expected a whole number >= 1"),
        ("num_samples", 0, "0: expected a whole number >= 1"),
        ("num_samples", 1.5, "1.5: expected a whole number, got a number"),
        ("num_samples", "many", "'many': expected a whole number, got text"),
        ("max_tokens", None, "None: expected a whole number, got nothing"),
        ("samples_per_cell", 0, "0: expected a whole number >= 1"),
        ("bins", [], "[]: expected a list of length >= 1"),
        ("bins", "4K-8K", "'4K-8K': expected a list, got text"),
        ("exclude", [8], "[8]: expected text, got a whole number"),
        ("num_samples", [1], "[1]: expected a whole number, got a list"),
        ("num_samples", {}, "{}: expected a whole number, got keys with values"),
        ("seed", -1, "-1: expected a whole number >= 0"),
        ("max_failures", -1, "-1: expected a whole number >= 0"),
        ("temperature", INF, "inf: expected a finite number"),
        ("startup_max_wait_seconds", 0, "0: expected a number > 0.0"),
        ("startup_max_wait_seconds", INF, "inf: expected a finite number"),
        ("request_timeout_seconds", NAN, "nan: expected a number > 0.0"),
        ("port", 0, "0: expected a whole number >= 1"),
        ("port", 65_536, "65536: expected a whole number <= 65535"),
        ("model_name", 5, "5: expected text, got a whole number"),
        ("model_name", "\ud800", r"'\ud800': not text in UTF-8"),
        ("output_dir", "", "'': expected text of length >= 1"),
        ("trust_remote_code", 1, "1: expected true or false, got a whole number"),
        ("protocol", "open", "'open': expected one of vllm, openai; did you mean openai?"),
        ("server", "docker", "'docker': expected one of auto, process, container, external"),
        ("gpus", "first", "'first': expected all, none, or numbers such as 0,1"),
        ("gpus", "0,", "'0,': expected all, none, or numbers such as 0,1"),
        ("shm_size", "16 GB", "'16 GB': expected a size such as 16g, or host"),
    ],
)
def test_a_bad_value_is_shown_with_what_was_expected(key: str, value: Any, expected: str) -> None:
    assert reason(key, value) == expected


@pytest.mark.parametrize("key", [key for key in TYPES if key not in SWITCHES])
@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_mean_nothing_where_no_switch_is(key: str, value: bool) -> None:  # noqa: FBT001
    assert reason(key, value) == f"{str(value).lower()}: true and false have no meaning here"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("env", {"HF_TOKEN": "hunter2", "A": [1]}),
        ("env", {"HF_TOKEN": "hunter2", "A": NAN}),
        ("extra_body", ["hunter2"]),
        ("extra_body", {"token": "hunter2", "when": date(2026, 1, 1)}),
        ("server_args", ["--api-key", "hunter2", 1]),
    ],
)
def test_a_value_that_may_hold_a_secret_is_not_shown(key: str, value: Any) -> None:
    assert "hunter2" not in reason(key, value)


@pytest.mark.parametrize("key", ["env", "extra_body"])
def test_text_that_may_hold_a_secret_is_not_shown_when_it_cannot_be_read(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(key, "{token: hunter2", origin="MRCR_X")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"top_p": NAN}, "expected a finite number"),
        ({"a": [{"b": INF}]}, "expected a finite number"),
        ({"a": date(2026, 1, 2)}, "JSON has no date; put it in quotes"),
        ({"a": {"b": {1, 2}}}, "JSON has no set; put it in quotes"),
        ({"a": b"x"}, "JSON has no bytes; put it in quotes"),
        ({"a": {None: 1}}, "a key must be plain text"),
        ({"a": {"\ud800": 1}}, "not text in UTF-8"),
        ({"a": "\ud800"}, "not text in UTF-8"),
    ],
)
def test_what_json_cannot_hold_is_refused_before_a_server_is_started(
    value: Any, expected: str
) -> None:
    assert reason("extra_body", value) == expected


def test_token_numbers_may_be_keys_within_a_request() -> None:
    value = {"logit_bias": {50256: -100}, "nested": [None, True, 1, 2.5, "é😀"]}
    assert convert("extra_body", value, origin="") == value


def test_a_long_value_is_cut_in_the_message() -> None:
    assert reason("num_samples", "x" * 500) == (
        f"'{'x' * 76}...: expected a whole number, got text"
    )


def test_a_needle_count_may_be_text_as_json_has_it() -> None:
    assert convert("match_ratio_threshold", {"2": 0.5, 4: 1}, origin="") == {2: 0.5, 4: 1.0}


def test_one_needle_count_in_two_spellings_is_an_error() -> None:
    assert reason("match_ratio_threshold", {"2": 0.5, 2: 0.4}).endswith(
        "a needle count occurs twice"
    )


@pytest.mark.parametrize("key", ["02", "²", "two", 2.5, None])
def test_other_spellings_of_a_needle_count_are_refused(key: Any) -> None:
    reason("match_ratio_threshold", {key: 0.5})


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("model_name", "1", "1"),
        ("model_name", "null", "null"),
        ("server_args", "[--a]", "[--a]"),
        ("protocol", "openai", "openai"),
        ("host", "on", "on"),
        ("num_samples", "12", 12),
        ("tolerance", "0.1", 0.1),
        ("trust_remote_code", "true", True),
        ("max_prompt_tokens", "null", None),
        ("match_ratio_threshold", "0.5", 0.5),
        ("match_ratio_threshold", "{2: 0.9, 8: 0.7}", {2: 0.9, 8: 0.7}),
        ("match_ratio_threshold", '{"2": 0.9}', {"2": 0.9}),
        ("env", "{A: 1, B: x}", {"A": 1, "B": "x"}),
        ("extra_body", '{"top_k": 1}', {"top_k": 1}),
        ("needles", "2", [2]),
        ("needles", "2,4, 8", [2, 4, 8]),
        ("needles", "[2, 8]", [2, 8]),
        ("needles", ["2", "8"], [2, 8]),
        ("needles", "2 x", [2, "x"]),
        ("bins", "4K-8K, 8K-16K", ["4K-8K", "8K-16K"]),
        ("bins", ["4K-8K", "8K-16K"], ["4K-8K", "8K-16K"]),
        ("exclude", "[n8/4K-8K]", ["n8/4K-8K"]),
        ("exclude", "", []),
    ],
)
def test_text_stands_for_the_value_that_its_key_demands(key: str, text: Any, expected: Any) -> None:
    assert read_text(key, text, origin="") == expected


@pytest.mark.parametrize("text", ["[", "{2: .9, 2: .8}", "!!bool x", "&a *a", "a: b: c", "\0"])
def test_text_that_cannot_be_read_is_an_error_with_its_origin(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text("match_ratio_threshold", text, origin="MRCR_X")
    assert str(caught.value).startswith(f"MRCR_X: {text!r}: cannot be read")


@pytest.mark.parametrize(
    ("folder", "fault"),
    [
        ("cache", "expected an absolute path of the host"),
        ("/", "a folder of the system itself"),
        ("//", "a folder of the system itself"),
        ("/srv/..", "a folder of the system itself"),
        ("/etc/mrcr", "a folder of the system itself"),
        ("/run/docker", "a folder of the system itself"),
        ("/var/run/docker.sock", "a folder of the system itself"),
        ("/var", "a folder of the system itself"),
        ("/home/", "a folder of the system itself"),
    ],
)
def test_a_cache_is_a_folder_of_ones_own(folder: str, fault: str) -> None:
    (found,) = faults(RunConfig(cache_dir=folder))

    assert found[0] == "cache_dir"
    assert fault in found[1]


@pytest.mark.parametrize("folder", ["/var/cache/mrcr", "/srv/mrcr", "/root/.cache", "/data"])
def test_a_cache_may_lie_in_a_shared_folder(folder: str) -> None:
    assert list(faults(RunConfig(cache_dir=folder))) == []


def test_a_gpu_is_listed_once() -> None:
    assert list(faults(RunConfig(gpus="0,1,0"))) == [("gpus", "0,1,0: a GPU is listed twice")]
