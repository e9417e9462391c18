from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.server.engines import FakeEngine, container

from mrcr_action.server.own import OwnContainer
from mrcr_action.server.sweep import Owner, labels_of, start_of, sweep, sweep_job

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.server.engine import Container

JOB = {
    "GITHUB_RUN_ID": "7",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "eval",
    "RUNNER_NAME": "one",
    "GITHUB_ACTION": "__self",
}
HERE = Owner(container="", host="h", boot="b", space="s", process="100", started="5000")
INSIDE = replace(HERE, container="c1", host="c1", space="s1", process="1")
OWN = OwnContainer(id="own", image="action:1", image_id="sha256:action")


def server(name: str, owner: Owner, job: dict[str, str] | None = None, **state: Any) -> Container:
    return container(name, labels=labels_of(owner, job or {}), **state)


def engine(*containers: Container) -> FakeEngine:
    return FakeEngine({one.id: one for one in containers})


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A kernel that runs process 100, started at 5000, and process 200, which has ended."""
    for number, state, started in (("1", "S", "1"), ("100", "S", "5000"), ("200", "Z", "6000")):
        (tmp_path / number).mkdir()
        numbers = " ".join("0" * 18)
        text = f"{number} (a (name) ) {state} {numbers} {started} 0 0\n"
        (tmp_path / number / "stat").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("owner", "here", "state", "goes"),
    [
        # of a process on this machine
        (HERE, HERE, {}, False),
        (replace(HERE, process="101"), HERE, {}, True),
        (replace(HERE, process="200", started="6000"), HERE, {}, True),
        (replace(HERE, started="4000"), HERE, {}, True),
        (replace(HERE, process="101"), HERE, {"running": False, "status": "created"}, True),
        # where this process cannot know
        (replace(HERE, process="101", space="other"), HERE, {}, False),
        (replace(HERE, process="101", boot="other"), HERE, {}, False),
        (replace(HERE, process="101", host="other", boot="other"), HERE, {}, False),
        (
            replace(HERE, process="101", host="other", boot="other"),
            HERE,
            {"running": False, "status": "exited"},
            False,
        ),
        (replace(HERE, process="101", boot="", space="", started=""), HERE, {}, False),
        # from before this machine started anew
        (
            replace(HERE, boot="before"),
            HERE,
            {"running": False, "status": "exited"},
            True,
        ),
        # in a container
        (INSIDE, HERE, {}, False),
        (replace(INSIDE, container="ended"), HERE, {}, True),
        (replace(INSIDE, container="removed"), HERE, {}, True),
        (replace(INSIDE, process="100"), INSIDE, {}, False),
        (replace(INSIDE, process="101"), INSIDE, {}, True),
        (replace(INSIDE, container="c2", process="101"), INSIDE, {}, False),
    ],
)
def test_a_server_goes_only_when_its_run_is_certainly_over(
    owner: Owner, here: Owner, state: dict[str, Any], proc: Path, *, goes: bool
) -> None:
    around = [container("c1"), container("c2"), container("ended", running=False)]
    docker = engine(*around, server("left", owner, **state))

    assert sweep(docker.as_engine(), here, proc) == (("left",) if goes else ())
    assert ("left" in docker.known) == (not goes)


def test_a_run_that_the_kernel_hides_from_this_user_is_not_taken_for_over(tmp_path: Path) -> None:
    # As with hidepid: of the processes, /proc shows this user's own only.
    (tmp_path / "self").mkdir()
    docker = engine(server("anothers", replace(HERE, process="101")))

    assert sweep(docker.as_engine(), HERE, tmp_path) == ()


def test_nothing_without_the_servers_label_is_swept(proc: Path) -> None:
    labels = replace(HERE, process="101").labels()
    docker = engine(container("somebodys", labels=labels))

    assert sweep(docker.as_engine(), HERE, proc) == ()


def test_a_server_that_vanishes_meanwhile_is_not_said_to_be_removed(proc: Path) -> None:
    class Vanishing(FakeEngine):
        def remove(self, name: str) -> bool:
            super().remove(name)
            return False

    gone = server("gone", replace(HERE, process="101"))

    assert sweep(Vanishing({"gone": gone}).as_engine(), HERE, proc) == ()


def test_a_jobs_end_takes_its_servers_and_its_steps_with_it() -> None:
    ours = replace(INSIDE, container="own")
    docker = engine(
        container("own", image_id="sha256:action", environment=JOB),
        container("main-step", image_id="sha256:action", environment=JOB),
        container("other-image", image_id="sha256:other", environment=JOB),
        container("other-job", image_id="sha256:action", environment={**JOB, "GITHUB_JOB": "x"}),
        container("a-command", image_id="sha256:action"),
        server("server", replace(INSIDE, container="main-step"), JOB, image_id="sha256:action"),
        server("other-attempt", ours, {**JOB, "GITHUB_RUN_ATTEMPT": "2"}),
        server("other-leg", ours, {**JOB, "RUNNER_NAME": "two"}),
        server("no-job", replace(ours, process=str(os.getpid()), started="")),
    )

    assert sweep_job(docker.as_engine(), JOB, OWN) == ("main-step", "server")
    assert set(docker.known) == {
        *("own", "other-image", "other-job", "a-command"),
        *("other-attempt", "other-leg", "no-job"),
    }
    # The step is asked first: it stops a server of its own in good order.
    assert docker.calls == ["stop main-step", "remove", "remove"]


def test_another_step_of_the_same_job_shares_its_end() -> None:
    labelled = server("server", INSIDE, {**JOB, "GITHUB_ACTION": "__self_2"})
    docker = engine(container("c1"), container("own"), labelled)

    assert sweep_job(docker.as_engine(), JOB, OWN) == ("server",)


@pytest.mark.parametrize("missing", ["GITHUB_RUN_ID", "RUNNER_NAME"])
def test_without_a_jobs_whole_name_only_what_is_certain_goes(missing: str) -> None:
    job = {key: value for key, value in JOB.items() if key != missing}
    docker = engine(
        container("own", image_id="sha256:action", environment=job),
        container("main-step", image_id="sha256:action", environment=job),
        server("of-main-step", replace(INSIDE, container="main-step"), job),
        server("left", replace(INSIDE, container="removed"), job),
    )

    assert sweep_job(docker.as_engine(), job, OWN) == ("left",)


def test_this_process_owns_what_it_labels_and_is_alive() -> None:
    here = Owner.here(None)

    assert Owner.of(labels_of(here, JOB)) == here
    assert (here.process, here.container) == (str(os.getpid()), "")
    assert here.started == start_of(str(os.getpid()))
    assert here.started.isdigit()
    docker = engine(server("mine", here))
    assert sweep(docker.as_engine(), here) == ()


def test_labels_name_the_job_as_far_as_it_is_known() -> None:
    labels = labels_of(HERE, {**JOB, "GITHUB_REPOSITORY": ""})

    named = {key: value for key, value in labels.items() if ".owner." not in key}
    assert named == {
        "mrcr-action.server": "1",
        "mrcr-action.run": "7",
        "mrcr-action.attempt": "1",
        "mrcr-action.job": "eval",
        "mrcr-action.runner": "one",
        "mrcr-action.action": "__self",
    }
