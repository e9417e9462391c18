import argparse
from pathlib import Path
from typing import Any

import pytest

from mrcr_action.calibration.document import Calibration
from mrcr_action.config import RunConfig
from mrcr_action.config.faults import server_arguments
from mrcr_action.config.flags import GROUPS, add_config_flags, given_flags
from mrcr_action.config.resolve import Resolved, flag_of, resolve
from mrcr_action.config.values import LISTS, SWITCHES, TYPES
from mrcr_action.errors import ConfigError
from mrcr_action.publish import publishable

# For every key a value in YAML, another for the environment and the command line, and both as
# they are meant.
VALUES: dict[str, tuple[str, str, Any, Any]] = {
    "model_name": ("file", "text", "file", "text"),
    "match_ratio_threshold": ("{4: 0.5}", "0.25", {4: 0.5}, 0.25),
    "thresholds": ("{n4: 0.5}", "0.25", {"n4": 0.5}, 0.25),
    "tolerance": ("0.1", "0.2", 0.1, 0.2),
    "decision": ("point", "confident", "point", "confident"),
    "protocol": ("openai", "vllm", "openai", "vllm"),
    "num_samples": ("10", "20", 10, 20),
    "samples_per_cell": ("3", "4", 3, 4),
    "max_samples_per_cell": ("30", "40", 30, 40),
    "bins": ("[4K-8K]", "8K-16K,16K-32K", ("4K-8K",), ("8K-16K", "16K-32K")),
    "exclude": ("[n8/4K-8K]", "512K-1M", ("n8/4K-8K",), ("512K-1M",)),
    "min_samples": ("5", "6", 5, 6),
    "stop_when": ("failed", "decided", "failed", "decided"),
    "cut_without_nonce": ("true", "false", True, False),
    "needles": ("[4]", "4", (4,), (4,)),
    "max_prompt_tokens": ("1000", "2000", 1000, 2000),
    "max_tokens": ("100", "200", 100, 200),
    "temperature": ("0.5", "1", 0.5, 1.0),
    "seed": ("1", "2", 1, 2),
    "concurrency": ("3", "4", 3, 4),
    "passes": ("[cold]", "cold, warm", ("cold",), ("cold", "warm")),
    "repeats": ("2", "3", 2, 3),
    "boundaries": ("2", "3", 2, 3),
    "sweep": ("2", "3", 2, 3),
    "small_pool": ("true", "false", True, False),
    "plan": ("smoke", "deep", "smoke", "deep"),
    "max_instability": ("0.1", "0.2", 0.1, 0.2),
    "min_logit_margin": ("5", "7.5", 5.0, 7.5),
    "extra_body": ("{a: 1}", "{b: 2}", {"a": 1}, {"b": 2}),
    "dataset": ("rows", "more", "rows", "more"),
    "revision": ("main", "7", "main", "7"),
    "allow_unverified": ("false", "true", False, True),
    "merge_leading_user_turns": ("false", "true", False, True),
    "server": ("process", "external", "process", "external"),
    "base_url": ("http://a", "https://b/v1", "http://a", "https://b/v1"),
    "host": ("h1", "h2", "h1", "h2"),
    "port": ("8001", "8002", 8001, 8002),
    "image": ("org/vllm:1", "org/vllm@sha256:1", "org/vllm:1", "org/vllm@sha256:1"),
    "gpus": ("0", "0,1", "0", "0,1"),
    "cache_dir": ("/a", "/b", "/a", "/b"),
    "shm_size": ("64", "32g", "64", "32g"),
    "server_args": ("[--a, --b]", "--c", ("--a", "--b"), "--c"),
    "env": ("{A: 1}", "{B: x}", {"A": 1}, {"B": "x"}),
    "trust_remote_code": ("false", "true", False, True),
    "startup_max_wait_seconds": ("5", "6.5", 5.0, 6.5),
    "request_timeout_seconds": ("7", "8", 7.0, 8.0),
    "time_limit_seconds": ("9", "10", 9.0, 10.0),
    "max_failures": ("1", "2", 1, 2),
    "output_dir": ("out", "elsewhere", "out", "elsewhere"),
    "save_results": ("a.json", "b.json", "a.json", "b.json"),
    "junit": ("buckets", "samples", "buckets", "samples"),
    "baseline": ("a", "b/result.json", "a", "b/result.json"),
    "calibration": (
        (
            "{model: a, dataset: d, protocol: openai, seed: 1, n: {all: 5}, passes: [cold],"
            " repeats: 5, false_alarm: 0.01, date: today}"
        ),
        (
            "{model: b, vllm_version: '1', hardware: CPU, dataset: d, revision: r, protocol: vllm,"
            " seed: 2, n: {n8: 5}, passes: [cold, warm], repeats: 2, false_alarm: 0.1, date: '2'}"
        ),
        Calibration(
            model="a",
            dataset="d",
            protocol="openai",
            seed=1,
            n={"all": 5},
            passes=("cold",),
            repeats=5,
            false_alarm=0.01,
            date="today",
        ),
        Calibration(
            model="b",
            vllm_version="1",
            hardware="CPU",
            dataset="d",
            revision="r",
            protocol="vllm",
            seed=2,
            n={"n8": 5},
            passes=("cold", "warm"),
            repeats=2,
            false_alarm=0.1,
            date="2",
        ),
    ),
    "max_regression": ("0.01", "0.02", 0.01, 0.02),
    "shard": ("1/2", "2/2", "1/2", "2/2"),
}


