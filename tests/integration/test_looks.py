"""``max_samples_per_cell``: a run that asks for more until its thresholds are decided."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from mrcr_action.bins import bin_of, parse_bin
from mrcr_action.data.writer import write_synthetic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StartStandIn

ROWS = 24

COMMON = (
    *("--protocol", "openai", "--needles", "2", "--concurrency", "1", "--tolerance", "0"),
    *("--decision", "confident", "--samples-per-cell", "6", "--max-samples-per-cell", "20"),
)
SHORT, LONG = "n2/512-1K", "n2/1K-2K"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dozen samples of each of two lengths."""
    folder = tmp_path_factory.mktemp("rows")
    bins = [parse_bin(name.partition("/")[2]) for name in (SHORT, LONG)]
    write_synthetic(folder, needles=(2,), bins=bins, per_cell=ROWS, seed=0)
    return folder


def lengths(ended: Ended) -> dict[str, int]:
    found: dict[str, int] = {}
    for record in ended.records():
        name = f"n2/{bin_of(record.o200k_tokens)}"
        found[name] = found.get(name, 0) + (record.pass_name == "cold")
    return found


def test_an_undecided_threshold_gets_samples_of_its_own_cell_until_it_is_reached(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    # Long and short samples take turns: of the first twelve, two short ones are wrong.
    url = start_standin("--fault", "drop-nonce@3-4,7-8").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", rows, *COMMON),
        *("--passes", "cold", "warm", "--thresholds", f"{{{SHORT}: 0.4}}"),
    )
    assert ended.code == 0, ended.said
    result = ended.result
    assert result.plan is not None
    assert result.plan.schedule == (6, 9, 14, 20)
    asked = lengths(ended)
    assert asked[LONG] == 6
    assert asked[SHORT] in {9, 14, 20}
    assert [look.buckets for look in result.plan.looks[:1]] == [(SHORT, f"{SHORT}@warm")]
    # In every round, and each sample once.
    keys = [(r.shard, r.row, r.pass_name) for r in ended.records()]
    assert len(set(keys)) == len(keys) == 2 * (asked[LONG] + asked[SHORT])
    assert [r.ask for r in ended.records()] == list(range(len(keys)))
    buckets = {bucket.name: bucket for bucket in result.buckets}
    assert buckets[SHORT].graded == buckets[f"{SHORT}@warm"].graded == asked[SHORT]
    assert buckets["all"].graded == 12
    check = next(c for c in result.verdict.checks if c.bucket == SHORT)
    assert check.interval is not None
    assert check.interval.low >= 0.4
    added = asked[SHORT] - 6
    looks = len(result.plan.looks) + 1
    assert f"Look 2 of at most 4: undecided {SHORT}, {SHORT}@warm; asking " in ended.stderr
    told = f"Looks at the thresholds: {looks} of at most 4, {added} samples were added to 12"
    assert told in ended.stdout
    assert told in (ended.folder / "summary.md").read_text()


def test_a_threshold_that_stays_undecided_is_inconclusive_with_all_samples_allowed(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    url = start_standin("--fault", "drop-nonce@%2").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", rows, *COMMON, "--threshold", "0.5"),
    )
    assert ended.code == 3, ended.said
    assert lengths(ended) == {SHORT: 20, LONG: 20}
    result = ended.result
    assert "is on both sides of 0.5000" in result.verdict.summary
    assert result.buckets[0].graded == 40
    assert result.per_needle == {"match_ratio_n2": result.match_ratio}


def test_a_server_that_gets_worse_fails_at_a_later_look(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    url = start_standin("--fault", "drop-nonce@7-").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", rows, *COMMON, "--threshold", "0.6"),
    )
    assert ended.code == 1, ended.said
    assert 6 < lengths(ended)[SHORT] == lengths(ended)[LONG] <= 20


def test_a_clear_server_is_asked_no_more_than_without(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", start_standin().url, "--dataset", rows, *COMMON),
        *("--threshold", "0.5"),
    )
    assert ended.code == 0, ended.said
    assert lengths(ended) == {SHORT: 6, LONG: 6}
    assert ended.result.plan is not None
    assert ended.result.plan.looks == ()
    assert "Looks at the thresholds: 1 of at most 4 (max_samples_per_cell is 20)" in ended.stdout


def test_a_run_that_runs_out_of_rows_ends(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    url = start_standin("--fault", "drop-nonce@%2").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", rows, *COMMON, "--threshold", "0.5"),
        *("--max-samples-per-cell", "500"),
    )
    assert ended.code == 3, ended.said
    assert lengths(ended) == {SHORT: ROWS, LONG: ROWS}


def test_a_server_that_dies_at_a_later_look_leaves_an_inconclusive_result(
    start_standin: StartStandIn, mrcr: Mrcr, rows: Path
) -> None:
    url = start_standin("--fault", "drop-nonce@%2", "--fault", "die=1@20").url
    ended = mrcr(
        *("run", "--base-url", url, "--dataset", rows, *COMMON, "--threshold", "0.5"),
    )
    assert ended.code == 3, ended.said
    result = ended.result
    assert result.plan is not None
    assert len(result.plan.looks) == 1
    assert len(ended.records()) == len(result.plan.asks) > 20
    assert result.verdict.conclusion == "inconclusive"


def test_boundaries_and_a_small_pool_keep_to_the_first_samples(
    mrcr: Mrcr, fake_vllm: Callable[..., dict[str, str]], rows: Path
) -> None:
    config = mrcr.config(
        "looks",
        model_name="m",
        protocol="openai",
        dataset=str(rows),
        needles=[2],
        concurrency=1,
        max_tokens=256,
        thresholds=0.5,
        tolerance=0,
        decision="confident",
        samples_per_cell=6,
        max_samples_per_cell=9,
        boundaries=1,
        small_pool=True,
    )
    ended = mrcr("run", config, env=fake_vllm("become_stand_in('--fault', 'drop-nonce@%2')"))
    plan = ended.result.plan
    assert plan is not None
    assert [look.samples for look in plan.looks] == [6]
    asked = Counter(record.pass_name for record in ended.records())
    assert asked == Counter(ask.pass_name for ask in plan.asks)
    assert asked["cold"] == 18
    assert asked["block"] == 1
    assert asked["pool"] == asked["pool warm"] == 6
    assert [r.ask for r in ended.records()] == list(range(len(plan.asks)))
    # What is asked of the second server was planned before the further samples, and comes last.
    last = [line for line in ended.stderr.splitlines() if line.startswith(("Starting", "Look 2"))]
    assert [line.split()[0] for line in last] == ["Starting", "Look", "Starting"]


def test_the_plan_says_how_far_it_may_go(mrcr: Mrcr, rows: Path) -> None:
    ended = mrcr(
        *("plan", "--dataset", rows, *COMMON, "--threshold", "0.5", "--window", "8K"),
    )
    assert ended.code == 0, ended.said
    told = "As long as a threshold is undecided, up to 20 samples a cell, in at most 4 looks."
    assert told in ended.stdout.splitlines()
