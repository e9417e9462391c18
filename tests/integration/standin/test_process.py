from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import StartStandIn
    from tests.integration.standin.conftest import Conversation

COMMAND = [sys.executable, "-m", "mrcr_action.standin"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_it_says_where_it_listens_and_that_it_is_no_model(start_standin: StartStandIn) -> None:
    server = start_standin("--disable-uvicorn-access-log", "--trust-remote-code")

    chunk, said = server.log.split("\n", 1)
    assert chunk.endswith("] Chunked prefill is enabled with max_num_batched_tokens=2048.")
    assert said == (
        f"stand-in listening on {server.url} (not a model: it parses the conversation)\n"
        "INFO:     Application startup complete.\n"
    )


def test_it_listens_on_the_port_it_is_given(start_standin: StartStandIn) -> None:
    port = free_port()

    assert start_standin("--port", str(port)).url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_0_even_in_the_middle_of_an_answer(
    start_standin: StartStandIn, conversation: Conversation, number: int
) -> None:
    server = start_standin("--fault", "stall-mid=60")
    body = {"messages": conversation.messages, "stream": True}
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body):
        began = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(10) == 0

    assert time.monotonic() - began < 2
    assert "Traceback" not in server.log


def test_connections_are_refused_until_the_start_is_over() -> None:
    port = free_port()
    began = time.monotonic()
    process = subprocess.Popen(
        [*COMMAND, "--port", str(port), "--startup-delay", "0.8"], stdout=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"stand-in starting for 0.8 s\n"
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{port}/health")
            process.stdout.readline()
            assert time.monotonic() - began >= 0.8
            assert process.stdout.readline() == b"INFO:     Application startup complete.\n"
            assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        finally:
            process.terminate()


def test_a_signal_ends_a_start_that_is_under_way() -> None:
    process = subprocess.Popen([*COMMAND, "--startup-delay", "60"], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.wait(5) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fault", "nonsense"], "wrong-needle"),
        (["--fault", "status=abc"], "status=CODE"),
        (["--fault", "reset@0"], "every 4th"),
        (["--max-model-len", "many"], "128K"),
        (["--port", "65536"], "65535"),
        (["--startup-delay", "-1"], "--startup-delay"),
        (["--no-such-flag"], "--no-such-flag"),
    ],
)
def test_a_mistake_on_the_command_line_exits_2_and_says_what_is_valid(
    arguments: list[str], message: str
) -> None:
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken_exits_1(start_standin: StartStandIn) -> None:
    port = start_standin().url.rpartition(":")[2]

    ended = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr == f"stand-in: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_help_lists_the_faults() -> None:
    ended = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)

    assert "%4 (every 4th)" in ended.stdout
    assert "retry-after=SECONDS[@WHEN]" in ended.stdout
