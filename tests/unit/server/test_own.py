from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.server.engines import ID, FakeEngine, container

from mrcr_action.server.engine import Mount
from mrcr_action.server.own import OwnContainer, find_own, ids_here

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "b2" * 32


def mountinfo(*sources: str) -> str:
    lines = ["601 600 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/x/containers-of/y"]
    lines += [
        f"61{n} 601 254:1 {path} /etc/hosts rw - ext4 /d rw" for n, path in enumerate(sources)
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("sources", "hostname", "ids"),
    [
        ([], "build-machine", []),
        ([f"/var/lib/docker/containers/{ID}/hostname"], "build-machine", [ID]),
        ([f"/data/containers/{ID}/{name}" for name in ("hosts", "hostname")], "x", [ID]),
        ([f"/storage/overlay-containers/{ID}/userdata/hosts"], "x", [ID]),
        ([f"/var/lib/docker/containers/{ID}/hosts"], OTHER[:12], [ID, OTHER[:12]]),
        (["/var/lib/docker/containers/abc/hosts"], "b2b2b2b2b2b2b2", []),
    ],
)
def test_a_containers_id_is_in_its_mounts_or_in_its_name(
    tmp_path: Path, sources: list[str], hostname: str, ids: list[str]
) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo(*sources))

    assert ids_here(tmp_path / "mountinfo", hostname) == ids


def test_without_a_list_of_mounts_the_name_alone_tells(tmp_path: Path) -> None:
    assert ids_here(tmp_path / "gone", ID[:12]) == [ID[:12]]


def test_the_container_is_the_one_that_the_engine_runs() -> None:
    docker = FakeEngine(
        {
            # Another's name may look like an ID.
            "b2b2b2b2b2b2": container("c3" * 32),
            ID: container(ID, image="action:1", image_id="sha256:9", mounts=MOUNTS),
            "d" * 64: container("d" * 64, running=False),
        }
    )

    assert find_own(docker.as_engine(), []) is None
    assert find_own(docker.as_engine(), ["e" * 64, "b2b2b2b2b2b2", "d" * 64]) is None
    assert find_own(docker.as_engine(), ["e" * 64, ID]) == OwnContainer(
        id=ID,
        image="action:1",
        image_id="sha256:9",
        mounts=MOUNTS,
        image_environment={"FROM": "sha256:9"},
    )


MOUNTS = (
    Mount(source="/srv/runner/repo", target="/github/workspace"),
    Mount(source="/data", target="/github/workspace/data"),
    Mount(source="/run/docker.sock", target="/var/run/docker.sock"),
)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/github/workspace", "/srv/runner/repo"),
        ("/github/workspace/sub", "/srv/runner/repo"),
        ("/github/workspace/data/x", "/data"),
        ("/github/workspace2", None),
        ("/", None),
    ],
)
def test_a_path_lies_in_the_innermost_mount_around_it(path: str, source: str | None) -> None:
    own = OwnContainer(id=ID, image="i", image_id="i", mounts=MOUNTS)

    found = own.covering(path)

    assert (found.source if found else None) == source
