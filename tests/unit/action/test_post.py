"""The Action's clean-up, which must not fail a job whose verdict is known."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from mrcr_action.action.post import main

if TYPE_CHECKING:
    from pathlib import Path

VERSION = b'{"ApiVersion": "1.41"}'
"""What a real engine says of itself; this one repeats it as the answer to everything."""


@pytest.mark.parametrize("body", [b"[]", b'{"ApiVersion": "latest"}', VERSION])
def test_an_engine_that_talks_nonsense_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "engine"))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(65536):
                        length = b"Content-Length: %d\r\n\r\n" % len(body)
                        connection.sendall(head + length + body)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        code = main({"DOCKER_HOST": f"unix://{tmp_path}/engine"})
        listening.shutdown(socket.SHUT_RDWR)
        serving.join()

    said = capsys.readouterr().out
    assert code == 0
    assert "::warning title=MRCR could not clean up::" in said


def test_an_address_that_is_none_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"DOCKER_HOST": "tcp://host:port"}) == 0
    assert "::warning title=MRCR could not clean up::DOCKER_HOST: " in capsys.readouterr().out
