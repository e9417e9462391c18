"""``model: probe``: the Action's own model, wherever it is served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.container.runner import Job
    from tests.container.runner_step import Step

SMOKE = {"model": "probe", "plan": "smoke"}
SHIPPED = "/opt/mrcr/share/mrcr-probe"


def result_of(job: Job, step: Step) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.workspace / step.outputs["result-path"]).read_bytes())
    return found


def test_the_model_in_the_image_is_served_and_read_exactly(job: Job) -> None:
    step = job.run({**SMOKE, "server": "process"})

    assert (step.exit_code, step.outputs["match-ratio"]) == (0, "1.0"), step.log
    assert step.summary.startswith("## ✅ MRCR passed: probe")
    result = result_of(job, step)
    assert result["server"]["command"][1:5] == ["serve", SHIPPED, "--served-model-name", "probe"]
    assert {record["pass_name"] for record in result["records"]} >= {"cold", "warm", "sweep"}


def test_another_form_of_it_is_named_behind_a_dash(job: Job) -> None:
    step = job.run({**SMOKE, "model": "probe-qwen3-high", "server": "process"})

    assert (step.exit_code, step.outputs["match-ratio"]) == (0, "1.0"), step.log
    served = result_of(job, step)["server"]["command"][2]
    assert served.endswith("model-qwen3-high")


def test_one_inexact_answer_is_red(job: Job) -> None:
    step = job.run({**SMOKE, "server": "process", "server-args": "--fault garble@7"})

    assert (step.exit_code, step.outputs["conclusion"]) == (1, "fail"), step.log


@pytest.mark.parametrize("image", ["own", "team"])
def test_a_server_beside_gets_the_model_whatever_its_image(
    job: Job, team_image: str, image: str
) -> None:
    named = {"image": team_image} if image == "team" else {"server": "container"}
    step = job.run({**SMOKE, **named, "gpus": "none", "shm-size": "64m"})

    assert (step.exit_code, step.outputs["match-ratio"]) == (0, "1.0"), step.log
    assert result_of(job, step)["server"]["route"] == "container"
    if image == "team":
        log = (job.workspace / "mrcr-results/server.log").read_text()
        assert '"LlamaForCausalLM"' in log


def test_a_configuration_beside_it_is_refused(job: Job) -> None:
    job.write("ci.yaml", "thresholds: 0.5\n")
    step = job.run({**SMOKE, "config": "ci.yaml"})

    assert step.exit_code == 2, step.log
    (error,) = step.errors()
    assert "input config: with model probe" in error.message
