"""Asking every planned sample: bounded concurrency, safe retries, a journal, a watched server.

Where the verdict is certain before the end (`mrcr_action.stopping`), no request is begun any more,
and those in flight are let go: closing its stream makes a server abort a request.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mrcr_action.choice.fit import messages_of
from mrcr_action.client import ApiError, Denied, Rejected, TimedOut
from mrcr_action.client.retry import retried
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.diagnosis.forms import diagnose, lost
from mrcr_action.diagnosis.outline import outline_of
from mrcr_action.errors import MrcrError, OutputError, ServerError, UsageError
from mrcr_action.grade import grade
from mrcr_action.request import request_body
from mrcr_action.result import Record
from mrcr_action.rounds.sweep import asked_for

if TYPE_CHECKING:
    from mrcr_action.client import Client, Completion
    from mrcr_action.config import RunConfig
    from mrcr_action.data.shards import Shards
    from mrcr_action.diagnosis.evidence import Diagnosis
    from mrcr_action.grade import Grade
    from mrcr_action.journal import Journal
    from mrcr_action.plan import Ask, Plan
    from mrcr_action.rounds import Round
    from mrcr_action.sample import Sample
    from mrcr_action.stopping import Stopping

FEWEST_SILENT = 3
"""Time-outs in a row that are never taken for a stuck server, however low the concurrency."""

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
    hide: Callable[[str], str]
    """Replaces secrets in what a server or a library says."""
    progress: Progress
    salt: str | None = None
    """Keeps the cached prefixes of this run apart from those of others; None sends none."""
    stopping: Stopping | None = None
    """Says when the verdict is certain; None asks everything."""
    done: dict[int, Record] = field(default_factory=dict)
    """Finished asks by index; what a cancelled run has to show."""
    _workers: list[asyncio.Task[None]] = field(default_factory=list)
    """Those of the stage that is being asked."""
    _margin_refused: list[Rejected] = field(default_factory=list)
    """How the server refused to give log-probabilities, once it has; then it is asked no more."""
    _silent: list[TimedOut] = field(default_factory=list)
    """Time-outs since the last answer."""
    _grading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """One grade at a time: they would only slow each other down."""

    async def collect(self, plan: Plan, asks: Sequence[Ask] | None = None) -> MrcrError | None:
        """Ask everything; unless cancelled or stopped early, every ask ends in a record.

        Args:
            plan: its rounds say how many are in flight.
            asks: those of it that are meant; None for all.

        Returns:
            What stopped the asking early, if anything did: the server died, it refused the key,
            or the journal could not be written.
        """
        asks = plan.asks if asks is None else asks
        asking = asyncio.create_task(self._ask_all(plan, asks))
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
        if problem is None and self._is_over:
            return None
        why = self.hide(str(problem)) if problem else "the run was stopped"
        for ask in asks:
            if ask.index not in self.done:
                record = _lost(ask, "failed", f"not asked to the end: {why}")
                if isinstance(problem, OutputError):
                    self.done[ask.index] = record
                else:
                    self._finish(record)
        return problem

    async def _ask_all(self, plan: Plan, asks: Sequence[Ask]) -> None:
        rounds = {round_.name: round_ for round_ in plan.rounds}
        firsts = {(ask.shard, ask.row): ask.index for ask in plan.samples}
        try:
            for _, several in itertools.groupby(asks, key=lambda a: rounds[a.pass_name].stage):
                if self._is_over:
                    break
                stage = list(several)
                await self._ask_stage(stage, rounds[stage[0].pass_name], firsts)
        except ExceptionGroup as exceptions:
            raise exceptions.exceptions[0] from exceptions

    async def _ask_stage(
        self, asks: Sequence[Ask], round_: Round, firsts: Mapping[tuple[str, int], int]
    ) -> None:
        chains = _chains(asks)
        waiting = iter(chains)

        async def worker() -> None:
            graded: asyncio.Task[None] | None = None
            for chain in waiting:
                salt = self._salt(chain[0], round_, firsts)
                for ask in chain:
                    answer = await self._ask(ask, salt, round_.concurrency)
                    if answer is None:
                        await self._weigh(self.done[ask.index])
                        continue
                    # A worker goes on to the next ask while the grade is computed elsewhere; where
                    # that could end the asking, no further than to the next one.
                    before, graded = graded, group.create_task(self._grade(ask, *answer))
                    if self.stopping is not None and before is not None:
                        await asyncio.wait({before})

        async with asyncio.TaskGroup() as group:
            self._workers[:] = [
                group.create_task(worker()) for _ in range(min(round_.concurrency, len(chains)))
            ]

    @property
    def _is_over(self) -> bool:
        return self.stopping is not None and self.stopping.is_over

    async def _weigh(self, record: Record) -> None:
        """See whether the verdict is certain with a record; if so, ask no more.

        What has arrived is still graded: it was paid for.
        """
        if self.stopping is None:
            return
        stopping = self.stopping
        if self.config.decision == "confident":  # whose intervals take a while
            async with self._grading:
                is_over = await in_daemon_thread(lambda: stopping.add(record))
        else:
            is_over = stopping.add(record)
        if is_over:
            for worker in self._workers:
                worker.cancel()

    def _salt(self, first: Ask, round_: Round, firsts: Mapping[tuple[str, int], int]) -> str | None:
        """What the requests of a chain share: what was cached for others is none of theirs.

        A small cache is another matter: there, one's blocks must be able to take another's place.
        And other questions about a conversation are meant to find it in the cache.
        """
        if self.salt is None:
            return None
        if round_.is_of_pool:
            return f"{self.salt}-pool"
        head = firsts[first.shard, first.row] if first.turn is not None else first.index
        return f"{self.salt}-{head}"

    async def _ask(
        self, ask: Ask, salt: str | None, in_flight: int
    ) -> tuple[Sample, Completion, int] | None:
        """The answer to be graded, and how often it was asked for; None if none came."""
        sample = await asyncio.to_thread(self.shards.load, ask.shard, ask.row)
        if ask.turn is not None:
            sample = asked_for(sample, ask.turn)
        messages = messages_of(sample, self.config, padding=ask.padding)
        start = sample.nonce if self.config.cut_without_nonce else None
        begin, attempts = time.perf_counter(), 0

        async def send() -> Completion:
            nonlocal attempts
            attempts += 1
            asks_margin = self.config.min_logit_margin is not None and not self._margin_refused
            body = request_body(
                self.config, self.model, messages, salt=salt, asks_margin=asks_margin
            )
            try:
                return await self.client.chat(body, start=start)
            except Rejected as error:
                if not asks_margin or "logprob" not in str(error):
                    raise
                self._margin_refused.append(error)
                attempts -= 1
            return await send()

        try:
            completion = await retried(send)
        except ApiError as error:
            if isinstance(error, Denied) and (not self.done or error.status in {401, 404}):
                raise UsageError(
                    f"the server refuses the requests: {error}",
                    hint="Check the API key (MRCR_API_KEY) and the model name.",
                ) from error
            self._count_silence(error, in_flight)
            record = _lost(
                ask,
                "rejected" if isinstance(error, (Rejected, Denied)) else "failed",
                self.hide(str(error)),
                sample=sample,
                attempts=attempts,
                seconds=time.perf_counter() - begin,
            )
            self._finish(record)
            return None
        self._silent.clear()
        return sample, completion, attempts

    def _count_silence(self, error: ApiError, in_flight: int) -> None:
        """Give up on a server that takes requests and answers none.

        Args:
            error: how a request ended.
            in_flight: requests at a time in its round.

        Raises:
            ServerError: as many requests as are in flight at a time ended in a time-out, one
                after the other; all further ones would wait as long.
        """
        if not isinstance(error, TimedOut):
            self._silent.clear()
            return
        self._silent.append(error)
        if len(self._silent) >= max(in_flight, FEWEST_SILENT):
            raise ServerError(
                f"the last {len(self._silent)} requests got no answer in time: {error}",
                hint="Is the server stuck? If it is only slow, raise request_timeout_seconds or"
                " lower concurrency.",
            )

    async def _grade(
        self,
        ask: Ask,
        sample: Sample,
        completion: Completion,
        attempts: int,
    ) -> None:
        truncated = completion.finish_reason == "length"
        prompt_tokens = completion.prompt_tokens or ask.prompt_tokens

        def judged() -> tuple[Grade, Diagnosis]:
            return grade(completion.text, sample.answer, sample.nonce), diagnose(
                completion.text,
                sample,
                truncated=truncated,
                cut=completion.is_cut,
                prompt_tokens=prompt_tokens,
            )

        async with self._grading:
            graded, diagnosis = await in_daemon_thread(judged)
        record = Record(
            **_identity(ask),
            outcome="truncated" if truncated else "scored",
            grade=graded,
            diagnosis=diagnosis,
            finish_reason=completion.finish_reason,
            attempts=attempts,
            reasoning_chars=completion.reasoning_chars,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion.completion_tokens,
            cached_tokens=completion.cached_tokens,
            # Of a response that was cut, the whole text is not known.
            logit_margin=completion.logit_margin,
            digest=None if completion.is_cut else digest_of(completion.text),
            seconds_to_first_token=completion.seconds_to_first_token,
            inter_token_seconds=completion.inter_token_seconds,
            seconds=completion.seconds,
            nonce=sample.nonce,
            answer=sample.answer,
            response=completion.text,
            outline=outline_of(sample),
        )
        self._finish(record)
        await self._weigh(record.without_text())

    def _finish(self, record: Record) -> None:
        """On disk first, then counted."""
        self.journal.append(record)
        self.done[record.ask] = record.without_text()
        self.progress(record)


def digest_of(response: str) -> str:
    """Short hash of a response, by which two can be told apart."""
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _chains(asks: Iterable[Ask]) -> list[list[Ask]]:
    """Asks that follow each other at once, together."""
    found: list[list[Ask]] = []
    for ask in asks:
        if found and ask.follows == found[-1][-1].index:
            found[-1].append(ask)
        else:
            found.append([ask])
    return found


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


def _lost(
    ask: Ask,
    outcome: Literal["rejected", "failed"],
    reason: str,
    *,
    sample: Sample | None = None,
    attempts: int = 0,
    seconds: float = 0,
) -> Record:
    """The record of an ask without an answer; ``sample`` where it was read."""
    return Record(
        **_identity(ask),
        outcome=outcome,
        diagnosis=lost(outcome, sample, ask.prompt_tokens),
        reason=reason,
        attempts=attempts,
        seconds=seconds,
        prompt_tokens=ask.prompt_tokens,
        outline=None if sample is None else outline_of(sample),
    )
