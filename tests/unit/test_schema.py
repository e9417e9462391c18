import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrcr_action.cli import main
from mrcr_action.commands.schema import config_schema, schema_text
from mrcr_action.config import RunConfig
from mrcr_action.config.resolve import resolve
from mrcr_action.config.values import TYPES
from mrcr_action.errors import ConfigError
from mrcr_action.result import Problem, Result, encode_result

CONFIGS = Path(__file__).parents[2] / "configs"
VALIDATOR = jsonschema.Draft202012Validator(config_schema())


def schema_accepts(document: Any) -> bool:
    return VALIDATOR.is_valid(document)


def reader_accepts(document: Any, folder: Path) -> bool:
    path = folder / "config.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    try:
        resolve(path, {}, {})
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("document", ["config", "result"])
def test_the_command_prints_the_schema(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", document]) == 0
    assert capsys.readouterr().out == schema_text(document)


def test_the_published_schema_is_the_one_the_command_prints() -> None:
    assert (CONFIGS / "mrcr.schema.json").read_text() == schema_text("config"), (
        "run: mrcr schema config > configs/mrcr.schema.json"
    )


@pytest.mark.parametrize("document", ["config", "result"])
def test_a_schema_is_a_valid_schema_of_its_dialect(document: str) -> None:
    schema = json.loads(schema_text(document))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_schema_describes_every_key() -> None:
    properties = config_schema()["properties"]
    assert list(properties) == list(TYPES)
    assert all(p["description"] for p in properties.values())


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_is_accepted_by_the_schema_and_the_reader(path: Path) -> None:
    # In JSON, as a schema sees it, the keys of a mapping are text.
    VALIDATOR.validate(json.loads(json.dumps(yaml.safe_load(path.read_text()))))
    assert resolve(path, {}, {}).config.model_name


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"model_name": "m"},
        {"model_name": None, "min_samples": None, "extra_body": None},
        {"match_ratio_threshold": 0.5},
        {"match_ratio_threshold": {"2": 0.99, "4": 0.84, "8": 0.76}, "needles": [8, 4, 2]},
        {"match_ratio_threshold": 0, "tolerance": 1},
        {"thresholds": 0.5, "decision": "confident"},
        {"thresholds": {"all": 0.8, "8": 0.76, "n2": {"nonce_rate": 1, "failure_rate": 0}}},
        {"protocol": "openai", "thresholds": {"n8/64K-128K": 0.7, "n8/4k-8k": {"exact_rate": 1}}},
        {"server_args": ["--a", "b c"], "env": {"A": 1, "B": 0.5, "C": "x"}},
        {"extra_body": {"a": [None, True, {"b": 1}]}},
        {"base_url": "http://127.0.0.1:8000", "server": "external"},
        {"trust_remote_code": True, "protocol": "openai"},
        {"num_samples": None, "samples_per_cell": None, "bins": None, "exclude": []},
        {"protocol": "openai", "samples_per_cell": 3, "bins": ["4K-8K"], "exclude": ["n8/4K-8K"]},
        {
            "protocol": "openai",
            "decision": "confident",
            "thresholds": 0.5,
            "max_samples_per_cell": 100,
        },
        {"dataset": "rows", "needles": [1, 16], "match_ratio_threshold": {"16": 0.5}},
        {"allow_unverified": True, "merge_leading_user_turns": True},
    ],
)
def test_both_accept_a_good_document(document: dict[str, Any], tmp_path: Path) -> None:
    assert schema_accepts(document)
    assert reader_accepts(document, tmp_path)


@pytest.mark.parametrize(
    "document",
    [
        [],
        None,
        "model_name",
        {"model": "m"},
        {"model_name": 5},
        {"model_name": True},
        {"needles": [0]},
        {"needles": [17]},
        {"needles": [2, 2]},
        {"needles": []},
        {"needles": 2},
        {"needles": None},
        {"match_ratio_threshold": None},
        {"match_ratio_threshold": 1.5},
        {"match_ratio_threshold": -0.5},
        {"match_ratio_threshold": {}},
        {"match_ratio_threshold": {"17": 0.5}},
        {"match_ratio_threshold": {"02": 0.5}},
        {"match_ratio_threshold": {"2": True}},
        {"match_ratio_threshold": {"2": None}},
        {"match_ratio_threshold": "0.5"},
        {"thresholds": None},
        {"thresholds": 1.5},
        {"thresholds": "0.5"},
        {"thresholds": [0.5]},
        {"thresholds": {}},
        {"thresholds": {"n8": {}}},
        {"thresholds": {"n8": None}},
        {"thresholds": {"n8": True}},
        {"thresholds": {"n8": "0.5"}},
        {"thresholds": {"n8": [0.5]}},
        {"thresholds": {"n8": {"match_ratio": 1.5}}},
        {"thresholds": {"n8": {"match_ratio": None}}},
        {"thresholds": {"n8": {"latency": 0.5}}},
        {"thresholds": {"n17": 0.5}},
        {"thresholds": {"n08": 0.5}},
        {"thresholds": {"N8": 0.5}},
        {"thresholds": {"every": 0.5}},
        {"thresholds": {"4K-8K": 0.5}},
        {"thresholds": {"8/4K-8K": 0.5}},
        {"decision": "sure"},
        {"num_samples": -1},
        {"num_samples": 0},
        {"num_samples": "40"},
        {"num_samples": True},
        {"num_samples": 1.5},
        {"tolerance": 1.01},
        {"port": 65_536},
        {"env": {"A": True}},
        {"env": {"A": None}},
        {"env": ["A=1"]},
        {"server_args": ["--a", 1]},
        {"server_args": None},
        {"startup_max_wait_seconds": 0},
        {"trust_remote_code": "yes"},
        {"protocol": "both"},
        {"output_dir": ""},
        {"extra_body": []},
        {"samples_per_cell": 0},
        {"bins": []},
        {"bins": "4K-8K"},
        {"exclude": None},
        {"merge_leading_user_turns": "yes"},
    ],
)
def test_both_refuse_a_bad_document(document: Any, tmp_path: Path) -> None:
    assert not schema_accepts(document)
    assert not reader_accepts(document, tmp_path)


