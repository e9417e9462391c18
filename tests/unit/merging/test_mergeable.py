"""Which results are the parts of one plan, and all of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.conftest import build_result
from tests.unit.merging.parts_made import CONFIG, part_of, piece, records_of

from mrcr_action.config import RunConfig
from mrcr_action.errors import DataError, MrcrError, UsageError
from mrcr_action.merging.mergeable import OF_THE_MACHINE, Missing, Piece, check_pieces
from mrcr_action.result import Problem


def refused(*pieces: Piece) -> MrcrError:
    with pytest.raises(MrcrError) as caught:
        check_pieces(pieces)
    return caught.value


def test_all_parts_in_any_order_come_back_in_theirs() -> None:
    found, missing = check_pieces([piece(3), piece(1), piece(2)])

    assert [p.where for p in found] == ["p1/result.json", "p2/result.json", "p3/result.json"]
    assert missing == []


def test_parts_that_are_missing_are_named() -> None:
    assert check_pieces([piece(2)])[1] == [
        Missing(number=1, why="is missing"),
        Missing(number=3, why="is missing"),
    ]


def test_a_part_that_is_there_twice_is_refused_with_both_files() -> None:
    other = Piece(where="again/result.json", result=part_of(2))
    error = refused(piece(1), piece(2), other)

    assert isinstance(error, UsageError)
    assert str(error) == "part 2 of 3 is there 2 times: p2/result.json, again/result.json"


def test_the_very_same_file_twice_is_refused() -> None:
    assert str(refused(piece(1), piece(1))).startswith("part 1 of 3 is there 2 times")


def test_the_result_of_a_whole_run_is_refused() -> None:
    error = refused(piece(1), Piece(where="whole.json", result=build_result()))

    assert str(error).startswith("whole.json: shard: none")
    assert error.exit_code == 2


def test_parts_of_different_numbers_of_parts_are_refused() -> None:
    error = refused(piece(1), piece(2, 4))

    told = "shard: 1/3 in p1/result.json, 2/4 in p2/result.json"
    assert str(error) == f"these are not parts of one run: {told}"


def of(**changes: Any) -> Piece:
    """A second part whose configuration differs."""
    return piece(2, config=msgspec.structs.replace(CONFIG, **changes))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("thresholds", 0.5, "thresholds: 0.7 in p1/result.json, 0.5 in p2/result.json"),
        ("tolerance", 0.1, "tolerance: 0.05 in p1/result.json, 0.1 in p2/result.json"),
        ("concurrency", 1, "concurrency: 8 in p1/result.json, 1 in p2/result.json"),
        ("server_args", ("--enforce-eager",), "server_args"),
        ("env", {"VLLM_USE_V1": "0"}, "env.VLLM_USE_V1: none in p1/result.json, 0 in"),
        ("extra_body", {"top_k": 1}, "extra_body"),
        ("max_failures", 3, "max_failures: 0 in p1/result.json, 3 in"),
    ],
)
def test_another_setting_is_refused_with_its_key_both_values_and_both_files(
    key: str, value: Any, told: str
) -> None:
    error = refused(piece(1), of(**{key: value}))

    assert isinstance(error, UsageError)
    assert told in f"{error}\n{error.details}"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("version", "0.34.0", "server version: 0.33.0 in p1/result.json, 0.34.0 in p2/result.json"),
        ("image", "mine", "server image: none in p1/result.json, mine in p2/result.json"),
        ("max_model_len", 9, "server's window"),
    ],
)
def test_another_server_is_refused(field: str, value: Any, told: str) -> None:
    server = msgspec.structs.replace(part_of(2).server, **{field: value})

    assert told in str(refused(piece(1), piece(2, server=server)))


def test_another_model_or_mrcr_is_refused_and_everything_that_differs_is_listed() -> None:
    error = refused(piece(1), piece(2, model="org/other", tool_version="0.2.0"))

    assert str(error) == "these are not parts of one run: 2 things differ"
    assert error.details.splitlines() == [
        "model: org/model in p1/result.json, org/other in p2/result.json",
        "mrcr version: 0.1.0 in p1/result.json, 0.2.0 in p2/result.json",
    ]


def test_another_plan_is_refused() -> None:
    records = [msgspec.structs.replace(r, row=r.row + 1) for r in records_of()]
    error = refused(piece(1), piece(2, records=records))

    assert str(error).startswith("these are not parts of one run: plan: ")


def test_where_a_server_runs_may_differ() -> None:
    other = of(
        base_url="http://10.0.0.2:8000",
        gpus="1",
        port=9000,
        output_dir="elsewhere",
        time_limit_seconds=9.0,
        env={"CUDA_VISIBLE_DEVICES": "1"},
    )

    assert len(check_pieces([piece(1), other])[0]) == 2


def test_what_the_junit_file_lists_may_differ() -> None:
    assert len(check_pieces([piece(1), of(junit="samples")])[0]) == 2


def test_every_key_that_may_differ_is_one() -> None:
    assert set(RunConfig.__struct_fields__) >= OF_THE_MACHINE


def test_more_parts_than_samples_are_refused_before_they_are_counted() -> None:
    part = part_of(1).part
    assert part is not None
    many = piece(1, part=msgspec.structs.replace(part, count=10**9))

    assert "does not belong to the plan in it" in str(refused(many))


def without_plan(number: int) -> Piece:
    problem = Problem(kind="ServerError", message="the server died")
    return piece(number, plan=None, part=None, problem=problem)


def test_a_part_that_made_no_plan_is_missing_and_says_why() -> None:
    found, missing = check_pieces([piece(1), without_plan(2), piece(3)])

    assert [p.where for p in found] == ["p1/result.json", "p3/result.json"]
    assert missing == [Missing(number=2, why="made no plan: the server died")]


def test_without_any_plan_there_is_nothing_to_merge() -> None:
    error = refused(without_plan(1), without_plan(2))

    assert isinstance(error, DataError)
    assert str(error) == "p1/result.json: part 1 made no plan: the server died"


def test_a_plan_that_was_changed_is_refused() -> None:
    part = part_of(2).part
    assert part is not None
    strange = msgspec.structs.replace(part, whole=msgspec.structs.replace(part.whole, asks=()))
    error = refused(piece(1), piece(2, part=strange))

    assert isinstance(error, DataError)
    assert str(error).startswith("p2/result.json: part.plan_sha256: ")
