"""A job that is cancelled: at once, with its reports, and with nothing left that holds a GPU."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from junitparser import JUnitXml
from tests.container.conftest import QUICK

if TYPE_CHECKING:
    from tests.container.conftest import NewJob
    from tests.container.runner import Job

ROUTES = ["process", "container"]

SLOW = "--fault slow=0.1@1-"
"""Answers the small requests before the run at once, and every sample in an hour."""

MOMENTS = {
    "start-up": ("Starting the server", "--startup-delay 300"),
    "the-run": ("Asking 8 samples", SLOW),
    "teardown": ("Stopping the server", "--ignore-sigterm"),
}
"""What is printed when the moment has come, and what makes it last."""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_cancelling_ends_it_at_the_first_signal_and_leaves_nothing(
    job: Job, route: str, moment: str
) -> None:
    said, server_args = MOMENTS[moment]
    before = job.engine.containers()
    running = job.start({**QUICK, "server": route, "server-args": server_args})
    running.wait_for(said)

    step = running.cancel()

    assert step.signals == [signal.SIGINT], step.log
    assert step.exit_code == 130, step.log
    assert job.engine.containers() == before
    assert step.outputs["passed"] == "false"
    assert "Traceback" not in step.printed
    assert not step.commands_stopped


@pytest.mark.parametrize("route", ROUTES)
def test_what_was_found_until_then_is_reported(job: Job, route: str) -> None:
    # The first four samples are answered at once, the others in hours.
    running = job.start(
        {**QUICK, "server": route, "concurrency": "1", "server-args": "--fault slow=0.1@5-"}
    )
    journal = job.workspace / "mrcr-results/samples.jsonl"
    running.wait_until(lambda: journal.is_file() and journal.read_bytes().count(b"\n") == 4)

    step = running.cancel()

    assert step.exit_code == 130, step.log
    assert step.outputs["conclusion"] == "inconclusive"
    assert step.outputs["junit-path"] == "mrcr-results/junit.xml"
    xml = JUnitXml.fromfile(str(job.workspace / "mrcr-results/junit.xml"))
    assert xml.errors > 0
    assert "cancelled" in step.summary
    assert "4/8" in step.summary
    assert any("cancelled" in f"{one.title} {one.message}" for one in step.errors())
    assert len((job.workspace / "mrcr-results/samples.jsonl").read_text().splitlines()) == 4
    assert {found.uid for found in job.found().values()} == {job.owner}


def test_a_job_cancelled_before_anything_began_says_so(job: Job) -> None:
    running = job.start({**QUICK, "server": "process"})
    running.wait_for("::stop-commands::")

    step = running.cancel()

    assert step.signals == [signal.SIGINT], step.log
    assert step.exit_code == 130, step.log
    assert "cancelled" in step.summary


def test_what_a_killed_client_leaves_behind_is_removed_after_the_job(job: Job) -> None:
    before = job.engine.containers()
    running = job.start({**QUICK, "server": "container", "server-args": SLOW})
    running.wait_for("Asking 8 samples")
    step = running.kill()
    left = set(job.engine.containers()) - set(before)
    assert step.container in left
    assert len(left) == 2

    post = job.run(stage="post")

    assert post.exit_code == 0, post.log
    assert job.engine.containers() == before
    assert f"Removed {step.container}" in post.log


def test_a_server_whose_action_was_killed_is_removed_after_the_job(job: Job) -> None:
    before = job.engine.containers()
    running = job.start({**QUICK, "server": "container", "server-args": SLOW})
    running.wait_for("Asking 8 samples")
    job.engine.docker("kill", running.container)
    step = running.wait()
    (left,) = set(job.engine.containers()) - {*before, step.container}

    post = job.run(stage="post")

    assert post.exit_code == 0, post.log
    assert job.engine.containers() == before
    assert f"Removed {left}" in post.log


def test_a_server_that_was_left_behind_is_removed_by_the_next_run(new_job: NewJob) -> None:
    first, second = new_job("first"), new_job("second")
    before = first.engine.containers()
    running = first.start({**QUICK, "server": "container", "server-args": SLOW})
    running.wait_for("Asking 8 samples")
    first.engine.docker("kill", running.container)
    running.wait()

    step = second.run({**QUICK, "server": "container"})

    assert step.exit_code == 0, step.log
    assert first.engine.containers() == before


def test_the_clean_up_leaves_the_servers_of_other_jobs_alone(new_job: NewJob) -> None:
    mine, other = new_job("mine"), new_job("other")
    running = other.start({**QUICK, "server": "container", "server-args": SLOW})
    running.wait_for("Asking 8 samples")

    post = mine.run(stage="post")
    still_there = set(mine.engine.containers())
    running.cancel()

    assert "Nothing was left of the run." in post.log
    assert running.container in still_there
    assert len(still_there) == 2


def test_a_clean_up_without_an_engine_does_not_fail_the_job(job: Job) -> None:
    job.socket = False

    post = job.run(stage="post")

    assert post.exit_code == 0, post.log
    assert post.annotations == []
