"""Which server a configuration asks for."""

from __future__ import annotations

import os
import shutil
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from mrcr_action.config.faults import server_arguments
from mrcr_action.errors import UsageError
from mrcr_action.server.external import ExternalServer
from mrcr_action.server.process import ProcessServer, free_port, vllm_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.config import RunConfig
    from mrcr_action.server import Server

API_KEY_VARIABLES = ("MRCR_API_KEY", "VLLM_API_KEY")


def route_of(config: RunConfig, *, has_file: bool) -> Literal["process", "external"]:
    """Decide between starting a server and attaching to one.

    Args:
        config: its ``server`` key decides, or with ``auto`` its address: a base URL always means
            a running server, and so does a port without a configuration file, as in vLLM's script.
        has_file: whether a configuration file was given.

    Raises:
        UsageError: the configuration leads nowhere; the ways that there are are listed.
    """
    host = config.host is not None or config.port is not None
    address = config.base_url is not None or (host and not has_file)
    if config.server == "process" and config.base_url is not None:
        raise UsageError(
            "server process: an address was given too",
            hint="Leave --base-url out to start a server, or --server to attach to that one.",
        )
    if has_file and config.server == "auto" and config.host is not None and not config.base_url:
        raise UsageError(
            f"--host {config.host}: a configuration file starts a server on this machine",
            hint="To attach to the one at that host, add --server external, or pass --base-url.",
        )
    if config.server == "external" and config.base_url is None and not host:
        raise UsageError("server external: no address", hint="Pass --base-url URL.")
    if config.server == "external" or (config.server == "auto" and address):
        return "external"
    if config.model_name is None:
        raise UsageError(
            "nothing says which model to test",
            hint="Name a configuration file (mrcr run CONFIG.yaml), a model to serve (--model"
            " NAME), or a running server (--base-url URL). `mrcr demo` needs none.",
        )
    return "process"


def make_server(config: RunConfig, *, has_file: bool, output: Path, api_key: str | None) -> Server:
    """The server of a configuration, not yet started."""
    if route_of(config, has_file=has_file) == "external":
        return ExternalServer(address_of(config), api_key=api_key)
    arguments, own_key = take_api_key(server_arguments(config))
    port = config.port or free_port()
    return ProcessServer(
        vllm_command(
            find_vllm(os.environ),
            config.model_name or "",
            port=port,
            arguments=arguments,
            trust_remote_code=config.trust_remote_code,
        ),
        port=port,
        log=output / "server.log",
        env={key: str(value) for key, value in config.env.items()},
        api_key=own_key or str(config.env.get("VLLM_API_KEY", "")) or api_key,
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


def find_vllm(environ: Mapping[str, str]) -> str:
    """Path of ``vllm``: from MRCR_VLLM, beside this interpreter, or from PATH.

    Raises:
        UsageError: there is none.
    """
    beside = Path(sys.executable).parent / "vllm"
    named = environ.get("MRCR_VLLM")
    found = named or (str(beside) if beside.exists() else shutil.which("vllm"))
    if not found or (named and not shutil.which(named)):
        raise UsageError(
            f"MRCR_VLLM: {named}: not an executable" if named else "vllm is not installed here",
            hint="Install vLLM, name its executable in MRCR_VLLM, or attach to a running server"
            " with --base-url URL.",
        )
    return found


def take_api_key(arguments: list[str]) -> tuple[list[str], str | None]:
    """Remove ``--api-key KEY`` from arguments, where `ps` and reports would show it.

    vLLM reads ``--api_key`` as the same flag, and takes several keys; the first one serves here.
    """
    kept: list[str] = []
    key = None
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        name, equals, value = argument.partition("=")
        if name.replace("_", "-") != "--api-key":
            kept.append(argument)
            continue
        key = value if equals else rest.popleft() if rest else None
        while rest and not rest[0].startswith("-"):
            rest.popleft()
    return kept, key
