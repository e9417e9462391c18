"""How long a prompt is for the server: asked of /tokenize where it matters, else estimated.

A server counts with its own tokenizer and chat template. Counting a prompt of a million tokens
keeps it busy for seconds, so it is asked about a few rows, which tells how its tokens compare to
o200k's, and then about rows near the limit only. What it said is kept in the cache: under the
row's hash, and under everything that a count depends on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mrcr_action.cache import entry, locked, replace
from mrcr_action.client import Denied
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.request import template_kwargs
from mrcr_action.rounds.padding import padded
from mrcr_action.sample import Message
from mrcr_action.template import merge_leading_user_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mrcr_action.client import Client, ModelEntry
    from mrcr_action.config import RunConfig
    from mrcr_action.data.lengths import Length
    from mrcr_action.data.shards import Shards
    from mrcr_action.plan import Candidate
    from mrcr_action.sample import Sample
    from mrcr_action.template import Preflight

COUNTING_AHEAD = 4
"""Rows that the server counts at a time."""

MARGIN = 0.1
"""How far an estimate may be off; within it of the limit, a row is counted."""

TOKENS_PER_MESSAGE = 5.0
"""What a chat template adds to a message, where the server does not tell."""

_HELLO = Message("user", "Hello")


class Fit:
    """Prompt lengths for one server, or for none: then in o200k tokens."""

    def __init__(
        self,
        config: RunConfig,
        shards: Shards,
        *,
        limit: int,
        client: Client | None = None,
        model: ModelEntry | None = None,
        seen: Preflight | None = None,
    ) -> None:
        """Prepare to measure; nothing is asked yet.

        Args:
            config: what is sent with every request, and so decides the template.
            shards: the rows.
            limit: longest prompt, in the server's tokens.
            client: the server; None to go by o200k tokens alone.
            model: its model.
            seen: what the preflight showed of the template.
        """
        self._config = config
        self._shards = shards
        self.limit = limit
        self._client = client
        self._model = model
        self.unit: Literal["server", "o200k"] = "o200k"
        self.notes: list[str] = []
        known = seen.tokens_per_message if seen is not None else None
        self._per_message = TOKENS_PER_MESSAGE if known is None else max(0.0, known)
        self._ratios: list[float] = []
        """Server's tokens to one of o200k, in the rows compared."""
        self._by_char: list[float] = []
        """The same to one character: another tokenizer may follow that more closely."""
        self._counts: dict[str, int] = {}
        """The server's counts by content hash: this run's and those of earlier ones."""
        self._used: set[str] = set()
        self._file = self._cache_file(seen)
        self._begun = False

    @property
    def tokenized(self) -> int:
        """Rows that the plan depends on and the server has counted, be it for an earlier run."""
        return len(self._used)

    async def begin(self) -> None:
        """Try /tokenize once; a server without it is counted for in o200k tokens, and so said.

        Raises:
            ApiError: the server is in trouble.
        """
        if self._client is None or self._model is None or self._begun:
            return
        try:
            await self._client.count_tokens(
                self._model.id, [_HELLO], template_kwargs=template_kwargs(self._config)
            )
        except Denied as denied:
            # A gateway that shows /v1 alone says any of 401, 403, 404 and 405; the key was right
            # for /v1/models.
            self.notes.append(
                f"The server has no /tokenize (HTTP {denied.status}), so what fits was decided by"
                " o200k tokens of the prompt, which differ from the server's own; a tenth of the"
                " limit is kept free."
            )
        else:
            self.unit = "server"
            self._counts = self._read_cache()
        self._begun = True

    async def count(self, candidates: Iterable[Candidate]) -> None:
        """Have the server count some rows, unless it did before.

        Raises:
            ApiError: the server is in trouble, or refuses a conversation.
            DataError: a row cannot be read.
        """
        if self.unit != "server":
            await in_daemon_thread(partial(self._shards.count, by_shard(candidates)))
            return
        free = asyncio.Semaphore(COUNTING_AHEAD)
        try:
            async with asyncio.TaskGroup() as group:
                for candidate in candidates:
                    group.create_task(self._count(candidate, free))
        except ExceptionGroup as several:
            raise several.exceptions[0] from several

    async def _count(self, candidate: Candidate, free: asyncio.Semaphore) -> None:
        async with free:
            row = self._shards.index(candidate.shard).rows[candidate.row]
            await self.exact(candidate, str(row.sha256))

    async def exact(self, candidate: Candidate, sha256: str) -> int:
        """The server's own count of a row's prompt.

        Args:
            candidate: the row.
            sha256: its content hash.

        Raises:
            ApiError: as `count`.
            DataError: the row cannot be read.
        """
        if sha256 not in self._counts:
            assert self._client is not None
            assert self._model is not None
            sample = await in_daemon_thread(
                partial(self._shards.load, candidate.shard, candidate.row)
            )
            self._counts[sha256] = await self._client.count_tokens(
                self._model.id,
                messages_of(sample, self._config),
                template_kwargs=template_kwargs(self._config),
            )
        self._used.add(sha256)
        return self._counts[sha256]

    def compare(self, lengths: Iterable[Length]) -> None:
        """Learn from rows that both have counted how the server's tokens compare to o200k's."""
        lengths = list(lengths)
        self._by_char = [
            (count - self._per_message * x.row.total_messages) / x.row.n_chars
            for x in lengths
            if x.row.n_chars and (count := self.rely(x)) is not None
        ]
        self._ratios = [
            (count - self._per_message * length.row.total_messages) / length.prompt_tokens
            for length in lengths
            if length.exact and length.prompt_tokens and (count := self.known(length)) is not None
        ]

    def known(self, length: Length) -> int | None:
        """The server's count of a row, if there is one; without a server, o200k's."""
        if self.unit == "o200k":
            return self.estimate(length) if length.exact else None
        return self._counts.get(length.row.sha256 or "")

    def rely(self, length: Length) -> int | None:
        """`known`, for a row that the plan depends on: one of those that `tokenized` counts."""
        count = self.known(length)
        if count is not None and self.unit == "server":
            self._used.add(str(length.row.sha256))
        return count

    def estimate(self, length: Length) -> int:
        """The server's count of a row, known or not."""
        if self.unit == "server" and (count := self.known(length)) is not None:
            return count
        return self.in_o200k(length.prompt_tokens, length.row.total_messages)

    def in_o200k(self, prompt_tokens: int, messages: int) -> int:
        """What a prompt of so many o200k tokens and messages comes to for the server, about."""
        ratios = self._ratios or [1.0]
        return round(sum(ratios) / len(ratios) * prompt_tokens + self._per_message * messages)

    def fits(self, length: Length) -> bool | None:
        """Whether a row fits; None when that is too close to say without counting it.

        An unknown row is estimated twice, by its o200k tokens and by its characters: a tokenizer
        need not follow either, and where they disagree the row is counted.
        """
        count = self.known(length)
        if count is not None:
            return count <= self._longest
        verdict = self._verdict(self._ratios or [1.0], length.prompt_tokens, length)
        if self._by_char and verdict != self._verdict(self._by_char, length.row.n_chars, length):
            return None
        return verdict

    def seems_to_fit(self, length: Length) -> bool:
        """Whether a row fits, by its estimate where that is too close to say."""
        verdict = self.fits(length)
        return self.estimate(length) <= self._longest if verdict is None else verdict

    @property
    def _longest(self) -> int:
        """The limit; less a margin where a server is there and does not count itself."""
        if self.unit == "o200k" and self._client is not None:
            return int(self.limit * (1 - MARGIN))
        return self.limit

    def _verdict(self, ratios: Sequence[float], size: int, length: Length) -> bool | None:
        frame = self._per_message * length.row.total_messages
        if (max(ratios) * size + frame) * (1 + MARGIN) <= self._longest:
            return True
        if (min(ratios) * size + frame) * (1 - MARGIN) > self._longest:
            return False
        return None

    def longest_o200k(self, lengths: Iterable[Length]) -> int | None:
        """About how many o200k tokens of prompt the limit is; None without any row to tell by."""
        shares = [
            self._per_message * length.row.total_messages / length.prompt_tokens
            for length in lengths
            if length.prompt_tokens
        ]
        if not shares:
            return None
        ratios = self._ratios or [1.0]
        return int(self._longest / (sum(ratios) / len(ratios) + sum(shares) / len(shares)))

    def save(self) -> None:
        """Keep the server's counts for the next run, where the cache can be written."""
        if self._file is None or not self._used:
            return
        with contextlib.suppress(OSError), locked(self._file):
            replace(self._file, msgspec.json.encode(self._read_cache() | self._counts))

    def _cache_file(self, seen: Preflight | None) -> Path | None:
        """Where counts are kept that depend on the same things; None if not all are known."""
        if self._model is None or seen is None or not seen.fingerprint:
            return None
        parts: list[Any] = [
            self._model.id,
            self._model.root,
            template_kwargs(self._config),
            self._config.merge_leading_user_turns,
            seen.fingerprint,
        ]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return entry("tokenize", key[:32]) / "counts.json"

    def _read_cache(self) -> dict[str, int]:
        if self._file is None:
            return {}
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.MsgspecError):
            return {}


def messages_of(sample: Sample, config: RunConfig, *, padding: int = 0) -> tuple[Message, ...]:
    """A sample's conversation as it is sent, with so many words added to its first turn."""
    messages = padded(sample.messages, padding)
    if config.merge_leading_user_turns:
        return merge_leading_user_turns(messages)
    return messages


def by_shard(candidates: Iterable[Candidate]) -> dict[str, list[int]]:
    """Row numbers by shard."""
    found: dict[str, list[int]] = {}
    for candidate in candidates:
        found.setdefault(candidate.shard, []).append(candidate.row)
    return found
