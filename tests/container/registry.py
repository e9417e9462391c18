"""An image registry on this machine, as much of one as a pull needs, that can stall."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CHUNK = 65_536
SIZE = 1_000_000
NAME = "org/pulled"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """Serves one image of one layer, which holds one file and no program."""

    def __init__(self, *, stalls: bool = False) -> None:
        """Prepare; with ``stalls``, half of the layer is sent, and then nothing any more."""
        self.stalls = stalls
        self.asked = threading.Event()
        """Whether the layer was asked for."""
        self._go = threading.Event()
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            entry = tarfile.TarInfo("file")
            entry.size = SIZE
            archive.addfile(entry, io.BytesIO(bytes(range(250)) * (SIZE // 250)))
        layer = tar.getvalue()
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        parts = {"application/vnd.docker.container.image.v1+json": config}
        parts["application/vnd.docker.image.rootfs.diff.tar"] = layer
        described = [
            {"mediaType": kind, "size": len(content), "digest": _digest(content)}
            for kind, content in parts.items()
        ]
        self._layer = _digest(layer)
        self._manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": described[0],
                "layers": described[1:],
            }
        ).encode()
        self._blobs = {_digest(content): content for content in parts.values()}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def image(self) -> str:
        """Name of the image, for a pull."""
        return f"127.0.0.1:{self._server.server_port}/{NAME}:1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer()

            def do_GET(self) -> None:
                content = self._answer()
                for start in range(0, len(content), CHUNK):
                    self.wfile.write(content[start : start + CHUNK])
                    if start > len(content) // 2 and registry.stalls and "/blobs/" in self.path:
                        self.wfile.flush()
                        registry._go.wait(60)
                        return

            def _answer(self) -> bytes:
                last = self.path.rpartition("/")[2]
                kind, content = "application/octet-stream", registry._blobs.get(last, b"")
                if "/manifests/" in self.path:
                    kind, content = MANIFEST, registry._manifest
                if last == registry._layer:
                    registry.asked.set()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Docker-Content-Digest", _digest(content))
                self.end_headers()
                return content

            def log_message(self, *_: Any) -> None:
                return None

        return Handler
