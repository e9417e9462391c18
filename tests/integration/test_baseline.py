"""A run that is compared with an earlier one: its verdict, and what is refused before it starts."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_synthetic

if TYPE_CHECKING:
    from tests.integration.conftest import Ended, Mrcr, Recorder, StandIn, StartStandIn

REPORTS = {"result.json", "report.html", "junit.xml", "summary.md", "samples.jsonl"}

Run = Callable[..., "Ended"]


@pytest.fixture(scope="module")
def healthy(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin()


@pytest.fixture(scope="module")
def baseline(
    shared_mrcr: Mrcr, healthy: StandIn, dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a healthy run over 27 samples."""
    folder = tmp_path_factory.mktemp("baseline")
    ended = shared_mrcr(*arguments(healthy, dataset), "--output-dir", folder)
    assert ended.code == 0, ended.said
    return folder


@pytest.fixture
def run(mrcr: Mrcr, dataset: Path, baseline: Path) -> Run:
    """Runs the same samples against a server, compared with the baseline."""

    def against(server: StandIn | Recorder, *more: str | Path, before: Path = baseline) -> Ended:
        return mrcr(*arguments(server, dataset), "--baseline", before, *more)

    return against


@pytest.fixture
def edited(baseline: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], object]], Path]:
    """A copy of the baseline that was changed by hand."""

    def edit(change: Callable[[dict[str, Any]], object]) -> Path:
        document = json.loads((baseline / "result.json").read_bytes())
        change(document)
        path = tmp_path / "edited.json"
        path.write_text(json.dumps(document))
        return path

    return edit


def arguments(server: StandIn | Recorder, dataset: Path) -> tuple[str | Path, ...]:
    return (
        *("run", "--base-url", server.url, "--dataset", dataset),
        *("--protocol", "openai", "--num-samples", "27"),
    )


def baseline_case(folder: Path) -> ET.Element:
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")  # noqa: S314 - written here
    (case,) = [case for case in cases if case.get("name") == "baseline"]
    return case


def test_the_same_run_again_passes_though_no_threshold_is_set(run: Run, healthy: StandIn) -> None:
    ended = run(healthy)

    assert ended.code == 0, ended.said
    said = "MRCR passed: baseline: no regression: no sample changed (27 compared)"
    assert said in ended.stdout.splitlines()
    against = ended.result.baseline
    assert against is not None
    assert against.comparison is not None
    assert (against.baseline.graded, against.comparison.compared) == (27, 27)
    assert baseline_case(ended.folder).find("failure") is None
    summary = (ended.folder / "summary.md").read_text()
    assert summary.startswith("## ✅ MRCR passed")
    assert "### Against the baseline" in summary


def test_a_regression_fails_a_run_without_any_threshold(
    run: Run, start_standin: StartStandIn
) -> None:
    ended = run(start_standin("--fault", "wrong-needle@%4"))

    assert ended.code == 1, ended.said
    verdict = ended.result.verdict
    assert verdict.conclusion == "fail"
    assert verdict.summary.startswith("MRCR failed: baseline: regression: all samples fell by 0.")
    assert verdict.state_of("all") == "measured"
    failure = baseline_case(ended.folder).find("failure")
    assert failure is not None
    assert failure.get("type") == "regression"
    assert "exact → inexact" in (failure.text or "")
    against = ended.result.baseline
    assert against is not None
    assert against.comparison is not None
    assert len(against.comparison.flips) == against.comparison.flipped_down == 6
    assert "Changed by 0.1 or more: 6 for the worse" in (ended.folder / "summary.md").read_text()


def test_a_regression_fails_a_run_whose_thresholds_were_reached(
    run: Run, start_standin: StartStandIn
) -> None:
    ended = run(start_standin("--fault", "wrong-needle@%4"), "--threshold", "0.5")

    assert ended.code == 1, ended.said
    assert ended.result.verdict.state_of("all") == "pass"
    assert "MRCR failed: baseline: regression" in ended.stdout


def test_a_missed_threshold_fails_a_run_that_is_as_good_as_its_baseline(
    mrcr: Mrcr, dataset: Path, start_standin: StartStandIn
) -> None:
    faulty = start_standin("--fault", "drop-nonce@%2")
    assert mrcr(*arguments(faulty, dataset), "--output-dir", "base").code == 0
    ended = mrcr(*arguments(faulty, dataset), "--baseline", "base", "--threshold", "0.9")

    assert ended.code == 1, ended.said
    assert ended.result.verdict.state_of("baseline") == "pass"
    assert "MRCR thresholds failed: match_ratio: " in ended.stdout


