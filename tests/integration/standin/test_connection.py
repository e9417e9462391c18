from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.conftest import StandIn, StartStandIn
    from tests.integration.standin.conftest import Conversation


def connect(server: StandIn) -> socket.socket:
    where = urlsplit(server.url)
    return socket.create_connection((where.hostname, where.port), timeout=10)


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received


def chat_request(conversation: Conversation, **body: object) -> bytes:
    payload = json.dumps({"messages": conversation.messages, **body}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(payload)}\r\n"
    return head.encode() + b"\r\n" + payload


def metrics(server: StandIn) -> str:
    return httpx.get(f"{server.url}/metrics").text


def test_one_connection_serves_many_requests(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin()
    with connect(server) as connection:
        for _ in range(3):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(
            chat_request(conversation).replace(b"Host: x", b"Host: x\r\nConnection: close")
        )
        assert b'"finish_reason":"stop"' in read_all(connection)


def test_requests_sent_before_their_turn_are_answered_in_order(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin("--fault", "slow=4000")
    last = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(chat_request(conversation))
        time.sleep(0.02)
        connection.sendall(chat_request(conversation) + last)
        received = read_all(connection)

    assert received.count(b"HTTP/1.1 200") == 3
    assert received.index(b"chatcmpl-standin-1") < received.index(b"chatcmpl-standin-2")
    assert received.index(b"chatcmpl-standin-2") < received.index(b'"max_model_len"')


def test_a_body_of_five_megabytes_is_answered(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin("--max-model-len", "2M")
    padding = {"role": "assistant", "content": "Unrelated words. " * 300_000}
    messages = [conversation.messages[0], padding, *conversation.messages[1:]]

    got = httpx.post(f"{server.url}/v1/chat/completions", json={"messages": messages}, timeout=30)

    assert got.json()["choices"][0]["message"]["content"] == conversation.answer


def test_a_body_in_chunks_is_answered(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    body = json.dumps({"messages": conversation.messages}).encode()

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    got = httpx.post(f"{start_standin().url}/v1/chat/completions", content=pieces())

    assert got.request.headers["transfer-encoding"] == "chunked"
    assert got.json()["choices"][0]["message"]["content"] == conversation.answer


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    head, _, body = chat_request(conversation).partition(b"\r\n\r\n")
    with connect(start_standin()) as connection:
        connection.sendall(head + b"\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_what_is_no_http_is_a_bad_request_and_the_next_client_is_served(
    start_standin: StartStandIn,
) -> None:
    server = start_standin()
    with connect(server) as connection:
        connection.sendall(b"this is not http\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 400")

    assert httpx.get(f"{server.url}/health").status_code == 200
    assert "Traceback" not in server.log


def test_a_client_that_leaves_midway_ends_its_request_as_aborted(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin("m", "--fault", "stall-mid=60")
    with connect(server) as connection:
        connection.sendall(chat_request(conversation, stream=True))
        assert connection.recv(65536)
        assert 'num_requests_running{engine="0",model_name="m"} 1.0' in metrics(server)

    deadline = time.monotonic() + 5
    while 'finished_reason="abort"} 1.0' not in metrics(server):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert 'num_requests_running{engine="0",model_name="m"} 0.0' in metrics(server)
    assert server.log.endswith("Application startup complete.\n")


def test_a_client_that_leaves_before_its_body_is_whole_does_no_harm(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin()
    with connect(server) as connection:
        connection.sendall(chat_request(conversation)[:300])

    assert httpx.get(f"{server.url}/health").status_code == 200
    assert server.log.endswith("Application startup complete.\n")


def test_requests_are_answered_side_by_side(
    start_standin: StartStandIn, conversation: Conversation
) -> None:
    server = start_standin("--fault", "stall=0.4")
    began = time.monotonic()
    connections = [connect(server) for _ in range(8)]
    for connection in connections:
        connection.sendall(chat_request(conversation))
    for connection in connections:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.close()

    assert 0.4 <= time.monotonic() - began < 2
