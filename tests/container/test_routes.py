"""Ways to a server, as a job chooses them: what each starts, and what that gets to see."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.container.conftest import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.container.engine import Engine
    from tests.container.runner import Job
    from tests.container.runner_step import RunningStep, Step

GATE = {"server-args": "--print-file gate"}
"""The server waits for `gate`, a pipe in its working folder, before it does anything."""

ROUTES = [f"{number}. " for number in range(1, 7)]
"""How each way to a GPU begins in the list of them."""


def inspected(engine: Engine, name: str) -> dict[str, Any]:
    """All that the engine knows of a container."""
    (found,) = json.loads(engine.docker("inspect", name))
    assert isinstance(found, dict)
    return found


def variables_of(container: dict[str, Any]) -> dict[str, str]:
    pairs = [text.partition("=")[::2] for text in container["Config"]["Env"]]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def result_of(job: Job, step: Step) -> dict[str, Any]:
    found = json.loads((job.workspace / step.outputs["result-path"]).read_bytes())
    assert isinstance(found, dict)
    return found


class Held:
    """A run whose server waits until it has been looked at."""

    def __init__(self, job: Job, running: RunningStep, server: dict[str, Any]) -> None:
        self.job = job
        self.running = running
        self.server = server
        self.action = inspected(job.engine, running.container)

    def finish(self) -> Step:
        """Let the server go on, and wait for the end of the run."""

        def opened() -> bool:
            # A pipe that nobody reads yet cannot be opened without waiting.
            with contextlib.suppress(OSError):
                gate = os.open(self.job.workspace / "gate", os.O_WRONLY | os.O_NONBLOCK)
                os.write(gate, b"the gate is open\n")
                os.close(gate)
                return True
            return False

        self.running.wait_until(opened)
        return self.running.wait()


@contextlib.contextmanager
def held(job: Job, inputs: dict[str, str], env: dict[str, str] | None = None) -> Iterator[Held]:
    """Start a run, and hold it where its server's container has just started."""
    before = set(job.engine.containers())
    os.mkfifo(job.workspace / "gate")
    running = job.start({**QUICK, **GATE, **inputs}, env)
    try:
        running.wait_until(lambda: len(set(job.engine.containers()) - before) == 2)
        (name,) = set(job.engine.containers()) - {*before, running.container}
        running.wait_until(lambda: bool(inspected(job.engine, name)["State"]["Running"]))
        yield Held(job, running, inspected(job.engine, name))
    finally:
        if running.process.poll() is None:
            running.cancel()


def test_without_a_gpu_here_a_server_is_started_beside_that_sees_the_workspace_alone(
    job: Job,
) -> None:
    before = job.engine.containers()
    job.write("notes.txt", "of the workspace")
    secrets = {"GITHUB_TOKEN": "of-the-job", "HF_TOKEN": "of-the-hub", "UNRELATED": "value"}
    with held(job, {"server": "auto", "api-key": "key-of-the-server"}, secrets) as run:
        server, action = run.server, run.action
        inside = job.engine.docker("exec", server["Name"], "cat", "notes.txt")

        step = run.finish()

    assert (step.exit_code, step.outputs["passed"]) == (0, "true"), step.log
    assert "Server route: container, since no GPU is visible in this container" in step.log
    host = server["HostConfig"]
    assert host["NetworkMode"] == f"container:{action['Id']}"
    assert server["Image"] == action["Image"]
    (request,) = host["DeviceRequests"]
    assert (request["Count"], request["DeviceIDs"]) == (-1, [])
    assert request["Capabilities"] == [["gpu"]]
    (mount,) = server["Mounts"]
    assert (mount["Type"], mount["Source"]) == ("bind", str(job.workspace))
    assert (mount["Destination"], mount["RW"]) == ("/github/workspace", False)
    assert inside == "of the workspace"
    assert not host["PortBindings"]
    assert host["Privileged"] is False
    assert not host["CapAdd"]
    assert not host["Devices"]
    assert (host["PidMode"], host["IpcMode"]) == ("", "private")

    seen = variables_of(server)
    assert seen["HF_TOKEN"] == "of-the-hub"
    assert seen["VLLM_API_KEY"] == "key-of-the-server"
    foreign = ("GITHUB_", "ACTIONS_", "INPUT_", "RUNNER_", "UNRELATED")
    assert [name for name in seen if name.startswith(foreign)] == []
    # Their values are nowhere else in it either, such as in its command or its labels.
    everything = json.dumps(server)
    assert "of-the-job" not in everything
    assert "a token of the job" not in everything
    assert "key-of-the-server" not in json.dumps(server["Config"]["Cmd"] or [])

    result = result_of(job, step)["server"]
    assert result["route"] == "container"
    assert result["why"].startswith("no GPU is visible in this container")
    assert "the gate is open" in (job.workspace / "mrcr-results/server.log").read_text()
    assert job.engine.containers() == before


def test_without_a_wish_for_gpus_the_server_runs_in_the_actions_own_container(job: Job) -> None:
    step = job.run({**QUICK, "gpus": "none"})

    assert step.exit_code == 0, step.log
    assert "Server route: process, since vLLM is installed here, and no GPU is asked for" in (
        step.log
    )
    assert result_of(job, step)["server"]["route"] == "process"


