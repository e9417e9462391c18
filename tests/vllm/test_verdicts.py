"""Real vLLM with the probe: a healthy server passes, a broken one fails on the right rows."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from junitparser import JUnitXml
from tests.vllm.running import healthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vllm.conftest import Serve
    from tests.vllm.running import Running

HERE = Path(__file__).parent
PROBE = str(HERE / "vllm-probe.yaml")


def test_healthy_server_reads_every_row_exactly_and_passes(start: Callable[..., Running]) -> None:
    running = start(PROBE)
    running.wait_for("Asking")
    assert running.descendants()
    run = running.finish()
    assert run.exit_code == 0, run.text
    assert run.result.verdict.conclusion == "pass"
    assert {b.match_ratio_openai for b in run.result.buckets} == {1.0}
    assert [b.graded for b in run.result.buckets if b.bin is None] == [12, 4, 4, 4]
    assert all(r.grade is not None and r.grade.exact for r in run.result.records)
    assert run.result.server.version is not None
    assert "--trust-remote-code" not in run.result.server.command
    report = JUnitXml.fromfile(str(run.output / "junit.xml"))
    cases = 1 + len(run.result.buckets)
    assert (report.tests, report.failures, report.errors) == (cases, 0, 0)
    assert "✅ MRCR passed" in (run.output / "summary.md").read_text()


def test_sliding_window_fails_long_rows_only_while_health_stays_green(
    start: Callable[..., Running], serve: Serve
) -> None:
    seen: list[bool] = []
    over = threading.Event()

    def watch(url: str) -> None:
        while not over.is_set():
            # A vLLM that computes on all cores of a small machine answers late, but it answers.
            seen.append(healthy(url, seconds=60))
            over.wait(0.5)

    broken = ("--max-model-len", "16384", "--hf-overrides", '{"sliding_window":512}')
    with serve(*broken) as url:
        watcher = threading.Thread(target=watch, args=(url,))
        watcher.start()
        try:
            run = start(PROBE, f"--base-url={url}").finish()
        finally:
            over.set()
            watcher.join()
        assert healthy(url, seconds=60)
    assert run.exit_code == 1, run.text
    assert seen
    assert all(seen)
    short, long = run.records(short=True), run.records(short=False)
    assert [r.grade is not None and r.grade.exact for r in short] == [True] * 6
    assert [r.grade is not None and r.grade.exact for r in long] == [False] * 6
    assert run.result.verdict.summary.startswith("MRCR thresholds failed: match_ratio_n2: ")
    assert JUnitXml.fromfile(str(run.output / "junit.xml")).failures == 3
    # The boundary lies between the longest row that is right and the shortest that is wrong.
    told = re.search(
        r"All wrong answers are to prompts of ([\d,]+) tokens .*?up to ([\d,]+), are all exact",
        (run.output / "summary.md").read_text(),
    )
    assert told is not None
    above, below = (int(number.replace(",", "")) for number in told.groups())
    assert below <= 512 < above <= min(record.prompt_tokens or 0 for record in long)


def test_file_in_the_format_of_vllm_runs_unchanged(start: Callable[..., Running]) -> None:
    saved = "vllm-result.json"
    run = start(
        str(HERE / "vllm-format.yaml"), "--dataset=rows", f"--save-results={saved}"
    ).finish()
    assert run.exit_code == 0, run.text
    assert run.result.config.protocol == "vllm"
    assert {r.shard for r in run.result.records} == {
        f"{n}needle/{n}needle_0.parquet" for n in (2, 4, 8)
    }
    lines = (run.output / "samples.jsonl").read_text().splitlines()
    answers = {record["ask"]: record["answer"] for record in map(json.loads, lines)}
    for record in run.result.records:
        length = len(answers[record.ask])
        perfect = 2 * (length - 10) / (2 * length - 10)
        assert record.grade is not None
        assert record.grade.match_ratio_vllm == pytest.approx(perfect, abs=1e-12)
    fields = json.loads((run.output.parent / saved).read_text())
    assert fields["model"] == "probe"
    assert set(fields["per_needle"]) == {"match_ratio_n2", "match_ratio_n4", "match_ratio_n8"}
    assert fields["num_samples"] == 6


def test_attached_server_with_a_small_window_is_asked_what_fits(
    start: Callable[..., Running], small_server: str
) -> None:
    run = start("--base-url", small_server, "--dataset=rows", "--protocol=openai",
                "--num-samples=6", "--max-tokens=256", "--threshold=1.0").finish()  # fmt: skip
    assert run.exit_code == 0, run.text
    assert run.result.max_prompt_tokens == 512
    assert len(run.records(short=True)) == 6
    assert healthy(small_server), "a server that was not started here must not be stopped"


def test_prompts_over_the_window_are_rejections_and_never_zeros(
    start: Callable[..., Running], small_server: str
) -> None:
    run = start("--base-url", small_server, "--dataset=rows", "--protocol=openai",
                "--num-samples=12", "--max-tokens=256", "--threshold=1.0",
                "--max-prompt-tokens=16000").finish()  # fmt: skip
    assert run.exit_code == 3, run.text
    assert [r.outcome for r in run.records(short=False)] == ["rejected"] * 6
    assert [r.outcome for r in run.records(short=True)] == ["scored"] * 6
    assert run.result.match_ratio == 1.0
    assert "12 requests were lost" in run.result.verdict.summary or "6 of 12" in run.text
    assert "maximum context length" in run.records(short=False)[0].reason
