"""The vllm protocol's choice: the first rows that fit, so many for each needle count.

Rows are considered in the order of vLLM's own script, and each is counted by the server until the
quota is full, as there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from mrcr_action.choice.fit import COUNTING_AHEAD, by_shard
from mrcr_action.choice.notes import nothing_readable, unreadable
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.data.order import CHARS_PER_TOKEN
from mrcr_action.errors import NothingFits
from mrcr_action.plan import Ask, Candidate, Passed, Plan

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from mrcr_action.choice.fit import Fit
    from mrcr_action.config import RunConfig
    from mrcr_action.data.shards import Shards
    from mrcr_action.sample import Sample


class QuotaChoice:
    """The choice for one configuration; made anew for every limit that is tried."""

    def __init__(
        self,
        config: RunConfig,
        shards: Shards,
        by_needles: Mapping[int, Sequence[Candidate]],
        cannot_read: Callable[[Sample], str | None] | None = None,
    ) -> None:
        self._config = config
        self._shards = shards
        self._by_needles = by_needles
        self._cannot_read = cannot_read

    async def choose(self, fit: Fit, progress: Callable[[int, int], None]) -> Plan:
        """Fill every quota.

        Args:
            fit: what the limit is and how to measure against it.
            progress: told how many samples are chosen, of how many.

        Raises:
            DataError: not one row fits; or rows cannot be read.
            ApiError: the server is in trouble.
        """
        await fit.begin()
        quotas = self._config.quotas()
        chosen: list[tuple[Candidate, int]] = []
        passed: dict[int, Passed] = {}
        notes = list(fit.notes)
        reasons: list[str] = []
        for n_needles, quota in quotas.items():
            rows = self._by_needles.get(n_needles, []) if quota else []
            fitting = [c for c in rows if c.n_chars <= CHARS_PER_TOKEN * fit.limit]
            chars, long, taken = len(rows) - len(fitting), 0, 0
            async with aclosing(self._counted(fitting, quota, fit)) as counted:
                async for candidate, count in counted:
                    if count > fit.limit:
                        long += 1
                        continue
                    if reason := await in_daemon_thread(partial(self._judge, candidate)):
                        reasons.append(reason)
                        continue
                    chosen.append((candidate, count))
                    taken += 1
                    progress(len(chosen), sum(quotas.values()))
                    if taken == quota:
                        break
            passed[n_needles] = Passed(too_many_chars=chars, too_many_tokens=long)
            if taken < quota:
                notes.append(
                    f"Only {taken} of {quota} samples with {n_needles} needles were found: of"
                    f" {len(rows)} rows, {chars + long} do not fit into {fit.limit:,} prompt"
                    " tokens."
                )
        fit.save()
        notes += unreadable(reasons)
        if not chosen and reasons:
            raise nothing_readable(self._config, fit.limit, notes[-1])
        if not chosen:
            raise NothingFits(fit.limit)
        await in_daemon_thread(partial(self._shards.count, by_shard(row for row, _ in chosen)))
        return Plan(
            asks=tuple(self._ask(at, *found, fit) for at, found in enumerate(chosen)),
            max_prompt_tokens=fit.limit,
            quotas=quotas,
            passed=passed,
            counted_by=fit.unit,
            tokenized=fit.tokenized,
            notes=tuple(notes),
        )

    def _judge(self, candidate: Candidate) -> str | None:
        """Why the model cannot read a row; None if it can, or nothing is known of it."""
        if self._cannot_read is None:
            return None
        return self._cannot_read(self._shards.load(candidate.shard, candidate.row))

    def _ask(self, index: int, candidate: Candidate, count: int, fit: Fit) -> Ask:
        row = self._shards.index(candidate.shard).rows[candidate.row]
        return Ask(
            index=index,
            shard=candidate.shard,
            row=candidate.row,
            sha256=str(row.sha256),
            n_needles=candidate.n_needles,
            prompt_tokens=count,
            estimated=fit.unit != "server",
            o200k_tokens=row.tokens or 0,
        )

    async def _counted(
        self, rows: Sequence[Candidate], quota: int, fit: Fit
    ) -> AsyncGenerator[tuple[Candidate, int], None]:
        """Rows with their lengths, some counted ahead, none out of order."""
        waiting: deque[tuple[Candidate, asyncio.Task[int]]] = deque()
        # Bringing texts takes a pass over the file, so it is done for many rows at a time.
        step = max(quota, COUNTING_AHEAD)
        count = fit.unit != "server"
        try:
            for at, row in enumerate(rows):
                if at % step == 0:
                    some = by_shard(rows[at : at + step])
                    await in_daemon_thread(partial(self._shards.keep, some, count=count))
                waiting.append((row, asyncio.create_task(self._count(row, fit))))
                if len(waiting) >= COUNTING_AHEAD:
                    candidate, task = waiting.popleft()
                    yield candidate, await task
            while waiting:
                candidate, task = waiting.popleft()
                yield candidate, await task
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    async def _count(self, candidate: Candidate, fit: Fit) -> int:
        row = self._shards.index(candidate.shard).rows[candidate.row]
        if fit.unit != "server":
            return fit.in_o200k(row.prompt_tokens or 0, row.total_messages)
        return await fit.exact(candidate, str(row.sha256))
