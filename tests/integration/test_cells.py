"""``mrcr run`` that samples by cell, from the configuration to every report."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import httpx
import pytest
from tests.integration.conftest import commands
from tests.unit.handmade import row, write_rows

from mrcr_action.bins import bin_of
from mrcr_action.stats import mean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, Recorder, StandIn, StartStandIn

OPENAI = ("--protocol", "openai", "--needles", "2", "4", "8")
BINS = ("512-1K", "1K-2K", "2K-4K")
QUICK = ("--protocol", "openai", "--needles", "2", "--bins", "512-1K", "--samples-per-cell", "2")

MERGED = "the scores are not comparable with those of other runs"


@pytest.fixture(scope="module")
def healthy(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin()


@pytest.fixture(scope="module")
def strict(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin("--fault", "strict-roles")


@pytest.fixture(scope="module")
def by_cell(shared_mrcr: Mrcr, healthy: StandIn, dataset: Path) -> Ended:
    return shared_mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, *OPENAI),
        *("--samples-per-cell", "2", "--bins", "512-1K", "2K-4K", "--exclude", "n8/2K-4K"),
        *("--threshold", "0.95"),
    )


def answered(server: StandIn) -> int:
    """Chat requests that a stand-in has answered so far."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    counts = [line.split()[-1] for line in lines if line.startswith("vllm:request_success_total{")]
    return int(sum(map(float, counts)))


def cases_of(ended: Ended) -> dict[str, ET.Element]:
    root = ET.parse(ended.folder / "junit.xml").getroot()  # noqa: S314 - written by the command
    return {str(case.get("name")): case for case in root.iter("testcase")}


def test_the_result_tells_what_was_asked_of_every_cell(by_cell: Ended) -> None:
    assert by_cell.code == 0, by_cell.said
    result = by_cell.result
    found = {cell.name: cell for cell in result.coverage}
    assert list(found) == [f"n{n}/{b}" for n in (2, 4, 8) for b in BINS]
    asked = {name: cell.asked for name, cell in found.items() if cell.planned}
    assert asked == dict.fromkeys(
        ["n2/512-1K", "n2/2K-4K", "n4/512-1K", "n4/2K-4K", "n8/512-1K"], 2
    )
    assert [cell.name for cell in result.coverage if cell.requested] == list(asked)
    for name in ("n2/1K-2K", "n4/1K-2K", "n8/1K-2K", "n8/2K-4K"):
        assert (found[name].rows, found[name].dropped) == (3, {"excluded": 3})
    cell = found["n2/2K-4K"]
    assert (cell.rows, cell.fitting, cell.planned, cell.scored) == (3, 3, 2, 2)
    assert cell.o200k_tokens is not None
    assert 2_048 < cell.o200k_tokens.least <= cell.o200k_tokens.most < 4_096
    assert cell.prompt_tokens is not None


def test_the_samples_are_those_of_the_plan_in_its_order(by_cell: Ended) -> None:
    records, plan = by_cell.records(), by_cell.result.plan
    assert plan is not None
    assert [(r.shard, r.row) for r in records] == [(a.shard, a.row) for a in plan.asks]
    assert plan.quotas == {2: 4, 4: 4, 8: 2}
    assert plan.counted_by == "server"
    buckets = {bucket.name: bucket.wanted for bucket in by_cell.result.buckets}
    cells = dict.fromkeys(["n2/512-1K", "n2/2K-4K", "n4/512-1K", "n4/2K-4K", "n8/512-1K"], 2)
    assert buckets == {"all": 10, "n2": 4, "n4": 4, "n8": 2, **cells}
    assert {cell.name for cell in plan.cells} == {cell.name for cell in by_cell.result.coverage}


def test_the_result_tells_of_the_template_and_the_data(by_cell: Ended) -> None:
    result = by_cell.result
    assert result.preflight is not None
    assert result.preflight.two_user_turns is True
    assert result.preflight.merged is False
    assert result.preflight.fingerprint
    assert (result.data.kind, result.data.verified, result.data.revision) == ("folder", None, None)


def test_the_plan_is_shown_before_and_the_coverage_after(by_cell: Ended) -> None:
    before, _, _ = by_cell.stderr.partition("Asking 10 samples")
    for stream in (before, by_cell.stdout):
        assert "  n4/512-1K  " in stream
        assert "Not tested: 12 rows excluded (1K-2K, n8/2K-4K)." in stream
    summary = (by_cell.folder / "summary.md").read_text()
    folded = "<details><summary>By needles and length: 5 cells</summary>"
    assert f"Not tested: 12 rows excluded (1K-2K, n8/2K-4K).\n\n{folded}" in summary
    assert "\n| n4/512-1K | 1.0000 | – | 2/2 | 2 | 0 | " in summary


def test_the_result_has_the_mean_of_every_cell_by_both_protocols(by_cell: Ended) -> None:
    records = by_cell.records()
    for cell in by_cell.result.coverage:
        own = [r for r in records if r.n_needles == cell.n_needles]
        grades = [r.grade for r in own if bin_of(r.o200k_tokens) == cell.bin and r.grade]
        if grades:
            assert cell.match_ratio_openai == 1.0
            assert cell.match_ratio_vllm == mean([g.match_ratio_vllm for g in grades])
        else:
            assert (cell.match_ratio_openai, cell.match_ratio_vllm) == (None, None)
    assert sum(cell.match_ratio_vllm is not None for cell in by_cell.result.coverage) == 5


def test_a_second_run_asks_the_same_samples_and_counts_nothing_again(
    mrcr: Mrcr, healthy: StandIn, dataset: Path, tmp_path: Path
) -> None:
    cache = {"MRCR_CACHE": str(tmp_path / "cache")}
    attach = ("run", "--base-url", healthy.url, "--dataset", dataset, *QUICK)

    def asked(ended: Ended) -> list[tuple[str, int]]:
        assert ended.code == 0, ended.said
        return [(record.shard, record.row) for record in ended.records()]

    first = asked(mrcr(*attach, env=cache))
    kept = {path: path.read_bytes() for path in (tmp_path / "cache" / "rows").rglob("*.rows")}
    assert sum(map(len, kept.values())) > 0

    assert asked(mrcr(*attach, env=cache)) == first
    assert {path: path.read_bytes() for path in kept} == kept


def test_the_cache_of_the_user_is_left_alone_where_another_is_named(
    mrcr: Mrcr, healthy: StandIn, dataset: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, *QUICK),
        env={"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "MRCR_CACHE": "own"},
    )

    assert ended.code == 0, ended.said
    assert (mrcr.cwd / "own" / "rows").is_dir()
    assert not (home / "cache" / "mrcr-action").exists()


def test_a_longer_window_and_more_samples_keep_every_earlier_sample(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    def run(limit: int, samples: int) -> set[tuple[str, int]]:
        ended = mrcr(
            *("run", "--base-url", healthy.url, "--dataset", dataset, *OPENAI),
            *("--samples-per-cell", str(samples), "--max-prompt-tokens", str(limit)),
        )
        assert ended.code == 0, ended.said
        return {(record.shard, record.row) for record in ended.records()}

    assert run(1_700, 1) < run(30_000, 2)


def test_a_named_cell_without_a_row_ends_the_run_before_anything_is_asked(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    before = answered(healthy)
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, "--needles", "2", "8"),
        *("--protocol", "openai", "--samples-per-cell", "1", "--bins", "512-1K", "64K-128K"),
        *("--exclude", "n8/64K-128K", "--threshold", "0.95"),
    )

    assert ended.code == 3, ended.said
    result = ended.result
    message = "n2/64K-128K: no row to ask: the dataset has none"
    assert result.problem is not None
    assert (result.problem.kind, result.problem.message) == ("CellMissing", message)
    assert "exclude" in result.problem.hint
    assert result.verdict.summary == f"MRCR is inconclusive: {message}"
    assert f"MRCR is inconclusive: {message}" in ended.stdout
    # The one request is the preflight's, which holds no sample.
    assert answered(healthy) - before == 1
    assert (result.records, ended.records()) == ((), [])
    # What would have been asked is in the reports all the same.
    assert result.plan is not None
    assert [cell.name for cell in result.coverage if cell.planned] == ["n2/512-1K", "n8/512-1K"]
    assert [cell.name for cell in result.coverage if cell.is_missing] == ["n2/64K-128K"]
    assert "\n| n2/64K-128K | – | – | 0/0 |" in (ended.folder / "summary.md").read_text()
    cases = cases_of(ended)
    for case, text in (
        ("n2/64K-128K", f"{message} (exclude leaves the cell out)"),
        ("run", message),
    ):
        error = cases[case].find("error")
        assert error is not None
        assert error.get("message") == text
    assert "n8/64K-128K" not in cases


def test_a_named_cell_that_the_window_does_not_reach_ends_in_no_verdict_either(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, "--protocol", "openai"),
        *("--needles", "2", "--bins", "512-1K", "2K-4K", "--max-prompt-tokens", "1200"),
    )

    assert ended.code == 3, ended.said
    assert "n2/2K-4K: no row to ask: 3 of 3 too long" in ended.result.verdict.summary
    assert ended.result.records == ()


