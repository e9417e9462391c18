"""The command line of the stand-in, and the life of its process."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.standin.connection import Connection
from mrcr_action.standin.faults import Fault, FaultPlan, describe_faults, parse_fault, parse_seconds
from mrcr_action.standin.prefix_cache import DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, PrefixCache
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
    cache: PrefixCache
    """Empty."""
    max_num_batched_tokens: int
    """Only logged: nothing here is read in chunks."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code: 0, or 1 when it cannot start."""
    options = parse_options(arguments)
    if problem := _too_small(options.cache, options.settings.max_model_len):
        sys.stderr.write(f"ValueError: {problem}\n")
        return 1
    try:
        listener = _bind(options.host, options.port)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        sys.stderr.write(f"stand-in: cannot listen on {where}: {error.strerror or error}\n")
        return 1
    batched = options.max_num_batched_tokens
    _log(f"Chunked prefill is enabled with max_num_batched_tokens={batched}.")
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
    _add_cache(parser)
    parser.add_argument("--fault", action="append", default=[], metavar="SPEC", help="see below")
    for ignored in ("--disable-uvicorn-access-log", "--trust-remote-code"):
        parser.add_argument(ignored, action="store_true", help="accepted, as vLLM does; no effect")
    given = parser.parse_args(arguments)
    faults: list[Fault] = []
    try:
        max_model_len = parse_token_count(given.max_model_len)
        batched = parse_token_count(given.max_num_batched_tokens)
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
            prompt_tokens_details=given.enable_prompt_tokens_details,
        ),
        faults=FaultPlan(tuple(faults)),
        host=given.host,
        port=given.port,
        startup_delay=given.startup_delay,
        cache=PrefixCache(
            block_size=given.block_size,
            blocks=given.num_gpu_blocks_override
            or max(DEFAULT_BLOCKS, -(-max_model_len // given.block_size) + 1),
            enabled=given.enable_prefix_caching,
        ),
        max_num_batched_tokens=batched,
    )


def _add_cache(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the cache, with vLLM's flags")
    switch = argparse.BooleanOptionalAction
    group.add_argument("--enable-prefix-caching", action=switch, default=True)
    group.add_argument(
        "--no-prefix-cache",
        dest="enable_prefix_caching",
        action="store_false",
        help="short for --no-enable-prefix-caching",
    )
    group.add_argument("--block-size", type=_positive, default=DEFAULT_BLOCK_SIZE, metavar="TOKENS")
    group.add_argument(
        "--num-gpu-blocks-override", type=_positive, metavar="N", help="blocks of the pool"
    )
    group.add_argument(
        "--enable-prompt-tokens-details",
        action=switch,
        default=False,
        help="tell in a usage how many tokens were cached",
    )
    group.add_argument(
        "--max-num-batched-tokens", default="2048", metavar="TOKENS", help="only logged"
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:  # noqa: PLR2004 - the range of a port
        raise argparse.ArgumentTypeError(f"{text} is not a port from 0 to 65535")
    return port


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _too_small(cache: PrefixCache, max_model_len: int) -> str:
    """Why a pool cannot hold the longest request, where vLLM does not start; empty if it can.

    The line begins as vLLM's own, so that it is known for the root cause.
    """
    fits = cache.capacity * cache.block_size
    if max_model_len <= fits:
        return ""
    return (
        f"To serve at least one request with the model's max seq len ({max_model_len}), more blocks"
        f" are needed: {cache.blocks} of {cache.block_size} tokens, less one that is never used,"
        f" hold {fits} tokens."
    )


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
    routes = Routes(options.settings, options.faults, options.cache)
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


def _log(line: str) -> None:
    """A line where and as vLLM's logger writes it."""
    begin = f"(APIServer pid={os.getpid()}) INFO {time.strftime('%m-%d %H:%M:%S')}"
    sys.stderr.write(f"{begin} [standin.py:1] {line}\n")
    sys.stderr.flush()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
