"""The container that this process itself runs in."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.server.engine import Engine, Mount

MOUNTS = Path("/proc/self/mountinfo")

_ID = re.compile(r"containers/([0-9a-f]{64})/")
_SHORT_ID = re.compile(r"\A[0-9a-f]{12}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnContainer:
    """What the engine knows of the container around this process."""

    id: str
    image: str
    """As it was named; the name may mean another image by now."""
    image_id: str
    mounts: tuple[Mount, ...] = ()
    image_environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the image sets, rather than who started the container."""

    def covering(self, path: str) -> Mount | None:
        """The mount that a path of this container lies in: the innermost one."""
        wanted = PurePosixPath(path)
        found = [mount for mount in self.mounts if wanted.is_relative_to(mount.target)]
        return max(found, key=lambda mount: len(mount.target), default=None)


def ids_here(mounts: Path = MOUNTS, hostname: str | None = None) -> list[str]:
    """IDs that the container around this process may have, the likeliest first; none outside.

    Engines mount a container's host name and the like from a folder with its ID; a host name that
    was not chosen is the start of the ID.
    """
    try:
        found = _ID.findall(mounts.read_text(errors="replace"))
    except OSError:
        found = []
    name = socket.gethostname() if hostname is None else hostname
    return list(dict.fromkeys([*found, *_SHORT_ID.findall(name)]))


def find_own(engine: Engine, ids: Sequence[str] | None = None) -> OwnContainer | None:
    """The container around this process, if it is one of this engine's; else None.

    Raises:
        ServerError: the engine did not answer.
    """
    for candidate in ids_here() if ids is None else ids:
        container = engine.container(candidate)
        # A name may look like an ID.
        if container is None or not container.running or not container.id.startswith(candidate):
            continue
        return OwnContainer(
            id=container.id,
            image=container.image,
            image_id=container.image_id,
            mounts=container.mounts,
            image_environment=engine.image_environment(container.image_id),
        )
    return None
