"""The program ``vllm``: where it is, and how a server is started with it."""

from __future__ import annotations

import shutil
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.config.faults import server_arguments
from mrcr_action.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.config import RunConfig

DETAILS = "--enable-prompt-tokens-details"
NO_DETAILS = "--no-enable-prompt-tokens-details"
"""Whether answers tell how much of their prompt came from the prefix cache."""

USUAL_FOLDERS = ("/usr/local/bin", "/opt/venv/bin")
"""Where images keep it. A job's own PATH may have taken the place of an image's."""


def look_for_vllm(environ: Mapping[str, str], folders: Sequence[str] = USUAL_FOLDERS) -> str | None:
    """Path of ``vllm``: from MRCR_VLLM, beside this interpreter, from PATH, or a usual place.

    Raises:
        UsageError: MRCR_VLLM names something else.
    """
    if named := environ.get("MRCR_VLLM"):
        if not shutil.which(named):
            raise UsageError(
                f"MRCR_VLLM: {named}: not an executable",
                hint="Leave MRCR_VLLM out to have vllm looked for in PATH.",
            )
        return named
    beside = Path(sys.executable).parent / "vllm"
    if beside.exists():
        return str(beside)
    return shutil.which("vllm", path=environ.get("PATH")) or shutil.which(
        "vllm", path=":".join(folders)
    )


def find_vllm(environ: Mapping[str, str]) -> str:
    """The same for who needs one.

    Raises:
        UsageError: there is none.
    """
    found = look_for_vllm(environ)
    if not found:
        raise UsageError(
            "vllm is not installed here",
            hint="Install vLLM, name its executable in MRCR_VLLM, serve from an image with --image"
            " IMAGE, or attach to a running server with --base-url URL.",
        )
    return found


def vllm_command(
    executable: str,
    model: str,
    *,
    port: int,
    arguments: Sequence[str],
    trust_remote_code: bool,
    host: str = "127.0.0.1",
) -> list[str]:
    """``vllm serve`` with the user's arguments."""
    trust = ["--trust-remote-code"] if trust_remote_code else []
    return [
        executable,
        "serve",
        model,
        *arguments,
        *trust,
        "--disable-uvicorn-access-log",
        "--host",
        host,
        "--port",
        str(port),
    ]


def arguments_of(config: RunConfig) -> list[str]:
    """Further arguments of `vllm serve`: the user's, and what the rounds of a run need to be told.

    Raises:
        ValueError: a quotation is not closed.
    """
    words = server_arguments(config)
    names = {word.partition("=")[0].replace("_", "-") for word in words}
    if ("warm" in config.passes or config.boundaries) and not names & {DETAILS, NO_DETAILS}:
        words.append(DETAILS)
    return words


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