BY_CELL = ("samples_per_cell", "bins", "exclude")

LOOKS = {"protocol": "openai", "decision": "confident", "match_ratio_threshold": "0.5"}
"""Flags without which nothing is ever undecided."""


def write(folder: Path, text: str, name: str = "model.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def parse(*arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_config_flags(parser)
    return given_flags(parser.parse_args(arguments))


def flags_for(key: str, text: str) -> dict[str, Any]:
    if key in SWITCHES:
        flag = flag_of(key)
        return parse(flag if text == "true" else f"--no-{flag[2:]}")
    return parse(f"{flag_of(key)}={text}")


def needed(key: str) -> dict[str, Any]:
    """Flags without which a key is a contradiction."""
    if key == "max_regression":
        return {"baseline": "base"}
    if key == "max_instability":
        return {"repeats": "2"}
    if key == "max_samples_per_cell":
        return LOOKS
    return {"protocol": "openai"} if key in BY_CELL else {}


def failure(path: Path | None, environ: dict[str, str] | None = None, **flags: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(path, environ or {}, flags)
    return str(caught.value)


def test_every_key_is_covered_here_and_has_a_flag() -> None:
    assert set(VALUES) == set(TYPES)
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(TYPES)


def test_without_any_layer_the_defaults_hold() -> None:
    assert resolve(None, {}, {}) == Resolved(
        config=RunConfig(), name="run", path=None, given=frozenset()
    )


@pytest.mark.parametrize("key", VALUES)
def test_the_file_sets_every_key(tmp_path: Path, key: str) -> None:
    yaml, _, expected, _ = VALUES[key]
    read = resolve(write(tmp_path, f"{key}: {yaml}\n"), {}, needed(key))
    assert getattr(read.config, key) == expected
    assert read.given == {key, *needed(key)}


@pytest.mark.parametrize("key", VALUES)
def test_the_environment_sets_every_key(key: str) -> None:
    _, text, _, expected = VALUES[key]
    read = resolve(None, {"MRCR_" + key.upper(): text, key.upper(): "other"}, needed(key))
    assert getattr(read.config, key) == expected
    assert read.given == {key, *needed(key)}


@pytest.mark.parametrize("key", VALUES)
def test_a_flag_sets_every_key(key: str) -> None:
    _, text, _, expected = VALUES[key]
    flags = flags_for(key, text)
    assert set(flags) == {key}
    assert getattr(resolve(None, {}, flags | needed(key)).config, key) == expected


@pytest.mark.parametrize("key", VALUES)
def test_the_environment_wins_over_the_file(tmp_path: Path, key: str) -> None:
    yaml, text, _, expected = VALUES[key]
    path = write(tmp_path, f"{key}: {yaml}\n")
    read = resolve(path, {"MRCR_" + key.upper(): text}, needed(key))
    assert getattr(read.config, key) == expected


@pytest.mark.parametrize("key", VALUES)
def test_a_flag_wins_over_the_file_and_the_environment(tmp_path: Path, key: str) -> None:
    yaml, text, _, expected = VALUES[key]
    path = write(tmp_path, f"{key}: {yaml}\n")
    # What the environment says is read even so, and must be readable.
    other = yaml.strip("[]") if key in LISTS else yaml
    flags = flags_for(key, text) | needed(key)
    read = resolve(path, {"MRCR_" + key.upper(): other}, flags)
    assert getattr(read.config, key) == expected


@pytest.mark.parametrize("key", VALUES)
def test_an_empty_variable_does_not_count(tmp_path: Path, key: str) -> None:
    yaml, _, expected, _ = VALUES[key]
    read = resolve(write(tmp_path, f"{key}: {yaml}\n"), {"MRCR_" + key.upper(): ""}, needed(key))
    assert getattr(read.config, key) == expected


def test_variables_with_the_prefix_that_are_no_settings_are_left_alone() -> None:
    assert resolve(None, {"MRCR_API_KEY": "k", "MRCR_VLLM": "v"}, {}).given == set()


def test_a_slip_in_the_name_of_a_variable_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(None, {"MRCR_TRESHOLD": "0.9"}, {})
    message = "environment: MRCR_TRESHOLD: unknown setting; did you mean MRCR_THRESHOLD?"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("variable", "key", "value"),
    [("MRCR_THRESHOLD", "match_ratio_threshold", 0.9), ("MRCR_MODEL", "model_name", "0.9")],
)
def test_variables_may_be_named_like_their_flags(variable: str, key: str, value: object) -> None:
    assert getattr(resolve(None, {variable: "0.9"}, {}).config, key) == value


@pytest.mark.parametrize("text", ["", "  ", "null", "~"])
def test_a_blank_threshold_never_switches_off_that_of_the_file(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "match_ratio_threshold: 0.5\n")
    with pytest.raises(ConfigError, match=r"^--match-ratio-threshold: is empty$"):
        resolve(path, {}, {"match_ratio_threshold": text})
    if not text.strip():
        read = resolve(path, {"MRCR_MATCH_RATIO_THRESHOLD": text}, {})
        assert read.config.match_ratio_threshold == 0.5


def test_a_blank_threshold_in_a_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "match_ratio_threshold:\n")
    with pytest.raises(ConfigError, match=r":1: match_ratio_threshold: is empty$"):
        resolve(path, {}, {})


