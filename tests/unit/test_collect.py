from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mrcr_action import collect
from mrcr_action.client import ApiError, Broken, Completion, Denied, Rejected, TimedOut, Unavailable
from mrcr_action.client.retry import ATTEMPTS
from mrcr_action.collect import Collector
from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis
from mrcr_action.diagnosis.outline import outline_of
from mrcr_action.errors import DataError, MrcrError, OutputError, ServerError, UsageError
from mrcr_action.grade import grade
from mrcr_action.journal import Journal, read_journal
from mrcr_action.plan import Ask, Plan
from mrcr_action.rounds import with_rounds
from mrcr_action.sample import Message, Sample, SampleId
from mrcr_action.stopping import Stopping

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from mrcr_action.client import Client
    from mrcr_action.data.shards import Shards
    from mrcr_action.result import Record

NONCE = "0123456789"
_sleep = asyncio.sleep
SHARD = "2needle/2needle_0.parquet"


def sample(row: int) -> Sample:
    return Sample(
        id=SampleId(SHARD, row, "0"),
        messages=(
            Message("user", str(row)),
            Message("user", "write an answer"),
            Message("assistant", f"answer {row}"),
            Message("user", f"Prepend {NONCE} to it."),
        ),
        answer=f"{NONCE}answer {row}",
        nonce=NONCE,
        n_needles=2,
        desired_msg_index=1,
        n_chars=1,
    )


def completion(text: str, finish: str = "stop") -> Completion:
    return Completion(
        text=text,
        finish_reason=finish,
        reasoning_chars=3,
        prompt_tokens=None,
        completion_tokens=4,
        seconds_to_first_token=0.1,
        seconds=0.2,
    )


class FakeShards:
    def load(self, shard: str, row: int) -> Sample:
        if row >= 1000:
            raise DataError(f"{shard}, row {row}: gone")
        return sample(row)


class FakeClient:
    """Answers by a script: for each row, what happens at each attempt; then rightly."""

    def __init__(self, script: dict[int, list[Exception | Completion]] | None = None) -> None:
        self.script = script or {}
        self.asked: list[int] = []
        self.starts: list[str | None] = []
        self.running = self.most = 0
        self.seconds = 0.0
        self.hang = asyncio.Event()
        self.hanging: set[int] = set()

    async def chat(self, body: dict[str, Any], *, start: str | None = None) -> Completion:
        self.starts.append(start)
        row = int(body["messages"][0]["content"])
        self.asked.append(row)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await _sleep(self.seconds)
            if row in self.hanging:
                await self.hang.wait()
            step = self.script.get(row, []).pop(0) if self.script.get(row) else None
            if isinstance(step, Exception):
                raise step
            return step or completion(sample(row).answer)
        finally:
            self.running -= 1


async def never() -> ServerError:
    await asyncio.Event().wait()
    raise AssertionError


