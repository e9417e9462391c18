"""Choosing the samples: candidates are counted by the server until every quota is full."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from mrcr_action import tokens
from mrcr_action.client import Client, Denied
from mrcr_action.data.order import candidates_in_order, parts_of
from mrcr_action.data.shards import Shards, shards_of
from mrcr_action.errors import DataError
from mrcr_action.plan import Ask, Candidate, Passed, Plan
from mrcr_action.sample import Message, Sample

if TYPE_CHECKING:
    from mrcr_action.config import RunConfig

CHARS_PER_TOKEN = 4
"""vLLM's rough filter: a row with more than 4 characters per allowed token is not counted."""

MOST_CHARS_PER_TOKEN = 8
"""The same for the openai protocol, wide enough to lose no row that fits."""

COUNTING_AHEAD = 4
"""Candidates counted at a time; they are still taken in their order."""

_HELLO = Message("user", "Hello")

Progress = Callable[[int, int], None]
"""Called with samples chosen and samples wanted."""


class Candidates:
    """Rows in the order of choice, read and measured before the server is up."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.shards = Shards(config.dataset, config.revision)
        self.by_needles: dict[int, list[Candidate]] = {}

    def check(self) -> None:
        """See at once whether local files can be read at all, before a server is started.

        Raises:
            DataError: a file is missing, is not parquet or lacks columns.
        """
        for n_needles, quota in self.config.quotas().items():
            if quota:
                self.shards.check(shards_of(n_needles, parts_of(self.config.protocol)))

    def prepare(self, limit: int | None) -> None:
        """Open the shards, order their rows and load the tokenizer; slow, so run off the loop.

        Args:
            limit: longest prompt in tokens, where it is known before the server is up.

        Raises:
            DataError: the dataset cannot be read.
        """
        for n_needles, quota in self.config.quotas().items():
            if quota == 0:
                continue
            rows = candidates_in_order(
                self.shards,
                protocol=self.config.protocol,
                n_needles=n_needles,
                seed=self.config.seed,
            )
            self.by_needles[n_needles] = rows
            likely = (c for c in rows if limit is None or not self.too_many_chars(c, limit))
            if (candidate := next(likely, None)) is not None:
                # Loads the tokenizer and touches the file, while nobody waits for either.
                tokens.count_sample(self.shards.load(candidate.shard, candidate.row))

    def too_many_chars(self, candidate: Candidate, limit: int) -> bool:
        """Whether the character count alone rules a row out."""
        vllm = self.config.protocol == "vllm"
        return candidate.n_chars > limit * (CHARS_PER_TOKEN if vllm else MOST_CHARS_PER_TOKEN)


async def choose(
    candidates: Candidates,
    *,
    client: Client,
    model: str,
    limit: int,
    progress: Progress,
) -> Plan:
    """Fill every quota with the first rows that fit.

    Args:
        candidates: prepared rows.
        client: the server whose chat template and tokenizer decide what fits.
        model: the served name.
        limit: longest prompt, in the server's tokens.
        progress: told of every sample chosen.

    Raises:
        DataError: not one row fits.
    """
    config = candidates.config
    quotas = config.quotas()
    counter = await _Counter.of(client, model, config, candidates)
    asks: list[Ask] = []
    passed: dict[int, Passed] = {}
    notes = list(counter.notes)
    for n_needles, quota in quotas.items():
        taken, chars, long, invalid = 0, 0, 0, 0
        fitting = []
        for candidate in candidates.by_needles.get(n_needles, []):
            if candidates.too_many_chars(candidate, limit):
                chars += 1
            else:
                fitting.append(candidate)
        async for candidate, sample, count in counter.in_order(fitting if quota else []):
            if count > limit:
                long += 1
                continue
            broken = sample.violations()
            if broken and config.protocol == "openai":
                invalid += 1
                notes.append(f"{sample.id} was left out: {broken[0]}.")
                continue
            asks.append(
                Ask(
                    index=len(asks),
                    shard=candidate.shard,
                    row=candidate.row,
                    sha256=sample.id.sha256,
                    n_needles=sample.n_needles,
                    prompt_tokens=count,
                    o200k_tokens=await asyncio.to_thread(tokens.count_sample, sample),
                )
            )
            taken += 1
            progress(len(asks), config.num_samples)
            if taken == quota:
                break
        passed[n_needles] = Passed(too_many_chars=chars, too_many_tokens=long, invalid=invalid)
        if taken < quota:
            notes.append(
                f"Only {taken} of {quota} samples with {n_needles} needles were found: of"
                f" {chars + len(fitting)} rows, {chars + long} do not fit into {limit:,} prompt"
                " tokens."
            )
    if not asks:
        raise DataError(
            f"no sample fits into {limit:,} prompt tokens",
            hint="Serve with a longer --max-model-len, or set --max-prompt-tokens.",
        )
    return Plan(
        asks=tuple(asks),
        max_prompt_tokens=limit,
        quotas=quotas,
        passed=passed,
        counted_by=counter.unit,
        notes=tuple(notes),
    )


class _Counter:
    """Prompt lengths, from the server's /tokenize where it has one."""

    def __init__(
        self,
        candidates: Candidates,
        count: Callable[[Sample], Awaitable[int]],
        unit: Literal["server", "o200k"],
        notes: Sequence[str] = (),
    ) -> None:
        self._shards = candidates.shards
        self._count = count
        self.unit = unit
        self.notes = notes

    @classmethod
    async def of(
        cls, client: Client, model: str, config: RunConfig, candidates: Candidates
    ) -> _Counter:
        """Try /tokenize once; a server without it is counted for in o200k tokens, and so said."""
        extras = config.request_extras.get("chat_template_kwargs")
        kwargs = extras if isinstance(extras, Mapping) else {}

        async def by_server(sample: Sample) -> int:
            return await client.count_tokens(model, sample.messages, template_kwargs=kwargs)

        async def by_o200k(sample: Sample) -> int:
            return await asyncio.to_thread(tokens.count_sample, sample)

        try:
            await client.count_tokens(model, [_HELLO], template_kwargs=kwargs)
        except Denied as denied:
            # A gateway that shows /v1 alone says any of 401, 403, 404 and 405; the key was right
            # for /v1/models.
            note = (
                f"The server has no /tokenize (HTTP {denied.status}), so what fits was decided by"
                " o200k tokens of prompt and answer, which differ from the server's own."
            )
            return cls(candidates, by_o200k, "o200k", [note])
        return cls(candidates, by_server, "server")

    async def in_order(
        self, rows: Sequence[Candidate]
    ) -> AsyncIterator[tuple[Candidate, Sample, int]]:
        """Rows with their texts and lengths, some counted ahead, none out of order."""
        waiting: deque[tuple[Candidate, asyncio.Task[tuple[Sample, int]]]] = deque()
        ahead = iter(rows)
        try:
            while True:
                while len(waiting) < COUNTING_AHEAD and (row := next(ahead, None)) is not None:
                    waiting.append((row, asyncio.create_task(self._measure(row))))
                if not waiting:
                    return
                candidate, task = waiting.popleft()
                sample, count = await task
                yield candidate, sample, count
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    async def _measure(self, row: Candidate) -> tuple[Sample, int]:
        sample = await asyncio.to_thread(self._shards.load, row.shard, row.row)
        return sample, await self._count(sample)
