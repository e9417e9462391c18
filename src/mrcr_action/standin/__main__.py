"""The command line of the stand-in, and the life of its process."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.standin.connection import Connection
from mrcr_action.standin.faults import Fault, FaultPlan, describe_faults, parse_fault, parse_seconds
from mrcr_action.standin.routes import Routes, Settings
from mrcr_action.standin.tokens import parse_token_count

if TYPE_CHECKING:
    from collections.abc import Sequence

_BACKLOG = 1024
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The whole command line."""

    settings: Settings
    faults: FaultPlan
    host: str
    port: int
    """0 for any free one."""
    startup_delay: float
    """Seconds for which connections are refused, as while a model is loaded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code: 0, or 1 when it cannot start."""
    options = parse_options(arguments)
    try:
        listener = _bind(options.host, options.port)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        sys.stderr.write(f"stand-in: cannot listen on {where}: {error.strerror or error}\n")
        return 1
    with listener:
        asyncio.run(_serve(options, listener))
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; a mistake ends the process with exit code 2 and a message."""
    parser = argparse.ArgumentParser(
        prog="python -m mrcr_action.standin",
        description="An OpenAI-compatible server that answers MRCR by parsing the conversation.",
        epilog="faults, as NAME[=VALUE][@WHEN]; WHEN is which questions of MRCR, from 1: 3, 2-5,\n"
        "3-, %4 (every 4th), ~0.1 (a tenth), or a list with commas; other chat requests have no\n"
        f"number, and only faults without a WHEN hit them:\n{describe_faults()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("model", nargs="?", default="stand-in", help="its name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_port, default=0, help="0, the default, is any free one")
    parser.add_argument("--served-model-name", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--max-model-len", default="131072", metavar="TOKENS", help="or 128K")
    parser.add_argument("--api-key", default=os.environ.get("VLLM_API_KEY") or None)
    parser.add_argument("--root-path", default="", metavar="/BASE")
    parser.add_argument("--startup-delay", type=_seconds, default=0.0, metavar="SECONDS")
    parser.add_argument("--fault", action="append", default=[], metavar="SPEC", help="see below")
    for ignored in ("--disable-uvicorn-access-log", "--trust-remote-code"):
        parser.add_argument(ignored, action="store_true", help="accepted, as vLLM does; no effect")
    given = parser.parse_args(arguments)
    faults: list[Fault] = []
    try:
        max_model_len = parse_token_count(given.max_model_len)
        faults.extend(parse_fault(text) for text in given.fault)
    except ValueError as error:
        parser.error(str(error))
    root_path = given.root_path.strip("/")
    return Options(
        settings=Settings(
            model=given.model,
            served_names=tuple(given.served_model_name) or (given.model,),
            max_model_len=max_model_len,
            api_key=given.api_key,
            root_path=f"/{root_path}" if root_path else "",
        ),
        faults=FaultPlan(tuple(faults)),
        host=given.host,
        port=given.port,
        startup_delay=given.startup_delay,
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:  # noqa: PLR2004 - the range of a port
        raise argparse.ArgumentTypeError(f"{text} is not a port from 0 to 65535")
    return port


def _seconds(text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _bind(host: str, port: int) -> socket.socket:
    """Take the port without listening yet: until then, connections are refused."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


async def _serve(options: Options, listener: socket.socket) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if options.startup_delay > 0:
        _say(f"stand-in starting for {options.startup_delay:g} s")
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(stopped.wait(), options.startup_delay)
        if stopped.is_set():
            return
    routes = Routes(options.settings, options.faults)
    open_connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(Connection(reader, writer, routes.respond).serve())
        open_connections.add(serving)
        serving.add_done_callback(open_connections.discard)

    server = await asyncio.start_server(connected, sock=listener, backlog=_BACKLOG, limit=_BUFFER)
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{options.settings.root_path}"
    _say(f"stand-in listening on {url} (not a model: it parses the conversation)")
    _say("INFO:     Application startup complete.")
    await stopped.wait()
    server.close()
    for serving in tuple(open_connections):
        serving.cancel()
    await asyncio.gather(*open_connections, return_exceptions=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
