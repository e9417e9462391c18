from collections.abc import Callable

from mrcr_action.config import RunConfig
from mrcr_action.plan import Plan
from mrcr_action.result import Record


def test_a_plan_counts_its_asks_by_needle_count(
    make_plan: Callable[..., Plan], make_record: Callable[..., Record]
) -> None:
    records = [make_record(i, n_needles=n) for i, n in enumerate([2, 8, 2])]
    plan = make_plan(records, RunConfig(needles=(2, 4, 8), num_samples=3))
    assert [plan.planned(n) for n in (2, 4, 8)] == [2, 0, 1]
    assert [ask.index for ask in plan.asks] == [0, 1, 2]
    assert {ask.pass_name for ask in plan.asks} == {"cold"}
