"""What a request can end in other than an answer.

What can go wrong is told apart here, because it decides what a sample becomes::

    ApiError
    ├── Rejected       the server refused this very request (400, 413, 422): not a zero
    ├── Denied         the key or the model name is wrong (401, 403, 404, 405): stop
    ├── Unavailable    nothing was processed (connection refused, or reset at once; 429, 503):
    │                  safe to send again
    └── Broken         the answer was lost on the way (500, a cut stream, an error event): a
        │              failure of the server, not of the model
        └── TimedOut   it did not come in time
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


class ApiError(Exception):
    """A request that did not end in an answer; the text is one line for a person."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Rejected(ApiError):
    """The server refused this request for what it is, such as a prompt over the window."""


class Denied(ApiError):
    """The server refuses every such request: wrong key, unknown model or route."""


class Unavailable(ApiError):
    """The server took nothing on; the same request may be sent again."""


class Broken(ApiError):
    """The server began and did not finish."""


class TimedOut(Broken):
    """The answer did not come whole within the time that one request may take."""


def error_of(response: httpx.Response) -> ApiError:
    """The error that an HTTP status stands for, with the server's own words."""
    status = response.status_code
    message = f"HTTP {status}: {_message(response)}"
    if status in {400, 413, 422}:
        return Rejected(message, status=status)
    if status in {401, 403, 404, 405}:
        return Denied(message, status=status)
    if status in {429, 503}:
        return Unavailable(message, status=status, retry_after=_retry_after(response))
    return Broken(message, status=status)


def _message(response: httpx.Response) -> str:
    """What the server says, from vLLM's ``{"error": {"message": …}}`` or whatever came."""
    try:
        payload = response.json()
    except ValueError:
        payload = None
    text: Any = None
    if isinstance(payload, dict):
        inner = payload.get("error", payload)
        text = inner.get("message") if isinstance(inner, dict) else inner
        text = text or payload.get("detail")
    if not isinstance(text, str):
        text = response.text or response.reason_phrase
    return " ".join(text.split())[:500]


def _retry_after(response: httpx.Response) -> float:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0


def reason_of(error: BaseException) -> str:
    """An exception's own words on one line, or its name."""
    return " ".join(str(error).split()) or type(error).__name__
