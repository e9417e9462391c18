"""What the library raises, in the words of this program; its errors are made as it makes them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import requests
from docker.errors import APIError, DockerException, NotFound

from mrcr_action.errors import MrcrError, ServerError, UsageError
from mrcr_action.server.engine import EngineLost, connect, is_there
from mrcr_action.server.engine.errors import is_vanished, translated

if TYPE_CHECKING:
    from pathlib import Path


def api_error(status: int, explanation: str, kind: type[APIError] = APIError) -> APIError:
    response = requests.Response()
    response.status_code = status
    return kind("an error", response=response, explanation=explanation)


def told(error: Exception, image: str = "org/x:1") -> MrcrError:
    with pytest.raises(MrcrError) as caught, translated("start it", image=image):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("said", "kind", "message", "hint"),
    [
        (
            'could not select device driver "" with capabilities: [[gpu]]',
            ServerError,
            "cannot give the server a GPU",
            "NVIDIA Container Toolkit",
        ),
        (
            "OCI runtime create failed: nvidia-container-cli: device error: 7: unknown device",
            ServerError,
            "cannot give the server a GPU",
            "NVIDIA Container Toolkit",
        ),
        (
            'invalid mount config for type "bind": bind source path does not exist: /data/m',
            UsageError,
            "/data/m",
            "the machine that the container engine runs on",
        ),
        (
            'OCI runtime create failed: exec: "vllm": executable file not found in $PATH: unknown',
            UsageError,
            "image org/x:1: there is no program vllm in it",
            "vllm/vllm-openai",
        ),
        (
            "driver failed: Bind for 127.0.0.1:80 failed: port is already allocated",
            UsageError,
            "port is taken",
            "--port",
        ),
        ("invalid reference format", UsageError, "image org/x:1: not the name", "@sha256:"),
        (
            "pull access denied for org/x, repository does not exist or may require 'docker login'",
            UsageError,
            "image org/x:1: it is not here and cannot be pulled",
            "docker pull",
        ),
        (
            "manifest for org/x:1 not found: manifest unknown: manifest unknown",
            UsageError,
            "image org/x:1: it is not here",
            "name right",
        ),
        (
            'Get "https://r/v2/": dial tcp: lookup r: no such host',
            ServerError,
            "cannot start it: Get",
            "docker pull",
        ),
        ("something else {x}", ServerError, "cannot start it: something else {x}", ""),
    ],
)
def test_what_an_engine_is_known_to_say_is_explained(
    said: str, kind: type[MrcrError], message: str, hint: str
) -> None:
    for raised in (api_error(500, said), DockerException(said)):
        error = told(raised)

        assert type(error) is kind
        assert message in str(error)
        assert hint in error.hint


def test_an_error_of_the_engine_is_one_harmless_line() -> None:
    error = told(api_error(500, "\n::error::owned\x1b[31m\n##[error]x"))

    assert str(error) == "cannot start it: : :error::owned [31m # #[error]x"


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (requests.ReadTimeout("x"), "no answer in time"),
        (
            requests.ConnectionError("Connection aborted.", ConnectionResetError(104, "reset")),
            "reset",
        ),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    ],
)
def test_an_engine_that_does_not_answer_is_lost(raised: Exception, reason: str) -> None:
    error = told(raised)

    assert isinstance(error, EngineLost)
    assert str(error) == f"cannot start it: {reason}"
    assert "DOCKER_HOST" in error.hint


def test_a_socket_that_may_not_be_opened_says_who_may() -> None:
    assert "group docker" in told(PermissionError(13, "Permission denied")).hint


def test_errors_of_this_program_pass_through() -> None:
    error = UsageError("mine", hint="h")

    assert told(error) is error


@pytest.mark.parametrize(
    ("error", "vanished"),
    [
        (api_error(404, "No such container: x", NotFound), True),
        (api_error(409, "removal of container x is already in progress"), True),
        (api_error(409, "Cannot kill container: x: Container x is not running"), True),
        (api_error(409, "Conflict. The container name is already in use"), False),
        (api_error(500, "driver failed to remove root filesystem"), False),
    ],
)
def test_a_container_that_is_gone_or_going_is_told_from_a_failure(
    error: APIError, *, vanished: bool
) -> None:
    assert is_vanished(error) == vanished


def test_without_a_socket_there_is_no_engine(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("gone", "file"):
        environ = {"DOCKER_HOST": f"unix://{tmp_path}/{name}"}

        assert not is_there(environ)
        with pytest.raises(UsageError, match=f"{tmp_path}/{name} is not a socket") as caught:
            connect(environ)
        assert "/var/run/docker.sock:/var/run/docker.sock" in caught.value.hint


def test_a_socket_that_nobody_listens_on_is_no_engine(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/s"}

    assert is_there(environ)
    with pytest.raises(EngineLost, match="Connection refused"):
        connect(environ)


def test_certificates_that_are_not_there_are_a_mistake(tmp_path: Path) -> None:
    environ = {
        "DOCKER_HOST": "tcp://127.0.0.1:1",
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(tmp_path),
    }

    with pytest.raises(UsageError, match="DOCKER_CERT_PATH"):
        connect(environ)


@pytest.mark.parametrize("address", ["tcp://host:port", "tcp://127.0.0.1:99999", "http://[::1"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(UsageError, match="DOCKER_HOST: ") as caught:
        connect({"DOCKER_HOST": address})

    assert address in str(caught.value)
