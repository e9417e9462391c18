from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mrcr_action.calibration.document import Calibration
from mrcr_action.calibration.outdated import outdated
from mrcr_action.config import RunConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Bucket

MADE = Calibration(
    model="org/model",
    vllm_version="0.33.0",
    dataset="openai/mrcr",
    protocol="vllm",
    seed=42,
    n={"all": 30, "n4": 10},
    passes=("cold", "warm"),
    repeats=5,
    false_alarm=0.01,
    date="2026-01-02T03:04:05Z",
)
CONFIG = RunConfig(calibration=MADE)


def said(*buckets: Bucket, config: RunConfig = CONFIG, **changes: Any) -> list[str]:
    values: dict[str, Any] = {"model": "org/model", "version": "0.33.0"}
    return outdated(config, buckets=buckets, **(values | changes))


def test_the_same_run_has_nothing_to_say(make_bucket: Callable[..., Bucket]) -> None:
    assert said(make_bucket(4), make_bucket(None, asked=30)) == []


def test_without_a_calibration_there_is_nothing_to_say() -> None:
    assert said(config=RunConfig(), model="other") == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "org/other"}, "the model is org/other, not org/model"),
        ({"version": "0.34.0"}, "vLLM is 0.34.0, not 0.33.0"),
        (
            {"config": RunConfig(calibration=MADE, protocol="openai")},
            "the protocol is openai, not vllm",
        ),
        ({"config": RunConfig(calibration=MADE, seed=7)}, "the seed is 7, not 42"),
        (
            {"config": RunConfig(calibration=MADE, concurrency=(8, 1))},
            "there was no pass cold c1",
        ),
    ],
)
def test_what_is_another_is_named_with_both_values(changes: dict[str, Any], expected: str) -> None:
    sentence = (
        f"The thresholds were calibrated for another run: {expected}. How often a healthy server"
        " fails them is not known; run `mrcr calibrate` again."
    )
    assert said(**changes) == [sentence]


def test_a_bucket_of_another_size_is_named(make_bucket: Callable[..., Bucket]) -> None:
    (sentence,) = said(make_bucket(4, asked=20), make_bucket(8, asked=99))
    assert ": n4 has 20 samples, not 10." in sentence


def test_a_bucket_that_was_not_asked_is_none_of_another_size(
    make_bucket: Callable[..., Bucket],
) -> None:
    assert said(make_bucket(4, None)) == []


def test_what_is_not_known_does_not_differ() -> None:
    unknown = msgspec.structs.replace(MADE, vllm_version=None)
    assert said(config=RunConfig(calibration=unknown)) == []
    assert said(model=None, version=None) == []


def test_the_name_of_a_model_cannot_break_the_sentence() -> None:
    (sentence,) = said(model="a\nb" * 200)
    assert "\n" not in sentence
    assert len(sentence) < 400
