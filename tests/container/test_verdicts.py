"""Verdicts as a workflow sees them: exit codes, outputs, the summary, annotations, reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from junitparser import JUnitXml
from tests.container.conftest import QUICK
from tests.integration.conftest import standin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.container.runner import Job
    from tests.container.runner_step import Step

# The route that needs no container beside: what is tested here is the same on both.
HERE = {**QUICK, "server": "process"}

FORGETFUL = {**HERE, "server-args": "--fault drop-nonce"}

DYING = {**HERE, "server-args": "--fault die=1@2"}


def counts(workspace: Path, step: Step) -> tuple[int, int, int]:
    """Tests, failures and errors of the JUnit file that the step names."""
    xml = JUnitXml.fromfile(str(workspace / step.outputs["junit-path"]))
    return xml.tests, xml.failures, xml.errors


def test_a_healthy_server_passes(job: Job) -> None:
    step = job.run(HERE)

    assert (step.exit_code, step.failed) == (0, False), step.log
    assert step.outputs == {
        "passed": "true",
        "conclusion": "pass",
        "match-ratio": "1.0",
        "match-ratio-n2": "1.0",
        "match-ratio-n4": "1.0",
        "match-ratio-n8": "",
        "junit-path": "mrcr-results/junit.xml",
        "summary-path": "mrcr-results/summary.md",
        "result-path": "mrcr-results/result.json",
    }
    assert step.summary.startswith("## ✅ MRCR passed: Model")
    assert step.summary == (job.workspace / step.outputs["summary-path"]).read_text()
    assert step.annotations == []
    assert counts(job.workspace, step)[1:] == (0, 0)
    result = json.loads((job.workspace / step.outputs["result-path"]).read_bytes())
    assert result["verdict"]["conclusion"] == "pass"
    assert len(result["records"]) == 8
    assert step.env == {}


def test_a_missed_threshold_fails_the_step_and_says_which(job: Job) -> None:
    step = job.run(FORGETFUL)

    assert step.exit_code == 1, step.log
    assert (step.outputs["passed"], step.outputs["conclusion"]) == ("false", "fail")
    assert step.outputs["match-ratio"] == "0.0"
    assert step.summary.startswith("## ❌ MRCR failed: Model")
    assert counts(job.workspace, step)[1:] == (1, 0)
    (error,) = step.annotations
    assert error.level == "error"
    assert error.title == "MRCR of Model: 0.00 < 0.85"
    assert "0.0000 < 0.9000 - 0.0500" in error.message


def test_a_server_that_dies_is_no_verdict_and_no_green_check(job: Job) -> None:
    step = job.run(DYING)

    assert step.exit_code == 3, step.log
    assert (step.outputs["passed"], step.outputs["conclusion"]) == ("false", "inconclusive")
    assert step.summary.startswith("## ⚠️ MRCR")
    assert counts(job.workspace, step)[2] > 0
    assert "exit code 1" in "".join(one.message for one in step.errors())
    log = (job.workspace / "mrcr-results/server.log").read_text()
    assert log.splitlines()[-1] == "stand-in: dying in the middle of an answer (a fault)"


@pytest.mark.parametrize(
    ("fail_on", "inputs", "code"),
    [
        ("fail", DYING, 0),
        ("fail", FORGETFUL, 1),
        ("never", DYING, 0),
        ("never", FORGETFUL, 0),
    ],
    ids=["fail-dying", "fail-forgetful", "never-dying", "never-forgetful"],
)
def test_fail_on_decides_about_the_step_and_not_about_the_verdict(
    job: Job, fail_on: str, inputs: dict[str, str], code: int
) -> None:
    step = job.run({**inputs, "fail-on": fail_on})

    assert step.exit_code == code, step.log
    assert step.outputs["passed"] == "false"
    assert step.outputs["conclusion"] == ("fail" if inputs is FORGETFUL else "inconclusive")
    assert {one.level for one in step.annotations} == {"error" if code else "warning"}


def test_annotations_can_be_switched_off(job: Job) -> None:
    step = job.run({**FORGETFUL, "annotations": "false"})

    assert step.exit_code == 1
    assert step.annotations == []


def test_a_run_that_gates_nothing_passes_with_a_warning(job: Job) -> None:
    step = job.run({**HERE, "thresholds": ""})

    assert step.exit_code == 0, step.log
    (warning,) = step.annotations
    assert (warning.level, warning.title) == ("warning", "MRCR gated nothing")


def test_several_configurations_are_one_verdict_the_worst(job: Job) -> None:
    common = {key: value for key, value in QUICK.items() if key != "model"}
    job.write("ci/good.yaml", "model_name: good\nserver: process\n")
    job.write("ci/bad.yaml", "model_name: bad\nserver: process\nserver_args: --fault window=256\n")
    job.write("ci/both.txt", "good.yaml\nbad.yaml\n")

    step = job.run({**common, "config": "ci/both.txt"})

    assert step.exit_code == 1, step.log
    assert step.outputs["conclusion"] == "fail"
    assert float(step.outputs["match-ratio"]) < 0.9
    assert step.outputs["result-path"] == "mrcr-results"
    for name in ("good", "bad"):
        assert (job.workspace / "mrcr-results" / name / "result.json").is_file()
    groups = [command.data for command in step.commands if command.name == "group"]
    assert groups == ["MRCR: good", "MRCR: bad"]
    assert len([command for command in step.commands if command.name == "endgroup"]) == 2
    assert [one.file for one in step.errors()] == ["ci/bad.yaml"]
    assert (job.workspace / step.outputs["summary-path"]).read_text() == step.summary


def test_steps_of_a_job_keep_to_their_own_folders_and_files(job: Job) -> None:
    first = job.run({**HERE, "output-dir": "reports/first"})
    second = job.run({**FORGETFUL, "output-dir": "reports/second"})

    assert (first.exit_code, second.exit_code) == (0, 1), first.log + second.log
    assert first.outputs["junit-path"] == "reports/first/junit.xml"
    assert second.outputs["junit-path"] == "reports/second/junit.xml"
    assert counts(job.workspace, first)[1:] == (0, 0)
    assert counts(job.workspace, second)[1:] == (1, 0)
    assert "failed" not in first.summary


def test_a_running_server_is_asked_with_its_key_and_the_key_is_told_to_nobody(
    job: Job, tmp_path: Path
) -> None:
    key = "sk-0123456789-secret"
    address = ("remote", "--host", job.engine.gateway, "--api-key", key)
    with standin(*address, log_path=tmp_path / "remote.log") as server:
        inputs = {**QUICK, "model": "", "base-url": server.url, "api-key": key}
        # What a runner behind a proxy passes on.
        proxies = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": job.engine.gateway}
        step = job.run(inputs, proxies)

    assert step.exit_code == 0, step.log
    assert "org/Model" not in step.summary
    assert "Model `remote`" in step.summary
    assert key not in step.log + step.summary + str(step.outputs) + str(step.annotations)
    unmasked = [line for _, line in step.raw if key in line]
    assert unmasked == [f"::add-mask::{key}"]
    for path in (job.workspace / "mrcr-results").rglob("*"):
        assert key.encode() not in path.read_bytes()