@pytest.mark.parametrize("cells", [("--bins", "64K-128K"), ("--exclude", *BINS)])
def test_a_run_whose_cells_leave_no_row_at_all_is_a_mistake(
    mrcr: Mrcr, healthy: StandIn, dataset: Path, cells: tuple[str, ...]
) -> None:
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, "--protocol", "openai"),
        *("--needles", "2", *cells),
    )

    assert ended.code == 2, ended.said
    assert ended.result.problem is not None
    assert ended.result.problem.kind == "UsageError"
    assert ended.result.problem.message == (
        f"bins and exclude leave no row of {dataset}, which has rows of {', '.join(BINS)} with 2"
        " needles"
    )


def test_an_answer_that_may_fill_the_window_is_a_mistake(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, *QUICK),
        *("--max-tokens", "131072"),
    )

    assert ended.code == 2, ended.said
    assert ended.result.problem is not None
    assert ended.result.problem.message.startswith("max_tokens 131,072: the server's window has ")
    assert ended.result.records == ()


def test_cells_that_are_not_named_are_no_gap(mrcr: Mrcr, healthy: StandIn, dataset: Path) -> None:
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, "--protocol", "openai"),
        *("--needles", "2", "--max-prompt-tokens", "1200", "--threshold", "0.95"),
    )

    assert ended.code == 0, ended.said
    assert any("is untested: the limit is about" in note for note in ended.result.notes)


