"""A runner for container actions: builds one and runs its steps as GitHub's runner does.

After actions/runner 2.336, ContainerActionHandler.cs and DockerCommandManager.cs: its commands,
mounts, environment and paths. ``python -m tests.container.run_action --help`` runs the Action of
this repository with it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import yaml
from tests.container.runner_files import PREFIXES
from tests.container.runner_log import StepLog
from tests.container.runner_step import RunningStep, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.container.engine import Engine

Stage = Literal["main", "post"]

LABEL = "5eed5e"
"""Every container of a runner carries a label of six digits."""

OWNER = 1001
"""User and group of the runner and its workspace; it is not root."""

_INPUT = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Found:
    """A file or folder of the workspace."""

    mode: int
    """Permissions alone."""
    uid: int
    gid: int


@dataclass
class Job:
    """A job of one action: its folders, its image and what its steps share."""

    engine: Engine
    action: Path
    """Folder with the action.yml."""
    folder: Path
    """Where the job's folders are made."""
    image: str = ""
    """Built already, or to be pulled; else the action's own is built on first use."""
    owner: int = OWNER
    socket: bool = True
    """Whether there is an engine's socket to mount, as there is none on Kubernetes."""
    show: Callable[[str], None] = lambda _: None
    environment: dict[str, str] = field(default_factory=dict)
    """What earlier steps and ``env:`` of the job set."""
    runner: str = "stand-in"
    """The runner's name: all that tells the legs of a matrix apart."""
    run_id: str = ""
    """Of the workflow's run; one of its own without it."""
    _state: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.manifest: dict[str, Any] = yaml.safe_load((self.action / "action.yml").read_text())
        self.temp = self.folder / "_work/_temp"
        self.workspace = self.folder / "_work/repository/repository"
        self.files = self.temp / "_runner_file_commands"
        for made in (
            *(self.temp / name for name in ("_github_home", "_github_workflow")),
            *(self.files, self.workspace),
        ):
            made.mkdir(parents=True, exist_ok=True)
        (self.temp / "_github_workflow/event.json").write_text(json.dumps({"ref": "refs/heads/m"}))
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self.owner, self.owner)
        self._mounts = {
            self.temp / "_github_home": "/github/home",
            self.temp / "_github_workflow": "/github/workflow",
            self.files: "/github/file_commands",
            self.workspace: "/github/workspace",
            self.temp: "/github/runner_temp",
        }

    def write(self, name: str, content: str | bytes) -> Path:
        """Put a file into the workspace, as a step before the action would."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        for made in (path, *path.parents):
            if made == self.workspace:
                break
            os.chown(made, self.owner, self.owner)
        return path

    def found(self) -> dict[str, Found]:
        """Everything in the workspace, by its path there."""
        return {
            str(path.relative_to(self.workspace)): Found(
                path.lstat().st_mode & 0o7777, path.lstat().st_uid, path.lstat().st_gid
            )
            for path in sorted(self.workspace.rglob("*"))
        }

    def build(self, *, buildkit: bool = False) -> str:
        """Build the action's image with the runner's command; returns its name."""
        tag = f"{LABEL}:{uuid.uuid4().hex}"
        dockerfile = self.action / self.manifest["runs"]["image"]
        self.engine.docker(
            *("build", "-t", tag, "-f", dockerfile, dockerfile.parent),
            env={"DOCKER_BUILDKIT": "1" if buildkit else "0"},
        )
        return tag

    def start(
        self,
        inputs: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        *,
        stage: Stage = "main",
    ) -> RunningStep:
        """Start the action's container.

        Args:
            inputs: what the workflow says under ``with:``.
            env: what it says under ``env:``.
            stage: ``post`` is the clean-up, after all other steps of the job.
        """
        runs = self.manifest["runs"]
        if not self.image:
            named = str(runs["image"])
            docker = named.startswith("docker://")
            self.image = named.removeprefix("docker://") if docker else self.build()
        values = self._inputs(inputs or {})
        suffix = str(uuid.uuid4())
        paths = {name: self.files / f"{prefix}{suffix}" for name, prefix in PREFIXES.items()}
        for path in paths.values():
            path.touch()
            os.chown(path, self.owner, self.owner)
        environment = self._environment(values, {**self.environment, **(env or {})}, paths)
        if stage == "post":
            environment |= {f"STATE_{name}": value for name, value in self._state.items()}
        name = f"{re.sub('[^a-zA-Z0-9_]', '', self.image)}_{uuid.uuid4().hex[:6]}"
        options = ["--name", name, "--label", LABEL, "--workdir", "/github/workspace", "--rm"]
        for key in environment:
            options += ["-e", key]
        options += ["-e", "GITHUB_ACTIONS=true"]
        options += [] if "CI" in environment else ["-e", "CI=true"]
        entrypoint = runs.get("entrypoint" if stage == "main" else "post-entrypoint")
        if entrypoint:
            options += ["--entrypoint", str(entrypoint)]
        if self.socket:
            options += ["-v", f"{self.engine.socket}:/var/run/docker.sock"]
        for source, target in self._mounts.items():
            options += ["-v", f"{source}:{target}"]
        if "args" in runs:
            arguments = [_INPUT.sub(lambda m: values.get(m[1], ""), str(a)) for a in runs["args"]]
        else:
            arguments = values.get("args", "").split()
        process = subprocess.Popen(
            [self.engine.client, "run", *options, self.image, *arguments],
            env={**self.engine.environment, **environment},
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A signal to these tests is not one to the step.
            start_new_session=True,
        )
        log = StepLog(to_host=self._to_host, show=self.show)
        return RunningStep(self, process, log, paths, name)

    def run(
        self,
        inputs: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        *,
        stage: Stage = "main",
    ) -> Step:
        """Run the action's container to its end."""
        return self.start(inputs, env, stage=stage).wait()

    def remember(self, state: Mapping[str, str]) -> None:
        """Keep what a step saved for the action's clean-up."""
        self._state.update(state)

    def _inputs(self, given: Mapping[str, str]) -> dict[str, str]:
        declared = self.manifest.get("inputs") or {}
        defaults = {
            name: "" if about.get("default") is None else str(about["default"])
            for name, about in declared.items()
        }
        return {**defaults, **given}

    def _environment(
        self, inputs: Mapping[str, str], env: Mapping[str, str], paths: Mapping[str, Path]
    ) -> dict[str, str]:
        """What the container is given, with the runner's paths translated to the container's."""
        environment = dict(env)
        for key, value in inputs.items():
            environment[f"INPUT_{key.replace(' ', '_').upper()}"] = value
        for key, value in (self.manifest["runs"].get("env") or {}).items():
            filled = _INPUT.sub(lambda m: inputs.get(m[1], ""), str(value))
            environment.setdefault(key, filled)
        environment["HOME"] = str(self.temp / "_github_home")
        github = {
            "action": "__self",
            "action_ref": "",
            "action_repository": "",
            "actor": "octocat",
            "api_url": "https://api.invalid",
            "base_ref": "",
            "event_name": "push",
            "event_path": str(self.temp / "_github_workflow/event.json"),
            "graphql_url": "https://api.invalid/graphql",
            "head_ref": "",
            "job": "evaluate",
            "ref": "refs/heads/m",
            "ref_name": "m",
            "ref_type": "branch",
            "repository": "octocat/repository",
            "repository_owner": "octocat",
            "retention_days": "90",
            "run_attempt": "1",
            "run_id": self.run_id or str(self.folder.stat().st_ino),
            "run_number": "1",
            "server_url": "https://server.invalid",
            "sha": "0" * 40,
            "workflow": "Workflow",
            "workspace": str(self.workspace),
            **{name: str(path) for name, path in paths.items()},
        }
        environment |= {f"GITHUB_{key.upper()}": value for key, value in github.items()}
        environment |= {
            "RUNNER_ARCH": "X64",
            "RUNNER_ENVIRONMENT": "self-hosted",
            "RUNNER_NAME": self.runner,
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_TOOL_CACHE": "/opt/hostedtoolcache",
            "RUNNER_WORKSPACE": str(self.workspace.parent),
            "ACTIONS_RUNTIME_URL": "https://runtime.invalid/",
            "ACTIONS_RUNTIME_TOKEN": "a token of the job",
        }
        return {key: self._to_container(value) for key, value in environment.items()}

    def _to_container(self, value: str) -> str:
        for source, target in self._mounts.items():
            if value == str(source) or value.startswith(f"{source}/"):
                return target + value[len(str(source)) :]
        return value

    def _to_host(self, value: str) -> str:
        """The path of a file in an annotation: relative to the workspace if it lies in it."""
        for source, target in self._mounts.items():
            if value == target or value.startswith(f"{target}/"):
                value = str(source) + value[len(target) :]
                break
        return value.removeprefix(f"{self.workspace}/")
