"""A hub on this machine: real HTTP, the hub's headers, and faults on demand.

``HF_ENDPOINT`` points the hub library (and ``datasets``, and mrcr) to it. The library reads that
when it is imported, so that the code under test runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CHUNK = 16 * 1024
"""Bytes written at a time."""

STALL_SECONDS = 60.0
"""How long a stalled answer would be held at most; closing the hub ends it at once."""

_RESOLVE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came in; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request; the first field that is set decides."""

    status: int = 0
    """Answered with nothing but this status and `headers`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Bytes of the answer after which the connection is closed."""
    reset: int | None = None
    """Bytes of the answer after which the connection is reset."""
    stall: int | None = None
    """Bytes of the answer after which no more comes."""
    less: int | None = None
    """Bytes that come and are announced, as if the file were no longer."""
    corrupt: bool = False
    """Whether the first byte is another one."""
    no_range: bool = False
    """Whether a range that was asked for is ignored."""
    elsewhere: bool = False
    """Whether another range comes than was asked for."""
    bare: bool = False
    """Whether the hub's own headers are missing, as from a login page."""


class FakeHub:
    """Serves every file of a folder as a dataset's, at any revision, and keeps what it is asked.

    ::

        with FakeHub(folder) as hub:
            hub.fail("GET", Fault(status=503), Fault(cut=1000))
            subprocess.run(..., env={**environment, "HF_ENDPOINT": hub.endpoint})
            assert [seen.range for seen in hub.seen("GET")] == [None, None, "bytes=1000-"]
    """

    def __init__(
        self,
        folder: Path,
        *,
        dataset: str = "openai/mrcr",
        token: str | None = None,
        storage: bool = False,
        etag: str | None = None,
    ) -> None:
        """Prepare; nothing listens yet.

        Args:
            folder: with the dataset's files, such as ``2needle/2needle_0.parquet``.
            dataset: the only one that there is.
            token: what must be sent to see it.
            storage: whether contents come from another host, as the large ones of the real hub.
            etag: instead of each file's SHA-256.
        """
        self.folder = folder
        self.dataset = dataset
        self.token = token
        self.storage = storage
        self.etag = etag
        self.requests: list[Seen] = []
        self._faults: dict[str, list[Fault]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        """For ``HF_ENDPOINT``."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def storage_endpoint(self) -> str:
        """The other host: the same server under a name that makes it another origin."""
        return f"http://localhost:{self._server.server_port}"

    def fail(self, method: str, *faults: Fault) -> None:
        """Let the next requests of a method go wrong, one after the other."""
        self._faults.setdefault(method, []).extend(faults)

    def seen(self, method: str) -> list[Seen]:
        """The requests of a method, in order."""
        return [seen for seen in self.requests if seen.method == method]

    def commit_of(self, revision: str) -> str:
        """The commit that a revision stands for: itself, if it is one."""
        if re.fullmatch("[0-9a-f]{40}", revision):
            return revision
        return hashlib.sha1(revision.encode(), usedforsecurity=False).hexdigest()

    def arrived(self, seen: Seen) -> Fault | None:
        with self._lock:
            self.requests.append(seen)
            waiting = self._faults.get(seen.method)
            # What the hub itself redirects goes wrong where the content comes from.
            if self.storage and seen.method == "GET" and not seen.path.startswith("/storage/"):
                return None
            return waiting.pop(0) if waiting else None

    def hold(self) -> None:
        self._closing.wait(STALL_SECONDS)


class _Server(ThreadingHTTPServer):
    # A held answer must not hold the test's end.
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = self.hub.arrived(Seen(self.command, self.path, headers)) or Fault()
        if fault.status:
            self._refuse(fault.status, fault.headers)
            return
        path = unquote(urlsplit(self.path).path)
        from_storage = path.startswith("/storage/")
        if from_storage:
            path = path.removeprefix("/storage")
        elif self.hub.token and headers.get("authorization") != f"Bearer {self.hub.token}":
            self._refuse(401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is gated."})
            return
        found = _RESOLVE.fullmatch(path)
        if found is None or found[1] != self.hub.dataset:
            # As the real hub says it to those who do not log in.
            self._refuse(
                401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            )
            return
        file = self.hub.folder / found[3]
        commit = self.hub.commit_of(found[2])
        if not file.is_file():
            self._refuse(
                404,
                {
                    "X-Error-Code": "EntryNotFound",
                    "X-Error-Message": "Entry not found",
                    "X-Repo-Commit": commit,
                },
            )
            return
        content = file.read_bytes()
        etag = self.hub.etag or hashlib.sha256(content).hexdigest()
        own = {} if fault.bare else {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        if self.hub.storage and not from_storage:
            own = {
                "X-Repo-Commit": commit,
                "X-Linked-ETag": f'"{etag}"',
                "X-Linked-Size": str(len(content)),
                "Location": f"{self.hub.storage_endpoint}/storage{self.path}?Signature=hush",
            }
            self._refuse(302, own)
            return
        if from_storage:
            own = {"ETag": '"of-the-storage"'}
        self._send(content, own, fault)

    def _refuse(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, content: bytes, headers: Mapping[str, str], fault: Fault) -> None:
        begin, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and not fault.no_range:
            begin, status = int(asked[1]), 206
            if begin >= len(content):
                self._refuse(416, {"Content-Range": f"bytes */{len(content)}"})
                return
            if fault.elsewhere:
                begin = 0
        if fault.corrupt:
            content = bytes([content[0] ^ 1]) + content[1:]
        body = content[begin:]
        if fault.less is not None:
            body = body[: fault.less]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if status == 206:
            last = begin + len(body) - 1
            self.send_header("Content-Range", f"bytes {begin}-{last}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        ends = [end for end in (fault.cut, fault.reset, fault.stall) if end is not None]
        with contextlib.suppress(OSError):
            self._write(body[: ends[0]] if ends else body)
            if ends:
                self._break_off(fault)

    def _write(self, body: bytes) -> None:
        for at in range(0, len(body), CHUNK):
            self.wfile.write(body[at : at + CHUNK])
        self.wfile.flush()

    def _break_off(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.stall is not None:
            self.hub.hold()
        if fault.reset is not None:
            # Closed with nothing to linger for, a socket sends RST.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
