"""Which server a configuration asks for, and how it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from mrcr_action.config.faults import server_arguments
from mrcr_action.errors import UsageError
from mrcr_action.server.container import ContainerServer
from mrcr_action.server.external import ExternalServer
from mrcr_action.server.port import free_port
from mrcr_action.server.process import ProcessServer
from mrcr_action.server.sibling import image_of, plan_of
from mrcr_action.server.sweep import Owner, labels_of
from mrcr_action.server.vllm import arguments_of, take_api_key, vllm_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mrcr_action.config import RunConfig
    from mrcr_action.server import RouteName, Server
    from mrcr_action.server.machine import Machine
    from mrcr_action.server.own import OwnContainer

API_KEY_VARIABLES = ("MRCR_API_KEY", "VLLM_API_KEY")

FIRST_LOG = "server.log"
SECOND_LOG = "server-2.log"

WAYS = """\
Ways to a GPU, each with what it takes:
1. A server beside this container: Docker on the runner, whose socket the runner mounts by itself.\
 with: {server: container}
2. The NVIDIA runtime as the default of the runner's Docker: sudo nvidia-ctk runtime configure\
 --runtime=docker --set-as-default && sudo systemctl restart docker
3. A service of the job: services: {vllm: {image: "vllm/vllm-openai:TAG", options: "--gpus all\
 --ipc=host", command: "MODEL --max-model-len 131072"}} and with: {base-url: "http://vllm:8000"}
4. The job in a container with a GPU: container: {image: IMAGE, options: "--gpus all"} and a step\
 run: mrcr run CONFIG.yaml
5. Kubernetes (ARC), where there is no Docker: a runner whose container hooks give pods a GPU, and\
 the built image, uses: docker://IMAGE
6. A server that runs anyway: with: {base-url: "http://HOST:8000"}"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A route, and what decided for it."""

    name: RouteName
    why: str = ""
    """End of a sentence; empty where the configuration says it."""
    own: OwnContainer | None = None
    """For a container: the one around this process, if there is one."""


def route_of(config: RunConfig, *, has_file: bool, machine: Machine) -> Chosen:
    """Decide where the model is served.

    Args:
        config: its ``server`` key decides; with ``auto`` an address, an image, and what is there.
        has_file: whether a configuration file was given.
        machine: looked at where the configuration leaves it open.

    Raises:
        UsageError: the configuration leads nowhere; the ways that there are are listed.
        ServerError: a container engine is needed, and does not answer.
    """
    if attaches(config, has_file=has_file):
        return Chosen("external")
    if config.model_name is None:
        raise UsageError(
            "nothing says which model to test",
            hint="Name a configuration file (mrcr run CONFIG.yaml), a model to serve (--model"
            " NAME), or a running server (--base-url URL). `mrcr demo` needs none.",
        )
    if config.server == "process":
        machine.vllm()
        return Chosen("process")
    if config.server == "container" or config.image is not None:
        own = machine.own()
        image_of(config, own)
        why = "" if config.server == "container" else "an image is named"
        return Chosen("container", why, own)
    return _by_what_is_there(config, machine)


def attaches(config: RunConfig, *, has_file: bool) -> bool:
    """Whether a configuration means a server that runs.

    A base URL always does, and so does a port without a configuration file, as in vLLM's script.

    Raises:
        UsageError: the configuration contradicts itself, or an address is missing.
    """
    host = config.host is not None or config.port is not None
    if config.server in {"process", "container"} and config.base_url is not None:
        raise UsageError(
            f"server {config.server}: an address was given too",
            hint="Leave --base-url out to start a server, or --server to attach to that one.",
        )
    starts = config.server in {"process", "container"} or config.image is not None
    if has_file and not starts and config.server == "auto" and config.host and not config.base_url:
        raise UsageError(
            f"--host {config.host}: a configuration file starts a server on this machine",
            hint="To attach to the one at that host, add --server external, or pass --base-url.",
        )
    if config.server == "external" and config.base_url is None and not host:
        raise UsageError("server external: no address", hint="Pass --base-url URL.")
    attached = config.server == "external" or (
        config.server == "auto" and (config.base_url is not None or (host and not has_file))
    )
    if config.image is None:
        return attached
    if config.server == "process":
        raise UsageError(
            f"image {config.image}: server process starts no container",
            hint="Leave --image out, or pass --server container.",
        )
    if config.server == "external" or config.base_url is not None or config.host is not None:
        raise UsageError(
            f"image {config.image}: an address was given too",
            hint="Leave --image out to attach to the server that runs, or the address to start"
            " one.",
        )
    return False  # with an image, a port is the one to serve on


