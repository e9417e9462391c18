"""What the viewer of samples reads: a row a request, and the texts, packed.

Texts are kept once each, since passes repeat them and an exact response is the answer, and packed
in blocks of some 256 KB, of which the browser unpacks the one that it is asked for.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mrcr_action.bins import bin_of
from mrcr_action.diagnosis.evidence import Diagnosis
from mrcr_action.diagnosis.lines import told
from mrcr_action.report.html.groups import RIGHT_NEEDLE, kind_of
from mrcr_action.result import encode_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mrcr_action.result import Record

LONGEST_TEXT = 20_000
"""Characters of a text that are kept; an answer has 4,000 at most."""

BLOCK = 262_144
"""Characters of a block before it is packed, at least, but for the last one."""

ROOM = 9_000_000
"""Bytes of packed texts; they become a third longer in the page. What has no room is left out, the
exact responses first."""


class Text(NamedTuple):
    """Where a text lies."""

    block: int
    at: int
    left_out: int
    """Characters that were cut off its end."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request, as the viewer shows it."""

    ask: int
    round: str
    sample: str
    """Shard and row."""
    sha256: str
    """The first 12 characters."""
    needles: int
    bin: str
    tokens: int
    kind: str
    outcome: str
    ratio: float | None = None
    """By the gated protocol."""
    other: float | None = None
    """By the other one."""
    told: str
    """What happened, in words."""
    reason: str = ""
    finish: str | None = None
    attempts: int = 1
    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    thought: int = 0
    first: float | None = None
    """Seconds to the first token."""
    seconds: float = 0.0
    margin: float | None = None
    nonce: str | None = None
    wanted: Text | None = None
    returned: Text | None = None
    outline: Text | None = None
    """JSON of the conversation without its words."""
    came: int | None = None
    """Turn that came back, by its index from 0; of a garbled response, the one its end is from."""
    seen: Diagnosis | None = None
    """Without its excerpt, where the texts are there."""


class Texts(NamedTuple):
    """What only the journal has of a request."""

    nonce: str
    wanted: str | None
    """None of one that was lost."""
    returned: str | None
    outline: str = ""
    """JSON; empty where there is none."""


def texts_of(records: Iterable[Record]) -> dict[int, Texts]:
    """The texts of a journal, by the ask."""
    return {
        record.ask: Texts(
            record.nonce or "",
            record.answer,
            record.response,
            "" if record.outline is None else encode_line(record.outline).decode(),
        )
        for record in records
        if record.answer is not None or record.outline is not None
    }


def packed(
    records: Sequence[Record], texts: Mapping[int, Texts], protocol: str, *, room: int = ROOM
) -> tuple[list[Row], list[str]]:
    """The rows, in the order of the plan, and the blocks of texts.

    Args:
        records: of a result.
        texts: by the ask; none where the journal is not at hand.
        protocol: whose ratio comes first.
        room: most bytes of packed texts.

    Returns:
        Each block is a JSON list of texts, packed by zlib, in base64.
    """
    store = _Store(room)
    places: dict[int, list[Text | None]] = {}
    for record in sorted(records, key=_worst_first):
        found = texts.get(record.ask)
        if found is not None:
            texts_of_it = (found.wanted, found.returned, found.outline or None)
            places[record.ask] = [None if t is None else store.place(t) for t in texts_of_it]
    blocks = store.finish()
    rows = []
    for record in records:
        kept = _Kept(*(store.kept(place) for place in places.get(record.ask, ())))
        nonce = texts[record.ask].nonce if kept.wanted is not None else None
        rows.append(_row(record, protocol, nonce, kept))
    return rows, blocks


def _worst_first(record: Record) -> tuple[bool, int]:
    return (record.grade is not None and record.grade.exact, record.ask)


class _Kept(NamedTuple):
    """Where what the journal has of a request lies, as far as there was room."""

    wanted: Text | None = None
    returned: Text | None = None
    outline: Text | None = None


def _row(record: Record, protocol: str, nonce: str | None, kept: _Kept) -> Row:
    seen, grade = record.diagnosis, record.grade
    if seen is not None and kept.returned is not None:
        seen = msgspec.structs.replace(seen, excerpt=None)
    length = bin_of(record.o200k_tokens)
    other = "vllm" if protocol == "openai" else "openai"
    return Row(
        ask=record.ask,
        round=record.pass_name,
        sample=f"{record.shard}#{record.row}",
        sha256=record.sha256[:12],
        needles=record.n_needles,
        bin="" if length is None else str(length),
        tokens=record.o200k_tokens,
        kind=kind_of(record),
        outcome=record.outcome,
        ratio=None if grade is None else round(grade.match_ratio(protocol), 4),
        other=None if grade is None else round(grade.match_ratio(other), 4),
        told=told(record),
        reason=record.reason,
        finish=record.finish_reason,
        attempts=record.attempts,
        prompt=record.prompt_tokens,
        completion=record.completion_tokens,
        cached=record.cached_tokens,
        thought=record.reasoning_chars,
        first=record.seconds_to_first_token,
        seconds=round(record.seconds, 3),
        margin=record.logit_margin,
        nonce=nonce,
        wanted=kept.wanted,
        returned=kept.returned,
        outline=kept.outline,
        came=_came(seen),
        seen=seen,
    )


def _came(seen: Diagnosis | None) -> int | None:
    """The turn that a response is of, where that is known."""
    if seen is None:
        return None
    if seen.source is not None:
        return seen.source.turn
    return seen.wanted.turn if seen.wanted is not None and seen.form in RIGHT_NEEDLE else None


class _Store:
    """Texts in blocks, each text once."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._places: dict[str, Text] = {}
        self._open: list[str] = []
        self._chars = 0
        self._blocks: list[str] = []
        self._full = False

    def place(self, text: str) -> Text | None:
        """Where a text lies or will lie; None once there is no room."""
        found = self._places.get(text)
        if found is None and not self._full:
            kept = text[:LONGEST_TEXT]
            found = Text(len(self._blocks), len(self._open), len(text) - len(kept))
            self._places[text] = found
            self._open.append(kept)
            self._chars += len(kept)
            if self._chars >= BLOCK:
                self._close()
        return found

    def _close(self) -> None:
        data = zlib.compress(encode_line(self._open), 6)
        self._room -= len(data)
        if self._room < 0:
            self._full = True
        else:
            self._blocks.append(base64.b64encode(data).decode("ascii"))
        self._open, self._chars = [], 0

    def finish(self) -> list[str]:
        """All blocks."""
        if self._open and not self._full:
            self._close()
        self._places.clear()
        return self._blocks

    def kept(self, place: Text | None) -> Text | None:
        """The place, unless its block had no room."""
        return place if place is not None and place.block < len(self._blocks) else None
