from __future__ import annotations

from dataclasses import fields

import pytest

from mrcr_action.standin.faults import (
    Effects,
    Fault,
    FaultPlan,
    describe_faults,
    parse_fault,
)
from mrcr_action.standin.when import Span, parse_when


def plan(*specs: str) -> FaultPlan:
    return FaultPlan(tuple(parse_fault(spec) for spec in specs))


def hit(when: str, *, name: str = "reset", upto: int = 12) -> list[int]:
    fault = parse_fault(f"{name}@{when}")
    return [ordinal for ordinal in range(1, upto + 1) if fault.hits(ordinal)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("drop-nonce", Fault("drop-nonce", value=True, when=None)),
        ("window=4K", Fault("window", 4096, None)),
        ("truncate=0", Fault("truncate", 0, None)),
        ("status=503@3", Fault("status", 503, (Span(3, 3),))),
        ("stall=0.5@2-", Fault("stall", 0.5, (Span(2, None),))),
        ("die=139", Fault("die", 139, None)),
        ("slow=.5", Fault("slow", 0.5, None)),
        ("stale-hit", Fault("stale-hit", 0, None)),
        ("stale-hit@2", Fault("stale-hit", 0, (Span(2, 2),))),
        ("stale-hit=1K", Fault("stale-hit", 1024, None)),
        ("evicted-hit@3-", Fault("evicted-hit", value=True, when=(Span(3, None),))),
        ("block-edge=16", Fault("block-edge", 16, None)),
        ("batch=8", Fault("batch", 8, None)),
        ("noise=.25", Fault("noise", 0.25, None)),
    ],
)
def test_a_fault_is_a_name_a_value_and_a_when(spec: str, expected: Fault) -> None:
    assert parse_fault(spec) == expected


@pytest.mark.parametrize(
    ("when", "ordinals"),
    [
        ("3", [3]),
        ("2-5", [2, 3, 4, 5]),
        ("10-", [10, 11, 12]),
        ("%4", [4, 8, 12]),
        ("1,4-5, %6", [1, 4, 5, 6, 12]),
        ("~1", list(range(1, 13))),
    ],
)
def test_when_says_which_requests_are_hit(when: str, ordinals: list[int]) -> None:
    assert hit(when) == ordinals


def test_without_a_when_every_request_is_hit() -> None:
    assert all(parse_fault("reset").hits(ordinal) for ordinal in range(1, 100))


def test_a_share_hits_about_so_many_and_always_the_same_ones() -> None:
    ordinals = hit("~0.1", upto=2000)

    assert 150 < len(ordinals) < 250
    assert hit("~0.1", upto=2000) == ordinals


def test_two_faults_of_the_same_share_do_not_hit_the_same_requests() -> None:
    assert hit("~0.1", upto=2000) != hit("~0.1", name="garble", upto=2000)


@pytest.mark.parametrize("name", [known.name.replace("_", "-") for known in fields(Effects)])
def test_every_fault_is_in_the_list_that_help_and_errors_show(name: str) -> None:
    listed = {
        line.split()[0].partition("=")[0].partition("[")[0]
        for line in describe_faults().split("\n")
    }

    assert name in listed


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense",
        "",
        "drop_nonce",
        "drop-nonce=1",
        "window",
        "window=",
        "window=-1",
        "window=4.5",
        "truncate=some",
        "status=99",
        "status=600",
        "status=abc",
        "retry-after=0.5",
        "stall=-1",
        "stall=nan",
        "stall=inf",
        "slow=0",
        "die=256",
        "think=2.5",
        "reset@",
        "reset@0",
        "reset@5-2",
        "reset@%0",
        "reset@~0",
        "reset@~1.5",
        "reset@1,",
        "reset@all",
        "strict-roles@2",
        "strict-roles=1",
        "think-aloud",
        "no-tokenize@2",
        "no-max-model-len@2",
        "stale-hit=",
        "stale-hit=some",
        "evicted-hit=1",
        "block-edge",
        "block-edge=0",
        "batch=0",
        "batch=some",
        "noise",
        "noise=0",
        "noise=1.1",
        "noise=nan",
    ],
)
def test_a_bad_fault_is_refused_with_the_list_of_good_ones(spec: str) -> None:
    with pytest.raises(ValueError, match="wrong-needle") as caught:
        parse_fault(spec)

    assert repr(spec) in str(caught.value)
    assert describe_faults() in str(caught.value)


@pytest.mark.parametrize("when", ["", "x", "1.5", "-3", "%", "~"])
def test_a_bad_when_says_how_one_is_written(when: str) -> None:
    with pytest.raises(ValueError, match="every 4th"):
        parse_when(when)


def test_nothing_is_wrong_without_faults() -> None:
    assert plan().at(1) == Effects()
    assert plan().always == Effects()


def test_faults_that_hit_the_same_request_work_together() -> None:
    faults = plan("retry-after=2@1-3", "status=503@2")

    assert faults.at(1) == Effects(retry_after=2)
    assert faults.at(2) == Effects(retry_after=2, status=503)
    assert faults.at(4) == Effects()


def test_the_later_of_two_values_counts() -> None:
    faults = plan("status=500", "status=503@2")

    assert [faults.at(ordinal).status for ordinal in (1, 2, 3)] == [500, 503, 500]


def test_only_faults_without_a_when_hold_outside_chat_requests() -> None:
    assert plan("unhealthy", "no-tokenize").always == Effects(unhealthy=True, no_tokenize=True)
    assert plan("unhealthy@2").always == Effects()


def test_a_request_without_a_number_is_hit_by_faults_without_a_when_only() -> None:
    faults = plan("status=500@1-", "reset@~1", "drop-nonce", "strict-roles")

    assert faults.at(None) == Effects(drop_nonce=True, strict_roles=True)
    assert faults.at(1) == Effects(status=500, reset=True, drop_nonce=True, strict_roles=True)
