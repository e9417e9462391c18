from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from mrcr_action.config import RunConfig
from mrcr_action.errors import ServerError, UsageError
from mrcr_action.server.container import ContainerServer
from mrcr_action.server.external import ExternalServer
from mrcr_action.server.own import OwnContainer
from mrcr_action.server.process import ProcessServer
from mrcr_action.server.route import Chosen, address_of, attaches, make_server, route_of
from mrcr_action.server.vllm import find_vllm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mrcr_action.server import Server
    from mrcr_action.server.machine import Machine

URL = "http://h:1"
OWN = OwnContainer(id="f" * 64, image="action:1", image_id="sha256:" + "e" * 64)


@dataclass
class FakeMachine:
    """What is there, said rather than looked for."""

    vllm_at: str | None = "/usr/bin/vllm"
    visible: str = ""
    contained: bool = False
    container: OwnContainer | None = None
    trouble: str = "no container engine is reachable from here"
    environ: Mapping[str, str] = field(default_factory=dict)

    def gpus(self) -> str:
        return self.visible

    def has_vllm(self) -> bool:
        return self.vllm_at is not None

    def vllm(self) -> str:
        return self.vllm_at or find_vllm({"PATH": "/nowhere"})

    def is_contained(self) -> bool:
        return self.contained

    def siblings_trouble(self) -> str:
        return self.trouble

    def own(self) -> OwnContainer | None:
        return self.container

    def engine(self) -> None:
        raise AssertionError("nothing is to be connected to")


PLAIN = FakeMachine()
"""A laptop or a build machine with vLLM."""
WITHOUT_VLLM = FakeMachine(vllm_at=None)
WITH_GPU = FakeMachine(visible="2 NVIDIA GPUs")
ACTION = FakeMachine(contained=True, container=OWN, trouble="")
"""The container of an Action, as runners start it: an engine, and no GPU."""
ACTION_WITH_GPU = FakeMachine(contained=True, container=OWN, trouble="", visible="1 NVIDIA GPU")
ACTION_WITHOUT_ENGINE = FakeMachine(contained=True)
EVALUATOR = FakeMachine(vllm_at=None, contained=True, container=OWN, trouble="")
"""An image that holds the evaluator only."""


def route(config: RunConfig, machine: FakeMachine = PLAIN, *, has_file: bool = True) -> Chosen:
    return route_of(config, has_file=has_file, machine=cast("Machine", machine))


def made(
    config: RunConfig,
    output: Path,
    *,
    api_key: str | None = None,
    machine: FakeMachine = PLAIN,
    has_file: bool = True,
) -> Server:
    chosen = route(config, machine, has_file=has_file)
    return make_server(
        config, chosen, machine=cast("Machine", machine), output=output, api_key=api_key
    )


@pytest.mark.parametrize(
    ("keys", "has_file", "name"),
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
        ({"image": "vllm/x:1", "model_name": "m"}, True, "container"),
        ({"image": "vllm/x:1", "model_name": "m", "port": 8000}, False, "container"),
        ({"image": "vllm/x:1", "model_name": "m", "server": "container"}, False, "container"),
    ],
)
def test_a_configuration_says_which_server_it_means(
    keys: dict[str, Any], name: str, *, has_file: bool
) -> None:
    assert route(RunConfig(**keys), has_file=has_file).name == name
    assert attaches(RunConfig(**keys), has_file=has_file) == (name == "external")


@pytest.mark.parametrize(
    ("machine", "gpus", "name", "why"),
    [
        (PLAIN, "all", "process", "vLLM is installed here"),
        (
            WITH_GPU,
            "all",
            "process",
            "vLLM is installed here, and 2 NVIDIA GPUs can be used here",
        ),
        (
            ACTION_WITH_GPU,
            "all",
            "process",
            "vLLM is installed here, and 1 NVIDIA GPU can be used here",
        ),
        (ACTION, "none", "process", "vLLM is installed here, and no GPU is asked for"),
        (
            ACTION_WITHOUT_ENGINE,
            "none",
            "process",
            "vLLM is installed here, and no GPU is asked for",
        ),
        (
            ACTION,
            "0,1",
            "container",
            "no GPU is visible in this container, and a container engine is reachable",
        ),
        (
            EVALUATOR,
            "all",
            "container",
            "vLLM is not installed here, and a container engine is reachable",
        ),
    ],
)
def test_what_is_there_decides_where_the_configuration_does_not(
    machine: FakeMachine, gpus: str, name: str, why: str
) -> None:
    chosen = route(RunConfig(model_name="m", gpus=gpus), machine)

    assert (chosen.name, chosen.why) == (name, why)


