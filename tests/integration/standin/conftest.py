"""A conversation of MRCR's shape, and clients that keep all of what comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

NONCE = "Zx9kQ1mN0p"
NEEDLES = (
    "**Fields** of barley 🌾\n\nrolling to the sea, " * 6,
    "Fields at night 🌙, each furrow a line of verse; " * 6,
    "Nobody walks the fields now but the wind 🍃\n" * 6,
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is sent, and what a perfect reader answers."""

    messages: list[dict[str, str]]
    nonce: str
    needles: tuple[str, ...]
    """The replies to the identical requests; the question wants the second."""

    @property
    def answer(self) -> str:
        return self.nonce + self.needles[1]


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream as it came over the wire."""

    status: int
    headers: httpx.Headers
    raw: bytes
    error: httpx.TransportError | None
    """How the connection broke, if it did."""

    @property
    def data(self) -> list[str]:
        """The payload of each event, in order."""
        lines = self.raw.decode().replace("\r\n", "\n").split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    @property
    def done(self) -> bool:
        return self.data[-1:] == ["[DONE]"]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(data) for data in self.data if data != "[DONE]"]

    @property
    def finish_reasons(self) -> list[str]:
        choices = [choice for chunk in self.chunks for choice in chunk["choices"]]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]

    @property
    def usages(self) -> list[dict[str, int]]:
        return [chunk["usage"] for chunk in self.chunks if "usage" in chunk]

    def joined(self, key: str = "content") -> str:
        """All deltas of one kind, joined."""
        deltas = [choice["delta"] for chunk in self.chunks for choice in chunk["choices"]]
        return "".join(delta.get(key) or "" for delta in deltas)


Ask = Callable[..., httpx.Response]
"""``ask(url, **body)``: the whole answer to the conversation."""

Stream = Callable[..., Streamed]
"""``stream(url, **body)``: the same as events, with the usage."""


@pytest.fixture
def conversation() -> Conversation:
    """Three identical requests in other talk, after a preamble with a decoy of each kind."""
    example = (
        "\n\n======EXAMPLE======\nUser: write a poem about fields\nAssistant: a decoy\n"
        "======END EXAMPLE======\n"
    )
    messages = [
        {"role": "user", "content": f"Here are some examples of conversations{example * 2}"}
    ]
    for number, needle in enumerate(NEEDLES):
        filler = f"Dear all, this is about email {number}. " * 20
        for request, reply in (
            ("write a poem about fields", needle),
            ("write a email about fields", filler),
        ):
            messages.append({"role": "user", "content": request})
            messages.append({"role": "assistant", "content": reply})
    question = f"Prepend {NONCE} to the 2nd (1 indexed) poem about fields."
    question += " Do not include any other text in your response."
    messages.append({"role": "user", "content": question})
    return Conversation(messages, NONCE, NEEDLES)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """One for all tests: reading the system's certificates takes longer than most of them."""
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture
def ask(client: httpx.Client, conversation: Conversation) -> Ask:
    def send(url: str, **body: Any) -> httpx.Response:
        payload = {"messages": conversation.messages, **body}
        return client.post(f"{url}/v1/chat/completions", json=payload, timeout=10)

    return send


@pytest.fixture
def stream(client: httpx.Client, conversation: Conversation) -> Stream:
    def send(url: str, **body: Any) -> Streamed:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        payload = {"messages": conversation.messages, **options, **body}
        raw = b""
        error = None
        with client.stream("POST", f"{url}/v1/chat/completions", json=payload, timeout=10) as got:
            try:
                for piece in got.iter_bytes():
                    raw += piece
            except httpx.TransportError as broken:
                error = broken
            return Streamed(got.status_code, got.headers, raw, error)

    return send
