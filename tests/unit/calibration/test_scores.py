from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from mrcr_action.calibration.scores import KINDS, scores_of
from mrcr_action.config import RunConfig
from mrcr_action.errors import CannotJudge
from mrcr_action.result import Problem
from mrcr_action.rounds import rounds_of

if TYPE_CHECKING:
    from mrcr_action.plan import Cell, Plan
    from mrcr_action.result import Record, Result

Make = Callable[..., "Result"]

SAMPLES = 12
"""Half of them with 2 needles, half with 4; every third is a longer one."""


@pytest.fixture
def make(
    make_record: Callable[..., Record],
    make_plan: Callable[..., Plan],
    make_cell: Callable[..., Cell],
    make_result: Callable[..., Result],
) -> Make:
    """A result in which a sample scores ``score(sample, name of the round)``; None is lost."""

    def build(
        score: Callable[[int, str], float | None] = lambda _sample, _round: 0.9, **changes: Any
    ) -> Result:
        values: dict[str, Any] = {"protocol": "openai", "needles": (2, 4), "repeats": 3}
        config = RunConfig(**(values | changes))
        records: list[Record] = []
        for round_ in rounds_of(config):
            for sample in range(SAMPLES):
                ratio = score(sample, round_.name)
                records.append(
                    make_record(
                        len(records),
                        ratio,
                        row=sample,
                        pass_name=round_.name,
                        n_needles=2 if sample < SAMPLES / 2 else 4,
                        o200k_tokens=20_000 if sample % 3 == 0 else 9000,
                    )
                )
        cells = [
            make_cell(n, bin_, planned=4 if bin_ == "8K-16K" else 2)
            for n in (2, 4)
            for bin_ in ("8K-16K", "16K-32K")
        ]
        plan = make_plan(
            records, config, cells=tuple(cells), rounds=rounds_of(config), quotas={2: 6, 4: 6}
        )
        asks = [
            msgspec.structs.replace(ask, pass_name=record.pass_name)
            for ask, record in zip(plan.asks, records, strict=True)
        ]
        return make_result(
            config=config, records=records, plan=msgspec.structs.replace(plan, asks=tuple(asks))
        )

    return build


def refusal(result: Result) -> str:
    with pytest.raises(CannotJudge) as caught:
        scores_of(result, KINDS)
    assert caught.value.hint
    return str(caught.value)


def test_a_row_is_a_sample_and_a_column_a_repetition(make: Make) -> None:
    at = {"cold": 0.5, "cold #2": 0.6, "cold #3": 0.7}
    scores = scores_of(make(lambda sample, name: at[name] + sample / 100), KINDS)
    expected = [[ratio + sample / 100 for ratio in at.values()] for sample in range(SAMPLES)]
    assert list(scores.rounds) == ["cold"]
    assert scores.rounds["cold"] == pytest.approx(np.array(expected))
    assert scores.repeats == 3


def test_every_pass_and_every_concurrency_is_a_round_of_its_own(make: Make) -> None:
    scores = scores_of(make(passes=("cold", "warm"), concurrency=(8, 1)), KINDS)
    assert list(scores.rounds) == ["cold", "warm", "cold c1", "warm c1"]
    assert {seen.shape for seen in scores.rounds.values()} == {(SAMPLES, 3)}


def test_a_sample_belongs_to_all_to_its_needle_count_and_to_its_cell(make: Make) -> None:
    scores = scores_of(make(), KINDS)
    assert scores.members["all"].sum() == SAMPLES
    assert scores.members["n4"].tolist() == [0.0] * 6 + [1.0] * 6


def test_buckets_of_fewer_than_five_samples_have_no_threshold(make: Make) -> None:
    scores = scores_of(make(), KINDS)
    assert list(scores.members) == ["all", "n2", "n4"]
    assert scores.thin == {"n2/8K-16K": 4, "n2/16K-32K": 2, "n4/8K-16K": 4, "n4/16K-32K": 2}


def test_only_the_kinds_of_buckets_that_are_wanted_are_there(make: Make) -> None:
    scores = scores_of(make(), KINDS[1:2])
    assert list(scores.members) == ["n2", "n4"]
    assert scores.thin == {}


def test_the_gated_protocol_is_calibrated(make: Make, make_grade: Callable[..., Any]) -> None:
    result = make()
    grade = make_grade(0.9, match_ratio_openai=0.25)
    records = tuple(msgspec.structs.replace(r, grade=grade) for r in result.records)
    scores = scores_of(msgspec.structs.replace(result, records=records), KINDS)
    assert scores.rounds["cold"] == pytest.approx(np.full((SAMPLES, 3), 0.25))


def test_the_means_of_a_bucket_are_one_a_repetition_of_every_round(make: Make) -> None:
    scores = scores_of(make(lambda sample, _: 0.4 if sample < 6 else 0.8), KINDS)
    assert scores.means("n2") == pytest.approx([0.4] * 3)
    assert scores.means("all") == pytest.approx([0.6] * 3)


def test_a_lost_request_is_refused_by_name(make: Make) -> None:
    said = refusal(make(lambda sample, name: None if (sample, name) == (3, "cold #2") else 0.9))
    assert said == (
        "calibrate: 1 of 36 requests were lost, the first one since the connection broke"
    )


def test_a_server_that_scores_nothing_is_refused(make: Make) -> None:
    assert "every answer scored 0" in refusal(make(lambda *_: 0.0))


def test_a_run_that_was_stopped_is_refused(make: Make) -> None:
    result = msgspec.structs.replace(
        make(), problem=Problem(kind="ServerError", message="the server died", hint="See its log.")
    )
    assert refusal(result) == "calibrate: the run did not come to its end: the server died"


def test_a_run_that_missed_a_bound_of_the_configuration_is_refused(make: Make) -> None:
    said = refusal(make(thresholds={"all": {"exact_rate": 0.5}}))
    assert said.startswith("calibrate: the server is not healthy: MRCR thresholds failed: exact")


def test_too_few_samples_in_all_are_refused(make: Make) -> None:
    result = make()
    few = tuple(record for record in result.records if record.row < 9)
    said = refusal(msgspec.structs.replace(result, records=few))
    assert said == "calibrate: 9 samples are too few, 10 are needed"


def test_kinds_without_a_bucket_that_is_large_enough_are_refused(make: Make) -> None:
    with pytest.raises(CannotJudge, match="no bucket of cells has the 5 samples"):
        scores_of(make(), KINDS[2:])