def plan_of(*rows: int) -> Plan:
    asks = tuple(
        Ask(
            index=index,
            shard=SHARD,
            row=row,
            sha256="0",
            n_needles=2,
            prompt_tokens=100 + row,
            o200k_tokens=50,
        )
        for index, row in enumerate(rows)
    )
    return Plan(
        asks=asks, max_prompt_tokens=9999, quotas={2: len(asks)}, passed={}, counted_by="server"
    )


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "samples.jsonl") as opened:
        yield opened


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between attempts, which the tests do not sit through."""
    taken: list[float] = []

    async def record(seconds: float) -> None:
        if seconds:
            taken.append(seconds)
        await _sleep(0)

    monkeypatch.setattr("mrcr_action.client.retry.asyncio.sleep", record)
    monkeypatch.setattr("mrcr_action.client.retry.random.uniform", lambda low, high: low)
    return taken


def collected(
    journal: Journal,
    rows: range | list[int],
    make_client: Callable[[], FakeClient] = FakeClient,
    *,
    died: Callable[[], Awaitable[ServerError]] = never,
    progress: Callable[[Record], None] = lambda record: None,
    **keys: Any,
) -> tuple[dict[int, Record], MrcrError | None, FakeClient]:
    async def body() -> tuple[dict[int, Record], MrcrError | None, FakeClient]:
        client = make_client()
        plan = with_rounds(plan_of(*rows), RunConfig(**keys))
        collector = Collector(
            config=RunConfig(**keys),
            client=cast("Client", client),
            model="m",
            shards=cast("Shards", FakeShards()),
            journal=journal,
            died=died,
            hide=lambda text: text.replace("hunter2", "***"),
            progress=progress,
            stopping=Stopping(RunConfig(**keys), plan),
        )
        problem = await asyncio.wait_for(collector.collect(plan), 20)
        return collector.done, problem, client

    return asyncio.run(body())


def scripted(**script: list[Exception | Completion]) -> Callable[[], FakeClient]:
    return lambda: FakeClient({int(row[1:]): list(steps) for row, steps in script.items()})


def test_every_ask_ends_in_a_record_that_is_on_disk_before_it_counts(journal: Journal) -> None:
    told: list[tuple[int, int]] = []

    def progress(record: Record) -> None:
        told.append((record.ask, len(read_journal(journal.path))))

    done, problem, _ = collected(journal, range(5), progress=progress)

    assert problem is None
    assert sorted(done) == [0, 1, 2, 3, 4]
    assert [lines for _, lines in told] == [1, 2, 3, 4, 5]
    assert sorted(ask for ask, _ in told) == [0, 1, 2, 3, 4]
    assert {record.outcome for record in done.values()} == {"scored"}
    assert all(record.grade is not None and record.grade.exact for record in done.values())


def test_texts_are_kept_in_the_journal_only(journal: Journal) -> None:
    done, _, _ = collected(journal, [7])

    (line,) = read_journal(journal.path)
    assert (line.answer, line.response, line.nonce) == (f"{NONCE}answer 7",) * 2 + (NONCE,)
    assert line.outline == outline_of(sample(7))
    assert (done[0].answer, done[0].response, done[0].nonce) == (None, None, None)
    assert done[0].outline is None
    assert (done[0].prompt_tokens, done[0].completion_tokens) == (107, 4)
    assert (done[0].reasoning_chars, done[0].seconds) == (3, 0.2)


def test_an_answer_that_was_cut_is_graded_and_called_truncated(journal: Journal) -> None:
    done, _, _ = collected(journal, [1], scripted(r1=[completion(f"{NONCE}ans", finish="length")]))

    assert (done[0].outcome, done[0].finish_reason) == ("truncated", "length")
    assert done[0].grade is not None
    assert 0 < done[0].grade.match_ratio_openai < 1


def test_a_busy_server_is_asked_again_with_growing_pauses(
    journal: Journal, pauses: list[float]
) -> None:
    busy: list[Exception | Completion] = [Unavailable("HTTP 503: full") for _ in range(3)]

    done, problem, client = collected(journal, [1], scripted(r1=busy))

    assert problem is None
    assert pauses == [0.5, 1.0, 2.0]
    assert client.asked == [1] * 4
    assert (done[0].outcome, done[0].attempts) == ("scored", 4)


def test_a_server_that_stays_busy_is_given_up(journal: Journal, pauses: list[float]) -> None:
    busy: list[Exception | Completion] = [Unavailable("HTTP 503: full") for _ in range(9)]

    done, problem, client = collected(journal, [1, 2], scripted(r1=busy))

    assert problem is None
    assert client.asked.count(1) == ATTEMPTS == len(pauses) + 1
    assert (done[0].outcome, done[0].reason, done[0].attempts) == ("failed", "HTTP 503: full", 4)
    assert done[1].outcome == "scored"


@pytest.mark.parametrize(
    ("retry_after", "expected"), [(0, [0.5]), (7, [7]), (30, [30]), (31, []), (86400, [])]
)
def test_retry_after_is_obeyed_unless_it_is_too_long(
    journal: Journal, pauses: list[float], retry_after: int, expected: list[float]
) -> None:
    busy = Unavailable("HTTP 429: slow down", status=429, retry_after=retry_after)

    done, _, _ = collected(journal, [1], scripted(r1=[busy]))

    assert pauses == expected
    assert done[0].outcome == ("scored" if expected else "failed")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Broken("cut"), "failed"), (Rejected("HTTP 400: too long"), "rejected")],
)
def test_what_a_second_attempt_would_not_help_is_asked_once(
    journal: Journal, error: ApiError, outcome: str
) -> None:
    done, problem, client = collected(journal, [1, 2], scripted(r1=[error]))

    assert problem is None
    assert client.asked.count(1) == 1
    assert (done[0].outcome, done[0].reason, done[0].grade) == (outcome, str(error), None)
    assert read_journal(journal.path)[0].outline == outline_of(sample(1))
    assert done[1].outcome == "scored"


def test_a_refused_key_stops_the_run_and_leaves_no_ask_without_a_record(
    journal: Journal,
) -> None:
    done, problem, client = collected(
        journal,
        range(20),
        scripted(r3=[Denied("HTTP 401: Unauthorized", status=401)]),
        concurrency=2,
    )

    assert isinstance(problem, UsageError)
    assert "MRCR_API_KEY" in problem.hint
    assert len(client.asked) < 10
    assert sorted(done) == list(range(20))
    assert len(read_journal(journal.path)) == 20
    assert done[19].outcome == "failed"
    assert done[19].reason == (
        "not asked to the end: the server refuses the requests: HTTP 401: Unauthorized"
    )


def test_a_row_that_cannot_be_read_stops_the_run(journal: Journal) -> None:
    done, problem, _ = collected(journal, [1, 1000, 2], concurrency=1)

    assert isinstance(problem, DataError)
    assert [done[index].outcome for index in (1, 2)] == ["failed", "failed"]
    assert done[2].reason == f"not asked to the end: {SHARD}, row 1000: gone"


def test_a_dead_server_fails_what_is_left_without_waiting_for_it(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "DEATH_GRACE", 0.05)
    finished = asyncio.Event()

    def progress(record: Record) -> None:
        if len(read_journal(journal.path)) == 2:
            finished.set()

    async def died() -> ServerError:
        await finished.wait()
        return ServerError("the server ended by itself with exit code 0")

    def client() -> FakeClient:
        made = FakeClient()
        made.hanging = set(range(2, 20))
        return made

    done, problem, asked = collected(
        journal, range(20), client, died=died, progress=progress, concurrency=3
    )

    assert isinstance(problem, ServerError)
    assert [done[index].outcome for index in range(20)] == ["scored"] * 2 + ["failed"] * 18
    assert done[2].reason == ("not asked to the end: the server ended by itself with exit code 0")
    assert len(asked.asked) <= 5


def test_open_streams_of_a_dead_server_may_say_why_they_broke(journal: Journal) -> None:
    async def died() -> ServerError:
        return ServerError("dead")

    done, problem, _ = collected(
        journal, [1, 2], scripted(r1=[Broken("reset")], r2=[Broken("reset")]), died=died
    )

    assert isinstance(problem, ServerError)
    assert [done[index].reason for index in range(2)] == ["reset", "reset"]


def test_a_server_that_dies_after_the_last_answer_is_no_problem(journal: Journal) -> None:
    async def died() -> ServerError:
        await asyncio.Event().wait()
        raise AssertionError

    _, problem, _ = collected(journal, [1], died=died)

    assert problem is None


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3), (8, 6)])
def test_no_more_requests_are_in_flight_than_configured(
    journal: Journal, concurrency: int, most: int
) -> None:
    def slow() -> FakeClient:
        made = FakeClient()
        made.seconds = 0.1
        return made

    _, _, client = collected(journal, range(6), slow, concurrency=concurrency)

    assert client.most == most
    assert sorted(client.asked) == list(range(6))


def test_the_loop_goes_on_while_an_answer_is_graded(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    grading, asked_on = threading.Event(), threading.Event()
    threads = set()

    def slow(response: str, answer: str, nonce: str) -> Any:
        threads.add(threading.current_thread())
        grading.set()
        assert asked_on.wait(10), "the next request was not sent meanwhile"
        return grade(response, answer, nonce)

    class Watching(FakeClient):
        async def chat(self, body: dict[str, Any], *, start: str | None = None) -> Completion:
            if grading.is_set():
                asked_on.set()
            return await super().chat(body)

    monkeypatch.setattr(collect, "grade", slow)

    def client() -> FakeClient:
        return Watching()

    done, _, _ = collected(journal, range(8), client, concurrency=1)

    assert len(done) == 8
    assert threading.main_thread() not in threads
    assert all(thread.daemon for thread in threads)


def test_a_full_disk_stops_the_run_and_is_not_written_to_again(journal: Journal) -> None:
    written = 0

    class Full:
        path = journal.path

        def append(self, record: Record) -> None:
            nonlocal written
            written += 1
            if written > 2:
                raise OutputError("samples.jsonl: cannot be written: No space left on device")

    done, problem, _ = collected(cast("Journal", Full()), range(10), concurrency=1)

    assert isinstance(problem, OutputError)
    assert 3 <= written < 10
    assert sorted(done) == list(range(10))
    assert sum(record.outcome == "scored" for record in done.values()) == 2


def test_a_fault_of_this_program_is_raised_and_not_taken_for_the_servers(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(collect, "grade", broken)

    with pytest.raises(ZeroDivisionError):
        collected(journal, [1])


def test_a_cancelled_run_keeps_what_is_done(journal: Journal) -> None:
    async def body() -> dict[int, Record]:
        client = FakeClient()
        client.hanging = {2, 3}
        collector = Collector(
            config=RunConfig(),
            client=cast("Client", client),
            model="m",
            shards=cast("Shards", FakeShards()),
            journal=journal,
            died=never,
            hide=str,
            progress=lambda record: None,
        )
        collecting = asyncio.create_task(collector.collect(plan_of(0, 1, 2, 3)))
        async with asyncio.timeout(10):
            while len(collector.done) < 2:
                await _sleep(0)
        collecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await collecting
        assert client.running == 0
        return collector.done

    assert sorted(asyncio.run(body())) == [0, 1]


def test_a_server_that_answers_nothing_is_given_up_on(journal: Journal) -> None:
    client = FakeClient({row: [TimedOut("no complete answer within 9 s")] for row in range(20)})
    done, problem, _ = collected(journal, range(20), lambda: client, concurrency=4)
    assert isinstance(problem, ServerError)
    assert str(problem).startswith("the last 4 requests got no answer in time: no complete answer")
    assert len(client.asked) <= 8
    assert [record.outcome for record in done.values()] == ["failed"] * 20


def test_in_a_round_of_single_requests_three_that_got_no_answer_are_enough(
    journal: Journal,
) -> None:
    # A request may take half an hour: to wait for as many as another round has in flight is a day.
    def make() -> FakeClient:
        return FakeClient({row: [completion("x"), *[TimedOut("late")] * 9] for row in range(20)})

    _, problem, client = collected(journal, range(20), make, concurrency=(16, 1))
    assert str(problem).startswith("the last 3 requests got no answer in time")
    assert len(client.asked) == 23


def test_time_outs_between_answers_stop_nothing(journal: Journal) -> None:
    script: dict[int, list[Exception | Completion]] = {
        row: [TimedOut("late")] for row in range(0, 20, 2)
    }
    done, problem, _ = collected(journal, range(20), lambda: FakeClient(script), concurrency=1)
    assert problem is None
    assert [done[index].outcome for index in range(20)] == ["failed", "scored"] * 10


def test_a_secret_that_the_server_quotes_is_not_written(journal: Journal) -> None:
    script = scripted(r0=[Broken("HTTP 500: bad key hunter2")])
    collected(journal, range(1), script)
    assert [record.reason for record in read_journal(journal.path)] == ["HTTP 500: bad key ***"]


def test_one_forbidden_prompt_among_answers_is_a_refusal_of_that_prompt(journal: Journal) -> None:
    script = scripted(r3=[Denied("HTTP 403: blocked", status=403)])
    done, problem, _ = collected(journal, range(6), script, concurrency=1)
    assert problem is None
    assert [record.outcome for record in done.values()].count("scored") == 5
    assert (done[3].outcome, done[3].grade) == ("rejected", None)


WRONG = "something else"


def all_wrong(n: int, hanging: set[int] | None = None) -> Callable[[], FakeClient]:
    def make() -> FakeClient:
        client = FakeClient({row: [completion(WRONG)] for row in range(n)})
        client.hanging = hanging or set()
        return client

    return make


@pytest.mark.parametrize("decision", ["point", "confident"])
def test_nothing_more_is_asked_once_no_threshold_can_be_reached(
    journal: Journal, decision: str
) -> None:
    done, problem, client = collected(
        journal,
        range(40),
        all_wrong(40),
        concurrency=1,
        match_ratio_threshold=0.8,
        stop_when="failed",
        decision=decision,
        needles=(2,),
    )

    assert problem is None
    assert len(done) < 40
    assert sorted(done) == list(range(len(done)))
    assert {record.outcome for record in done.values()} == {"scored"}
    assert len(client.asked) <= len(done) + 1
    assert len(read_journal(journal.path)) == len(done)


def test_requests_in_flight_are_let_go_and_leave_no_record(journal: Journal) -> None:
    hanging = {1, 3}

    done, problem, client = collected(
        journal,
        range(20),
        all_wrong(20, hanging),
        concurrency=4,
        match_ratio_threshold=0.8,
        stop_when="failed",
        needles=(2,),
    )

    assert problem is None
    assert client.running == 0  # although nobody answered them
    assert hanging < set(client.asked)
    assert not hanging & set(done)


def test_a_later_stage_is_not_begun_once_it_is_decided(journal: Journal) -> None:
    done, _, _ = collected(
        journal,
        range(10),
        all_wrong(10),
        concurrency=(2, 1),
        match_ratio_threshold=0.8,
        stop_when="failed",
        needles=(2,),
    )

    assert len(done) < 10
    assert {record.pass_name for record in done.values()} == {"cold"}


def test_lost_requests_too_can_settle_a_verdict(journal: Journal) -> None:
    broken: dict[int, list[Exception | Completion]] = {r: [Broken("reset")] for r in range(20)}

    done, problem, _ = collected(
        journal,
        range(20),
        lambda: FakeClient(broken),
        concurrency=1,
        thresholds={"all": {"failure_rate": 0.1}},
        stop_when="failed",
        needles=(2,),
    )

    assert problem is None
    assert [done[index].outcome for index in sorted(done)] == ["failed"] * 3


def test_a_response_has_to_start_with_its_nonce_only_where_that_is_set(journal: Journal) -> None:
    _, _, client = collected(journal, [1], cut_without_nonce=True)
    assert client.starts == [NONCE]
    _, _, client = collected(journal, [1])
    assert client.starts == [None]


def test_a_response_that_was_cut_scores_0_and_its_text_is_not_taken_for_whole(
    journal: Journal,
) -> None:
    cut = replace(completion("Well", finish="cut"), is_cut=True)

    done, _, _ = collected(journal, [1], scripted(r1=[cut]), cut_without_nonce=True)

    assert (done[0].outcome, done[0].finish_reason, done[0].digest) == ("scored", "cut", None)
    assert done[0].grade == grade("Well", sample(1).answer, NONCE)
    assert done[0].grade is not None
    assert done[0].grade.match_ratio_openai == done[0].grade.match_ratio_vllm == 0


def test_every_record_says_what_kind_of_fault_there_is(journal: Journal) -> None:
    script: dict[int, list[Exception | Completion]] = {
        1: [completion(f"answer {1}")],
        2: [Rejected("HTTP 400: too long")],
        3: [Broken("cut")],
        4: [completion(sample(4).answer[:-1], "length")],
    }
    done, _, _ = collected(journal, range(5), lambda: FakeClient(script))

    found = [done[at].diagnosis for at in range(5)]
    assert [one.form if one else None for one in found] == [
        *("exact", "no nonce", "rejected", "failed", "truncated")
    ]
    assert all(one and one.wanted and one.wanted.turn == 2 for one in found)
    written = {record.ask: record.diagnosis for record in read_journal(journal.path)}
    assert written == dict(enumerate(found))


def test_what_was_never_sent_has_the_form_of_its_outcome(journal: Journal) -> None:
    async def died() -> ServerError:
        return ServerError("it died")

    def client() -> FakeClient:
        made = FakeClient()
        made.hanging = {0, 1, 2}
        return made

    done, _, _ = collected(journal, range(3), client, died=died)

    assert [done[at].diagnosis for at in range(3)] == [Diagnosis(form="failed")] * 3
