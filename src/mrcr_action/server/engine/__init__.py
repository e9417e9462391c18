"""A container engine (Docker, or one that speaks its API): the one place that knows its library.

Every call is bounded in time, except for those that last as long as what they watch: a pull, a
container's output, the wait for its end. Those belong into a thread that nobody has to wait for.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mrcr_action.errors import UsageError
from mrcr_action.server.engine.archive import archive
from mrcr_action.server.engine.container import Container, Mount, Plan
from mrcr_action.server.engine.errors import EngineLost, is_vanished, translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import docker
    from docker.types.daemon import CancellableStream

__all__ = ["Container", "Engine", "EngineLost", "Mount", "Plan", "connect", "is_there"]

DEFAULT_ADDRESS = "unix:///var/run/docker.sock"

CALL_SECONDS = 30
"""Longest wait for an engine's answer to a call that is over at once when all is well."""

UNIX = "unix://"


def address_of(environ: Mapping[str, str]) -> str:
    """Address of the engine, as Docker's own client finds it without a context."""
    return environ.get("DOCKER_HOST") or DEFAULT_ADDRESS


def is_there(environ: Mapping[str, str]) -> bool:
    """Whether there is something to connect to; nothing is asked."""
    address = address_of(environ)
    if not address.startswith(UNIX):
        return True
    with contextlib.suppress(OSError):
        return Path(address.removeprefix(UNIX)).is_socket()
    return False


def connect(environ: Mapping[str, str]) -> Engine:
    """Connect to the engine that DOCKER_HOST names, or to the one of this machine.

    Raises:
        UsageError: there is no such socket, or the settings of the connection are wrong.
        ServerError: nothing answers there, or it is no engine.
    """
    address = address_of(environ)
    if not is_there(environ):
        raise UsageError(
            f"no container engine is reachable: {address.removeprefix(UNIX)} is not a socket",
            hint="Start Docker, mount its socket into this container (-v"
            " /var/run/docker.sock:/var/run/docker.sock), or name another in DOCKER_HOST.",
        )
    import docker
    from docker.errors import TLSParameterError
    from docker.utils import kwargs_from_env

    try:
        # The library reads an empty mapping as "look into the environment of this process".
        settings = kwargs_from_env({"DOCKER_HOST": address, **environ})
    except TLSParameterError as error:
        raise UsageError(f"DOCKER_CERT_PATH: {error.msg}") from error
    settings["base_url"] = address
    with translated(f"connect to the container engine at {address}"):
        if address.startswith(UNIX):
            # The library leaves a socket open that could not be connected.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(CALL_SECONDS)
                probe.connect(address.removeprefix(UNIX))
        try:
            client = docker.APIClient(version="auto", timeout=CALL_SECONDS, **settings)
        except ValueError as error:
            raise UsageError(
                f"DOCKER_HOST: {address}: {error}",
                hint="Expected an address such as unix:///var/run/docker.sock or tcp://HOST:2375.",
            ) from error
        return Engine(client, address)


