"""The Action's own program with a runner's environment, without an image: what is decided there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.container.runner_files import read_pairs
from tests.container.runner_log import StepLog, split_lines

from mrcr_action.result import decode_result
from mrcr_action.server.port import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import StartStandIn

START = "import sys; from mrcr_action.action.entry import start; sys.exit(start(['/{}']))"


@dataclass(frozen=True)
class Step:
    """A step that has ended."""

    code: int
    log: StepLog
    outputs: dict[str, str]
    summary: str
    workspace: Path

    @property
    def text(self) -> str:
        return "\n".join(self.log.lines)


@dataclass
class Job:
    """A job with one step."""

    folder: Path
    environment: dict[str, str]

    def start(
        self, *, env: dict[str, str] | None = None, stage: str = "entrypoint", **inputs: str
    ) -> subprocess.Popen[bytes]:
        workspace = self.folder / "workspace"
        workspace.mkdir(exist_ok=True)
        for name in ("output", "summary"):
            (self.folder / name).write_bytes(b"")
        return subprocess.Popen(
            [sys.executable, "-I", "-c", START.format(stage)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=workspace,
            env={
                **self.environment,
                "GITHUB_ACTIONS": "true",
                "GITHUB_WORKSPACE": str(workspace),
                "GITHUB_OUTPUT": str(self.folder / "output"),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
                **{f"INPUT_{name.upper().replace('_', '-')}": of for name, of in inputs.items()},
                **(env or {}),
            },
        )

    def end(self, process: subprocess.Popen[bytes]) -> Step:
        out, err = process.communicate(timeout=60)
        log = StepLog()
        for line in split_lines(out.decode("utf-8", "replace")):
            log.receive(line)
        assert err == b"", "a second stream would be read for commands, too"
        return Step(
            process.returncode,
            log,
            read_pairs(self.folder / "output"),
            (self.folder / "summary").read_text(),
            self.folder / "workspace",
        )

    def __call__(self, *, env: dict[str, str] | None = None, **inputs: str) -> Step:
        return self.end(self.start(env=env, **inputs))


def until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def job(tmp_path: Path, clean_environment: dict[str, str], dataset: Path) -> Job:
    made = Job(tmp_path, clean_environment)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/rows").symlink_to(dataset)
    return made


@pytest.fixture
def attached(job: Job, start_standin: StartStandIn, dataset: Path) -> Callable[..., Step]:
    """Runs the Action against a stand-in with a fault, on rows in the workspace."""
    rows = job.folder / "workspace/rows"
    rows.unlink()
    shutil.copytree(dataset, rows)

    def run(*faults: str, env: dict[str, str] | None = None, **inputs: str) -> Step:
        arguments = [word for fault in faults for word in ("--fault", fault)]
        common = {"base_url": start_standin(*arguments).url, "dataset": "rows"}
        common |= {"protocol": "openai", "samples_per_cell": "1", "thresholds": "0.9"}
        return job(env=env, **(common | inputs))

    return run


LOST = "status=500"


@pytest.mark.parametrize(
    ("fault", "fail_on", "code", "conclusion", "levels"),
    [
        (None, "", 0, "pass", []),
        ("garble", "", 1, "fail", ["error"]),
        ("garble", "fail", 1, "fail", ["error"]),
        ("garble", "never", 0, "fail", ["warning"]),
        (LOST, "", 3, "inconclusive", ["error"]),
        (LOST, "fail", 0, "inconclusive", ["warning"]),
        (LOST, "never", 0, "inconclusive", ["warning"]),
    ],
)
def test_the_workflow_says_from_which_conclusion_on_the_job_fails(
    attached: Callable[..., Step],
    *,
    fault: str | None,
    fail_on: str,
    code: int,
    conclusion: str,
    levels: list[str],
) -> None:
    step = attached(*([fault] if fault else []), fail_on=fail_on)

    assert step.code == code, step.text
    assert step.outputs["conclusion"] == conclusion
    assert step.outputs["passed"] == ("true" if conclusion == "pass" else "false")
    assert sorted({annotation.level for annotation in step.log.annotations}) == levels


def test_a_wrong_configuration_fails_the_job_whatever_it_fails_on(job: Job) -> None:
    step = job(model="m", tolerance="2", fail_on="never")

    assert step.code == 2
    (annotation,) = step.log.annotations
    assert annotation.level == "error"
    assert "input tolerance: 2: expected a number <= 1" in annotation.message
    assert "input tolerance" in step.summary
    assert step.outputs["conclusion"] == "inconclusive"


def test_without_a_threshold_the_job_is_warned(attached: Callable[..., Step]) -> None:
    step = attached(thresholds="")

    assert step.code == 0
    (annotation,) = step.log.annotations
    assert (annotation.level, annotation.title) == ("warning", "MRCR gated nothing")


def test_a_part_of_a_plan_is_measured_without_a_warning(attached: Callable[..., Step]) -> None:
    step = attached(shard="2/3", thresholds="1")

    assert step.code == 0, step.text
    assert (step.outputs["passed"], step.outputs["conclusion"]) == ("", "measured")
    assert "Part 2 of 3: measured, judged by mrcr merge" in step.summary
    assert "gated nothing" not in step.text


def test_annotations_can_be_switched_off(attached: Callable[..., Step]) -> None:
    step = attached("garble", annotations="false")

    assert (step.code, step.log.annotations) == (1, [])


def test_secrets_are_masked_before_anything_else_is_said(attached: Callable[..., Step]) -> None:
    step = attached(api_key="a key of the server", env={"HF_TOKEN": "hf_planted"})

    assert [command.name for command in step.log.commands][2:4] == ["add-mask", "add-mask"]
    assert set(step.log.masks) == {"a key of the server", "hf_planted"}
    assert "hf_planted" not in step.text


def test_a_key_that_only_stands_for_one_is_not_masked(attached: Callable[..., Step]) -> None:
    step = attached(api_key="EMPTY", env={"HF_TOKEN": "1"})

    assert step.code == 0, step.text
    assert step.log.masks == []


def test_a_path_outside_of_the_workspace_is_refused(job: Job) -> None:
    # The folder of samples is a link that leads out.
    step = job(model="m", dataset="rows")

    assert step.code == 2
    assert "input dataset: rows: lies outside the workspace (it leads to /" in step.text


def test_a_step_that_takes_too_long_is_inconclusive_with_its_reports(
    attached: Callable[..., Step],
) -> None:
    step = attached("slow=30", time_limit="2")

    assert step.code == 3
    assert "the run was not done within 2 s" in step.text
    result = decode_result((step.workspace / step.outputs["result-path"]).read_bytes())
    assert result.verdict.conclusion == "inconclusive"
    assert result.problem is not None
    assert result.problem.kind == "OutOfTime"


def test_a_cancelled_step_hands_over_what_there_is(job: Job) -> None:
    # Nobody listens there, so that it waits.
    url = f"http://127.0.0.1:{free_port()}"
    process = job.start(base_url=url, model="m", thresholds="0.9", startup_timeout="50")
    until((job.folder / "workspace/mrcr-results").exists)
    process.send_signal(signal.SIGINT)
    step = job.end(process)

    assert step.code == 130
    assert step.outputs["conclusion"] == "inconclusive"
    assert "cancelled" in step.summary
    assert [annotation.level for annotation in step.log.annotations] == ["error"]


def test_reports_do_not_follow_a_link_out_of_the_workspace(
    job: Job, attached: Callable[..., Step]
) -> None:
    workspace, outside = job.folder / "workspace", job.folder / "outside"
    outside.mkdir()
    (workspace / "mrcr-results").mkdir()
    (workspace / "mrcr-results/b").symlink_to(outside)
    for name in ("a.yaml", "b.yaml"):
        (workspace / name).write_text("concurrency: 2\n")
    step = attached(config="a.yaml\r\nb.yaml\r\n")

    assert step.code == 2
    assert "mrcr-results/b: lies outside the workspace" in step.text
    assert list(outside.iterdir()) == []


def test_without_a_workspace_the_verdict_is_no_missed_threshold(job: Job) -> None:
    step = job(env={"GITHUB_WORKSPACE": "/github/absent"}, model="m")

    assert step.code == 2
    assert "/github/absent: cannot be used as the workspace: No such file" in step.text
    assert step.outputs["passed"] == "false"


def test_an_output_that_cannot_be_written_costs_no_summary(attached: Callable[..., Step]) -> None:
    step = attached(env={"GITHUB_OUTPUT": "/github/absent/output"})

    assert step.code == 3
    assert "GITHUB_OUTPUT: /github/absent/output: cannot be written" in step.text
    assert "MRCR passed" in step.summary


def prepared(process: str) -> str:
    """A start of the Action in a process to which something is done first."""
    return f"{process}; {START}"


def test_a_fault_while_reporting_is_no_missed_threshold(
    attached: Callable[..., Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = "import mrcr_action.report.summary as s; s.fit_summary = None"
    monkeypatch.setattr(f"{__name__}.START", prepared(fault))
    step = attached()

    assert step.code == 3
    assert "internal error: TypeError" in step.text
    assert "Traceback" not in step.text


def test_a_resolver_that_is_silent_does_not_hold_up_a_cancelled_step(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = (
        "import socket, threading; from pathlib import Path; socket.getaddrinfo ="
        " lambda *_, **__: (Path('asked').touch(), threading.Event().wait())"
    )
    monkeypatch.setattr(f"{__name__}.START", prepared(silence))
    url = "http://server.invalid:8000"
    process = job.start(base_url=url, model="m", startup_timeout="50")
    until((job.folder / "workspace/asked").exists)
    process.send_signal(signal.SIGINT)
    step = job.end(process)

    assert step.code == 130
    assert "cancelled" in step.summary


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cache_dir", "/srv/cache", "cache_dir: /srv/cache: a folder of the runner's machine"),
        ("model_name", "/srv/model", "model_name: /srv/model: lies outside the workspace"),
    ],
)
def test_a_file_cannot_have_the_machine_s_folders_mounted(
    job: Job, key: str, value: str, message: str
) -> None:
    common = {"model_name": "m", "server": "container", "image": "anybody/image"}
    keys = common | {key: value}
    (job.folder / "workspace/ci.yaml").write_text(json.dumps(keys))

    step = job(config="ci.yaml")

    assert step.code == 2
    assert f"ci.yaml: {message}" in step.text


def test_a_threshold_that_no_server_can_miss_gates_nothing(attached: Callable[..., Step]) -> None:
    step = attached(thresholds="0.04")

    assert (step.code, [one.title for one in step.log.annotations]) == (0, ["MRCR gated nothing"])


def test_a_baseline_gates_a_job_without_a_threshold(attached: Callable[..., Step]) -> None:
    attached(thresholds="", samples_per_cell="3", output_dir="base")
    env = {"MRCR_BASELINE": "base"}
    same = attached(thresholds="", samples_per_cell="3", env=env)
    worse = attached("wrong-needle@%4", thresholds="", samples_per_cell="3", env=env)

    assert (same.code, same.log.annotations) == (0, [])
    assert same.outputs["conclusion"] == "pass"
    assert worse.code == 1, worse.text
    (annotation,) = worse.log.annotations
    assert (annotation.level, annotation.title) == (
        "error",
        "MRCR of run: worse than the baseline",
    )
    assert "### Against the baseline" in worse.summary


def test_a_baseline_that_is_missing_fails_the_job_whatever_it_fails_on(
    attached: Callable[..., Step],
) -> None:
    step = attached(env={"MRCR_BASELINE": "base"}, fail_on="never")

    assert step.code == 2
    assert "baseline: base: cannot be read: No such file" in step.summary.replace("\\", "")


@pytest.mark.parametrize("place", ["base", "base/result.json"])
def test_a_baseline_lies_in_the_workspace(job: Job, place: str) -> None:
    workspace, outside = job.folder / "workspace", job.folder / "outside"
    outside.mkdir()
    (outside / "result.json").write_text("{}")
    if place == "base":
        (workspace / "base").symlink_to(outside)
    else:
        (workspace / "base").mkdir()
        (workspace / "base/result.json").symlink_to(outside / "result.json")
    (workspace / "ci.yaml").write_text("baseline: base\n")

    step = job(config="ci.yaml", model="m", server="process")

    assert step.code == 2
    assert f"ci.yaml: baseline: {place}: lies outside the workspace" in step.text


@pytest.mark.parametrize("name", ["config", "dataset"])
def test_a_name_that_is_too_long_is_a_wrong_input(job: Job, name: str) -> None:
    inputs: dict[str, Any] = {"model": "m", "server": "process"} | {name: "x" * 5_000}
    step = job(**inputs)

    assert step.code in {2, 3}
    assert "internal error" not in step.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_clean_up_hands_over_what_a_killed_step_left(job: Job) -> None:
    workspace = job.folder / "workspace"
    (workspace / "mrcr-results").mkdir()
    (workspace / "mrcr-results/journal").touch()
    os.chown(workspace, 1234, 1234)
    env = {"DOCKER_HOST": f"unix://{job.folder}/no-socket"}

    step = job.end(job.start(stage="post-entrypoint", env=env))

    assert step.code == 0
    assert "nothing can be left" in step.text
    assert (workspace / "mrcr-results/journal").stat().st_uid == 1234
