"""Labels that say whose a server's container is, and the removal of those that nobody owns.

A run that was killed cannot clean up, and what it leaves behind holds the GPU. One engine may serve
several runners, though, so nothing is removed of which it is not certain that its run is over.
"""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mrcr_action.server.own import OwnContainer, find_own

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mrcr_action.server.engine import Container, Engine

PREFIX = "mrcr-action."
SERVER_LABEL = f"{PREFIX}server=1"

JOB = {
    "run": "GITHUB_RUN_ID",
    "attempt": "GITHUB_RUN_ATTEMPT",
    "job": "GITHUB_JOB",
    "runner": "RUNNER_NAME",
}
"""What names a job. The legs of a matrix share all but the runner."""

NOTES = {"action": "GITHUB_ACTION", "repository": "GITHUB_REPOSITORY"}
"""Labels for people who look for where a container comes from."""

STOP_SECONDS = 5
"""For a step that still runs after its job: it has a server of its own to stop."""

PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose a container is: that of a process, on a host or in a container."""

    container: str
    """ID of the container around the process; empty outside."""
    host: str
    boot: str
    """Changes with every start of the kernel; two machines never share it."""
    space: str
    """Within one of these, a process is known by its number."""
    process: str
    started: str
    """In the kernel's ticks since its start: tells a process from a later one with its number."""

    @classmethod
    def here(cls, own: OwnContainer | None, proc: Path = PROC) -> Self:
        """This process."""
        try:
            boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
            space = (proc / "self/ns/pid").readlink().name
        except OSError:
            boot = space = ""
        return cls(
            container=own.id if own else "",
            host=socket.gethostname(),
            boot=boot,
            space=space,
            process=str(os.getpid()),
            started=start_of(str(os.getpid()), proc) or "",
        )

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """The owner that labels name."""
        fields = cls.__dataclass_fields__
        return cls(**{name: labels.get(f"{PREFIX}owner.{name}", "") for name in fields})

    def labels(self) -> dict[str, str]:
        """Labels that name this owner."""
        return {f"{PREFIX}owner.{name}": value for name, value in asdict(self).items()}


def labels_of(owner: Owner, environ: Mapping[str, str]) -> dict[str, str]:
    """All labels of a server's container."""
    name, _, value = SERVER_LABEL.partition("=")
    known = {key: environ.get(variable, "") for key, variable in {**JOB, **NOTES}.items()}
    job = {f"{PREFIX}{key}": text for key, text in known.items() if text}
    return {name: value, **owner.labels(), **job}


def sweep(engine: Engine, here: Owner | None = None, proc: Path = PROC) -> tuple[str, ...]:
    """Remove every server's container whose run is certainly over; returns their names.

    Args:
        engine: where to look.
        here: this process; looked up without it.
        proc: where the kernel shows the processes.

    Raises:
        ServerError: the engine did not answer.
    """
    here = here or Owner.here(find_own(engine))
    left = [
        container
        for container in engine.containers(label=SERVER_LABEL)
        if _is_over(engine, container, here, proc)
    ]
    return _remove(engine, left)


def sweep_job(
    engine: Engine, environ: Mapping[str, str], own: OwnContainer | None = None
) -> tuple[str, ...]:
    """Remove what a job has left, now that it is over; returns the names.

    These are the servers' containers with the job's labels, and containers of the image around
    this process that have the job in their environment: a step whose client was killed goes on.

    Args:
        engine: where to look.
        environ: environment of the job.
        own: the container around this process, which stays; looked up without it.

    Raises:
        ServerError: the engine did not answer.
    """
    own = own or find_own(engine)
    removed: tuple[str, ...] = ()
    if all(environ.get(variable) for variable in JOB.values()):
        steps = engine.containers(image=own.image_id) if own else []
        for step in steps:
            mine = own is not None and step.id == own.id
            if not mine and not _is_server(step) and _is_of_job(step.environment, environ):
                engine.stop(step.id, STOP_SECONDS)
                engine.remove(step.id)
                removed += (step.name,)
        wanted = labels_of(Owner.here(own), environ)
        servers = engine.containers(label=SERVER_LABEL)
        removed += _remove(
            engine,
            [
                server
                for server in servers
                if all(server.labels.get(PREFIX + key) == wanted[PREFIX + key] for key in JOB)
            ],
        )
    # Without a whole name of the job there are still those of which it is certain.
    return removed + sweep(engine, Owner.here(own))


def start_of(process: str, proc: Path = PROC) -> str | None:
    """When a process started, in the kernel's ticks; None without such a process."""
    try:
        described = (proc / process / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The program's name, in brackets, may itself hold blanks and brackets.
    state, *rest = described.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else rest[18]


def _is_over(engine: Engine, server: Container, here: Owner, proc: Path) -> bool:
    owner = Owner.of(server.labels)
    if owner.container and owner.container != here.container:
        around = engine.container(owner.container)
        return around is None or not around.running
    if not owner.process or not owner.started or not owner.boot:
        return False
    if owner.boot == here.boot and owner.space == here.space:
        # Where the kernel hides other users' processes (hidepid), that of one is no sign of its
        # end; there the first process, which every such space has, cannot be seen either.
        return start_of("1", proc) is not None and start_of(owner.process, proc) != owner.started
    # A container does not outlive its kernel: once this machine has started anew, it is over.
    restarted = owner.host == here.host and owner.boot != here.boot
    return restarted and server.status in {"exited", "dead"}


def _is_server(container: Container) -> bool:
    name, _, value = SERVER_LABEL.partition("=")
    return container.labels.get(name) == value


def _is_of_job(theirs: Mapping[str, str], job: Mapping[str, str]) -> bool:
    return all(theirs.get(variable) == job.get(variable) for variable in JOB.values())


def _remove(engine: Engine, containers: Iterable[Container]) -> tuple[str, ...]:
    return tuple(container.name for container in containers if engine.remove(container.id))