class Engine:
    """An engine that answers."""

    def __init__(self, client: docker.APIClient, address: str) -> None:
        self._client = client
        self.address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def container(self, name: str) -> Container | None:
        """What is known of a container by its name or ID; None without one."""
        from docker.errors import NotFound

        with translated(f"inspect the container {name}"):
            try:
                return Container.of(self._client.inspect_container(name))
            except NotFound:
                return None

    def containers(self, *, label: str | None = None, image: str | None = None) -> list[Container]:
        """All containers, running or not, with a label (``NAME=VALUE``) or made from an image."""
        filters = {name: value for name, value in (("label", label), ("ancestor", image)) if value}
        with translated("list the containers"):
            found = self._client.containers(all=True, filters=filters)
        known = (self.container(entry["Id"]) for entry in found)
        return [container for container in known if container is not None]

    def has_image(self, image: str) -> bool:
        """Whether an image lies here."""
        return self._image(image) is not None

    def image_environment(self, image: str) -> dict[str, str]:
        """Variables that an image sets; none without the image."""
        described = self._image(image) or {}
        entries = (described.get("Config") or {}).get("Env") or []
        return dict(entry.partition("=")[::2] for entry in entries)

    def _image(self, image: str) -> Mapping[str, Any] | None:
        from docker.errors import NotFound

        with translated(f"look for the image {image}", image=image):
            try:
                described: Mapping[str, Any] = self._client.inspect_image(image)  # type: ignore[no-untyped-call]
            except NotFound:
                return None
            return described

    def pull(self, image: str) -> Iterator[Mapping[str, Any]]:
        """Pull an image; gives the engine's own account of it, event by event. Unbounded."""
        with translated(f"pull the image {image}", image=image):
            for event in self._client.pull(image, stream=True, decode=True):
                if "error" in event:
                    from docker.errors import DockerException

                    raise DockerException(event["error"])
                yield event

    def create(self, plan: Plan) -> str:
        """Create a container, not yet started; returns its ID."""
        for folder in plan.made_folders:
            if ":" in folder:
                raise UsageError(
                    f"{folder}: the engine takes a colon in the name of a folder for a separator",
                    hint="Choose another cache_dir.",
                )
        from docker.types import DeviceRequest, LogConfig
        from docker.types import Mount as Bind

        gpus: list[DeviceRequest] = []
        if plan.gpus == "all":
            gpus = [DeviceRequest(count=-1, capabilities=[["gpu"]])]
        elif plan.gpus != "none":
            gpus = [DeviceRequest(device_ids=plan.gpus.split(","), capabilities=[["gpu"]])]
        host_ipc = plan.shm_size == "host"
        with translated(f"create the container {plan.name}", image=plan.image):
            host = self._client.create_host_config(
                network_mode=plan.network,
                port_bindings={plan.published: ("127.0.0.1", plan.published)}
                if plan.published
                else None,
                # Unlike mounts, these are made where they are missing, as a cache is at first.
                binds=[f"{source}:{target}:rw" for source, target in plan.made_folders.items()],
                mounts=[
                    Bind(mount.target, mount.source, type="bind", read_only=mount.read_only)
                    for mount in plan.mounts
                ],
                device_requests=gpus,
                ipc_mode="host" if host_ipc else None,
                shm_size=None if host_ipc else plan.shm_size.lower(),
                log_config=LogConfig(type="json-file", config={"max-size": "64m"}),
            )
            made = self._client.create_container(
                plan.image,
                name=plan.name,
                entrypoint=[plan.command[0]],
                command=list(plan.command[1:]),
                environment=dict(plan.environment),
                labels=dict(plan.labels),
                working_dir=plan.working_folder,
                ports=[plan.published] if plan.published else None,
                host_config=host,
            )
        for folder in plan.copied_folders:
            with (
                translated(f"copy {folder} into the container {plan.name}"),
                archive(folder) as tar,
            ):
                self._client.put_archive(plan.name, "/", tar)
        return str(made["Id"])

    def output(self, name: str) -> Iterator[bytes]:
        """Output of a container from now on, until it ends. Unbounded."""
        with translated(f"read the output of the container {name}"):
            stream = self._client.attach(name, stdout=True, stderr=True, stream=True)
        return self._chunks(name, stream)

    @staticmethod
    def _chunks(name: str, stream: CancellableStream[bytes]) -> Iterator[bytes]:
        try:
            with translated(f"read the output of the container {name}"):
                yield from stream
        finally:
            # Its own close() fails, and closes nothing, once the other end has hung up.
            stream._response.close()  # type: ignore[attr-defined] # noqa: SLF001

    def start(self, plan: Plan) -> None:
        """Start a container that was created."""
        with translated(f"start the container {plan.name}", image=plan.image):
            self._client.start(plan.name)

    def wait(self, name: str) -> int | None:
        """Wait for the end of a container; its exit code, None if it is gone. Unbounded."""
        from docker.errors import NotFound

        with translated(f"wait for the container {name}"):
            try:
                return int(self._client.wait(name, timeout=None)["StatusCode"])
            except NotFound:
                return None

    def terminate(self, name: str) -> None:
        """Send SIGTERM, whatever signal the image names; no error if nothing runs any more."""
        with translated(f"stop the container {name}"):
            self._tolerating(lambda: self._client.kill(name, signal="SIGTERM"))

    def stop(self, name: str, seconds: int) -> None:
        """Stop a container: its own signal, so many seconds, then SIGKILL."""
        with translated(f"stop the container {name}"):
            self._tolerating(lambda: self._client.stop(name, timeout=seconds))

    def remove(self, name: str) -> bool:
        """Kill and remove a container with its volumes; False if it was gone already."""
        with translated(f"remove the container {name}"):
            return self._tolerating(lambda: self._client.remove_container(name, v=True, force=True))

    @staticmethod
    def _tolerating(call: Any) -> bool:
        """Make a call; False if what it is about was gone, or on its way out, already."""
        from docker.errors import APIError

        try:
            call()
        except APIError as error:
            if is_vanished(error):
                return False
            raise
        return True
