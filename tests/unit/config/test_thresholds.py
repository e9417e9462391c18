"""The grammar of thresholds, from every layer to `Bound`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.config import RunConfig
from mrcr_action.config.resolve import resolve
from mrcr_action.config.thresholds import Bound, Metric, Place, place_of
from mrcr_action.errors import ConfigError

OPENAI = "protocol: openai\n"


def read(tmp_path: Path, text: str, **flags: Any) -> RunConfig:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return resolve(path, {}, flags).config


@pytest.fixture
def failure(tmp_path: Path) -> Callable[..., str]:
    """The error of a configuration, without the folder of its file."""

    def of(text: str, environ: dict[str, str] | None = None, **flags: Any) -> str:
        path = tmp_path / "model.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            resolve(path, environ or {}, flags)
        return str(caught.value).removeprefix(f"{tmp_path}/")

    return of


def bound(bucket: str, value: float, metric: Metric = "match_ratio") -> Bound:
    return Bound(bucket=bucket, metric=metric, bound=value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("match_ratio_threshold: 0.8", [bound("all", 0.8)]),
        ("match_ratio_threshold: {8: 0.7, 2: 0.9}", [bound("n8", 0.7), bound("n2", 0.9)]),
        ("thresholds: 0.8", [bound("all", 0.8)]),
        ("thresholds: 1", [bound("all", 1.0)]),
        ("thresholds: {all: 0.8}", [bound("all", 0.8)]),
        ("thresholds: {8: 0.7, 2: 0.9}", [bound("n8", 0.7), bound("n2", 0.9)]),
        ("thresholds: {'8': 0.7, n2: 0.9}", [bound("n8", 0.7), bound("n2", 0.9)]),
        (OPENAI + "thresholds: {n8/64K-128K: 0.7}", [bound("n8/64K-128K", 0.7)]),
        (OPENAI + "thresholds: {n8/64k-128k: 0.7}", [bound("n8/64K-128K", 0.7)]),
        (OPENAI + "thresholds: {n8/65536-131072: 0.7}", [bound("n8/64K-128K", 0.7)]),
        (
            (
                "thresholds:\n  all: {match_ratio: 0.8, nonce_rate: 1, exact_rate: 0.5}\n"
                "  4: {truncation_rate: 0, failure_rate: 0.1}"
            ),
            [
                *(
                    bound("all", 0.8),
                    bound("all", 1, "nonce_rate"),
                    bound("all", 0.5, "exact_rate"),
                ),
                *(bound("n4", 0, "truncation_rate"), bound("n4", 0.1, "failure_rate")),
            ],
        ),
    ],
)
def test_every_form_is_read_into_bounds_in_its_order(
    tmp_path: Path, text: str, expected: list[Bound]
) -> None:
    assert list(read(tmp_path, f"{text}\nseed: 1").bounds) == expected


def test_a_bound_knows_its_place_and_its_side() -> None:
    assert bound("all", 1).place == Place(None, None)
    assert bound("n8", 1).place == Place(8, None)
    assert bound("n16/64K-128K", 1).place == Place(16, parse_bin("64K-128K"))
    sides: dict[Metric, bool] = {
        "match_ratio": False,
        "nonce_rate": False,
        "exact_rate": False,
        "truncation_rate": True,
        "failure_rate": True,
    }
    assert {metric: bound("all", 1, metric).is_most for metric in sides} == sides


@pytest.mark.parametrize(
    "bucket",
    [
        *("", "every", "n", "n0", "n17", "n08", "N8", " n8", "n8 ", "-8", "8.0", "n8/", "/4K-8K"),
        *("4K-8K", "8/4K-8K", "all/4K-8K", "n8/4K-9K", "n8/8K-4K", "n8/4K-8K/x", "n8\n", "n٨"),
    ],
)
def test_what_is_no_bucket_has_no_place(bucket: str) -> None:
    with pytest.raises(ValueError, match=r"bucket|bins|not run from"):
        place_of(bucket)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{}", "{}: names no bucket"),
        ("1.5", "1.5: expected a number from 0 to 1, or buckets with theirs"),
        (".nan", "nan: expected a number from 0 to 1, or buckets with theirs"),
        ("high", "'high': expected a number from 0 to 1, or buckets with theirs"),
        ("[0.5]", "[0.5]: expected a number from 0 to 1, or buckets with theirs"),
        ("true", "true: true and false have no meaning here"),
        ("~", "is empty"),
        (
            "{every: 0.5}",
            (
                "every: 0.5: unknown bucket; expected all, a needle count such as n8, or a cell"
                " such as n8/64K-128K"
            ),
        ),
        ("{n8: 2}", "n8: 2: expected a number from 0 to 1, or metrics with theirs"),
        ("{n8: true}", "n8: True: expected a number from 0 to 1, or metrics with theirs"),
        ("{n8: }", "n8: None: expected a number from 0 to 1, or metrics with theirs"),
        ("{n8: {}}", "n8: {}: names no metric"),
        ("{n8: {nonce_rate: -1}}", "n8: nonce_rate: -1: expected a number from 0 to 1"),
        (
            "{n8: {nonce: 0.5}}",
            "n8: nonce: 0.5: unknown metric; did you mean nonce_rate?",
        ),
        (
            "{n8: {latency: 0.5}}",
            (
                "n8: latency: 0.5: unknown metric; the metrics are match_ratio, nonce_rate,"
                " exact_rate, truncation_rate, failure_rate"
            ),
        ),
        ("{8: 0.5, n8: 0.6}", "n8: 0.6: the bucket n8 occurs twice"),
        (
            "{n8/4K-9K: 0.5}",
            (
                "n8/4K-9K: 0.5: '4K-9K' is none of the bins 0-512, 512-1K, 1K-2K, 2K-4K, 4K-8K,"
                " 8K-16K, 16K-32K, 32K-64K, 64K-128K, 128K-256K, 256K-512K, 512K-1M"
            ),
        ),
        ("{on: 0.5}", "True: 0.5: unknown bucket; expected all, a needle count such as n8, or a"),
        ("{2.0: 0.5}", "2.0: 0.5: unknown bucket"),
        ("{" + "x" * 500 + ": 0.5}", "x" * 77 + "...: 0.5: unknown bucket"),
    ],
)
def test_an_error_names_the_bucket_the_metric_and_the_value(
    failure: Callable[..., str], value: str, expected: str
) -> None:
    said = failure(f"{OPENAI}thresholds: {value}")
    assert said.startswith(f"model.yaml:2: thresholds: {expected}")
    if not expected.endswith(("unknown bucket", "or a")):
        assert said == f"model.yaml:2: thresholds: {expected}"


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("needles: [2, 4]", "{8: 0.5}", "n8: 0.5: needles and num_samples test only [2, 4]"),
        (
            "num_samples: 2",
            "{n8: {nonce_rate: 1}}",
            "n8: nonce_rate: 1: needles and num_samples test only [2, 4]",
        ),
        (
            "needles: [2, 4]",
            "{n8/4K-8K: 0.5}",
            "n8/4K-8K: 0.5: needles and num_samples test only [2, 4]",
        ),
        ("bins: [4K-8K]", "{n8/8K-16K: 0.5}", "n8/8K-16K: 0.5: bins does not name 8K-16K"),
        (
            "exclude: [n8/8K-16K]",
            "{n8/8K-16K: 0.5}",
            "n8/8K-16K: 0.5: exclude leaves out n8/8K-16K",
        ),
        ("exclude: [8K-16K]", "{n8/8K-16K: 0.5}", "n8/8K-16K: 0.5: exclude leaves out 8K-16K"),
    ],
)
def test_a_bucket_that_is_not_tested_is_an_error(
    failure: Callable[..., str], keys: str, value: str, expected: str
) -> None:
    said = failure(f"{OPENAI}{keys}\nthresholds: {value}")
    assert said == f"model.yaml:3: thresholds: {expected}"


def test_a_bin_may_be_written_in_more_than_one_way(tmp_path: Path) -> None:
    text = OPENAI + "bins: [4096-8192]\nexclude: [n2/4k-8k]\nthresholds: {n8/4K-8K: 0.5}"
    assert read(tmp_path, text).bounds == (bound("n8/4K-8K", 0.5),)


def test_cells_are_those_of_the_openai_protocol(failure: Callable[..., str]) -> None:
    assert failure("thresholds: {n8/4K-8K: 0.5}") == (
        "model.yaml:1: thresholds: n8/4K-8K: 0.5: only the openai protocol samples by cell; set"
        " protocol: openai"
    )


@pytest.mark.parametrize("keys", ["num_samples: 9\nmin_samples: 4", "min_samples: 11"])
def test_a_bucket_cannot_need_more_samples_than_it_is_asked_for(
    failure: Callable[..., str], keys: str
) -> None:
    said = failure(f"{OPENAI}thresholds: {{n8/4K-8K: 0.5}}\n{keys}")
    assert ": min_samples: " in said
    assert said.endswith("a bucket is asked for 3 only" if "num" in keys else "asked for 10 only")


# --- layers


def test_both_keys_in_one_layer_are_an_error(failure: Callable[..., str]) -> None:
    both = "match_ratio_threshold is set too; set one of them"
    assert failure("match_ratio_threshold: 0.5\nthresholds: 0.5") == (
        f"model.yaml:2: thresholds: {both}"
    )
    environ = {"MRCR_THRESHOLD": "0.5", "MRCR_THRESHOLDS": "0.5"}
    assert failure("seed: 1", environ) == f"environment: MRCR_THRESHOLDS: {both}"
    said = failure("seed: 1", match_ratio_threshold="0.5", thresholds="0.5")
    assert said == f"--thresholds: {both}"


def test_of_different_layers_the_stronger_one_stands(tmp_path: Path) -> None:
    new, old = "thresholds: {2: 0.9}", "match_ratio_threshold: {2: 0.9}"
    assert read(tmp_path, new, match_ratio_threshold="0.5").bounds == (bound("all", 0.5),)
    assert read(tmp_path, old, thresholds="0.5").bounds == (bound("all", 0.5),)
    path = tmp_path / "model.yaml"
    path.write_text(new)
    assert resolve(path, {"MRCR_THRESHOLD": "0.5"}, {}).config.bounds == (bound("all", 0.5),)
    path.write_text(old)
    read_ = resolve(path, {"MRCR_THRESHOLDS": "{8: 0.5}"}, {})
    assert read_.config.bounds == (bound("n8", 0.5),)
    assert read_.given == {"thresholds"}


@pytest.mark.parametrize("key", ["thresholds", "match_ratio_threshold"])
def test_a_blank_variable_switches_neither_key_off(tmp_path: Path, key: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(f"{key}: 0.5")
    assert resolve(path, {"MRCR_THRESHOLDS": " "}, {}).config.bounds == (bound("all", 0.5),)
    path.write_text("seed: 1")
    with pytest.raises(ConfigError, match="MRCR_THRESHOLDS: is blank, and no other threshold"):
        resolve(path, {"MRCR_THRESHOLDS": " "}, {})


@pytest.mark.parametrize("text", ["", " "])
def test_a_blank_flag_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--thresholds: is empty$"):
        read(tmp_path, "thresholds: 0.5", thresholds=text)
