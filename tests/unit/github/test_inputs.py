from pathlib import Path

import pytest

from mrcr_action.config.resolve import resolve
from mrcr_action.config.values import TYPES
from mrcr_action.errors import ConfigError, UsageError
from mrcr_action.github.inputs import KEYS, in_their_words, input_of, read_inputs


def test_inputs_keep_their_hyphens() -> None:
    inputs = read_inputs({"INPUT_MAX-TOKENS": "7", "INPUT_MODEL": "org/model", "PATH": "/bin"})

    assert inputs.settings == {"max_tokens": "7", "model_name": "org/model"}


def test_an_empty_input_does_not_count() -> None:
    inputs = read_inputs({"INPUT_MODEL": "", "INPUT_THRESHOLDS": "  ", "INPUT_FAIL-ON": ""})

    assert inputs.settings == {}
    assert (inputs.fail_on, inputs.annotations, inputs.api_key) == ("inconclusive", True, None)


def test_every_input_that_is_a_setting_sets_a_key_that_exists() -> None:
    assert set(KEYS.values()) <= set(TYPES)
    assert len(set(KEYS.values())) == len(KEYS)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "INPUT_THRESHOLD",
            "0.9",
            "input threshold: there is no such input; did you mean thresholds",
        ),
        ("INPUT_ARGS", "run", "input args: there is no such input"),
        (
            "INPUT_FAIL-ON",
            "always",
            "input fail-on: 'always': expected one of fail, inconclusive, never",
        ),
        ("INPUT_ANNOTATIONS", "yes", "input annotations: 'yes': expected true or false"),
    ],
)
def test_a_wrong_input_is_named(variable: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_inputs({variable: value})


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_a_boolean_is_what_the_runner_takes_for_one(text: str) -> None:
    assert read_inputs({"INPUT_ANNOTATIONS": text}).annotations is (text.lower() == "true")


def test_several_configurations_stand_one_a_line() -> None:
    inputs = read_inputs({"INPUT_CONFIG": "a b.yaml\n\n  c.yaml \n"})

    assert inputs.configs == ("a b.yaml", "c.yaml")


def test_a_value_is_blamed_on_its_input() -> None:
    settings = read_inputs({"INPUT_TOLERANCE": "2"}).settings

    with pytest.raises(ConfigError, match=r"^input tolerance: 2: expected a number <= 1"):
        resolve(None, {}, settings, called=input_of)


def test_thresholds_are_inline_yaml() -> None:
    settings = read_inputs({"INPUT_THRESHOLDS": "{2: 0.99, n8: {nonce_rate: 1}}"}).settings

    assert resolve(None, {}, settings).config.thresholds == {"n2": 0.99, "n8": {"nonce_rate": 1}}


def test_the_input_stands_for_both_keys_of_a_configuration(tmp_path: Path) -> None:
    settings = read_inputs({"INPUT_THRESHOLDS": "0.5"}).settings
    path = tmp_path / "model.yaml"
    for text in ("match_ratio_threshold: {2: 0.9}", "thresholds: {2: 0.9}"):
        path.write_text(text)
        config = resolve(path, {}, settings).config
        assert (config.match_ratio_threshold, config.thresholds) == (None, 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Pass --base-url URL.", "Pass the input base-url."),
        ("Serve with a longer --max-model-len.", "Serve with a longer --max-model-len."),
        ("Lower --max-prompt-tokens.", "Lower max_prompt_tokens (in the configuration)."),
        ("Leave --model NAME out.", "Leave the input model out."),
    ],
)
def test_a_hint_speaks_of_inputs_rather_than_flags(text: str, words: str) -> None:
    assert in_their_words(text) == words


@pytest.mark.parametrize("end", ["\n", "\r\n", "  "])
def test_the_line_end_of_a_block_of_yaml_is_no_part_of_a_value(end: str) -> None:
    inputs = read_inputs({"INPUT_OUTPUT-DIR": f" reports{end}", "INPUT_PROTOCOL": f"openai{end}"})

    assert inputs.settings == {"output_dir": "reports", "protocol": "openai"}


def test_thresholds_may_stand_one_a_line() -> None:
    settings = read_inputs({"INPUT_THRESHOLDS": "  2: 0.99\r\n  8: 0.5\r\n"}).settings

    assert resolve(None, {}, settings).config.thresholds == {"n2": 0.99, "n8": 0.5}


def test_the_entrypoint_that_kubernetes_demands_is_no_input_of_the_action() -> None:
    inputs = read_inputs({"INPUT_ENTRYPOINT": "/entrypoint", "INPUT_MODEL": "m"})

    assert inputs.settings == {"model_name": "m"}
