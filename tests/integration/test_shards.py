"""``mrcr run --shard`` and ``mrcr merge``: a plan on several machines, against the stand-in."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StandIn, StartStandIn

    from mrcr_action.result import Result

COUNT = 3
PLAN = ("--protocol", "openai", "--samples-per-cell", "3", "--passes", "cold", "warm")
MEETS = '{all: {match_ratio: 0.3, nonce_rate: 0.3}, n2: 0.2, "n8/512-1K": 0.9}'
MISSES = "{all: 0.99, n4: 0.3}"


@pytest.fixture(scope="module")
def forgetful(start_shared_standin: StartStandIn) -> StandIn:
    """Answers by what is asked, not by when: it sees the last 1,500 tokens only."""
    return start_shared_standin("--fault", "window=1500")


def run(mrcr: Mrcr, server: StandIn, dataset: Path, name: str, *more: str) -> Ended:
    return mrcr(
        *("run", "--base-url", server.url, "--dataset", dataset, *PLAN),
        *("--output-dir", name, *more),
    )


@pytest.fixture(scope="module")
def parts(shared_mrcr: Mrcr, forgetful: StandIn, dataset: Path) -> dict[str, list[Ended]]:
    """Three parts of a plan, once with thresholds that it meets and once with others."""
    return {
        name: [
            run(
                *(shared_mrcr, forgetful, dataset, f"{name}-{number}"),
                *("--thresholds", thresholds, "--shard", f"{number}/{COUNT}"),
            )
            for number in range(1, COUNT + 1)
        ]
        for name, thresholds in (("meets", MEETS), ("misses", MISSES))
    }


@pytest.fixture(scope="module")
def wholes(shared_mrcr: Mrcr, forgetful: StandIn, dataset: Path) -> dict[str, Ended]:
    """The same without parts."""
    return {
        name: run(
            *(shared_mrcr, forgetful, dataset, f"{name}-whole"),
            *("--thresholds", thresholds),
        )
        for name, thresholds in (("meets", MEETS), ("misses", MISSES))
    }


def result_in(mrcr: Mrcr, folder: str) -> Result:
    from mrcr_action.result import decode_result

    return decode_result((mrcr.cwd / folder / "result.json").read_bytes())


@pytest.mark.parametrize("name", ["meets", "misses"])
def test_a_part_measures_and_judges_nothing(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr, name: str
) -> None:
    for number, ended in enumerate(parts[name], 1):
        assert ended.code == 0, ended.said
        said = f"Part {number} of {COUNT}: measured, judged by mrcr merge"
        assert ended.stdout.splitlines()[0] == said
        assert f"Only part {number} of {COUNT}, of a plan of 54 requests" in ended.stderr
        result = result_in(shared_mrcr, f"{name}-{number}")
        assert result.verdict.conclusion == "measured"
        assert result.verdict.summary == said
        assert len(result.records) == 18
        assert {cell.planned for cell in result.coverage} == {1}
        summary = (shared_mrcr.cwd / f"{name}-{number}" / "summary.md").read_text()
        assert summary.startswith("## 📏 MRCR measured, not judged yet: ")
        page = (shared_mrcr.cwd / f"{name}-{number}" / "report.html").read_text()
        assert "MRCR measured, not judged yet: " in page
        assert said in summary


@pytest.mark.parametrize(("name", "code"), [("meets", 0), ("misses", 1)])
def test_merged_parts_are_what_one_run_found(
    parts: dict[str, list[Ended]], wholes: dict[str, Ended], shared_mrcr: Mrcr, name: str, code: int
) -> None:
    assert len(parts[name]) == COUNT
    ended = shared_mrcr(
        "merge", *(f"{name}-{number}" for number in (2, 3, 1)), "--output-dir", f"{name}-merged"
    )

    assert (ended.code, wholes[name].code) == (code, code), ended.said
    one, merged = (result_in(shared_mrcr, f"{name}-{of}") for of in ("whole", "merged"))
    assert merged.verdict == one.verdict
    assert merged.buckets == one.buckets
    assert 0.3 < (one.match_ratio or 0) < 0.9
    assert any(bucket.interval and not bucket.interval.is_point for bucket in one.buckets)
    assert merged.coverage == one.coverage
    assert merged.auc == one.auc
    assert [_timeless(r) for r in merged.records] == [_timeless(r) for r in one.records]
    assert [round_.change for round_ in merged.rounds] == [round_.change for round_ in one.rounds]
    assert _plan(merged) == _plan(one)
    for file in ("junit.xml", "summary.md", "report.html", "samples.jsonl"):
        assert (shared_mrcr.cwd / f"{name}-merged" / file).is_file()
    # The texts of the answers are in the merged journal, and so in the page.
    texts = sorted(path.read_text().count('"response"') for path in journals(shared_mrcr, name))
    assert texts == [18, 18, 18, 54]


def journals(mrcr: Mrcr, name: str) -> list[Path]:
    folders = [f"{name}-{of}" for of in (1, 2, 3, "merged")]
    return [mrcr.cwd / folder / "samples.jsonl" for folder in folders]


def _timeless(record: Any) -> Any:
    return msgspec.structs.replace(
        record, seconds=0, seconds_to_first_token=None, inter_token_seconds=None, cached_tokens=None
    )


def _plan(result: Result) -> Any:
    assert result.plan is not None
    return msgspec.structs.replace(result.plan, tokenized=0)


def test_a_missing_part_is_named_and_nothing_is_written(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    ended = shared_mrcr("merge", "meets-1", "meets-3", "--output-dir", "lacking")

    assert ended.code == 3
    assert "mrcr: error: part 2 of 3 is missing" in ended.stderr
    assert not (shared_mrcr.cwd / "lacking").exists()


def test_a_folder_of_parts_is_told_how_to_name_them(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    for number in (1, 2, 3):
        name = f"meets-{number}"
        shutil.copytree(shared_mrcr.cwd / name, shared_mrcr.cwd / "all-parts" / name)

    ended = shared_mrcr("merge", "all-parts", "--output-dir", "unnamed")

    assert ended.code == 3
    assert "name each part: FOLDER/*" in ended.stderr


def test_with_a_part_missing_there_is_a_report_and_no_verdict_on_request(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    folder = ("--output-dir", "partly")
    ended = shared_mrcr("merge", "meets-1", "meets-3", "--allow-missing", *folder)

    assert ended.code == 3
    assert "MRCR is inconclusive: part 2 is missing" in ended.stdout
    assert (shared_mrcr.cwd / "partly" / "report.html").is_file()


def test_parts_of_other_thresholds_are_refused(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    ended = shared_mrcr("merge", "meets-1", "misses-2", "meets-3", "--output-dir", "mixed")

    assert ended.code == 2
    assert "these are not parts of one run: thresholds:" in ended.stderr
    assert "misses-2/result.json" in ended.stderr


def test_a_part_is_not_overwritten_by_the_merged_reports(
    parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    names = ("meets-1", "meets-2", "meets-3")
    ended = shared_mrcr("merge", *names, "--output-dir", "meets-1")

    assert ended.code == 2
    assert "meets-1/result.json: the merged reports would take its place" in ended.stderr
    assert (shared_mrcr.cwd / "meets-1" / "result.json").is_file()


def test_a_part_without_its_journal_is_merged_without_its_texts(
    mrcr: Mrcr, parts: dict[str, list[Ended]], shared_mrcr: Mrcr
) -> None:
    assert len(parts) == 2
    for number in (1, 2, 3):
        (mrcr.cwd / f"p{number}").mkdir()
        text = (shared_mrcr.cwd / f"meets-{number}" / "result.json").read_bytes()
        (mrcr.cwd / f"p{number}" / "result.json").write_bytes(text)

    ended = mrcr("merge", "p1", "p2", "p3")

    assert ended.code == 0, ended.said
    assert "p1/samples.jsonl: No such file or directory; the reports lack the texts" in ended.stderr
    assert not (ended.folder / "samples.jsonl").exists()


def test_a_baseline_is_compared_with_all_parts_together(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    healthy, forgetful = start_standin(), start_standin("--fault", "window=500")
    assert run(mrcr, healthy, dataset, "healthy").code == 0
    for number in (1, 2):
        more = ("--shard", f"{number}/2", "--baseline", "healthy")
        ended = run(mrcr, forgetful, dataset, f"p{number}", *more)
        assert ended.code == 0, ended.said
        assert result_in(mrcr, f"p{number}").baseline is None

    ended = mrcr("merge", "p1", "p2")

    assert ended.code == 1, ended.said
    assert "MRCR failed: baseline: " in ended.stdout


def test_parts_of_several_configurations_are_merged_each_with_its_own(
    mrcr: Mrcr, forgetful: StandIn, dataset: Path
) -> None:
    keys = {"base_url": forgetful.url, "dataset": str(dataset), "protocol": "openai"}
    passing = mrcr.config("passing", **keys, thresholds=0.1, num_samples=6)
    failing = mrcr.config("failing", **keys, thresholds=0.99, num_samples=9)
    for number in (1, 2):
        ended = mrcr("run", passing, failing, "--shard", f"{number}/2", "--output-dir", f"{number}")
        assert ended.code == 0, ended.said

    ended = mrcr("merge", "1", "2")

    assert ended.code == 1, ended.said
    assert ended.result_of("passing").verdict.conclusion == "pass"
    assert ended.result_of("failing").verdict.conclusion == "fail"
    summary = (ended.folder / "summary.md").read_text()
    assert summary.startswith("# ❌ MRCR failed: 1 of 2 configurations")
    assert 'href="./failing/report.html"' in (ended.folder / "report.html").read_text()


def test_a_part_whose_server_cannot_be_reached_is_an_error_and_no_green_one(
    mrcr: Mrcr, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", "http://127.0.0.1:9", "--dataset", dataset, "--shard", "1/2")
    )

    assert ended.code == 3, ended.said
    assert ended.result.verdict.conclusion == "inconclusive"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--shard", "3/2"), "--shard: 3/2: there are 2 parts, numbered from 1"),
        (("--shard", "0/2"), "--shard: '0/2': expected a part of how many, such as 2/4"),
        (("--shard", "half"), "expected a part of how many, such as 2/4"),
        (("--shard", "1/2", "--stop-when", "failed"), "--stop-when: failed: with shard, no part"),
        (("--shard", "1/2", "--small-pool"), "--small-pool: with shard"),
        (("--shard", "30/31"), "shard: 30/31: the plan has 27 samples only"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(
    mrcr: Mrcr, forgetful: StandIn, dataset: Path, flags: tuple[str, ...], told: str
) -> None:
    ended = run(mrcr, forgetful, dataset, "refused", *flags)

    assert ended.code == 2, ended.said
    assert told in ended.said


def test_thresholds_are_made_of_all_samples_and_not_of_a_part(mrcr: Mrcr) -> None:
    ended = mrcr("calibrate", mrcr.config("model"), "--shard", "1/2")

    assert ended.code == 2
    assert "shard: 1/2: thresholds are made of all samples" in ended.stderr


def test_a_part_is_no_baseline(parts: dict[str, list[Ended]], shared_mrcr: Mrcr) -> None:
    assert len(parts) == 2
    ended = shared_mrcr("run", "--base-url", "http://127.0.0.1:9", "--baseline", "meets-1")

    assert ended.code == 2
    assert "baseline: meets-1/result.json: shard: 1/3: it is one part of a plan" in ended.stderr


def test_the_usual_passes_leave_out_in_a_part_what_a_part_cannot_do(
    mrcr: Mrcr, forgetful: StandIn, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", forgetful.url, "--dataset", dataset, "--protocol", "openai"),
        *("--plan", "standard", "--shard", "2/2"),
    )

    assert ended.code == 0, ended.said
    assert ended.result.config.small_pool is False


def test_the_plan_of_a_part_can_be_looked_at(mrcr: Mrcr, dataset: Path) -> None:
    arguments = ("plan", "--dataset", dataset, *PLAN, "--window", "8K", "--shard", "1/2")
    ended = mrcr(*arguments)

    assert ended.code == 0, ended.said
    assert "Only part 1 of 2, of a plan of 54 requests" in ended.stdout
    # 27 samples: 14 and 13.
    assert len(json.loads(mrcr(*arguments, "--json").stdout)["asks"]) == 28
