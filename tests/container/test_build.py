"""The image: built by both builders as a runner builds it, and what it does without a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.container.conftest import QUICK

import mrcr_action

if TYPE_CHECKING:
    from tests.container.engine import Engine
    from tests.container.runner import Job

DIGESTS = (
    "find / -xdev ( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run ) -prune -o"
    " -type f -exec sha256sum {} +"
)


def files_of(engine: Engine, image: str) -> dict[str, str]:
    """Digest of each file of an image, by path."""
    said = engine.docker("run", "--rm", "--entrypoint", "find", image, *DIGESTS.split()[1:])
    lines = (line.partition("  ") for line in said.splitlines())
    return {path: digest for digest, _, path in lines}


def test_buildkit_builds_an_image_that_passes_too(job: Job) -> None:
    job.image = job.build(buildkit=True)

    version = job.engine.docker("run", "--rm", job.image, "--version")
    step = job.run(QUICK)

    assert version == f"mrcr {mrcr_action.__version__}"
    assert step.exit_code == 0, step.log
    assert step.outputs["conclusion"] == "pass"


def test_the_image_is_the_command_where_there_is_no_job(engine: Engine, action_image: str) -> None:
    assert engine.docker("run", "--rm", action_image, "--version") == (
        f"mrcr {mrcr_action.__version__}"
    )
    assert "usage: mrcr run" in engine.docker("run", "--rm", action_image, "run", "--help")
    as_shell = ("run", "--rm", "--entrypoint", "mrcr", action_image, "--version")
    assert engine.docker(*as_shell) == f"mrcr {mrcr_action.__version__}"


def test_nothing_of_the_base_image_is_changed(
    engine: Engine, action_image: str, standin_base: str
) -> None:
    base, built = files_of(engine, standin_base), files_of(engine, action_image)

    changed = {path for path in base if built.get(path) != base[path]}
    added = {path for path in built.keys() - base.keys() if not path.startswith("/opt/mrcr/")}

    # The engine writes these for each container.
    assert changed <= {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}
    assert added == {"/entrypoint"}


def test_the_image_says_what_it_is(engine: Engine, action_image: str) -> None:
    label = '{{index .Config.Labels "org.opencontainers.image.%s"}}'

    found = {
        name: engine.docker("inspect", "--format", label % name, action_image)
        for name in ("title", "licenses", "version")
    }

    assert found == {"title": "mrcr-action", "licenses": "Apache-2.0", "version": "development"}
    assert engine.docker("inspect", "--format", "{{.Config.User}}", action_image) == ""