def test_layers_are_merged_key_by_key_and_not_within_a_key(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 1\nmax_tokens: 2\nextra_body: {a: 1}\n")
    read = resolve(path, {"MRCR_MAX_TOKENS": "3", "MRCR_EXTRA_BODY": "{b: 2}"}, {"tolerance": "0"})
    assert read.config == RunConfig(seed=1, max_tokens=3, extra_body={"b": 2}, tolerance=0)
    assert read.given == {"seed", "max_tokens", "extra_body", "tolerance"}


def test_a_switch_of_the_file_can_be_turned_off_by_a_flag(tmp_path: Path) -> None:
    path = write(tmp_path, "trust_remote_code: true\n")
    assert not resolve(path, {}, parse("--no-trust-remote-code")).config.trust_remote_code


def test_threshold_and_model_have_short_flags() -> None:
    assert parse("--threshold", "0.5", "--model", "m") == {
        "match_ratio_threshold": "0.5",
        "model_name": "m",
    }


def test_needles_are_words_on_the_command_line() -> None:
    flags = parse("--needles", "8", "2")
    assert resolve(None, {}, flags).config.needles == (8, 2)


def test_help_describes_every_flag_with_its_default() -> None:
    parser = argparse.ArgumentParser()
    add_config_flags(parser)
    text = " ".join(parser.format_help().split())
    for key in TYPES:
        assert flag_of(key) in text
    assert "Default under the vllm protocol: 40;" in text
    assert "Default: 10." in text
    assert "Default: 2 4 8." in text


@pytest.mark.parametrize(
    ("path", "model", "expected"),
    [
        ("Qwen3.5-4B.yaml", "org/other", "Qwen3.5-4B"),
        (None, "org/model", "model"),
        (None, "/models/model/", "model"),
        (None, "model", "model"),
        (None, None, "run"),
    ],
)
def test_a_run_is_named_after_its_file_or_its_model(
    tmp_path: Path, path: str | None, model: str | None, expected: str
) -> None:
    file = write(tmp_path, "seed: 1\n", path) if path else None
    flags = {"model_name": model} if model else {}
    assert resolve(file, {}, flags).name == expected


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_key(tmp_path: Path) -> None:
    path = write(tmp_path, "model_name: m\n\nnum_sample: 3\n")
    assert failure(path) == f"{path}:3: num_sample: unknown key; did you mean num_samples?"


def test_a_key_like_no_other_is_answered_with_the_valid_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "zzz: 3\n")
    message = failure(path)
    assert message.startswith(f"{path}:1: zzz: unknown key; valid keys are model_name, ")
    assert message.endswith(", ".join(list(TYPES)[-2:]))


