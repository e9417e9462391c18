"""The images of this tier: a stand-in for vLLM's, and the Action's own, built on it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import h11

import mrcr_action

if TYPE_CHECKING:
    from tests.container.engine import Engine

REPOSITORY = Path(__file__).parents[2]

ENVIRONMENT = Path(__file__).with_name("environment")

ROOTFS = "mrcr-standin/rootfs:1"


@dataclass(frozen=True, slots=True)
class Provided:
    """What ``environment/install.sh`` provides."""

    rootfs: Path
    """A root file system as a compressed tar."""
    wheels: Path
    """A folder with every wheel that the Action's image installs."""


def provide() -> Provided:
    """Fetch and make what is not there yet; installs a Docker engine where there is none."""
    done = subprocess.run(
        [ENVIRONMENT / "install.sh"], stdout=subprocess.PIPE, text=True, check=True
    )
    rootfs, wheels = done.stdout.splitlines()
    return Provided(Path(rootfs), Path(wheels))


def base_image(dockerfile: Path) -> str:
    """The image that a Dockerfile builds on by default, without its digest.

    An image made here cannot have the digest of another; see `without_digest`.
    """
    found = re.search(r"^ARG BASE_IMAGE=(\S+)$", dockerfile.read_text(), re.MULTILINE)
    assert found, f"{dockerfile} names no default BASE_IMAGE"
    return found[1].partition("@")[0]


def make_standin_base(engine: Engine, provided: Provided, tag: str) -> None:
    """Make the stand-in for vLLM's image, under the tag that the Dockerfile names."""
    engine.docker("import", provided.rootfs, ROOTFS)
    with tempfile.TemporaryDirectory(prefix="mrcr-base-") as folder:
        context = Path(folder)
        shutil.copytree(ENVIRONMENT / "base", context, dirs_exist_ok=True)
        shutil.copytree(provided.wheels, context / "wheels", copy_function=_link)
        standin = context / "standin"
        package = Path(mrcr_action.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__", "tests")
        shutil.copytree(package / "standin", standin / "mrcr_action/standin", ignore=ignored)
        shutil.copy(package / "__init__.py", standin / "mrcr_action")
        shutil.copytree(Path(h11.__file__).parent, standin / "h11", ignore=ignored)
        engine.docker(
            *("build", "--tag", tag, "--build-arg", f"ROOTFS={ROOTFS}", context),
            env={"DOCKER_BUILDKIT": "0"},
        )


def make_wrapped_base(engine: Engine, base: str, folder: Path, *, vllm: str, tag: str) -> str:
    """Make an image in which a script stands before the stand-in's ``vllm``; returns its tag.

    Args:
        engine: where it is made.
        base: the stand-in for vLLM's image.
        folder: an empty one, for the builder.
        vllm: the script; it finds the real one as ``real-vllm``.
        tag: of the new image.
    """
    (folder / "vllm").write_text(vllm)
    (folder / "vllm").chmod(0o755)
    (folder / "Dockerfile").write_text(
        f"FROM {base}\n"
        "RUN mv /usr/local/bin/vllm /usr/local/bin/real-vllm\n"
        "COPY vllm /usr/local/bin/vllm\n"
        "VOLUME /scratch\n"
    )
    engine.docker("build", "--tag", tag, folder, env={"DOCKER_BUILDKIT": "0"})
    return tag


def _link(source: str, target: str) -> None:
    """Put a large file into the context without copying it, where that can be done."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy(source, target)
