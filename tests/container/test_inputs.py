"""Inputs that are wrong: exit code 2 before anything is started, and a message that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.container.conftest import QUICK
from tests.container.images import REPOSITORY

if TYPE_CHECKING:
    from tests.container.runner import Job

WRONG = {
    "config": ["missing.yaml"],
    "base-url": ["ftp://host", "http://host:eighty"],
    "server": ["procces"],
    "gpus": ["two", "0;1"],
    "cache-dir": ["relative/path"],
    "shm-size": ["lots"],
    "server-args": ["--chat-template 'unclosed"],
    "thresholds": ["1.5", "high", "{3: 0.5}", "{2: 0.99, 2: 0.5}", "[0.5]", "{2: 0.9"],
    "tolerance": ["-0.1", "5%"],
    "protocol": ["openAI"],
    "needles": ["two", "99"],
    "samples-per-cell": ["0", "ten"],
    "num-samples": ["0", "1.5"],
    "max-tokens": ["0", "2K tokens"],
    "plan": ["small"],
    "shard": ["0/4", "half"],
    "junit": ["all"],
    "concurrency": ["0", "many"],
    "dataset": ["../elsewhere", "/etc"],
    "output-dir": ["../elsewhere", "/etc/mrcr"],
    "startup-timeout": ["soon", "-1"],
    "time-limit": ["never", "-1"],
    "fail-on": ["sometimes"],
    "annotations": ["yes", "1"],
}

ANY_TEXT = {"model", "image", "api-key"}
"""What is not wrong before somebody else says so."""

CASES = [(name, value) for name, values in WRONG.items() for value in values]


def test_every_input_has_a_wrong_value_here() -> None:
    declared = yaml.safe_load((REPOSITORY / "action.yml").read_text())["inputs"]

    assert set(declared) == set(WRONG) | ANY_TEXT


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v}" for n, v in CASES])
def test_a_wrong_input_is_named_and_nothing_is_started(job: Job, name: str, value: str) -> None:
    step = job.run({**QUICK, name: value})

    assert step.exit_code == 2, step.log
    (error,) = step.errors()
    assert f"input {name}" in error.message
    assert f"input {name}" in step.summary
    assert step.outputs["passed"] == "false"
    assert step.outputs["conclusion"] == "inconclusive"
    assert "Traceback" not in step.log
    assert not (job.workspace / "mrcr-results/server.log").exists()


def test_an_input_with_a_slip_in_its_name_does_not_pass_unseen(job: Job) -> None:
    step = job.run({**QUICK, "treshold": "0.99"})

    assert step.exit_code == 2
    assert "input treshold: there is no such input; did you mean thresholds?" in step.log


def test_a_wrong_key_of_a_configuration_is_named_with_its_line(job: Job) -> None:
    job.write("mrcr.yaml", "model_name: m\nserver: process\nmatch_ratio_treshold: 0.9\n")

    step = job.run({"config": "mrcr.yaml"})

    assert step.exit_code == 2
    (error,) = step.errors()
    assert "mrcr.yaml" in error.message
    assert "match_ratio_treshold" in error.message
    assert "match_ratio_threshold" in step.log


def test_inputs_with_blanks_around_them_are_taken(job: Job) -> None:
    padded = {name: f"  {value}\n" for name, value in {**QUICK, "server": "process"}.items()}

    step = job.run({**padded, "fail-on": " fail ", "annotations": "TRUE"})

    assert step.exit_code == 0, step.log