# What the two see differently, and why; everything else must agree.
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "an address is checked by the reader alone": {"base_url": "host:8000"},
    "so is a host": {"host": ""},
    "quotations are closed for the reader alone": {"server_args": "--a 'b"},
    "the reader alone looks at two keys together": {
        "needles": [2],
        "match_ratio_threshold": {"8": 0.5},
    },
    "the reader alone knows the bins": {"protocol": "openai", "bins": ["4K-9K"]},
    "in a threshold too": {"protocol": "openai", "thresholds": {"n8/4K-9K": 0.5}},
    "two names of one bucket are two keys": {"thresholds": {"8": 0.5, "n8": 0.5}},
    "one of two keys is enough": {"thresholds": 0.5, "match_ratio_threshold": 0.5},
    "a path is absolute for the reader alone": {"cache_dir": "a"},
    "only openai samples by cell": {"samples_per_cell": 3},
    "the dataset has no row of 3 needles": {"needles": [3]},
    "the reader alone counts the samples": {
        "num_samples": 1,
        "match_ratio_threshold": {"8": 0.5},
    },
    "a schema takes 40.0 for a whole number": {"num_samples": 40.0},
    "a schema takes 2.0 for a needle count": {"needles": [2.0]},
    "half a surrogate pair is text to JSON": {"model_name": "\ud800"},
}


@pytest.mark.parametrize("document", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_the_reader_is_stricter_where_a_schema_cannot_be(
    document: dict[str, Any], tmp_path: Path
) -> None:
    assert schema_accepts(document)
    assert not reader_accepts(document, tmp_path)


NUMBERS = (
    st.integers(-3, 70_000)
    # Whole numbers in float's clothing are one of the exceptions.
    | st.floats(-2, 2, allow_nan=False).filter(lambda x: not x.is_integer())
    | st.sampled_from([0, 1, 2, 4, 8, 65_535, 65_536])
)
TEXTS = st.sampled_from(["", "a", "2", "4", "8", "n8", "vllm", "openai", "auto", "process"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


FORMS = {"base_url", "host", "bins", "exclude", "cache_dir", "thresholds"}
"""Keys of which a schema cannot tell the form."""

DEPENDENT = {"max_regression", "max_instability", "max_samples_per_cell"}
"""Keys that the reader refuses without another one."""


@given(
    key=st.sampled_from(sorted(set(TYPES) - FORMS - DEPENDENT)),
    value=ANYTHING | st.lists(st.sampled_from([2, 4, 8]), max_size=3),
)
@settings(
    max_examples=500,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_agree_on_any_value_of_any_key(key: str, value: Any, tmp_path: Path) -> None:
    document = {"protocol": "openai", "dataset": "rows", key: value}
    assert schema_accepts(document) == reader_accepts(document, tmp_path), document


RATIOS = st.sampled_from([0, 0.5, 1, 1.5, -0.1, "1", True, None])
METRICS = st.sampled_from(["match_ratio", "failure_rate", "nonce_rate", "ratio", ""])
BUCKETS = st.sampled_from(["all", "2", "n4", "n8/4K-8K", "n16", "n0", "", "n8/", "all/4K-8K"])


@given(
    value=RATIOS
    | st.dictionaries(BUCKETS, RATIOS | st.dictionaries(METRICS, RATIOS, max_size=2), max_size=2)
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_agree_on_any_thresholds(value: Any, tmp_path: Path) -> None:
    document = {
        "protocol": "openai",
        "dataset": "rows",
        "needles": [2, 4, 8, 16],
        "thresholds": value,
    }
    assert schema_accepts(document) == reader_accepts(document, tmp_path), document


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"records": []},
        {"config": RunConfig(num_samples=3, thresholds={"n8": {"nonce_rate": 1.0}, "all": 0.5})},
        {"config": RunConfig(protocol="openai", match_ratio_threshold={2: 0.95})},
        {"config": RunConfig(match_ratio_threshold=0.5, env={"A": 1}, server_args=("--a",))},
        {"problem": Problem(kind="ServerError", message="died"), "plan": None},
        {"model": None, "max_prompt_tokens": None, "invocation": (), "config_path": None},
    ],
)
def test_a_written_result_is_what_its_schema_says(
    make_result: Callable[..., Result], changes: dict[str, Any]
) -> None:
    schema = json.loads(schema_text("result"))
    document = json.loads(encode_result(make_result(**changes)))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert not jsonschema.Draft202012Validator(schema).is_valid(document | {"verdict": None})