def test_a_server_beside_that_needs_no_gpu_gets_none_of_any_runtime(job: Job) -> None:
    with held(job, {"server": "container", "gpus": "none"}) as run:
        step = run.finish()

    assert step.exit_code == 0, step.log
    assert not run.server["HostConfig"]["DeviceRequests"]
    # The image's own value, all, would claim them where NVIDIA's runtime is the default.
    assert variables_of(run.action)["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert variables_of(run.server)["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_numbered_gpus_are_asked_for_by_their_numbers(job: Job) -> None:
    with held(job, {"server": "container", "gpus": "0,1"}) as run:
        step = run.finish()

    assert step.exit_code == 0, step.log
    (request,) = run.server["HostConfig"]["DeviceRequests"]
    assert (request["Count"], request["DeviceIDs"]) == (0, ["0", "1"])


def test_another_image_is_served_and_named_with_the_reason(job: Job, team_image: str) -> None:
    image = job.engine.docker("inspect", "--format", "{{.Id}}", team_image)
    with held(job, {"image": team_image}) as run:
        step = run.finish()

    assert step.exit_code == 0, step.log
    assert run.server["Image"] == image != run.action["Image"]
    assert "Server route: container, since an image is named" in step.log
    found = result_of(job, step)["server"]
    assert (found["route"], found["image"], found["why"]) == (
        "container",
        team_image,
        "an image is named",
    )
    assert team_image in step.summary


def test_without_an_engine_every_way_to_a_gpu_is_listed(job: Job) -> None:
    job.socket = False

    step = job.run(QUICK)

    assert step.exit_code == 2, step.log
    (error,) = step.errors()
    assert "no GPU is visible in this container" in error.message
    assert "no container engine is reachable from here" in error.message
    listed = [line.strip() for line in step.lines]
    for route in ROUTES:
        assert any(line.startswith(route) for line in listed), step.log
    assert step.outputs["conclusion"] == "inconclusive"


def test_an_engine_that_cannot_give_gpus_is_named_with_what_it_lacks(job: Job) -> None:
    with job.engine.without_gpus():
        before = job.engine.containers()

        step = job.run(QUICK)

        assert job.engine.containers() == before
    assert step.exit_code == 3, step.log
    (error,) = step.errors()
    assert "the container engine cannot give the server a GPU" in error.message
    assert "NVIDIA Container Toolkit" in error.message
    assert "NVIDIA Container Toolkit" in step.summary


def test_paths_in_the_workspace_mean_the_same_to_a_server_beside(job: Job, team_image: str) -> None:
    job.write("models/tiny/config.json", '{"model_type": "tiny"}')
    job.write("ci/template.jinja", "{{ messages }}")

    step = job.run(
        {
            **QUICK,
            "model": "models/tiny",
            "image": team_image,
            "server-args": "--chat-template ci/template.jinja",
        }
    )

    assert step.exit_code == 0, step.log
    log = (job.workspace / "mrcr-results/server.log").read_text()
    assert 'model: {"model_type": "tiny"}' in log
    assert "template: {{ messages }}" in log


def test_a_model_elsewhere_on_the_machine_is_mounted_at_its_place_and_cannot_be_changed(
    job: Job, tmp_path: Path, team_image: str
) -> None:
    model = tmp_path / "models/large"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "large"}')
    with held(job, {"model": str(model), "image": team_image}) as run:
        step = run.finish()

    assert step.exit_code == 0, step.log
    mounts = {mount["Destination"]: mount for mount in run.server["Mounts"]}
    assert mounts[str(model)]["Source"] == str(model)
    assert mounts[str(model)]["RW"] is False
    log = (job.workspace / "mrcr-results/server.log").read_text()
    assert 'model: {"model_type": "large"}' in log
    assert "model can be written: False" in log
    assert [path.name for path in model.iterdir()] == ["config.json"]


def test_a_cache_on_the_machine_is_kept_from_one_run_to_the_next(
    job: Job, tmp_path: Path, team_image: str
) -> None:
    cache = tmp_path / f"cache-{uuid.uuid4().hex[:6]}" / "models"
    inputs = {**QUICK, "image": team_image, "cache-dir": str(cache)}

    first = job.run({**inputs, "output-dir": "first"})
    second = job.run({**inputs, "output-dir": "second"})

    assert (first.exit_code, second.exit_code) == (0, 0), first.log + second.log
    kept = "kept: of the run before"
    assert kept not in (job.workspace / "first/server.log").read_text()
    assert kept in (job.workspace / "second/server.log").read_text()
    assert [path.read_text() for path in cache.rglob("note")] == ["of the run before"]


@pytest.mark.parametrize("server", ["process", "container"])
def test_a_later_step_finds_every_report_by_its_relative_path(job: Job, server: str) -> None:
    step = job.run({**QUICK, "server": server, "output-dir": "reports/nightly"})

    assert step.exit_code == 0, step.log
    for name in ("junit-path", "summary-path", "result-path"):
        path = Path(step.outputs[name])
        assert not path.is_absolute()
        assert path.parts[:2] == ("reports", "nightly")
        found = job.workspace / path
        assert found.is_file()
        assert found.stat().st_uid == job.owner