def test_a_wrong_value_is_named_with_the_place_it_came_from(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 1\nnum_samples: -1\n")
    assert failure(path) == f"{path}:2: num_samples: -1: expected a whole number >= 1"
    assert failure(None, {"MRCR_NUM_SAMPLES": "-1"}) == (
        "environment: MRCR_NUM_SAMPLES: -1: expected a whole number >= 1"
    )
    assert failure(None, num_samples="-1") == ("--num-samples: -1: expected a whole number >= 1")


def test_a_wrong_value_of_the_file_does_not_matter_where_a_flag_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "num_samples: -1\n")
    assert resolve(path, {}, {"num_samples": "2"}).config.num_samples == 2


def test_a_threshold_for_a_needle_count_that_is_not_tested_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "needles: [2, 4]\nmatch_ratio_threshold:\n  8: 0.5\n")
    assert failure(path) == (
        f"{path}:2: match_ratio_threshold: a threshold for 8 needles, but needles and num_samples"
        " test only [2, 4]"
    )


def test_a_threshold_for_a_needle_count_without_samples_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "num_samples: 2\nmatch_ratio_threshold: {8: 0.5}\n")
    assert "a threshold for 8 needles" in failure(path)


def test_a_threshold_left_behind_by_a_flag_is_named_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "seed: 1\nmatch_ratio_threshold: {8: 0.5}\n")
    assert failure(path, needles=["2"]).startswith(f"{path}:2: match_ratio_threshold: ")


def test_thresholds_for_no_needle_count_are_an_error() -> None:
    assert failure(None, match_ratio_threshold="{}") == (
        "--match-ratio-threshold: {}: names no needle count"
    )


def test_a_needle_count_is_listed_once() -> None:
    assert failure(None, needles=["2", "4", "2"]) == (
        "--needles: [2, 4, 2]: a needle count is listed twice"
    )


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://host", "host:8000", "//host", "http://", "http:///v1", "", " ", "http://a b"),
        *("http://host:99999", "http://host:0", "http://host:port", "http://[::1", "http://:8000"),
    ],
)
def test_an_address_that_is_none_is_an_error_of_the_configuration(tmp_path: Path, url: str) -> None:
    path = write(tmp_path, f"seed: 1\nbase_url: '{url}'\n")
    assert failure(path) == (
        f"{path}:2: base_url: expected an address such as http://127.0.0.1:8000"
    )


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:8000", "https://host/base/v1", "HTTPS://HOST", "http://[::1]:8000"),
        *("http://user:password@host", "http://a_b"),
    ],
)
def test_an_address_may_have_a_path_a_port_and_a_password(url: str) -> None:
    assert resolve(None, {}, {"base_url": url}).config.base_url == url