def test_a_row_that_breaks_an_invariant_is_named_and_not_asked(
    mrcr: Mrcr, healthy: StandIn, tmp_path: Path
) -> None:
    rows = [row(2, number, 600) for number in range(4)]
    rows[2]["answer"] += "!"
    folder = write_rows(tmp_path / "rows", rows)

    ended = mrcr("run", "--base-url", healthy.url, "--dataset", folder, *QUICK[:4])

    assert ended.code == 0, ended.said
    assert sorted((r.shard[-9], r.row) for r in ended.result.records) == [
        ("0", 0),
        ("1", 0),
        ("1", 1),
    ]
    assert ended.result.notes[0].startswith("2needle/2needle_0.parquet#1 was left out: the answer")
    assert ended.result.coverage[0].dropped == {"invalid": 1}


# --- templates that refuse two user turns in a row


def test_a_strict_template_is_one_finding_before_any_sample_is_asked(
    mrcr: Mrcr, strict: StandIn, dataset: Path
) -> None:
    ended = mrcr("run", "--base-url", strict.url, "--dataset", dataset, *QUICK)

    assert ended.code == 3, ended.said
    result = ended.result
    assert result.problem is not None
    assert result.problem.kind == "TemplateError"
    assert "two user turns" in result.problem.message
    assert "merge_leading_user_turns: true" in result.problem.hint
    assert result.records == ()
    assert result.plan is None
    assert ended.records() == []
    assert result.verdict.conclusion == "inconclusive"
    assert ended.stdout.count("the chat template refuses two user turns") == 1
    run = cases_of(ended)["run"].find("error")
    assert run is not None
    assert run.get("type") == "TemplateError"


@pytest.fixture(scope="module")
def merged(
    tmp_path_factory: pytest.TempPathFactory,
    clean_environment: dict[str, str],
    strict: StandIn,
    dataset: Path,
) -> Iterator[Ended]:
    # In a folder of its own, since reports of the same folder replace each other.
    with commands(tmp_path_factory.mktemp("merged") / "work", clean_environment) as mrcr:
        yield mrcr(
            *("run", "--base-url", strict.url, "--dataset", dataset, *QUICK),
            *("--merge-leading-user-turns", "--threshold", "0.95"),
        )


def test_merged_turns_pass_a_strict_template(merged: Ended) -> None:
    assert merged.code == 0, merged.said
    assert merged.result.match_ratio == 1.0
    assert merged.result.preflight is not None
    assert merged.result.preflight.merged
    assert merged.result.preflight.two_user_turns is False
    assert len(merged.result.records) == 2


def test_every_report_says_that_merged_turns_are_not_comparable(merged: Ended) -> None:
    assert any(MERGED in note for note in merged.result.notes)
    assert MERGED in merged.stdout
    assert MERGED in (merged.folder / "summary.md").read_text()
    document = (merged.folder / "junit.xml").read_text()
    assert 'name="comparable" value="no: merge_leading_user_turns' in document
    assert MERGED in (cases_of(merged)["run"].findtext("system-out") or "")
    assert b'"merged": true' in (merged.folder / "result.json").read_bytes()


def test_merged_turns_are_counted_and_asked_alike(
    mrcr: Mrcr, recorder: Recorder, dataset: Path
) -> None:
    mrcr(
        *("run", "--base-url", recorder.url, "--dataset", dataset, *QUICK),
        *("--merge-leading-user-turns", "--samples-per-cell", "1"),
    )

    preflight, request = recorder.bodies["/v1/chat/completions"]
    roles = [message["role"] for message in request["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert [message["role"] for message in preflight["messages"]] == ["user", "assistant", "user"]
    counted = [body["messages"] for body in recorder.bodies["/tokenize"] if "messages" in body]
    assert request["messages"] in counted
