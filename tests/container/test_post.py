"""What is left after a job that was cut off, and whose it is: cancelled, killed, or next door."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from junitparser import JUnitXml
from tests.container.conftest import QUICK

from mrcr_action.server.sweep import SERVER_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.container.conftest import NewJob
    from tests.container.engine import Engine
    from tests.container.runner import Job
    from tests.container.runner_step import RunningStep

SLOW = "--fault slow=0.1@1-"
"""Answers the small requests before the run at once, and every sample in an hour."""

MOMENTS = {
    "start-up": ("Starting the server", "--startup-delay 300"),
    "the-run": ("Asking 8 samples", SLOW),
    "teardown": ("Stopping the server", "--ignore-sigterm"),
}
"""What is printed when the moment has come, and what makes it last."""


def volumes(engine: Engine) -> list[str]:
    return engine.docker("volume", "ls", "--quiet").split()


def servers(engine: Engine) -> set[str]:
    """Names of the servers' containers that run."""
    label = f"label={SERVER_LABEL}"
    return set(engine.docker("ps", "--filter", label, "--format", "{{.Names}}").split())


@pytest.fixture
def clean(engine: Engine) -> Iterator[None]:
    """No volume of a server's image may outlive its server."""
    before = volumes(engine)
    yield
    left = sorted(set(volumes(engine)) - set(before))
    if left:
        engine.docker("volume", "rm", "--force", *left, check=False)
    assert left == []


@pytest.fixture
def serving(team_image: str, clean: None) -> Callable[[Job], tuple[RunningStep, str]]:
    """Starts a run that goes on for hours; tells its server's name too."""

    def start(job: Job) -> tuple[RunningStep, str]:
        before = servers(job.engine)
        running = job.start({**QUICK, "image": team_image, "server-args": SLOW})
        running.wait_for("Asking 8 samples")
        (server,) = servers(job.engine) - before
        return running, server

    return start


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_cancelled_run_leaves_its_reports_and_neither_a_container_nor_a_volume(
    job: Job, team_image: str, clean: None, moment: str
) -> None:
    said, server_args = MOMENTS[moment]
    before = job.engine.containers(), volumes(job.engine)
    running = job.start({**QUICK, "image": team_image, "server-args": server_args})
    running.wait_for(said)
    if moment == "start-up":
        # The container is made by a thread of its own; here it is to be there.
        running.wait_until(lambda: bool(servers(job.engine)))
        assert volumes(job.engine) != before[1]

    step = running.cancel()

    # The runner would have sent SIGTERM after 7.5 s.
    print(f"{moment}: ended {step.after_cancel:.2f} s after the first signal")
    assert step.signals == [signal.SIGINT], step.log
    assert step.after_cancel is not None
    assert step.exit_code == 130, step.log
    assert (job.engine.containers(), volumes(job.engine)) == before
    assert JUnitXml.fromfile(str(job.workspace / step.outputs["junit-path"])).tests > 0
    result = json.loads((job.workspace / step.outputs["result-path"]).read_bytes())
    assert result["problem"]["kind"] == "Cancelled"
    assert (job.workspace / step.outputs["summary-path"]).read_text() == step.summary
    assert "cancelled" in step.summary
    assert (job.workspace / "mrcr-results/server.log").is_file()


def test_the_clean_up_names_the_server_of_a_killed_step_and_removes_it_with_its_volume(
    job: Job, serving: Callable[[Job], tuple[RunningStep, str]]
) -> None:
    before = job.engine.containers(), volumes(job.engine)
    running, server = serving(job)
    job.engine.docker("kill", "--signal", "KILL", running.container)
    step = running.wait()
    assert step.exit_code == 137
    assert server in job.engine.containers()

    post = job.run(stage="post")

    assert (post.exit_code, post.annotations) == (0, []), post.log
    assert f"Removed {server}, which the run had left behind." in post.log
    assert (job.engine.containers(), volumes(job.engine)) == before


def test_the_clean_up_removes_a_step_that_no_longer_heeds_and_its_server(
    job: Job, serving: Callable[[Job], tuple[RunningStep, str]]
) -> None:
    before = job.engine.containers()
    running, server = serving(job)
    # Nothing but SIGKILL reaches it any more.
    job.engine.docker("kill", "--signal", "STOP", running.container)
    running.kill()
    assert {running.container, server} <= set(job.engine.containers())

    post = job.run(stage="post")

    assert (post.exit_code, post.annotations) == (0, []), post.log
    assert f"Removed {running.container}, " in post.log
    assert f"Removed {server}, " in post.log
    assert job.engine.containers() == before


def test_of_the_legs_of_a_matrix_on_one_engine_each_clears_away_its_own_and_what_nobody_owns(
    new_job: NewJob, serving: Callable[[Job], tuple[RunningStep, str]]
) -> None:
    first, second, third = legs = [new_job(f"leg-{number}") for number in range(3)]
    for number, leg in enumerate(legs):
        # The same run, attempt and job: nothing but the runner tells them apart.
        leg.run_id, leg.runner = "4242", f"runner-{number}"
    engine = first.engine
    living, kept = serving(first)
    killed, orphan = serving(second)
    engine.docker("kill", killed.container)
    killed.wait()
    assert servers(engine) == {kept, orphan}

    step = third.run({**QUICK, "server": "container"})

    assert step.exit_code == 0, step.log
    assert servers(engine) == {kept}
    log = (third.workspace / "mrcr-results/server.log").read_text()
    assert f"mrcr: removed {orphan}, which a run had left behind" in log
    assert kept not in log

    for leg in (second, third):
        post = leg.run(stage="post")
        assert "Nothing was left of the run." in post.log
        assert servers(engine) == {kept}
        assert living.container in engine.containers()

    # The same clean-up takes them both, where it is their own.
    post = first.run(stage="post")
    living.wait()
    assert f"Removed {living.container}, " in post.log
    assert servers(engine) == set()
