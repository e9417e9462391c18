"""The lead of the best token: how it is read from a stream, and what is decided of it."""

from __future__ import annotations

from typing import Any

import pytest

from mrcr_action.client.logprobs import least_margin
from mrcr_action.config import RunConfig
from mrcr_action.grade import grade
from mrcr_action.logit_margin import margin_checks, unknown_margin
from mrcr_action.result import Record


def token(own: float, *best: float) -> dict[str, Any]:
    return {"token": "a", "logprob": own, "top_logprobs": [{"logprob": p} for p in best]}


def record(ask: int, margin: float | None) -> Record:
    return Record(
        ask=ask,
        pass_name="cold",
        shard="s",
        row=ask,
        sha256="",
        n_needles=2,
        outcome="scored",
        o200k_tokens=9,
        grade=grade("a", "a", "a"),
        logit_margin=margin,
    )


def config(needed: float | None) -> RunConfig:
    return RunConfig(min_logit_margin=needed)


@pytest.mark.parametrize(
    ("logprobs", "margin"),
    [
        ({"content": [token(-0.5, -0.5, -3.0)]}, 2.5),
        ({"content": [token(0.0, 0.0, -9.0), token(-0.1, -0.1, -2.1)]}, 2.0),
        # Sampled, and not the best.
        ({"content": [token(-2.0, -0.2, -2.0)]}, -1.8),
        # It is not among the best.
        ({"content": [token(-7.0, -0.2, -2.0)]}, -6.8),
        # Two tokens that are as good as each other.
        ({"content": [token(-0.7, -0.7, -0.7)]}, 0.0),
    ],
)
def test_the_least_lead_over_the_best_other_token_is_read(logprobs: Any, margin: float) -> None:
    assert least_margin(logprobs) == pytest.approx(margin)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        "none",
        {"content": None},
        {"content": ["a", {"token": "a"}, {"logprob": 0, "top_logprobs": None}]},
        {"content": [token(0.0, 0.0)]},
        {"content": [{"logprob": "0", "top_logprobs": [{"logprob": 0.0}]}]},
        {"content": [{"logprob": 0.0, "top_logprobs": [7, {"logprob": float("nan")}]}]},
        {"content": [{"logprob": 10**400, "top_logprobs": [{"logprob": 0.0}]}]},
    ],
)
def test_what_tells_no_second_token_is_no_lead(logprobs: Any) -> None:
    assert least_margin(logprobs) is None


def test_one_answer_below_fails_and_is_counted() -> None:
    (check,) = margin_checks([record(0, 56.0), record(1, 3.25)], config(28))
    assert (check.state, check.measured, check.samples) == ("fail", 3.25, 2)
    assert check.message == (
        "logit margin: a token of 1 of 2 answers led the second best by less than 28 nats,"
        " one by 3.25"
    )
    assert not check.is_of_threshold


def test_answers_that_lead_by_enough_pass() -> None:
    (check,) = margin_checks([record(0, 56.0), record(1, 28.0)], config(28))
    assert (check.state, check.message) == ("pass", "logit margin: 28.00 nats, 28 are needed")


def test_nothing_is_checked_that_was_not_asked_for_or_is_not_told() -> None:
    assert margin_checks([record(0, 1.0)], config(None)) == []
    assert unknown_margin([record(0, None)], config(None)) == []
    assert margin_checks([record(0, None)], config(5)) == []
    (told,) = unknown_margin([record(0, None), record(1, 6.0)], config(5))
    assert told.startswith("The logit margin of 1 of 2 answers could not be checked")
