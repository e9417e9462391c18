"""The scripts that make and check a release, on a copy of the repository."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import GIT, ROOT

from mrcr_action import __version__

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = f"ghcr.io/org/mrcr-action@sha256:{'0123456789abcdef' * 4}"
TAG = f"v{__version__}"
VERSION_FILE = "src/mrcr_action/__init__.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of one commit with what the scripts look at."""
    folder = tmp_path / "repository"
    for name in ("action.yml", VERSION_FILE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text())
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "Somebody")
    git(folder, "config", "user.email", "somebody@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=First")
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [GIT, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def script(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".github" / name, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def released(checkout: Path) -> Path:
    """The same with a release commit, checked out as the workflow does."""
    done = script("release.sh", checkout, IMAGE)
    assert done.returncode == 0, done.stderr
    git(checkout, "switch", "--quiet", "--detach", TAG)
    return checkout


def test_a_release_names_its_image_and_leaves_the_branch_as_it_was(checkout: Path) -> None:
    before = git(checkout, "rev-parse", "main")

    done = script("release.sh", checkout, IMAGE)

    assert done.stdout == f"{TAG} is ready. Publish it with: git push origin {TAG}\n"
    assert git(checkout, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(checkout, "rev-parse", "main") == git(checkout, "rev-parse", f"{TAG}^") == before
    assert git(checkout, "status", "--porcelain") == ""
    named = f"  image: docker://{IMAGE.replace('@', f':{__version__}@')}"
    assert named in git(checkout, "show", f"{TAG}:action.yml").splitlines()


def test_the_check_says_what_the_workflow_needs(released: Path) -> None:
    done = script("check-release.sh", released, TAG)

    assert dict(line.split("=", 1) for line in done.stdout.splitlines()) == {
        "version": __version__,
        "image": IMAGE,
        "named": f"ghcr.io/org/mrcr-action:{__version__}",
        "source": git(released, "rev-parse", "main"),
        "commit": git(released, "rev-parse", f"{TAG}^{{commit}}"),
        "major": TAG.partition(".")[0],
    }


def test_a_tag_that_is_not_the_packages_version_is_refused(released: Path) -> None:
    done = script("check-release.sh", released, "v99.0.0")

    assert done.returncode == 1
    assert f"v99.0.0: the package's version is {__version__}" in done.stderr


@pytest.mark.parametrize("tag", ["v1", "1.2.3", "v1.2.3rc1", "v1.2.3\n"])
def test_what_is_no_version_is_refused(released: Path, tag: str) -> None:
    assert script("check-release.sh", released, tag).returncode == 1


def test_another_images_tag_is_refused(released: Path) -> None:
    change(released / "action.yml", f":{__version__}@", ":99.0.0@")

    done = script("check-release.sh", released, TAG)

    assert done.returncode == 1
    assert f"{TAG}: action.yml names the image's tag 99.0.0" in done.stderr


@pytest.mark.parametrize(
    "image",
    ["Dockerfile", f"docker://ghcr.io/org/mrcr-action:{__version__}", f"docker://{IMAGE}"],
)
def test_an_image_without_tag_and_digest_is_refused(released: Path, image: str) -> None:
    named = f"docker://{IMAGE.replace('@', f':{__version__}@')}"
    change(released / "action.yml", f"image: {named}", f"image: {image}")

    done = script("check-release.sh", released, TAG)

    assert done.returncode == 1
    assert f"action.yml has the image {image}" in done.stderr


def test_a_release_commit_that_changes_more_than_the_image_is_refused(released: Path) -> None:
    change(released / VERSION_FILE, '"""A gate', '"""The gate')
    git(released, "commit", "--quiet", "--all", "--amend", "--message=More")

    done = script("check-release.sh", released, TAG)

    assert done.returncode == 1
    assert f"its commit changes action.yml, {VERSION_FILE}" in done.stderr


def test_a_version_is_released_once(released: Path) -> None:
    git(released, "switch", "--quiet", "main")

    done = script("release.sh", released, IMAGE)

    assert done.returncode == 1
    assert f"{TAG} is there already" in done.stderr


@pytest.mark.parametrize("image", ["ghcr.io/org/mrcr-action:1.0.0", f"{IMAGE}0", "x; rm -r /"])
def test_only_an_image_with_its_digest_is_released(checkout: Path, image: str) -> None:
    done = script("release.sh", checkout, image)

    assert done.returncode == 1
    assert "not an image with its digest" in done.stderr
    assert git(checkout, "tag") == ""


def test_a_changed_working_tree_is_not_released(checkout: Path) -> None:
    (checkout / "new").touch()

    done = script("release.sh", checkout, IMAGE)

    assert done.returncode == 1
    assert "the working tree has changes" in done.stderr