@pytest.mark.parametrize(
    ("keys", "machine", "why"),
    [
        ({"server": "process"}, ACTION, ""),
        ({"server": "container"}, ACTION_WITH_GPU, ""),
        ({"image": "i"}, WITH_GPU, "an image is named"),
        ({"base_url": URL}, ACTION, ""),
    ],
)
def test_what_the_configuration_says_is_obeyed_whatever_is_there(
    keys: dict[str, Any], machine: FakeMachine, why: str
) -> None:
    chosen = route(RunConfig(model_name="m", **keys), machine)

    expected = "container" if "image" in keys else "external" if "base_url" in keys else ""
    assert (chosen.name, chosen.why) == (expected or keys["server"], why)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "nothing says which model to test"),
        ({"server": "process"}, "nothing says which model to test"),
        ({"image": "i"}, "nothing says which model to test"),
        ({"server": "process", "base_url": URL}, "server process: an address was given too"),
        ({"server": "container", "base_url": URL}, "server container: an address was given too"),
        ({"server": "external", "model_name": "m"}, "server external: no address"),
    ],
)
def test_a_configuration_that_means_no_server_is_a_mistake(
    keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        route(RunConfig(**keys), has_file=False)

    assert "--base-url" in caught.value.hint


@pytest.mark.parametrize(
    "keys",
    [
        {"server": "process"},
        {"server": "external", "base_url": URL},
        {"base_url": URL},
        {"host": "h"},
    ],
)
def test_an_image_beside_what_starts_no_container_is_a_mistake(keys: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="image i:") as caught:
        route(RunConfig(model_name="m", image="i", **keys), ACTION)

    assert "--image" in caught.value.hint


def test_outside_of_containers_an_image_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="no image is named") as caught:
        route(RunConfig(model_name="m", server="container"), PLAIN)

    assert "--image" in caught.value.hint


def test_without_vllm_the_command_says_what_else_there_is() -> None:
    choices: list[dict[str, Any]] = [{}, {"server": "process"}]
    for keys in choices:
        with pytest.raises(UsageError, match="vllm is not installed here") as caught:
            route(RunConfig(model_name="m", **keys), WITHOUT_VLLM)

        for way in ("Install vLLM", "MRCR_VLLM", "--image", "--base-url"):
            assert way in caught.value.hint


def test_an_action_without_a_gpu_and_an_engine_is_told_every_way_to_one() -> None:
    with pytest.raises(UsageError, match="no GPU is visible in this container") as caught:
        route(RunConfig(model_name="m"), ACTION_WITHOUT_ENGINE)

    assert "no container engine is reachable" in str(caught.value)
    assert "gpus" in caught.value.hint
    for line in (
        "server: container",
        "nvidia-ctk runtime configure --runtime=docker --set-as-default",
        'services: {vllm: {image: "vllm/vllm-openai:TAG", options: "--gpus all',
        'base-url: "http://vllm:8000"',
        'container: {image: IMAGE, options: "--gpus all"}',
        "ARC",
    ):
        assert line in caught.value.details


def test_an_engine_that_does_not_answer_is_named_where_it_was_asked_for() -> None:
    class Broken(FakeMachine):
        def own(self) -> OwnContainer | None:
            raise ServerError("cannot connect")

    with pytest.raises(ServerError, match="cannot connect"):
        route(RunConfig(model_name="m", server="container"), Broken())


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


def test_a_server_is_made_with_its_secrets_out_of_sight(tmp_path: Path) -> None:
    config = RunConfig(
        model_name="org/M",
        server_args="--seed 0 --api-key 'a key'",
        env={"N": 1},
        trust_remote_code=True,
        port=9,
    )

    server = made(config, tmp_path, api_key="other")

    assert isinstance(server, ProcessServer)
    assert server.command == (
        *("/usr/bin/vllm", "serve", "org/M", "--seed", "0", "--trust-remote-code"),
        *("--disable-uvicorn-access-log", "--host", "127.0.0.1", "--port", "9"),
    )
    assert (server.api_key, server.log) == ("a key", tmp_path / "server.log")
    assert server._env == {"N": "1"}
    assert server.why == "vLLM is installed here"


def test_a_server_of_its_own_image_is_made_without_the_engine(tmp_path: Path) -> None:
    config = RunConfig(model_name="org/M", server_args="--api-key k", port=9)

    server = made(config, tmp_path, machine=ACTION)

    assert isinstance(server, ContainerServer)
    assert (server.image, server.base_url, server.api_key) == (
        "action:1",
        "http://127.0.0.1:9",
        "k",
    )
    assert (server._plan.image, server._plan.network) == (OWN.image_id, f"container:{OWN.id}")
    assert server._plan.environment["VLLM_API_KEY"] == "k"
    assert not re.search(r"\bk\b", " ".join(server.command))
    assert server.why.startswith("no GPU is visible")


def test_a_server_of_a_named_image_is_made_of_that(tmp_path: Path) -> None:
    server = made(RunConfig(model_name="m", image="org/x:1"), tmp_path, machine=ACTION)

    assert isinstance(server, ContainerServer)
    assert (server.image, server._plan.image, server._plan.gpus) == ("org/x:1", "org/x:1", "all")


@pytest.mark.parametrize("machine", [PLAIN, ACTION], ids=["process", "container"])
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
    tmp_path: Path, machine: FakeMachine, keys: dict[str, Any], given: str | None, used: str | None
) -> None:
    server = made(RunConfig(model_name="m", **keys), tmp_path, api_key=given, machine=machine)

    assert (server.api_key or None) == used
    if isinstance(server, ContainerServer):
        assert server._plan.environment.get("VLLM_API_KEY") == used


def test_a_running_server_needs_no_vllm(tmp_path: Path) -> None:
    config = RunConfig(base_url=URL)

    server = made(config, tmp_path, api_key="k", machine=WITHOUT_VLLM, has_file=False)

    assert isinstance(server, ExternalServer)
    assert (server.base_url, server.api_key, server.command) == (URL, "k", ())
