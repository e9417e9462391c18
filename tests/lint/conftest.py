"""The linters, found and run. One that is missing fails its tests; none is skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Lint = Callable[..., str]
    """Called with a linter's name and arguments; returns all that it printed, "" for success."""

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
"""Where the pinned linters are, beside the Python that runs the tests."""

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.yml"))
ACTION = ROOT / "action.yml"

GIT = shutil.which("git") or "git"
NODE = shutil.which("node") or "node"


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """What is installed from npm, with the scripts that use it; installed on first use."""
    done = subprocess.run(
        [HERE / "environment/install.sh"], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def lint() -> Lint:
    """Runs a linter of this virtual environment."""

    def run(name: str, *arguments: str | Path, cwd: Path = ROOT) -> str:
        return findings(BIN / name, *arguments, cwd=cwd)

    return run


@pytest.fixture(scope="session")
def language_service(node_folder: Path) -> Lint:
    """Runs GitHub's own checks of action metadata and workflows."""

    def run(*files: Path) -> str:
        return findings(NODE, node_folder / "language-service.mjs", *files)

    return run


def findings(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a linter says, or "" when it ends in success; a crash says something too."""
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return f"exit code {done.returncode}\n{done.stdout}" if done.returncode else ""


def shell_scripts() -> list[Path]:
    """The repository's shell scripts, by their first line, as git knows them."""
    listed = subprocess.run(
        [GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return sorted(path for path in files if path.is_file() and _is_shell(path))


def _is_shell(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(80)
    words = first.removeprefix(b"#!").split()
    return first.startswith(b"#!") and any(
        word.rpartition(b"/")[2] in {b"sh", b"bash", b"dash"} for word in words
    )