def test_a_password_in_a_bad_address_is_not_shown() -> None:
    assert "hunter2" not in failure(None, base_url="htp://user:hunter2@host")


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("--max-model-len 128K --a='b c'", ["--max-model-len", "128K", "--a=b c"]),
        ("", []),
        ("'--json {\"a\": 1} $HOME *'", ["--json", "{a:", "1}", "$HOME", "*"]),
        ("['--json', '{\"a\": 1}', 'b c']", ["--json", '{"a": 1}', "b c"]),
        ("[]", []),
    ],
)
def test_server_arguments_are_split_as_a_shell_would_or_taken_as_a_list(
    tmp_path: Path, yaml: str, expected: list[str]
) -> None:
    path = write(tmp_path, f"server_args: {yaml}\n" if yaml else 'server_args: ""\n')
    assert server_arguments(resolve(path, {}, {}).config) == expected


def test_a_quotation_that_is_not_closed_is_an_error_without_the_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, "server_args: --api-key 'hunter2\n")
    assert failure(path) == f"{path}:1: server_args: no closing quotation"


def test_numbers_in_the_servers_environment_become_text(tmp_path: Path) -> None:
    path = write(tmp_path, "env: {A: 1, B: 0.5, C: text, D: ''}\n")
    config = resolve(path, {}, {}).config
    assert publishable(config).env == {"A": "1", "B": "0.5", "C": "text", "D": ""}


def test_a_file_of_vllms_own_test_is_run_the_vllm_way(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'model_name: "Qwen/Qwen3.5-4B"\n'
        "needles: [2, 4, 8]\n"
        "match_ratio_threshold:\n"
        "  2: 0.99\n"
        "  4: 0.84\n"
        "  8: 0.76\n"
        'server_args: "--max-model-len 128K --reasoning-parser qwen3"\n',
        "Qwen3.5-4B.yaml",
    )
    read = resolve(path, {}, {})
    assert read.config == RunConfig(
        protocol="vllm",
        model_name="Qwen/Qwen3.5-4B",
        needles=(2, 4, 8),
        match_ratio_threshold={2: 0.99, 4: 0.84, 8: 0.76},
        server_args="--max-model-len 128K --reasoning-parser qwen3",
        max_tokens=2048,
        concurrency=8,
        tolerance=0.05,
        startup_max_wait_seconds=600.0,
    )
    assert read.config.quotas() == {2: 14, 4: 13, 8: 13}
    assert server_arguments(read.config) == [
        *("--max-model-len", "128K", "--reasoning-parser", "qwen3")
    ]


