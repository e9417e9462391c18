"""One file of a hub over HTTP: tried again after a pause, resumed where it broke off, bounded.

The hub library's own download (huggingface_hub 2.4) is not used: it deletes what came before a
failure and begins anew, does not repeat a 5xx or a reset connection, sleeps for as long as
``Retry-After`` says, and without a network tries for half a minute. Nor is its hf_xet, which knows
no resuming either and speaks to other hosts than the hub's own: every file of the hub is served
over plain HTTP as well.
"""

from __future__ import annotations

import random
import re
import socket
import threading
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING

import httpx

from mrcr_action.errors import DataError
from mrcr_action.hub.errors import (
    OFFLINE_HINT,
    Trouble,
    error_of_failure,
    error_of_status,
    host_of,
    origin_of,
    unreachable,
)
from mrcr_action.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RETRIES = 5
"""How often it is tried again without having come further in between."""

FIRST_PAUSE = 1.0
"""Seconds before the second try; doubled each time, with up to half as much jitter."""

LONGEST_PAUSE = 300.0
"""Seconds: the window of the hub's rate limits. A longer Retry-After is not waited for."""

LONGEST_SECONDS = 3600.0
"""Seconds that one file may take in all, pauses included."""

CONTACT_SECONDS = 5.0
"""Seconds within which a host must take a connection, whatever its name servers and addresses."""

FURTHER = 8 * 1024 * 1024
"""Bytes that must have come for the tries to be counted anew."""

PROGRESS_SECONDS = 10.0
"""Seconds between two lines about a long download."""

_REDIRECTS = 10
_COMMIT = "x-repo-commit"
_ETAG = re.compile(r'(?:W/)?"?([0-9A-Za-z][\w.-]{0,127})"?', re.ASCII)
_LATER_HINT = "Try again later: what has come is kept, and the rest fetched then. " + OFFLINE_HINT


@dataclass(frozen=True, slots=True)
class Remote:
    """What a hub says of a file."""

    commit: str
    """The commit that the revision stands for: 40 hexadecimal digits."""

    etag: str
    """Its name in the library's cache; SHA-256 of a large file."""

    size: int | None
    """Bytes, where they are told."""


