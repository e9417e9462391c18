"""A container: what it is made of, and what the engine says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of the host in a container."""

    source: str
    """On the host."""
    target: str
    """In the container."""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A container that is to be made."""

    name: str
    image: str
    """Name or ID."""
    command: tuple[str, ...]
    """Program and arguments, whatever the image would start."""
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    network: str | None
    """``container:ID`` to share that one's network; None for one of its own."""
    published: int | None
    """Port that is reachable at 127.0.0.1 of the host; None for none."""
    gpus: str
    """``all``, ``none``, or numbers joined by commas."""
    shm_size: str
    """Such as ``16g``; ``host`` for the host's own shared memory."""
    mounts: tuple[Mount, ...] = ()
    made_folders: Mapping[str, str] = field(default_factory=dict)
    """Folders of the host, made where missing, and their places in the container."""
    copied_folders: tuple[str, ...] = ()
    """Folders of this process's own, to be copied to the same place before the start."""
    working_folder: str | None = None
    """None for the image's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What the engine says of a container at one moment."""

    id: str
    name: str
    image: str
    """As it was named when the container was made."""
    image_id: str
    running: bool
    status: str
    """``created``, ``running``, ``paused``, ``restarting``, ``removing``, ``exited``, ``dead``."""
    exit_code: int
    out_of_memory: bool
    """Whether the kernel killed a process of it for want of memory."""
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    """Those with a place on the host."""

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Self:
        """From the engine's own description (``docker inspect``)."""
        state, config = described["State"], described["Config"]
        return cls(
            id=described["Id"],
            name=described["Name"].removeprefix("/"),
            image=config["Image"],
            image_id=described["Image"],
            running=bool(state["Running"]),
            status=state["Status"],
            exit_code=int(state["ExitCode"]),
            out_of_memory=bool(state.get("OOMKilled")),
            environment=dict(entry.partition("=")[::2] for entry in config.get("Env") or ()),
            labels=config.get("Labels") or {},
            mounts=tuple(
                Mount(
                    source=mount["Source"],
                    target=mount["Destination"],
                    read_only=not mount.get("RW", True),
                )
                for mount in described.get("Mounts") or ()
                if str(mount.get("Source", "")).startswith("/")
            ),
        )