def test_a_scalar_threshold_of_vllms_own_format_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "model_name: m\nmatch_ratio_threshold: 0.8\nenv: {A: 1}\n")
    assert resolve(path, {}, {}).config.match_ratio_threshold == 0.8


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"min_samples": "9", "num_samples": "8", "match_ratio_threshold": "0.5"},
            "--min-samples: 9: a bucket is asked for 8 only",
        ),
        (
            {"protocol": "openai", "num_samples": "9", "samples_per_cell": "3"},
            "--samples-per-cell: num_samples is set too; set one of them",
        ),
        (
            {"samples_per_cell": "3"},
            "--samples-per-cell: only the openai protocol samples by cell; set protocol: openai",
        ),
        (
            {"max_samples_per_cell": "30", "match_ratio_threshold": "0.5"},
            "--max-samples-per-cell: only the openai protocol samples by cell",
        ),
        (
            LOOKS | {"max_samples_per_cell": "30", "num_samples": "9"},
            "--max-samples-per-cell: num_samples is set too; set samples_per_cell, or leave both",
        ),
        (
            LOOKS | {"max_samples_per_cell": "10"},
            "--max-samples-per-cell: 10: expected more than samples_per_cell, which is 10",
        ),
        (
            LOOKS | {"max_samples_per_cell": "20", "samples_per_cell": "30"},
            "--max-samples-per-cell: 20: expected more than samples_per_cell, which is 30",
        ),
        (
            LOOKS | {"max_samples_per_cell": "30", "decision": "point"},
            "--max-samples-per-cell: a mean is never undecided; set decision: confident",
        ),
        (
            LOOKS | {"max_samples_per_cell": "30", "stop_when": "failed"},
            "--max-samples-per-cell: stop_when is failed, which ends a look before its last sample",
        ),
        (
            {
                "protocol": "openai",
                "decision": "confident",
                "thresholds": "{n8: {nonce_rate: 1}}",
                "max_samples_per_cell": "30",
            },
            "--max-samples-per-cell: no threshold of a match ratio is set",
        ),
        ({"bins": "4K-8K"}, "--bins: only the openai protocol samples by cell"),
        ({"exclude": "4K-8K"}, "--exclude: only the openai protocol samples by cell"),
        (
            {"protocol": "openai", "bins": ["4K-8K", "8K-16K", "4K-8K"]},
            "--bins: 4K-8K: is listed twice",
        ),
        ({"protocol": "openai", "bins": "4K-9K"}, "--bins: '4K-9K' is none of the bins 0-512, "),
        ({"protocol": "openai", "bins": "short"}, "--bins: 'short' is not a range of tokens"),
        (
            {"protocol": "openai", "exclude": "n8/4K-9K"},
            "--exclude: '4K-9K' is none of the bins",
        ),
        (
            {"protocol": "openai", "exclude": "n8"},
            "--exclude: 'n8' is not a range of tokens such as 4K-8K, nor a cell such as",
        ),
        (
            {"protocol": "openai", "needles": ["2", "4"], "exclude": ["8K-16K", "n8/64K-128K"]},
            "--exclude: n8/64K-128K: the needle counts are [2, 4]",
        ),
        (
            {"needles": ["3"]},
            "--needles: 3: needle counts are 2, 4 and 8 (1 to 16 in synthetic samples)",
        ),
        ({"host": "user:hunter2@h"}, "--host: expected a name or an address, such as 127.0.0.1"),
        ({"host": "a b"}, "--host: expected a name or an address"),
        ({"max_regression": "0.02"}, "--max-regression: 0.02: no baseline is set to compare with"),
        ({"extra_body": "{n: 2}"}, "--extra-body: n cannot be changed"),
        ({"extra_body": "{stream: false}"}, "--extra-body: stream cannot be changed"),
    ],
)
def test_settings_that_cannot_be_meant_are_errors(flags: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(None, {}, flags)
    assert str(caught.value).startswith(message)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_variable_is_no_threshold_and_no_way_around_one(blank: str) -> None:
    environ = {"MRCR_THRESHOLD": blank}
    with pytest.raises(ConfigError, match=r"^environment: MRCR_THRESHOLD: is blank"):
        resolve(None, environ, {})
    given = resolve(None, environ, {"match_ratio_threshold": "0.5"})
    assert given.config.match_ratio_threshold == 0.5


NUMBERS = {"num_samples": "20", "samples_per_cell": "3"}
"""The two ways to say how many samples, each of which rules the other out."""


@pytest.mark.parametrize("stronger", NUMBERS)
@pytest.mark.parametrize("layers", ["file, environment", "file, flag", "environment, flag"])
def test_of_the_two_numbers_of_samples_the_one_of_the_stronger_layer_holds(
    tmp_path: Path, stronger: str, layers: str
) -> None:
    (weaker,) = NUMBERS.keys() - {stronger}
    said: dict[str, dict[str, str]] = {"file": {}, "environment": {}, "flag": {}}
    for layer, key in zip(layers.split(", "), (weaker, stronger), strict=True):
        said[layer][key] = NUMBERS[key]
    lines = "".join(f"{key}: {text}\n" for key, text in said["file"].items())
    path = write(tmp_path, f"protocol: openai\n{lines}")
    environ = {f"MRCR_{key.upper()}": text for key, text in said["environment"].items()}

    read = resolve(path, environ, said["flag"])

    assert getattr(read.config, stronger) == int(NUMBERS[stronger])
    assert getattr(read.config, weaker) is None
    assert read.given == {stronger, "protocol"}


def test_two_numbers_of_samples_in_one_layer_are_an_error(tmp_path: Path) -> None:
    lines = "".join(f"{key}: {text}\n" for key, text in NUMBERS.items())
    path = write(tmp_path, f"protocol: openai\n{lines}")
    assert failure(path) == f"{path}:3: samples_per_cell: num_samples is set too; set one of them"
    environ = {f"MRCR_{key.upper()}": text for key, text in NUMBERS.items()}
    assert failure(None, environ, protocol="openai").startswith(
        "environment: MRCR_SAMPLES_PER_CELL: num_samples is set too"
    )


def test_a_cell_left_behind_by_a_flag_for_needles_is_named_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "protocol: openai\nexclude: [n8/4K-8K]\n")
    assert failure(path, needles=["2"]) == (
        f"{path}:2: exclude: n8/4K-8K: the needle counts are [2]"
    )


