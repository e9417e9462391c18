"""The vllm protocol's choice, on rows that tell their place and a server that counts by it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from mrcr_action.choice.fit import COUNTING_AHEAD, Fit
from mrcr_action.choice.quotas import QuotaChoice
from mrcr_action.client import ApiError, Broken, Denied, ModelEntry
from mrcr_action.config import RunConfig
from mrcr_action.data.store import Row, ShardIndex
from mrcr_action.errors import DataError
from mrcr_action.plan import Candidate, Passed, Plan
from mrcr_action.sample import Message, Sample, SampleId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mrcr_action.client import Client
    from mrcr_action.data.shards import Shards

NONCE = "0123456789"
ASKED = "write a poem"
O200K = 50


class FakeShards:
    """Rows whose text tells their row, each of 50 o200k tokens."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def keep(self, wanted: Mapping[str, Collection[int]], *, count: bool = True) -> None:
        self.kept += [row for rows in wanted.values() for row in rows]

    def count(self, wanted: Mapping[str, Collection[int]]) -> None:
        assert {row for rows in wanted.values() for row in rows} <= set(self.kept)

    def index(self, shard: str) -> ShardIndex:
        row = Row(
            n_needles=int(shard[0]),
            n_chars=10,
            total_messages=4,
            desired_msg_index=1,
            nonce=NONCE,
            answer_chars=20,
            prompt_tokens=O200K - 10,
            answer_tokens=10,
        )
        rows = [msgspec.structs.replace(row, sha256=f"{i:064x}") for i in range(100)]
        return ShardIndex(shard=shard, rows=rows)

    def load(self, shard: str, row: int) -> Sample:
        assert row in self.kept
        needles = int(shard[0])
        turns = [("user", "preamble"), *[("user", ASKED), ("assistant", f"poem {row}")] * needles]
        question = f"Prepend {NONCE} to the 1st (1 indexed) poem."
        messages = [Message(role, text) for role, text in turns]  # type: ignore[arg-type]
        messages.append(Message("user", question))
        return Sample(
            id=SampleId(shard, row, f"{row:064x}"),
            messages=tuple(messages),
            answer="broken" if "bad" in shard else f"{NONCE}poem {row}",
            nonce=NONCE,
            n_needles=needles,
            desired_msg_index=1,
            n_chars=sum(len(message.content) for message in messages),
        )


class FakeClient:
    """Counts by row: 100 tokens a row, the later ones the sooner."""

    def __init__(self, error: ApiError | None = None, *, after: int = 0) -> None:
        self.error = error
        self.after = after
        self.counted: list[int] = []
        self.kwargs: list[Mapping[str, Any]] = []
        self.running = self.most = 0

    async def count_tokens(
        self, model: str, messages: Sequence[Message], *, template_kwargs: Mapping[str, Any]
    ) -> int:
        assert model == "m"
        self.kwargs.append(template_kwargs)
        if self.error is not None and len(self.kwargs) > self.after:
            raise self.error
        if len(messages) == 1:
            return 1
        row = int(messages[2].content.removeprefix("poem "))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.002 / (row + 1))
        self.running -= 1
        self.counted.append(row)
        return 100 * row


def rows(n_needles: int, *numbers: int, shard: str = "", n_chars: int = 10) -> list[Candidate]:
    return [
        Candidate(
            shard=shard or f"{n_needles}needle_0",
            row=number,
            n_needles=n_needles,
            n_chars=n_chars,
            total_messages=2 * n_needles + 2,
        )
        for number in numbers
    ]


def chosen(
    by_needles: dict[int, list[Candidate]],
    *,
    limit: int = 1_000,
    client: FakeClient | None = None,
    shards: FakeShards | None = None,
    told: list[tuple[int, int]] | None = None,
    **keys: Any,
) -> Plan:
    config = RunConfig(**{"needles": tuple(by_needles), **keys})
    rows_of = cast("Shards", shards or FakeShards())
    fit = Fit(
        config,
        rows_of,
        limit=limit,
        client=cast("Client", client or FakeClient()),
        model=ModelEntry("m", None, None),
    )

    def progress(done: int, wanted: int) -> None:
        if told is not None:
            told.append((done, wanted))

    return asyncio.run(QuotaChoice(config, rows_of, by_needles).choose(fit, progress))


def rows_of(plan: Plan, n_needles: int = 2) -> list[int]:
    return [ask.row for ask in plan.asks if ask.n_needles == n_needles]


def test_quotas_are_filled_in_the_order_of_the_candidates() -> None:
    told: list[tuple[int, int]] = []

    plan = chosen(
        {2: rows(2, 5, 1, 3, 2), 4: rows(4, 9, 8, 7), 8: rows(8, 6, 4)}, num_samples=5, told=told
    )

    assert [(ask.n_needles, ask.row) for ask in plan.asks] == [
        (2, 5),
        (2, 1),
        (4, 9),
        (4, 8),
        (8, 6),
    ]
    assert [ask.index for ask in plan.asks] == [0, 1, 2, 3, 4]
    assert plan.quotas == {2: 2, 4: 2, 8: 1}
    assert told == [(number, 5) for number in range(1, 6)]
    assert plan.notes == ()
    assert plan.counted_by == "server"
    assert plan.cells == ()


