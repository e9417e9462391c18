"""Asking every planned sample: bounded concurrency, safe retries, a journal, a watched server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrcr_action.client import ApiError, Client, Completion, Denied, Rejected, Unavailable, as_json
from mrcr_action.errors import MrcrError, OutputError, ServerError, UsageError
from mrcr_action.grade import grade
from mrcr_action.result import Record

if TYPE_CHECKING:
    from mrcr_action.config import RunConfig
    from mrcr_action.data.shards import Shards
    from mrcr_action.journal import Journal
    from mrcr_action.plan import Ask, Plan
    from mrcr_action.sample import Sample

ATTEMPTS = 4
"""How often a request that the server did not take on is sent in all."""

FIRST_PAUSE = 0.5
"""Seconds before the second attempt; doubled each time, with up to half as much jitter."""

LONGEST_PAUSE = 30.0
"""Seconds; a longer Retry-After is not waited for."""

DEATH_GRACE = 1.0
"""Seconds left to open streams, which often say why, once the server is known to be dead."""

Progress = Callable[[Record], None]


@dataclass(frozen=True, kw_only=True)
class Collector:
    """What asking needs: handed over, so that tests can hand over others."""

    config: RunConfig
    client: Client
    model: str
    shards: Shards
    journal: Journal
    died: Callable[[], Awaitable[ServerError]]
    """Returns once the server is known to be dead, with the cause; never, if nobody can know."""
    progress: Progress
    done: dict[int, Record] = field(default_factory=dict)
    """Finished asks by index; what a cancelled run has to show."""

    async def collect(self, plan: Plan) -> MrcrError | None:
        """Ask everything; every ask of the plan ends in a record, whatever happens.

        Returns:
            What stopped the asking early, if anything did: the server died, it refused the key,
            or the journal could not be written.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="grade") as grader:
            asking = asyncio.create_task(self._ask_all(plan, grader))
            death = asyncio.ensure_future(self.died())
            problem: MrcrError | None = None
            try:
                await asyncio.wait({asking, death}, return_when=asyncio.FIRST_COMPLETED)
                if death.done() and not asking.done():
                    problem = death.result()
                    await asyncio.wait({asking}, timeout=DEATH_GRACE)
            finally:
                for task in (asking, death):
                    task.cancel()
                ended, _ = await asyncio.gather(asking, death, return_exceptions=True)
            if isinstance(ended, MrcrError):
                problem = problem or ended
            elif isinstance(ended, Exception):
                raise ended
        why = str(problem) if problem else "the run was stopped"
        for ask in plan.asks:
            if ask.index not in self.done:
                record = _lost(ask, "failed", f"not asked to the end: {why}")
                if isinstance(problem, OutputError):
                    self.done[ask.index] = record
                else:
                    self._finish(record)
        return problem

    async def _ask_all(self, plan: Plan, grader: ThreadPoolExecutor) -> None:
        waiting = iter(plan.asks)

        async def worker() -> None:
            for ask in waiting:
                sample, outcome = await self._ask(ask)
                if isinstance(outcome, Record):
                    self._finish(outcome)
                else:
                    # A worker goes on to the next ask while the grade is computed elsewhere.
                    group.create_task(self._grade(ask, sample, *outcome, grader))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.config.concurrency, len(plan.asks))):
                    group.create_task(worker())
        except ExceptionGroup as several:
            raise several.exceptions[0] from several

    async def _ask(self, ask: Ask) -> tuple[Sample, Record | tuple[Completion, int]]:
        sample = await asyncio.to_thread(self.shards.load, ask.shard, ask.row)
        body = request_body(self.config, self.model, sample)
        begin = time.perf_counter()
        attempt = 0
        while True:
            attempt += 1
            try:
                return sample, (await self.client.chat(body), attempt)
            except Unavailable as error:
                pause = max(error.retry_after, FIRST_PAUSE * 2 ** (attempt - 1))
                if attempt < ATTEMPTS and pause <= LONGEST_PAUSE:
                    await asyncio.sleep(pause * random.uniform(1, 1.5))  # noqa: S311 - jitter
                    continue
                lost: ApiError = error
            except Denied as error:
                raise UsageError(
                    f"the server refuses every request: {error}",
                    hint="Check the API key (MRCR_API_KEY) and the model name.",
                ) from error
            except ApiError as error:
                lost = error
            outcome = "rejected" if isinstance(lost, Rejected) else "failed"
            seconds = time.perf_counter() - begin
            return sample, _lost(ask, outcome, str(lost), attempts=attempt, seconds=seconds)

    async def _grade(
        self,
        ask: Ask,
        sample: Sample,
        completion: Completion,
        attempts: int,
        grader: ThreadPoolExecutor,
    ) -> None:
        loop = asyncio.get_running_loop()
        graded = await loop.run_in_executor(
            grader, grade, completion.text, sample.answer, sample.nonce
        )
        truncated = completion.finish_reason == "length"
        self._finish(
            Record(
                **_identity(ask),
                outcome="truncated" if truncated else "scored",
                grade=graded,
                finish_reason=completion.finish_reason,
                attempts=attempts,
                reasoning_chars=completion.reasoning_chars,
                prompt_tokens=completion.prompt_tokens or ask.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                seconds_to_first_token=completion.seconds_to_first_token,
                seconds=completion.seconds,
                nonce=sample.nonce,
                answer=sample.answer,
                response=completion.text,
            ),
        )

    def _finish(self, record: Record) -> None:
        """On disk first, then counted."""
        self.journal.append(record)
        self.done[record.ask] = record.without_text()
        self.progress(record)


def request_body(config: RunConfig, model: str, sample: Sample) -> dict[str, Any]:
    """The body of one chat completion.

    Every sampling parameter is sent with its neutral value, since a server takes what is not
    sent from the model's generation_config.json. ``extra_body`` overrides everything but the
    seed, as in vLLM's script; a null in it drops the field, for servers that refuse it.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": as_json(sample.messages),
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        **config.request_extras,
        "seed": config.seed,
    }
    return {key: value for key, value in body.items() if value is not None}


def _identity(ask: Ask) -> dict[str, Any]:
    return {
        "ask": ask.index,
        "pass_name": ask.pass_name,
        "shard": ask.shard,
        "row": ask.row,
        "sha256": ask.sha256,
        "n_needles": ask.n_needles,
        "o200k_tokens": ask.o200k_tokens,
    }


def _lost(ask: Ask, outcome: Any, reason: str, *, attempts: int = 0, seconds: float = 0) -> Record:
    return Record(
        **_identity(ask),
        outcome=outcome,
        reason=reason,
        attempts=attempts,
        seconds=seconds,
        prompt_tokens=ask.prompt_tokens,
    )