@pytest.mark.parametrize(("allowed", "code"), [("0.05", 1), ("0.9", 0)])
def test_a_limit_decides_how_much_may_be_lost(
    run: Run, start_standin: StartStandIn, allowed: str, code: int
) -> None:
    ended = run(start_standin("--fault", "wrong-needle@%4"), "--max-regression", allowed)

    assert ended.code == code, ended.said
    assert f"regression of more than {allowed}: " in ended.result.verdict.summary


def test_a_sample_that_is_lost_since_is_never_green(run: Run, start_standin: StartStandIn) -> None:
    ended = run(start_standin("--fault", "status=400@5"))

    assert ended.code == 3, ended.said
    assert ended.result.verdict.state_of("baseline") == "inconclusive"
    assert baseline_case(ended.folder).find("error") is not None
    assert "1 of 27 samples graded in the baseline were lost in this run" in ended.stdout


def test_other_settings_are_refused_with_every_difference_before_anything_is_asked(
    run: Run, recorder: Recorder, mrcr: Mrcr
) -> None:
    ended = run(recorder, "--max-tokens", "1000", "--temperature", "0.5")

    assert (ended.code, ended.stdout) == (2, "")
    first, *others = ended.stderr.splitlines()
    assert first.endswith("the baseline and this run cannot be compared: 2 things differ")
    assert others[1:] == [
        "  temperature: 0.0 in the baseline, 0.5 in this run",
        "  max_tokens: 2048 in the baseline, 1000 in this run",
    ]
    assert recorder.bodies == {}
    assert not (mrcr.cwd / "mrcr-results").exists()


def test_other_settings_are_refused_before_a_server_is_started(
    mrcr: Mrcr, baseline: Path, dataset: Path, fake_vllm: Callable[..., dict[str, str]]
) -> None:
    environment = fake_vllm("open('started', 'w').close()")
    config = mrcr.config(
        "model",
        model_name="m",
        server="process",
        dataset=str(dataset),
        protocol="openai",
        num_samples=27,
        needles=[2],
        baseline=str(baseline),
    )
    ended = mrcr("run", config, env=environment)

    assert ended.code == 2, ended.said
    assert "needles: [2, 4, 8] in the baseline, [2] in this run" in ended.stderr
    assert not (mrcr.cwd / "started").exists()


def test_other_rows_end_without_a_verdict_before_they_are_asked(
    run: Run, healthy: StandIn, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    bins = [parse_bin(text) for text in ("512-1K", "1K-2K", "2K-4K")]
    write_synthetic(other, needles=(2, 4, 8), bins=bins, per_cell=3, seed=7)
    ended = run(healthy, "--dataset", other)

    assert ended.code == 3, ended.said
    assert ended.result.records == ()
    assert ended.result.verdict.conclusion == "inconclusive"
    assert "none of the 27 samples of this run was graded in it" in ended.stdout
    assert baseline_case(ended.folder).find("error") is not None


def test_another_chat_template_ends_without_a_verdict_before_samples_are_asked(
    run: Run, healthy: StandIn, edited: Callable[..., Path]
) -> None:
    before = edited(lambda d: d["preflight"].update(fingerprint="0" * 64))
    ended = run(healthy, before=before)

    assert ended.code == 3, ended.said
    assert ended.result.records == ()
    assert "chat template and tokenizer: 000000000000 in the baseline" in ended.stdout
    assert "fix the date" in ended.stdout


@pytest.mark.parametrize("named", [".", "result.json"])
def test_a_baseline_where_the_run_writes_its_reports_is_refused_and_kept(
    run: Run, healthy: StandIn, baseline: Path, mrcr: Mrcr, named: str
) -> None:
    shutil.copytree(baseline, mrcr.cwd / "mrcr-results")
    ended = run(healthy, before=Path("mrcr-results") / named)

    assert ended.code == 2, ended.said
    assert "mrcr-results/result.json: this run writes its own report there" in ended.stderr
    assert "Copy the result.json elsewhere" in ended.stderr
    assert {path.name for path in (mrcr.cwd / "mrcr-results").iterdir()} == REPORTS


def test_a_link_does_not_hide_that_a_run_would_remove_its_baseline(
    run: Run, healthy: StandIn, baseline: Path, mrcr: Mrcr
) -> None:
    shutil.copytree(baseline, mrcr.cwd / "mrcr-results")
    (mrcr.cwd / "link").symlink_to("mrcr-results")
    ended = run(healthy, before=Path("link"))

    assert ended.code == 2, ended.said
    assert (mrcr.cwd / "mrcr-results/result.json").exists()


def test_a_baseline_in_the_place_of_save_results_is_refused(
    run: Run, healthy: StandIn, baseline: Path, mrcr: Mrcr
) -> None:
    shutil.copy(baseline / "result.json", mrcr.cwd / "base.json")
    ended = run(healthy, "--save-results", "base.json", before=Path("base.json"))

    assert ended.code == 2, ended.said
    assert (mrcr.cwd / "base.json").exists()


def make_empty(document: dict[str, Any]) -> None:
    document["records"] = []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema_version=2), "schema version 2, not 1"),
        (lambda d: d.pop("records"), "not a result that this mrcr can read"),
        (make_empty, "none of its samples was graded"),
        (lambda d: d["records"].append(d["records"][0]), "is in it twice"),
    ],
)
def test_what_cannot_be_a_baseline_is_named_before_anything_is_asked(
    run: Run,
    edited: Callable[..., Path],
    recorder: Recorder,
    change: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    before = edited(change)
    ended = run(recorder, before=before)

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"mrcr: error: baseline: {before}: ")
    assert message in ended.stderr
    assert recorder.bodies == {}


