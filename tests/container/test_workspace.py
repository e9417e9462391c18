"""The workspace, which belongs to somebody else, and the environment of the steps before."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.container.conftest import QUICK

if TYPE_CHECKING:
    from tests.container.runner import Job

HERE = {**QUICK, "server": "process"}


def test_what_is_written_belongs_to_the_workspaces_owner_and_can_be_read(job: Job) -> None:
    before = job.found()

    step = job.run({**HERE, "output-dir": "deep/er/results"}, {"MRCR_CACHE": "cache"})

    assert step.exit_code == 0, step.log
    made = {name: found for name, found in job.found().items() if name not in before}
    assert {"deep", "deep/er", "deep/er/results/junit.xml", "cache"} <= made.keys()
    assert {(found.uid, found.gid) for found in made.values()} == {(job.owner, job.owner)}
    for name, found in made.items():
        readable = 0o755 if (job.workspace / name).is_dir() else 0o644
        assert found.mode & readable == readable, name
    assert {name: found for name, found in job.found().items() if name in before} == before


def test_it_is_handed_over_after_a_failure_too(job: Job) -> None:
    step = job.run({**HERE, "server-args": "--fault die=1@2"})

    assert step.exit_code == 3
    assert {found.uid for found in job.found().values()} == {job.owner}


def test_nothing_is_left_in_the_home_folder_that_all_actions_share(job: Job) -> None:
    job.run(HERE)

    assert list((job.temp / "_github_home").iterdir()) == []


@pytest.mark.parametrize("name", ["output-dir", "dataset", "config"])
@pytest.mark.parametrize("outside", ["/etc", "../../..", "link"])
def test_a_path_outside_the_workspace_is_refused_with_both_its_names(
    job: Job, name: str, outside: str
) -> None:
    (job.workspace / "link").symlink_to("/usr")
    given = outside if outside.startswith("/") else f"{outside}/share"

    step = job.run({**HERE, name: given})

    assert step.exit_code == 2, step.log
    (error,) = step.errors()
    assert f"input {name}: {given}" in error.message
    assert "/github/workspace in this container" in error.message
    assert f"{job.workspace} on the runner" in error.message


def test_a_configuration_cannot_lead_out_of_the_workspace(job: Job) -> None:
    job.write("mrcr.yaml", "model_name: m\nserver: process\nsave_results: /etc/mrcr.json\n")

    step = job.run({"config": "mrcr.yaml"})

    assert step.exit_code == 2, step.log
    assert "mrcr.yaml: save_results: /etc/mrcr.json: lies outside the workspace" in step.log


def test_a_path_may_be_given_as_the_runner_knows_it(job: Job) -> None:
    job.write("ci/mrcr.yaml", "model_name: m\nserver: process\n")
    inputs = {key: value for key, value in QUICK.items() if key not in {"model", "dataset"}}

    step = job.run(
        {
            **inputs,
            "config": str(job.workspace / "ci/mrcr.yaml"),
            "dataset": str(job.workspace / "rows"),
            "output-dir": f"{job.workspace}/out",
        }
    )

    assert step.exit_code == 0, step.log
    assert step.outputs["junit-path"] == "out/junit.xml"


def test_what_steps_before_set_for_the_runners_own_machine_does_no_harm(job: Job) -> None:
    evil = "raise SystemExit('this is the workspace, not the package')\n"
    for module in ("json.py", "httpx.py", "mrcr_action.py", "sitecustomize.py", "usercustomize.py"):
        job.write(f"evil/{module}", evil)
        job.write(module, evil)
    evil_folder = "/github/workspace/evil"

    step = job.run(
        HERE,
        {
            "PATH": f"{evil_folder}:/home/runner/bin",
            "LD_LIBRARY_PATH": evil_folder,
            "PYTHONPATH": evil_folder,
            "PYTHONHOME": evil_folder,
            "PYTHONSTARTUP": f"{evil_folder}/json.py",
            "VIRTUAL_ENV": evil_folder,
            "NO_PROXY": "localhost,[::1],fd00::/8",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
        },
    )

    assert step.exit_code == 0, step.log
    assert "this is the workspace" not in step.printed
    log = (job.workspace / "mrcr-results/server.log").read_text()
    assert "this is the workspace" not in log


def test_a_workspace_that_cannot_be_written_is_no_verdict(job: Job) -> None:
    job.write("mrcr-results", "a file where the folder is to be")

    step = job.run(HERE)

    assert step.exit_code in {2, 3}, step.log
    assert step.outputs["passed"] == "false"
    assert "mrcr-results" in step.log
    assert "Traceback" not in step.log
    assert os.stat(job.workspace / "mrcr-results").st_uid == job.owner  # noqa: PTH116 - no link
