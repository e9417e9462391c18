"""One row of MRCR: a conversation, the question at its end, and the answer it asks for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Role = Literal["system", "user", "assistant"]

NEEDLE_COUNTS = (2, 4, 8)
"""How many identical asks a conversation holds; one of these per row."""

NONCE_LENGTH = 10
"""Characters of ``random_string_to_prepend``, all alphanumeric."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class SampleId:
    """Which row a sample is, across runs, machines and versions of the dataset."""

    shard: str
    """Path of the row's file within the dataset, such as ``2needle/2needle_0.parquet``."""
    row: int
    """Index of the row in its shard, from 0."""
    sha256: str
    """Hash of the prompt and the answer, in hex (see `content_hash`)."""

    def __str__(self) -> str:
        return f"{self.shard}#{self.row}@{self.sha256[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row, ready to be asked and graded."""

    id: SampleId
    messages: tuple[Message, ...]
    answer: str
    """The nonce followed by the wanted needle, word for word."""
    nonce: str
    """The dataset's ``random_string_to_prepend``."""
    n_needles: int
    desired_msg_index: int
    """Index in ``messages`` of the request whose reply is wanted."""
    n_chars: int
    """Sum of the lengths of all contents, in characters."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], *, shard: str, index: int) -> Sample:
        """Read a row with the dataset's own columns; prompt and answer may be bytes in UTF-8.

        Raises:
            ValueError: the prompt is not a JSON list of messages with a role and a content.
        """
        messages = parse_prompt(row["prompt"])
        answer = row["answer"]
        return cls(
            id=SampleId(shard, index, content_hash(row["prompt"], row["answer"])),
            messages=messages,
            answer=answer.decode() if isinstance(answer, bytes) else answer,
            nonce=row["random_string_to_prepend"],
            n_needles=int(row["n_needles"]),
            desired_msg_index=int(row["desired_msg_index"]),
            n_chars=int(row["n_chars"]),
        )

    def violations(self) -> list[str]:
        """The invariants of the dataset that this row breaks, each as a sentence; [] if none."""
        found = []
        where = self.desired_msg_index
        if not 0 <= where < len(self.messages) - 1:
            return [f"desired_msg_index {where} lies outside the {len(self.messages)} messages"]
        wanted, reply = self.messages[where], self.messages[where + 1]
        if self.answer != self.nonce + reply.content:
            found.append("the answer is not the nonce followed by the wanted reply")
        asked = sum(m.role == "user" and m.content == wanted.content for m in self.messages)
        if asked != self.n_needles:
            found.append(f"the wanted request occurs {asked} times, not {self.n_needles}")
        if where % 2 != 1 or len(self.messages) % 2 != 0:
            found.append("the turns are not a preamble, pairs of turns and a question")
        chars = sum(len(m.content) for m in self.messages)
        if chars != self.n_chars:
            found.append(f"n_chars is {self.n_chars}, the contents hold {chars} characters")
        return found


def parse_prompt(prompt: str | bytes) -> tuple[Message, ...]:
    """The messages of a ``prompt`` column: a JSON list of ``{role, content}``, bytes in UTF-8.

    Raises:
        ValueError: it is something else, or holds text that is not Unicode.
    """
    try:
        messages = _MESSAGES.decode(prompt)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"the prompt is not a list of messages: {error}") from error
    if not messages:
        raise ValueError("the prompt is not a list of messages")
    return messages


_MESSAGES = msgspec.json.Decoder(tuple[Message, ...])


def content_hash(prompt: str | bytes, answer: str | bytes) -> str:
    """SHA-256, in hex, over the prompt column, a zero byte and the answer column, in UTF-8."""
    digest = hashlib.sha256(_in_utf8(prompt))
    digest.update(b"\0")
    digest.update(_in_utf8(answer))
    return digest.hexdigest()


def _in_utf8(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