def test_a_baseline_that_is_missing_is_an_error_that_names_it(run: Run, healthy: StandIn) -> None:
    ended = run(healthy, before=Path("nowhere"))

    assert ended.code == 2
    assert ended.stderr.startswith("mrcr: error: baseline: nowhere: cannot be read: No such file")


def test_a_baseline_that_failed_itself_is_said_to_have(
    run: Run, healthy: StandIn, edited: Callable[..., Path]
) -> None:
    before = edited(lambda d: d["verdict"].update(conclusion="fail"))
    ended = run(healthy, before=before)

    assert ended.code == 0, ended.said
    assert "note: The baseline itself is the result of a run that failed." in ended.stdout


def test_text_of_a_baseline_is_inert_in_every_report(
    run: Run, healthy: StandIn, edited: Callable[..., Path]
) -> None:
    def change(document: dict[str, Any]) -> None:
        hostile = "::error::x\n::warning::y <script>alert(1)</script> | @octocat \u202e\x1b[31m"
        document["model"] = document["started"] = document["name"] = hostile
        document["server"]["version"] = document["tool_version"] = hostile

    ended = run(healthy, before=edited(change))

    assert ended.code == 0, ended.said
    summary = (ended.folder / "summary.md").read_text()
    for text in (ended.stdout, summary):
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        assert "\x1b" not in text
        assert "\u202e" not in text
    beyond_code = re.sub("`[^`]*`", "", summary)
    assert "@octocat" not in beyond_code
    assert "<script>" not in beyond_code
    assert baseline_case(ended.folder) is not None


def test_a_cancelled_run_says_what_it_was_to_be_compared_with(
    mrcr: Mrcr, dataset: Path, baseline: Path, start_standin: StartStandIn
) -> None:
    slow = start_standin("--fault", "slow=30")
    running = mrcr.start(*arguments(slow, dataset), "--baseline", baseline)
    running.wait_for("Asking 27 samples")
    running.process.send_signal(signal.SIGINT)
    ended = running.wait()

    assert ended.code == 130, ended.said
    against = ended.result.baseline
    assert against is not None
    assert (against.comparison, against.problem) == (None, "the run was cancelled")


def test_a_shorter_window_that_asks_less_than_the_baseline_is_never_green(
    run: Run, healthy: StandIn
) -> None:
    ended = run(healthy, "--num-samples", "18", "--max-prompt-tokens", "2000")

    assert ended.code == 3, ended.said
    said = "graded in the baseline, is graded in this run; no regression among the others"
    assert "baseline: no verdict: nothing of n2/2K-4K" in ended.result.verdict.summary
    assert said in ended.result.verdict.summary
