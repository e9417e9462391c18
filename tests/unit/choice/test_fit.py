"""How long a prompt is for the server, and what that rests on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from tests.unit.choice.choosing import MODEL, Counter, as_o200k, config_of, seen

from mrcr_action.bins import bin_of
from mrcr_action.choice.fit import MARGIN, TOKENS_PER_MESSAGE, Fit, by_shard
from mrcr_action.client import Broken, Denied
from mrcr_action.data.lengths import Length
from mrcr_action.data.store import Row
from mrcr_action.plan import Candidate

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.client import Client
    from mrcr_action.data.shards import Shards

LIMIT = 10_000


def length(prompt: int, *, exact: bool = True, messages: int = 10, number: int = 0) -> Length:
    """A row whose prompt has so many o200k tokens."""
    row = Row(
        n_needles=2,
        n_chars=5 * prompt,
        total_messages=messages,
        desired_msg_index=1,
        nonce="0123456789",
        answer_chars=50,
        prompt_tokens=prompt if exact else None,
        answer_tokens=10 if exact else None,
        sha256=f"{number}" if exact else None,
    )
    candidate = Candidate(shard="s", row=number, n_needles=2, n_chars=1, total_messages=messages)
    return Length(candidate, row, bin_of(prompt + 10), prompt + 10, prompt, exact=exact)


def fit_of(*, server: bool = False, per_message: float | None = None, limit: int = LIMIT) -> Fit:
    return Fit(
        config_of(cast("Path", "rows")),
        cast("Shards", None),
        limit=limit,
        client=cast("Client", Counter(as_o200k)) if server else None,
        model=MODEL if server else None,
        seen=seen(per_message=per_message) if per_message is not None else None,
    )


def compared(counts: dict[int, int], *, per_message: float = 5.0) -> Fit:
    """A fit that knows the server's counts of rows, by their o200k tokens."""
    fit = fit_of(server=True, per_message=per_message)
    asyncio.run(fit.begin())
    rows = [length(prompt, number=at) for at, prompt in enumerate(counts)]
    fit._counts.update({str(at): count for at, count in enumerate(counts.values())})
    fit.compare(rows)
    return fit


def test_without_a_server_lengths_are_o200k_tokens_and_a_templates_usual_ones() -> None:
    fit = fit_of()

    assert fit.unit == "o200k"
    assert fit.estimate(length(1_000, messages=10)) == 1_000 + 10 * TOKENS_PER_MESSAGE
    assert fit.fits(length(9_950)) is True
    assert fit.fits(length(9_951)) is False
    assert fit.known(length(9_951)) == 10_001


def test_a_row_that_nobody_counted_fits_or_not_only_well_away_from_the_limit() -> None:
    fit = fit_of()

    def fits(prompt: int) -> bool | None:
        return fit.fits(length(prompt, exact=False, messages=0))

    assert fits(int(LIMIT / (1 + MARGIN)) - 1) is True
    assert fits(int(LIMIT / (1 + MARGIN)) + 2) is None
    assert fits(LIMIT) is None
    assert fits(int(LIMIT / (1 - MARGIN)) - 1) is None
    assert fits(int(LIMIT / (1 - MARGIN)) + 2) is False


def test_the_servers_tokens_are_estimated_from_rows_that_both_have_counted() -> None:
    fit = compared({1_000: 2_050, 2_000: 4_050})

    assert fit.estimate(length(3_000, number=9)) == 6_050
    assert fit.estimate(length(3_000, number=9, messages=20)) == 6_100
    # Longer than the limit by far, though o200k would have room for it.
    assert fit.fits(length(6_000, number=9)) is False


def test_a_server_whose_tokens_vary_leaves_more_rows_in_doubt() -> None:
    steady = compared({1_000: 1_050, 2_000: 2_050})
    varying = compared({1_000: 850, 2_000: 2_450})

    row = length(8_500, number=9, messages=0)
    assert steady.fits(row) is True
    assert varying.fits(row) is None


def test_what_the_server_counted_is_believed_and_nothing_estimated() -> None:
    fit = compared({1_000: 1_050, 9_000: 10_001, 12_000: 10_000})

    assert fit.fits(length(9_000, number=1)) is False
    assert fit.fits(length(12_000, number=2)) is True
    assert fit.estimate(length(12_000, number=2)) == 10_000


@pytest.mark.parametrize(("per_message", "expected"), [(2.5, 1_025), (0.0, 1_000), (-3.0, 1_000)])
def test_what_a_message_costs_is_what_the_preflight_saw(per_message: float, expected: int) -> None:
    assert fit_of(per_message=per_message).estimate(length(1_000, messages=10)) == expected


def test_the_limit_is_told_in_o200k_tokens() -> None:
    fit = compared({1_000: 2_050, 2_000: 4_050})

    assert fit.longest_o200k([length(1_000, number=8, messages=0)]) == 5_000
    assert fit.longest_o200k([length(1_000, number=8, messages=20)]) == int(10_000 / 2.1)
    assert fit.longest_o200k([]) is None


def test_the_limit_in_o200k_tokens_is_guessed_before_anything_was_compared() -> None:
    fit = fit_of(server=True)
    asyncio.run(fit.begin())

    assert fit.unit == "server"
    assert fit.longest_o200k([]) is None
    assert fit.longest_o200k([length(1_000, messages=0)]) == LIMIT
    assert fit_of().longest_o200k([length(1_000, messages=0)]) == LIMIT


def test_trouble_at_the_first_look_is_no_missing_tokenize() -> None:
    client: Any = Counter(error=Broken("HTTP 500", status=500))
    fit = Fit(
        config_of(cast("Path", "rows")),
        cast("Shards", None),
        limit=LIMIT,
        client=client,
        model=MODEL,
    )

    with pytest.raises(Broken):
        asyncio.run(fit.begin())


def test_rows_are_gathered_by_shard() -> None:
    rows = [
        Candidate(shard=shard, row=number, n_needles=2, n_chars=1, total_messages=6)
        for shard, number in (("a", 3), ("b", 1), ("a", 2))
    ]
    assert by_shard(rows) == {"a": [3, 2], "b": [1]}


def test_a_row_is_counted_where_its_tokens_and_its_characters_disagree() -> None:
    fit = compared({1_000: 5_000, 1_200: 6_000}, per_message=0)
    long_words = length(1_800, exact=False, messages=0, number=7)
    row = msgspec.structs.replace(long_words.row, n_chars=3 * long_words.row.n_chars)

    assert fit.fits(long_words) is True
    # A server that counts bytes finds three times as many in it.
    assert fit.fits(replace(long_words, row=row)) is None


def test_without_tokenize_a_tenth_of_the_limit_is_kept_free() -> None:
    client: Any = Counter(error=Denied("HTTP 404", status=404))
    fit = Fit(
        config_of(cast("Path", "rows")),
        cast("Shards", None),
        limit=LIMIT,
        client=client,
        model=MODEL,
    )
    asyncio.run(fit.begin())

    assert fit.fits(length(8_900, messages=0)) is True
    assert fit.fits(length(9_100, messages=0)) is False
    # For a plan without a server there is nothing to be careful about.
    assert fit_of().fits(length(9_900, messages=0)) is True