class Download:
    """The exchange with a hub about one file."""

    def __init__(
        self, client: httpx.Client, url: str, *, name: str, report: Callable[[str], None]
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            client: with the headers of every request; its time-outs hold for each read.
            url: the file on the hub.
            name: what messages call the file.
            report: told a line for each pause, and now and then how far a download has come.
        """
        self._client = client
        self._url = httpx.URL(url)
        self._name = name
        self._report = report
        self._deadline = monotonic() + LONGEST_SECONDS
        self._tries = 0
        self._heard = False

    def describe(self) -> Remote:
        """Ask what the file is.

        Raises:
            Unreachable: there is no way to the hub.
            DataError: the hub refuses, does not know the file, or has too much trouble.
        """
        _contact(self._url)
        while True:
            try:
                return self._describe()
            except Trouble as trouble:
                self._pause(trouble)

    def fetch(self, path: Path, size: int | None) -> None:
        """Append to a file what it lacks, until ``size`` bytes or all that the hub has are there.

        Raises:
            DataError: as above; what has come stays in the file.
            OSError: the file cannot be written.
        """
        furthest = path.stat().st_size if path.exists() else 0
        self._tries = 0
        while size is None or not path.exists() or path.stat().st_size < size:
            try:
                self._fetch(path, size)
                if size is None:
                    return
            except Trouble as trouble:
                # A file that goes on growing is not given up; each step of it counts once.
                if path.stat().st_size >= furthest + FURTHER:
                    furthest, self._tries = path.stat().st_size, 0
                self._pause(trouble)

    def _describe(self) -> Remote:
        try:
            response = self._client.head(self._url, follow_redirects=False)
            for _ in range(_REDIRECTS):
                self._heard = True
                onwards = response.next_request
                # A renamed dataset leads on within the hub. What leads to a storage host carries
                # all that is said of the file itself.
                within = onwards is not None and origin_of(onwards.url) == origin_of(response.url)
                if onwards is None or (_COMMIT in response.headers and not within):
                    break
                response = self._client.send(onwards, follow_redirects=False)
        except httpx.HTTPError as error:
            raise error_of_failure(self._name, error, heard=self._heard) from error
        if not response.is_redirect:
            self._check_status(response)
        headers = response.headers
        commit = headers.get(_COMMIT, "")
        etag = _ETAG.fullmatch(headers.get("x-linked-etag") or headers.get("etag", ""))
        if re.fullmatch("[0-9a-f]{40}", commit) is None or etag is None:
            raise DataError(
                f"{self._name}: {host_of(response.url)} does not answer like the hub",
                hint="Check HF_ENDPOINT, and whether a proxy or a login page answers instead. "
                + OFFLINE_HINT,
            )
        length = None if response.is_redirect else headers.get("content-length")
        size = headers.get("x-linked-size") or length or ""
        return Remote(
            commit=commit,
            etag=etag[1],
            size=int(size) if re.fullmatch("[0-9]{1,15}", size) else None,
        )

    def _fetch(self, path: Path, size: int | None) -> None:
        with path.open("ab") as file:
            begin = file.tell()
            headers = {"range": f"bytes={begin}-"} if begin else {}
            try:
                with self._client.stream(
                    "GET", self._url, headers=headers, follow_redirects=True
                ) as response:
                    if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                        file.truncate(0)
                        raise Trouble("the hub knows no rest of the file")
                    self._check_status(response)
                    if begin and _first_byte(response) != begin:
                        # The whole file again, or another part than asked for.
                        file.truncate(0)
                        file.seek(0)
                        if response.status_code == httpx.codes.PARTIAL_CONTENT:
                            raise Trouble("the hub sends another part than asked for")
                    self._copy(response, file.write, file.tell, size)
                    if size is not None and file.tell() < size:
                        raise Trouble(f"{host_of(response.url)} sent less than the whole file")
            except httpx.HTTPError as error:
                raise error_of_failure(self._name, error, heard=self._heard) from error

    def _copy(
        self,
        response: httpx.Response,
        write: Callable[[bytes], int],
        position: Callable[[], int],
        size: int | None,
    ) -> None:
        spoken = monotonic()
        for chunk in response.iter_bytes():
            write(chunk)
            now = monotonic()
            if now > self._deadline:
                raise self._late()
            if now - spoken > PROGRESS_SECONDS:
                spoken = now
                self._report(f"{self._name}: {in_mib(position())} of {in_mib(size)} have come")
            if size is not None and position() > size:
                # More than the file is: whoever checks it will see that.
                return

    def _pause(self, trouble: Trouble) -> None:
        self._tries += 1
        wait = FIRST_PAUSE * 2 ** (self._tries - 1) * random.uniform(1, 1.5)  # noqa: S311 - jitter
        wait = max(wait, trouble.wait)
        if self._tries > RETRIES:
            raise DataError(
                f"{self._name}: {trouble}; given up after {RETRIES} more tries", hint=_LATER_HINT
            ) from trouble
        if wait > LONGEST_PAUSE:
            raise DataError(
                f"{self._name}: {trouble} and asks to wait for {wait:.0f} s", hint=_LATER_HINT
            ) from trouble
        if monotonic() + wait > self._deadline:
            raise self._late() from trouble
        self._report(
            f"{self._name}: {trouble}; trying again in {wait:.0f} s ({self._tries} of {RETRIES})"
        )
        sleep(wait)

    def _late(self) -> DataError:
        return DataError(
            f"{self._name}: not fetched within {LONGEST_SECONDS / 60:.0f} minutes",
            hint=_LATER_HINT,
        )

    def _check_status(self, response: httpx.Response) -> None:
        if not response.is_success:
            raise error_of_status(self._name, response, self._url)


def in_mib(size: int | None) -> str:
    """A size for a person to read."""
    return "an unknown size" if size is None else f"{size / 2**20:,.1f} MiB"


def _contact(url: httpx.URL) -> None:
    """Whether the host can be reached at all, found out in seconds.

    A client alone may take minutes for that: it asks every name server, then tries every address
    of the host, each for as long as its time-out. A name server cannot be interrupted, so this is
    done in a thread that nobody has to wait for.

    Raises:
        Unreachable: it cannot.
        DataError: the address is none.
    """
    if url.scheme not in {"http", "https"} or not url.host:
        raise DataError(
            "the hub's address is none",
            hint="Check HF_ENDPOINT: it is https://huggingface.co unless set.",
        )
    if proxy_for(str(url)):
        return
    failed: list[str] = []
    done = threading.Event()

    def connect() -> None:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            socket.create_connection((url.host, port), CONTACT_SECONDS).close()
        except socket.gaierror:
            failed.append("its name cannot be resolved")
        except ConnectionRefusedError:
            failed.append("it refuses connections")
        except (OSError, UnicodeError) as error:
            failed.append(getattr(error, "strerror", None) or "no route leads there")
        done.set()

    threading.Thread(target=connect, daemon=True, name="mrcr-contact").start()
    if not done.wait(CONTACT_SECONDS):
        failed.append(f"no answer within {CONTACT_SECONDS:.0f} s")
    if failed:
        raise unreachable(url, failed[0])


def _first_byte(response: httpx.Response) -> int:
    """Where in the file an answer begins."""
    if response.status_code != httpx.codes.PARTIAL_CONTENT:
        return 0
    found = re.match(r"bytes ([0-9]{1,15})-", response.headers.get("content-range", ""))
    return int(found[1]) if found else -1
