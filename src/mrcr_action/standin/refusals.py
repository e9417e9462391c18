"""How a request is refused, in the shapes of vLLM's server."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from mrcr_action.standin.steps import Headers, Step, json_reply, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mrcr_action.standin.faults import Effects

_ERROR_TYPES = {
    400: "BadRequestError",
    404: "NotFoundError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}
_ERROR_TEXTS = {
    429: "Too many requests. Please try again later.",
    500: "The server had an error while processing your request.",
    503: "The queue is full. Please try again later.",
}
_BODILESS = (204, 304)


def refusal(effects: Effects) -> Iterator[Step]:
    """What the faults ``status`` and ``retry-after`` send in place of an answer."""
    status = effects.status or HTTPStatus.TOO_MANY_REQUESTS
    headers: Headers = ()
    if effects.retry_after is not None:
        headers = (("retry-after", str(effects.retry_after)),)
    if status in _BODILESS:
        return whole(status, b"", "text/plain", *headers)
    if status == HTTPStatus.UNAUTHORIZED:
        return json_reply(status, {"error": "Unauthorized"}, *headers)
    return error(status, "", None, *headers)


def error(
    status: int, message: str = "", param: str | None = None, *headers: tuple[str, str]
) -> Iterator[Step]:
    """An error in vLLM's shape; without a message, with the one that is usual for the status."""
    text = message or _ERROR_TEXTS.get(status, _phrase(status))
    kind = _ERROR_TYPES.get(status, _phrase(status))
    told = {"message": text, "type": kind, "param": param, "code": int(status)}
    return json_reply(status, {"error": told}, *headers)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown status"
