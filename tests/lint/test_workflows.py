"""action.yml, the workflows and the examples, as the linters of others see them."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.lint.conftest import ACTION, BIN, EXAMPLES, GIT, HERE, ROOT, WORKFLOWS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lint.conftest import Lint

THIS = "org/mrcr-action@v1"
"""How the examples name this action."""

SCHEMA = ("check-jsonschema", "--builtin-schema")
ZIZMOR = ("zizmor", "--offline", "--no-progress", "--quiet", "--min-severity=medium")

every_workflow = pytest.mark.parametrize("path", WORKFLOWS + EXAMPLES, ids=lambda path: path.name)
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)


def test_the_workflows_and_examples_are_found() -> None:
    assert {path.name for path in WORKFLOWS} == {"ci.yml", "nightly.yml", "release.yml"}
    assert {path.stem for path in EXAMPLES} >= {"quickstart", "pull-request-gate", "services"}


def test_action_yml_follows_the_schema(lint: Lint) -> None:
    assert lint(*SCHEMA, "vendor.github-actions", ACTION) == ""


def test_action_yml_passes_githubs_own_checks(language_service: Lint) -> None:
    assert language_service(ACTION) == ""


def test_workflows_follow_the_schema(lint: Lint) -> None:
    assert lint(*SCHEMA, "vendor.github-workflows", *WORKFLOWS, *EXAMPLES) == ""


def test_workflows_pass_githubs_own_checks(language_service: Lint) -> None:
    assert language_service(*WORKFLOWS, *EXAMPLES) == ""


def test_dependabots_configuration_follows_the_schema(lint: Lint) -> None:
    assert lint(*SCHEMA, "vendor.dependabot", ROOT / ".github/dependabot.yml") == ""


def test_the_workflows_have_no_known_weakness(lint: Lint) -> None:
    assert lint(*ZIZMOR, ".github", "action.yml") == ""


def test_the_examples_have_no_known_weakness(lint: Lint) -> None:
    configuration = HERE / "zizmor-examples.yml"
    assert lint(*ZIZMOR, "--config", configuration, *EXAMPLES) == ""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A user's repository in which this action lies, so that actionlint knows its inputs."""
    subprocess.run([GIT, "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".github/workflows").mkdir(parents=True)
    labels = 'self-hosted-runner: {labels: ["gpu", "l4", "h100"]}\n'
    (tmp_path / ".github/actionlint.yaml").write_text(labels)
    shutil.copy(ACTION, tmp_path)
    (tmp_path / "Dockerfile").touch()
    return tmp_path


def in_repository(repository: Path, text: str) -> Path:
    path = repository / ".github/workflows/one.yml"
    path.write_text(text.replace(THIS, "./"))
    return path


@every_workflow
def test_actionlint_finds_nothing(lint: Lint, repository: Path, path: Path) -> None:
    copied = in_repository(repository, path.read_text())
    assert lint("actionlint", "-shellcheck", BIN / "shellcheck", copied, cwd=repository) == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("thresholds:", "treshold:"), 'input "treshold" is not defined'),
        (("steps.mrcr.outputs.junit-path", "steps.mrcr.outputs.junit"), 'property "junit"'),
    ],
)
def test_actionlint_knows_the_inputs_and_outputs_of_this_action(
    lint: Lint, repository: Path, change: tuple[str, str], message: str
) -> None:
    text = (ROOT / "docs/examples/junit-reporter.yml").read_text()
    text = text.replace("annotations: false", "thresholds: 0.5")
    assert lint("actionlint", in_repository(repository, text), cwd=repository) == ""

    copied = in_repository(repository, text.replace(*change))

    assert message in lint("actionlint", copied, cwd=repository)


BAD = """\
on: pull_request_target
jobs:
  bad:
    runs-on: ubuntu-latest
    stepz: []
    steps:
      - uses: actions/checkout@v6
        with: {ref: "${{ github.event.pull_request.head.sha }}"}
      - run: echo ${{ github.event.pull_request.title }}
"""


def test_every_linter_of_workflows_bites(
    lint: Lint, language_service: Lint, repository: Path
) -> None:
    path = in_repository(repository, BAD)

    assert "stepz" in lint(*SCHEMA, "vendor.github-workflows", path)
    assert "stepz" in language_service(path)
    assert "potentially untrusted" in lint("actionlint", path, cwd=repository)
    assert "dangerous-triggers" in lint(*ZIZMOR, path)


def test_the_linters_of_action_metadata_bite(
    lint: Lint, language_service: Lint, tmp_path: Path
) -> None:
    path = tmp_path / "action.yml"
    path.write_text(ACTION.read_text().replace("  using: docker", "  gpus: all\n  using: docker"))

    assert "gpus" in lint(*SCHEMA, "vendor.github-actions", path)
    assert "gpus" in language_service(path)


@every_workflow
def test_no_workflow_runs_with_a_pull_requests_code_and_the_targets_rights(path: Path) -> None:
    assert not {"pull_request_target", "workflow_run"} & set(triggers(path))


@every_workflow
def test_every_job_has_a_time_limit_and_least_permissions(path: Path) -> None:
    document = load(path)
    for name, job in document["jobs"].items():
        assert job["timeout-minutes"] <= 480, name
        granted = job.get("permissions", document["permissions"])
        writes = {scope for scope, level in granted.items() if level == "write"}
        # Writing is for releases and for the job that reports; never for one on a GPU machine.
        assert not writes or job["runs-on"].startswith("ubuntu-"), name


@every_example
def test_an_example_keeps_forks_from_a_machine_of_ones_own(path: Path) -> None:
    guard = "github.event.pull_request.head.repo.full_name == github.repository"
    for name, job in load(path)["jobs"].items():
        if "pull_request" in triggers(path) and "self-hosted" in job["runs-on"]:
            assert job["if"] == guard, name


@every_example
def test_an_example_leaves_no_token_in_the_checkout(path: Path) -> None:
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@every_example
def test_an_example_uses_this_action_and_no_more_than_it_says(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert THIS in used
    known = re.compile(r"actions/[a-z-]+@v\d+|[\w-]+/[\w-]+@[0-9a-f]{40}")
    assert [use for use in used if use != THIS and not known.fullmatch(use)] == []


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def triggers(path: Path) -> list[str]:
    # YAML 1.1 reads the key `on` as true.
    document: dict[Any, Any] = load(path)
    found = document[True]
    return [found] if isinstance(found, str) else list(found)


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in load(path)["jobs"].values() for step in job["steps"]]
