"""A second opinion: `act`, which knows nothing of this project, runs the README's workflow."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.container.images import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.container.engine import Engine

ACT = Path(sys.executable).with_name("act")

QUICKSTART = REPOSITORY / "docs/examples/quickstart.yml"

# Everything that a runner downloads of the Action and the image is built from.
ACTION = (
    *("action.yml", "Dockerfile", ".dockerignore", "entrypoint", "pyproject.toml"),
    *("README.md", "LICENSE", "requirements", "src"),
)

EVENT = {
    "pull_request": {"head": {"repo": {"full_name": "octocat/repository"}}},
    "repository": {"full_name": "octocat/repository"},
}


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Action as a runner would download it."""
    folder = tmp_path_factory.mktemp("action")
    for name in ACTION:
        source = REPOSITORY / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder)
    return folder


def workflow(**changes: str) -> dict[str, Any]:
    """The quickstart, with inputs for a model that is not there, and a step that reads outputs."""
    loaded: dict[Any, Any] = yaml.safe_load(QUICKSTART.read_text())
    # YAML 1.1 takes the word `on` for a boolean.
    loaded["on"] = loaded.pop(True)
    (job,) = loaded["jobs"].values()
    (step,) = [one for one in job["steps"] if "mrcr-action" in one.get("uses", "")]
    step["id"] = "mrcr"
    step["with"] |= {"dataset": "rows", "protocol": "openai", "samples-per-cell": "2"} | changes
    outputs = " ".join(
        f"{name}=[${{{{ steps.mrcr.outputs.{name} }}}}]" for name in ("conclusion", "match-ratio")
    )
    job["steps"].append({"if": "always()", "run": f"echo {outputs}"})
    return loaded


@pytest.fixture
def run_act(  # noqa: PLR0917 - fixtures
    engine: Engine, action_image: str, standin_base: str, action: Path, rows: Path, tmp_path: Path
) -> Iterator[Callable[[dict[str, Any]], subprocess.CompletedProcess[str]]]:
    """Runs a workflow in a repository of its own; the Action is not fetched but the one here.

    `action_image` is not run, but was built of the same files, and so its layers are found again.
    """
    folder = tmp_path
    repository = folder / "repository"
    (repository / ".github/workflows").mkdir(parents=True)
    shutil.copytree(rows, repository / "rows")
    (folder / "event.json").write_text(json.dumps(EVENT))
    git = ["git", "-C", str(repository), "-c", "user.name=o", "-c", "user.email=o@example.com"]
    for command in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["remote", "add", "origin", "https://github.com/octocat/repository"],
        ["add", "--all"],
        ["commit", "--quiet", "--message", "A repository"],
    ):
        subprocess.run([*git, *command], check=True)

    def run(content: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        workflow_file = repository / ".github/workflows/workflow.yml"
        workflow_file.write_text(yaml.safe_dump(content))
        (used,) = re.findall(r"uses: (\S*mrcr-action@\S*)", workflow_file.read_text())
        return subprocess.run(
            [
                *(ACT, "pull_request", "--directory", repository),
                *("--eventpath", folder / "event.json", "--no-cache-server"),
                *("--platform", f"self-hosted={standin_base}", "--pull=false", "--rm"),
                *("--local-repository", f"{used}={action}"),
                *("--container-daemon-socket", engine.socket),
            ],
            env={**engine.environment, "HOME": str(folder / "home"), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    yield run
    engine.docker("volume", "rm", "act-toolcache")


@pytest.mark.parametrize(
    ("server_args", "code", "outputs"),
    [
        ("--max-model-len 128K", 0, "conclusion=[pass] match-ratio=[1.0]"),
        ("--fault drop-nonce", 1, "conclusion=[fail] match-ratio=[0.0]"),
    ],
    ids=["healthy", "broken"],
)
def test_the_quickstart_passes_and_fails_as_it_should(
    engine: Engine,
    run_act: Callable[[dict[str, Any]], subprocess.CompletedProcess[str]],
    server_args: str,
    code: int,
    outputs: str,
) -> None:
    changes = {"server-args": server_args, "cache-dir": str(engine.folder / "cache")}
    before = engine.containers()

    done = run_act(workflow(**changes))

    assert done.returncode == code, done.stdout
    assert outputs in done.stdout
    assert "Post org/mrcr-action" in done.stdout
    assert ("Job succeeded" if code == 0 else "Job failed") in done.stdout
    assert engine.containers() == before
