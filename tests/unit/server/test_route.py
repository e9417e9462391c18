from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.errors import UsageError
from mrcr_action.server.external import ExternalServer
from mrcr_action.server.process import ProcessServer
from mrcr_action.server.route import address_of, find_vllm, make_server, route_of, take_api_key

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://h:1"


@pytest.mark.parametrize(
    ("keys", "has_file", "route"),
    [
        ({"model_name": "m"}, True, "process"),
        ({"model_name": "m"}, False, "process"),
        ({"model_name": "m", "port": 8000}, True, "process"),
        ({"model_name": "m", "host": "h", "server": "process"}, True, "process"),
        ({"model_name": "m", "port": 8000}, False, "external"),
        ({"port": 8000}, False, "external"),
        ({"host": "h"}, False, "external"),
        ({"base_url": URL}, False, "external"),
        ({"base_url": URL, "model_name": "m"}, True, "external"),
        ({"server": "external", "base_url": URL, "model_name": "m"}, True, "external"),
        ({"server": "external", "port": 8000, "model_name": "m"}, True, "external"),
        ({"server": "process", "port": 8000, "model_name": "m"}, False, "process"),
        ({"server": "external", "host": "h", "model_name": "m"}, True, "external"),
    ],
)
def test_a_configuration_says_which_server_it_means(
    keys: dict[str, Any], route: str, *, has_file: bool
) -> None:
    assert route_of(RunConfig(**keys), has_file=has_file) == route


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "nothing says which model to test"),
        ({"server": "process"}, "nothing says which model to test"),
        ({"server": "process", "base_url": URL}, "server process: an address was given too"),
        ({"server": "external", "model_name": "m"}, "server external: no address"),
    ],
)
def test_a_configuration_that_means_no_server_is_a_mistake(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        route_of(RunConfig(**keys), has_file=False)

    assert "--base-url" in caught.value.hint


@pytest.mark.parametrize(
    ("keys", "address"),
    [
        ({"base_url": "https://h/base"}, "https://h/base"),
        ({"base_url": "https://h", "host": "other", "port": 1}, "https://h"),
        ({"port": 8123}, "http://127.0.0.1:8123"),
        ({"host": "h"}, "http://h:8000"),
        ({"host": "h", "port": 1}, "http://h:1"),
        ({"host": "http://h", "port": 1}, "http://h:1"),
        ({"host": "https://h/", "port": 1}, "https://h:1"),
        ({"host": "http://h:7", "port": 1}, "http://h:7"),
        ({"host": "[::1]", "port": 1}, "http://[::1]:1"),
        ({"host": "::1", "port": 1}, "http://[::1]:1"),
    ],
)
def test_host_and_port_make_an_address_as_in_vllms_script(
    keys: dict[str, Any], address: str
) -> None:
    assert address_of(RunConfig(**keys)) == address


@pytest.mark.parametrize("host", ["h:port", "[::1", "http://h:99999"])
def test_a_host_that_is_none_is_a_mistake(host: str) -> None:
    with pytest.raises(UsageError, match="not a host"):
        address_of(RunConfig(host=host))


@pytest.mark.parametrize(
    ("arguments", "kept", "key"),
    [
        ([], [], None),
        (["--seed", "0"], ["--seed", "0"], None),
        (["--api-key", "k", "--seed", "0"], ["--seed", "0"], "k"),
        (["--seed", "0", "--api-key=k=="], ["--seed", "0"], "k=="),
        (["--api_key", "k"], [], "k"),
        (["--api-key", "-k"], [], "-k"),
        (["--api-key", "k", "second", "third", "-O3"], ["-O3"], "k"),
        (["--api-key"], [], None),
        (["--api-key-file", "k"], ["--api-key-file", "k"], None),
    ],
)
def test_a_key_is_taken_out_of_the_arguments(
    arguments: list[str], kept: list[str], key: str | None
) -> None:
    assert take_api_key(arguments) == (kept, key)


def executable(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_vllm_is_named_or_lies_beside_the_interpreter_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("named", "bin", "path"):
        (tmp_path / name).mkdir()
    named = executable(tmp_path / "named" / "my-vllm")
    on_path = executable(tmp_path / "path" / "vllm")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))

    assert find_vllm({"MRCR_VLLM": named}) == named
    assert find_vllm({}) == on_path
    beside = executable(tmp_path / "bin" / "vllm")
    assert find_vllm({}) == beside


def test_a_vllm_that_is_not_there_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "text").write_text("no program")

    with pytest.raises(UsageError, match="vllm is not installed here"):
        find_vllm({})
    for path in (tmp_path / "gone", tmp_path / "text", tmp_path):
        with pytest.raises(UsageError, match="not an executable"):
            find_vllm({"MRCR_VLLM": str(path)})


def test_a_server_is_made_with_its_secrets_out_of_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRCR_VLLM", executable(tmp_path / "vllm"))
    config = RunConfig(
        model_name="org/M",
        server_args="--seed 0 --api-key 'a key'",
        env={"N": 1},
        trust_remote_code=True,
        port=9,
    )

    server = make_server(config, has_file=True, output=tmp_path, api_key="other")

    assert isinstance(server, ProcessServer)
    assert server.command[1:] == (
        *("serve", "org/M", "--seed", "0", "--trust-remote-code"),
        *("--disable-uvicorn-access-log", "--host", "127.0.0.1", "--port", "9"),
    )
    assert (server.api_key, server.log) == ("a key", tmp_path / "server.log")
    assert server._env == {"N": "1"}


@pytest.mark.parametrize(
    ("keys", "given", "used"),
    [
        ({}, "given", "given"),
        ({}, None, None),
        ({"env": {"VLLM_API_KEY": "own"}}, "given", "own"),
        ({"env": {"VLLM_API_KEY": "own"}, "server_args": "--api-key=first"}, None, "first"),
    ],
)
def test_the_key_that_the_server_is_given_is_the_one_that_is_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    given: str | None,
    used: str | None,
) -> None:
    monkeypatch.setenv("MRCR_VLLM", executable(tmp_path / "vllm"))
    config = RunConfig(model_name="m", **keys)

    server = make_server(config, has_file=True, output=tmp_path, api_key=given)

    assert (server.api_key or None) == used


def test_a_running_server_needs_no_vllm(tmp_path: Path) -> None:
    server = make_server(RunConfig(base_url=URL), has_file=False, output=tmp_path, api_key="k")

    assert isinstance(server, ExternalServer)
    assert (server.base_url, server.api_key, server.command) == (URL, "k", ())
