"""What an exchange with the hub can end in other than bytes.

::

    Trouble            another try is worth while: 429, 5xx, a time-out, a cut connection
    DataError          another try would end the same
    └── Unreachable    there is no way to the hub from here

Texts name hosts, never addresses: those of storage hosts are signed, and one in HF_ENDPOINT may
hold a password.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from time import time

import httpx

from mrcr_action.errors import DataError
from mrcr_action.report.text import one_line

OFFLINE_HINT = (
    "On a machine with internet run `mrcr data fetch CONFIG --to DIR`, then pass --dataset DIR"
    " here."
)

_RATE_LIMIT_RESET = re.compile(r'"\w+";r=0;t=(\d+)')
"""The hub's own header, ``"resolvers";r=0;t=55``: none left, 55 seconds to the next window."""

_PASSING = {408, 425, 429}
"""Statuses of a request that may be answered the next time; with them go all from 500 on."""

_SERVER_ERROR = 500


class Unreachable(DataError):
    """There is no way to the hub from here; another try would not change that."""


class Trouble(Exception):
    """A failure after which another try is worth while."""

    def __init__(self, what: str, wait: float = 0) -> None:
        """Say what failed, and how many seconds the hub asks to wait."""
        super().__init__(what)
        self.wait = wait


def unreachable(url: httpx.URL, why: str) -> Unreachable:
    return Unreachable(f"the hub cannot be reached: {host_of(url)}: {why}", hint=OFFLINE_HINT)


def error_of_failure(name: str, error: httpx.HTTPError, *, heard: bool) -> Trouble | DataError:
    """The error that a request without an answer stands for.

    Args:
        name: what messages call the file.
        error: from the client; it knows its request.
        heard: whether the hub has answered before, so that it can be reached as such.
    """
    host = host_of(error.request.url)
    if isinstance(error, httpx.ProxyError):
        return Unreachable(
            f"{name}: the proxy does not lead to {host}: {one_line(str(error), 200)}",
            hint="Check HTTPS_PROXY and NO_PROXY. " + OFFLINE_HINT,
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Unreachable(
            f"{name}: the certificate of {host} is not one that is trusted here",
            hint="Where a company's proxy signs anew, point SSL_CERT_FILE to its certificates. "
            + OFFLINE_HINT,
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.TooManyRedirects):
        return DataError(
            f"{name}: {host} leads nowhere: {type(error).__name__}",
            hint="Check HF_ENDPOINT: it is https://huggingface.co unless set.",
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) and not heard:
        return unreachable(error.request.url, "no connection to it, or to the proxy before it")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        what = f"{host} does not take a connection"
    elif isinstance(error, httpx.TimeoutException):
        what = f"{host} does not go on"
    else:
        what = f"the connection to {host} broke"
    return Trouble(what)


def error_of_status(name: str, response: httpx.Response, hub: httpx.URL) -> Trouble | DataError:
    """The error that an HTTP status stands for; ``hub`` is the address that was asked first."""
    status = response.status_code
    says = f"{host_of(response.url)} says {status}"
    # Each try has the hub make a new address at the storage host, which may be good then.
    foreign = origin_of(response.url) != origin_of(hub) and status in {401, 403, 404}
    if status in _PASSING or status >= _SERVER_ERROR or foreign:
        return Trouble(says, _wait_asked_for(response))
    code = response.headers.get("x-error-code", "")
    said = one_line(response.headers.get("x-error-message", ""), 200)
    says += f" ({said})" if said else ""
    if status in {401, 403} or code == "GatedRepo":
        return DataError(
            f"{name}: {says}: there is no such dataset, or it is not open to everybody",
            hint="Check --dataset. For a gated or private one, accept its terms on the hub and set"
            " HF_TOKEN to a token that may read it; a token that is no longer valid is refused"
            " even where none is needed.",
        )
    if status == httpx.codes.NOT_FOUND:
        missing = {"RepoNotFound": "dataset", "RevisionNotFound": "revision"}.get(code, "file")
        return DataError(
            f"{name}: {says}: no such {missing}",
            hint="Check --dataset and --revision. A rate limit of the hub can show as a missing"
            " file, and HF_TOKEN lifts it.",
        )
    return DataError(f"{name}: {says}", hint="Check HF_ENDPOINT. " + OFFLINE_HINT)


def host_of(url: httpx.URL) -> str:
    """A host for a message, harmless."""
    return one_line(url.host, 100) or "the hub"


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _wait_asked_for(response: httpx.Response) -> float:
    """Seconds that the hub asks to wait, as a number, a date or the end of its window; or 0."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    if window := _RATE_LIMIT_RESET.search(response.headers.get("ratelimit", "")):
        return float(window[1])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return 0.0
