from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcr_action.rounds import Round
from mrcr_action.telemetry.document import Quantiles
from mrcr_action.telemetry.latency import latencies, quantiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Record

    MakeRecord = Callable[..., Record]

COLD, WARM = Round(), Round(name="warm", kind="warm")
ALONE = Round(name="cold c1", concurrency=1, stage=1)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_quantiles_are_those_of_numpy(values: list[float]) -> None:
    found = quantiles(values)
    wanted = np.quantile(values, [0.5, 0.95, 1])
    assert [found.p50, found.p95, found.max] == pytest.approx(wanted)


def test_one_round_is_told_once(make_record: MakeRecord) -> None:
    records = [
        make_record(i, seconds_to_first_token=float(i), inter_token_seconds=0.02) for i in range(5)
    ]
    (found,) = latencies(records, [COLD])
    assert (found.round, found.answers) == ("cold", 5)
    assert found.first_token == Quantiles(p50=2.0, p95=3.8, max=4.0)
    assert found.inter_token == Quantiles(p50=0.02, p95=0.02, max=0.02)
    # Eight were in flight.
    assert found.prefill_tokens_per_second is None


def test_several_rounds_are_told_together_and_each_by_itself(make_record: MakeRecord) -> None:
    records = [
        make_record(0, seconds_to_first_token=4.0),
        make_record(1, seconds_to_first_token=0.5, pass_name="warm"),
    ]
    every, cold, warm = latencies(records, [COLD, WARM, ALONE])
    assert (every.round, every.answers, every.first_token.max) == (None, 2, 4.0)
    assert (cold.round, cold.first_token.p50) == ("cold", 4.0)
    assert (warm.round, warm.first_token.p50) == ("warm", 0.5)


def test_what_was_not_answered_has_no_latency(make_record: MakeRecord) -> None:
    lost = make_record(0, None, seconds_to_first_token=9.0)
    silent = make_record(1, seconds_to_first_token=None)
    assert latencies([lost, silent], [COLD]) == ()
    assert latencies([], []) == ()


def test_prefill_is_what_was_read_by_requests_that_were_alone(make_record: MakeRecord) -> None:
    def record(index: int, name: str, **changes: int | None) -> Record:
        values = {"prompt_tokens": 1_000, "seconds_to_first_token": 0.5, **changes}
        return make_record(index, pass_name=name, **values)

    warm = Round(name="warm c1", kind="warm", concurrency=1, stage=1)
    records = [
        record(0, "cold"),
        record(1, "cold c1"),
        record(2, "cold c1", cached_tokens=400),
        record(3, "cold c1", prompt_tokens=None),
        record(4, "warm c1", cached_tokens=992),
    ]
    every, cold, alone, again = latencies(records, [COLD, ALONE, warm])
    assert cold.prefill_tokens_per_second is None
    assert alone.prefill_tokens_per_second == pytest.approx((1_000 + 600) / 1.0)
    assert again.prefill_tokens_per_second is None
    assert every.prefill_tokens_per_second == alone.prefill_tokens_per_second