def test_synthetic_samples_may_have_other_needle_counts() -> None:
    flags: dict[str, Any] = {
        "dataset": "rows",
        "needles": ["1", "3", "16"],
        "match_ratio_threshold": "{16: 0.5}",
    }
    assert resolve(None, {}, flags).config.needles == (1, 3, 16)


def test_cells_may_be_excluded_by_needle_count_or_for_all() -> None:
    flags: dict[str, Any] = {"protocol": "openai", "exclude": ["n8/64K-128K", "512K-1M"]}
    assert resolve(None, {}, flags).config.exclude == ("n8/64K-128K", "512K-1M")


def test_how_many_samples_there_are_by_cell_is_not_guessed_for_min_samples() -> None:
    flags = {"protocol": "openai", "min_samples": "99", "match_ratio_threshold": "0.5"}
    assert resolve(None, {}, flags).config.min_samples == 99


def test_two_variables_for_one_setting_are_an_error() -> None:
    environ = {"MRCR_THRESHOLD": "0.9", "MRCR_MATCH_RATIO_THRESHOLD": "0.1"}
    with pytest.raises(ConfigError, match=r"MRCR_THRESHOLD is set too$"):
        resolve(None, environ, {})


def test_the_home_folder_can_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    read = resolve(write(tmp_path, "dataset: ~/rows\n"), {}, {"output_dir": "~/out"})
    assert (read.config.dataset, read.config.output_dir) == (
        "/home/somebody/rows",
        "/home/somebody/out",
    )


def test_needle_counts_may_be_separated_by_commas() -> None:
    assert resolve(None, {}, {"needles": ["2,4"]}).config.needles == (2, 4)


def test_a_number_of_samples_that_leaves_a_named_cell_without_any_is_an_error() -> None:
    flags: dict[str, Any] = {
        "protocol": "openai",
        "needles": ["2", "4", "8"],
        "num_samples": "2",
        "bins": ["4K-8K"],
    }
    with pytest.raises(ConfigError, match="--num-samples: 2: leaves no sample for 8 needles"):
        resolve(None, {}, flags)


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_variable_is_no_baseline_and_no_way_around_one(tmp_path: Path, blank: str) -> None:
    environ = {"MRCR_BASELINE": blank}
    with pytest.raises(ConfigError, match=r"^environment: MRCR_BASELINE: is blank"):
        resolve(None, environ, {})
    path = write(tmp_path, "baseline: base\n")
    assert resolve(path, environ, {}).config.baseline == "base"


@pytest.mark.parametrize("blank", ["", "~", "''"])
def test_a_blank_baseline_in_a_file_is_an_error(tmp_path: Path, blank: str) -> None:
    path = write(tmp_path, f"baseline: {blank}\n")
    assert failure(path).startswith(f"{path}:1: baseline: ")


def test_the_home_folder_of_a_baseline_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    config = resolve(None, {}, {"baseline": "~/base"}).config
    assert config.baseline == "/home/somebody/base"


@pytest.mark.parametrize("value", ["-0.1", "1.5", "few"])
def test_a_regression_that_is_no_ratio_is_an_error(value: str) -> None:
    said = failure(None, baseline="base", max_regression=value)
    assert said.startswith("--max-regression: ")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("thresholds: {all: {truncation_rate: 0.1}}", "thresholds name a truncation_rate"),
        ("max_instability: 0.1\npasses: [cold, warm]", "max_instability is set"),
    ],
)
def test_what_needs_whole_responses_does_not_go_with_cutting_them(
    tmp_path: Path, keys: str, reason: str
) -> None:
    path = write(tmp_path, f"cut_without_nonce: true\n{keys}\n")
    assert failure(path).startswith(f"{path}:1: cut_without_nonce: {reason}")
    assert resolve(write(tmp_path, f"{keys}\n"), {}, {}).config.cut_without_nonce is False