def _by_what_is_there(config: RunConfig, machine: Machine) -> Chosen:
    has_vllm, gpus = machine.has_vllm(), machine.gpus()
    if has_vllm and gpus:
        return Chosen("process", f"vLLM is installed here, and {gpus} can be used here")
    if has_vllm and config.gpus == "none":
        return Chosen("process", "vLLM is installed here, and no GPU is asked for")
    contained = machine.is_contained()
    if has_vllm and not contained:
        return Chosen("process", "vLLM is installed here")
    lack = "no GPU is visible in this container" if has_vllm else "vLLM is not installed here"
    trouble = machine.siblings_trouble()
    if not trouble:
        why = f"{lack}, and a container engine is reachable"
        return Chosen("container", why, machine.own())
    if not contained:
        machine.vllm()  # raises what is to be said outside of containers
    raise UsageError(
        f"{lack}, and no server can be started beside it: {trouble}",
        hint="Give the job a GPU in one of these ways; for a build of vLLM that needs none, set"
        " gpus to none.",
        details=WAYS,
    )


def make_server(
    config: RunConfig,
    chosen: Chosen,
    *,
    machine: Machine,
    output: Path,
    api_key: str | None,
    further: Sequence[str] = (),
) -> Server:
    """The server of a configuration, not yet started.

    Args:
        config: what is served.
        chosen: how it is reached.
        machine: where that happens.
        output: folder for its log.
        further: arguments behind all others, for a second server of the same configuration.
        api_key: key of a running server, or for one to start.

    Raises:
        UsageError: what the route needs is no longer there.
    """
    if chosen.name == "external":
        return ExternalServer(address_of(config), api_key=api_key, why=chosen.why)
    if further:
        words = (*server_arguments(config), *further)
        config = msgspec.structs.replace(config, server_args=words)
    arguments, own_key = take_api_key(arguments_of(config))
    key = own_key or str(config.env.get("VLLM_API_KEY", "")) or api_key
    port = config.port or free_port()
    log = output / (SECOND_LOG if further else FIRST_LOG)
    if chosen.name == "process":
        return ProcessServer(
            vllm_command(
                machine.vllm(),
                config.model_name or "",
                port=port,
                arguments=arguments,
                trust_remote_code=config.trust_remote_code,
            ),
            port=port,
            log=log,
            env={name: str(value) for name, value in config.env.items()},
            api_key=key,
            why=chosen.why,
        )
    own = chosen.own
    labels = labels_of(Owner.here(own), machine.environ)
    plan = plan_of(config, port=port, own=own, environ=machine.environ, labels=labels, api_key=key)
    return ContainerServer(
        plan,
        connect=machine.engine,
        port=port,
        log=log,
        image=config.image or (own.image if own else plan.image),
        api_key=key,
        why=chosen.why,
    )


def address_of(config: RunConfig) -> str:
    """Address of a running server, from ``base_url`` or ``host`` and ``port``."""
    if config.base_url is not None:
        return config.base_url
    host = config.host or "127.0.0.1"
    if ":" in host.partition(":")[2] and not host.startswith("[") and "/" not in host:
        host = f"[{host}]"  # IPv6 as `ip` prints it
    url = host if "://" in host else f"http://{host}"
    try:
        return url if urlsplit(url).port else f"{url.rstrip('/')}:{config.port or 8000}"
    except ValueError as error:
        raise UsageError(f"--host {host}: not a host") from error
