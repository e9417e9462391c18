"""The Dockerfile and every shell script of the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import ROOT, shell_scripts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lint.conftest import Lint

SCRIPTS = shell_scripts()


def test_scripts_are_found_by_their_first_line_too() -> None:
    names = {str(path.relative_to(ROOT)) for path in SCRIPTS}
    assert names >= {".ci/run", ".github/release.sh", "tests/lint/environment/install.sh"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck_finds_nothing(lint: Lint, path: Path) -> None:
    assert lint("shellcheck", path) == ""


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_stops_at_its_first_error(path: Path) -> None:
    assert "\nset -euo pipefail\n" in path.read_text()


def test_hadolint_finds_nothing_in_the_dockerfile(lint: Lint) -> None:
    assert lint("hadolint", ROOT / "Dockerfile") == ""


def test_the_linters_of_scripts_bite(lint: Lint, tmp_path: Path) -> None:
    script = tmp_path / "bad.sh"
    script.write_text("#!/bin/sh\nrm -r $1/*\n")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM debian:latest\nRUN cd /tmp && sudo ls\n")

    assert "SC2086" in lint("shellcheck", script)
    assert "DL3004" in lint("hadolint", dockerfile)