def test_forty_samples_are_the_default() -> None:
    plan = chosen({n: rows(n, *range(1, 10), *range(1, 10)) for n in (2, 4, 8)})

    assert plan.quotas == {2: 14, 4: 13, 8: 13}
    assert len(plan.asks) == 40


def test_the_servers_count_decides_what_fits_and_the_limit_itself_does() -> None:
    plan = chosen({2: rows(2, 9, 3, 4, 1)}, limit=300, num_samples=2)

    assert rows_of(plan) == [3, 1]
    assert [ask.prompt_tokens for ask in plan.asks] == [300, 100]
    assert not any(ask.estimated for ask in plan.asks)
    assert plan.passed == {2: Passed(too_many_tokens=2)}
    assert plan.asks[0].o200k_tokens == O200K


def test_rows_of_more_than_four_characters_a_token_are_not_even_counted() -> None:
    client = FakeClient()
    just = rows(2, 1, n_chars=4_000)
    over = rows(2, 2, n_chars=4_001)

    plan = chosen({2: over + just}, num_samples=1, client=client)

    assert rows_of(plan) == [1]
    assert client.counted == [1]
    assert plan.passed == {2: Passed(too_many_chars=1)}


def test_too_few_samples_are_noted() -> None:
    plan = chosen({2: rows(2, 1, 99), 4: rows(4, 1)}, num_samples=4)

    assert plan.notes == (
        *[
            f"Only 1 of 2 samples with {n} needles were found: of {found} rows, {long} do not fit"
            " into 1,000 prompt tokens."
            for n, found, long in ((2, 2, 1), (4, 1, 0))
        ],
    )
    assert plan.planned(2) == plan.planned(4) == 1


def test_no_sample_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match="no sample fits into 1,000 prompt tokens"):
        chosen({2: rows(2, 99), 4: []})


def test_a_needle_count_without_a_quota_is_left_alone() -> None:
    shards = FakeShards()

    plan = chosen({2: rows(2, 1), 4: rows(4, 1)}, num_samples=1, shards=shards)

    assert plan.planned(4) == 0
    assert plan.notes == ()
    assert shards.kept == [1]


def test_a_row_that_breaks_an_invariant_is_asked_as_vllms_script_asks_it() -> None:
    plan = chosen({2: rows(2, 1, shard="2bad") + rows(2, 2)}, num_samples=1)

    assert rows_of(plan) == [1]


def test_a_few_rows_are_counted_ahead_and_not_all() -> None:
    client = FakeClient()

    plan = chosen({2: rows(2, *range(1, 10))}, num_samples=2, client=client)

    assert rows_of(plan) == [1, 2]
    assert client.most == COUNTING_AHEAD
    assert len(client.kwargs) <= 1 + 1 + COUNTING_AHEAD


def test_counting_uses_the_requests_own_template_arguments() -> None:
    client = FakeClient()
    arguments = {"enable_thinking": True}

    chosen({2: rows(2, 1)}, client=client, extra_body={"chat_template_kwargs": arguments})
    assert client.kwargs == [arguments, arguments]

    client.kwargs.clear()
    chosen({2: rows(2, 1)}, client=client)
    assert client.kwargs == [{"enable_thinking": False}] * 2

    client.kwargs.clear()
    chosen({2: rows(2, 1)}, client=client, extra_body={"top_k": 1})
    assert client.kwargs == [{}, {}]


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_without_tokenize_o200k_tokens_decide_and_it_is_noted(status: int) -> None:
    client = FakeClient(Denied(f"HTTP {status}", status=status))

    plan = chosen({2: rows(2, 99, 1)}, num_samples=1, client=client)

    assert rows_of(plan) == [99]
    assert plan.counted_by == "o200k"
    assert plan.asks[0].estimated
    # The prompt's tokens, and what a chat template usually adds to each of its messages.
    assert plan.asks[0].prompt_tokens == (O200K - 10) + 5 * 4
    assert f"no /tokenize (HTTP {status})" in plan.notes[0]
    assert len(client.kwargs) == 1


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (Denied("HTTP 401", status=401), 2),
        (Broken("HTTP 500", status=500), 0),
        (Broken("HTTP 500", status=500), 2),
    ],
)
def test_a_tokenize_that_fails_otherwise_ends_the_choice(error: ApiError, after: int) -> None:
    client = FakeClient(error, after=after)

    with pytest.raises(type(error)):
        chosen({2: rows(2, *range(1, 9))}, client=client)

    assert client.running == 0
