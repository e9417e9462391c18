"""The engine's errors in the words of this program, with what to do about them."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mrcr_action.errors import MrcrError, ServerError, UsageError
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.errors import APIError

NOT_FOUND, NOT_MODIFIED, CONFLICT = 404, 304, 409

PULL_HINT = (
    "Is its name right? The logins of the runner's own docker are unknown in this container: for a"
    " private image, run `docker pull` in a step before this one."
)


@dataclass(frozen=True, slots=True)
class Known:
    """Something that engines are known to say, and what it means here."""

    pattern: str
    kind: type[MrcrError]
    message: str
    hint: str


KNOWN = (
    Known(
        r"could not select device driver|unknown or invalid runtime name: nvidia"
        r"|unresolvable CDI devices|nvidia-container-cli|failed to discover GPU",
        ServerError,
        "the container engine cannot give the server a GPU: {said}",
        "Install the NVIDIA driver and the NVIDIA Container Toolkit on the runner's machine and"
        " restart Docker (`docker run --rm --gpus all IMAGE nvidia-smi` must work there); or set"
        " gpus to none for a server that needs no GPU.",
    ),
    Known(
        r"bind (mount )?source path does not exist",
        UsageError,
        "a folder for the server's container is not on the engine's machine: {said}",
        "Paths are those of the machine that the container engine runs on.",
    ),
    Known(
        r"executable .*not found|exec: .*no such file or directory",
        UsageError,
        "image {image}: there is no program vllm in it",
        "Name an image in which `vllm` is in PATH, such as vllm/vllm-openai:TAG.",
    ),
    Known(
        r"port is already allocated|address already in use",
        UsageError,
        "the server's port is taken: {said}",
        "Leave --port out to have a free one chosen.",
    ),
    Known(
        r"invalid reference format|invalid repository name|must be lowercase",
        UsageError,
        "image {image}: not the name of an image",
        "Expected a name such as vllm/vllm-openai:v0.33.0, or one with @sha256:DIGEST.",
    ),
    Known(
        r"access.{0,40}denied|no basic auth credentials|unauthorized|authentication required"
        r"|manifest unknown|manifest for .*not found|repository .*not (exist|found)"
        r"|No such image|no matching manifest",
        UsageError,
        "image {image}: it is not here and cannot be pulled: {said}",
        PULL_HINT,
    ),
    Known(
        r"no such host|i/o timeout|connection refused|TLS handshake|toomanyrequests|rate limit"
        r"|network is unreachable|no space left",
        ServerError,
        "cannot {doing}: {said}",
        "An image that lies on the engine's machine already is not pulled: run `docker pull` there"
        " beforehand.",
    ),
)


class EngineLost(ServerError):
    """The engine itself did not answer, or no longer."""


@contextlib.contextmanager
def translated(doing: str, *, image: str = "") -> Iterator[None]:
    """Turn what the library raises into an error of this program.

    Args:
        doing: what was being done, as the end of "cannot …".
        image: the image that it was done with.

    Raises:
        UsageError: a name or a path is wrong.
        EngineLost: nothing answers.
        ServerError: everything else.
    """
    import requests
    import urllib3
    from docker.errors import APIError, DockerException
    from docker.utils.socket import SocketError

    try:
        yield
    except APIError as error:
        raise _known(one_line(error.explanation or str(error), 600), doing, image) from error
    except (DockerException, SocketError) as error:
        cause = error.__context__
        if isinstance(cause, (requests.RequestException, OSError)):
            raise _lost(cause, doing) from error
        raise _known(one_line(str(error), 600), doing, image) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise _lost(error, doing) from error


def is_vanished(error: APIError) -> bool:
    """Whether a call failed since its container is gone, is being removed, or does not run."""
    if error.status_code in {NOT_FOUND, NOT_MODIFIED}:
        return True
    return error.status_code == CONFLICT and bool(
        re.search(r"already in progress|is not running", error.explanation or "")
    )


def _known(said: str, doing: str, image: str) -> MrcrError:
    for known in KNOWN:
        if re.search(known.pattern, said, re.IGNORECASE):
            return known.kind(
                known.message.format(said=said, image=image, doing=doing), hint=known.hint
            )
    return ServerError(f"cannot {doing}: {said}")


def _lost(error: BaseException, doing: str) -> EngineLost:
    reason = _reason(error)
    hint = "Does Docker run, and is DOCKER_HOST right?"
    if "ermission denied" in reason:
        hint = "Add this user to the group docker, or run this as root."
    return EngineLost(f"cannot {doing}: {reason}", hint=hint)


def _reason(error: BaseException) -> str:
    """The operating system's own words, from below what libraries have wrapped them in."""
    import requests

    if isinstance(error, requests.Timeout):
        return "no answer in time"
    seen: list[object] = [error]
    for entry in seen:
        # The library of requests puts exceptions into the place of these words.
        if isinstance(entry, OSError) and isinstance(entry.strerror, str):
            return entry.strerror
        if isinstance(entry, BaseException):
            below = (
                *entry.args,
                entry.__cause__,
                entry.__context__,
                getattr(entry, "reason", None),
            )
            seen += [part for part in below if isinstance(part, BaseException) and part not in seen]
    return one_line(str(error)) or type(error).__name__
