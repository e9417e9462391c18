from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.choice.choosing import Counter, chosen, config_of, picks
from tests.unit.handmade import number_of, row, write_rows

from mrcr_action.choice import Choice, tokens_in, window_of
from mrcr_action.config import RunConfig
from mrcr_action.data.store import ShardStore
from mrcr_action.errors import DataError, NothingReadable

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.sample import Sample


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row(n, i, 520 + 30 * i) for n in (2, 4) for i in range(24)]
    return write_rows(tmp_path_factory.mktemp("rows"), rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("131072", 131_072),
        ("128K", 131_072),
        ("128k", 128_000),
        ("1M", 1_048_576),
        ("1m", 1_000_000),
        ("", None),
        ("-1", None),
        ("auto", None),
        ("12.5k", None),
        ("1" * 20, None),
    ],
)
def test_a_number_of_tokens_is_read_as_vllm_does(text: str, expected: int | None) -> None:
    assert tokens_in(text) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--max-model-len 128K", 131_072),
        ("--seed 1 --max-model-len=32768 --x", 32_768),
        ("--max_model_len 9000", 9_000),
        (("--max-model-len", "64k"), 64_000),
        ("--max-model-len", None),
        ("--max-model-len auto", None),
        ("--seed 1", None),
        ("", None),
    ],
)
def test_the_window_is_the_one_that_the_servers_arguments_ask_for(
    arguments: Any, expected: int | None
) -> None:
    assert window_of(RunConfig(server_args=arguments)) == expected


@pytest.mark.parametrize("protocol", ["openai", "vllm"])
def test_what_is_prepared_without_the_server_is_what_it_is_asked_later(
    dataset: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: dict[str, Any] = {"samples_per_cell": 3} if protocol == "openai" else {"num_samples": 6}
    config = config_of(dataset, needles=(2, 4), protocol=protocol, **keys)
    expected = picks(chosen(config))
    monkeypatch.setenv("MRCR_CACHE", "/nonexistent")
    choice = Choice(config)

    choice.prepare()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("read again")

    # Texts and counts are there before the server has said a word.
    monkeypatch.setattr(ShardStore, "learn", refuse)
    assert picks(chosen(config, choice=choice)) == expected


def test_nothing_that_fits_is_not_said_before_the_server_told_its_window(dataset: Path) -> None:
    config = config_of(dataset, server_args="--max-model-len 100", max_tokens=16)
    choice = Choice(config)

    choice.prepare()

    assert chosen(config, choice=choice).asks


def test_one_choice_can_be_made_for_several_limits(dataset: Path) -> None:
    choice = Choice(config_of(dataset, samples_per_cell=8))

    small = chosen(choice.config, limit=700, choice=choice)
    large = chosen(choice.config, limit=2_000, choice=choice)

    assert picks(small) < picks(large)
    assert picks(large) == picks(chosen(choice.config, limit=2_000))


@pytest.mark.parametrize("missing", ["2needle/2needle_0.parquet", "4needle/4needle_1.parquet"])
def test_a_missing_file_is_told_before_a_server_is_started(tmp_path: Path, missing: str) -> None:
    folder = write_rows(tmp_path, [row(n, i, 600) for n in (2, 4) for i in range(2)])
    (folder / missing).unlink()

    with pytest.raises(DataError, match=missing):
        Choice(config_of(folder, needles=(2, 4))).check()


def test_a_needle_count_without_samples_needs_no_file(tmp_path: Path) -> None:
    folder = write_rows(tmp_path, [row(2, i, 600) for i in range(2)])
    config = config_of(folder, needles=(2, 4), num_samples=1)

    Choice(config).check()

    assert len(chosen(config, server=Counter()).asks) == 1


def half(sample: Sample) -> str | None:
    """Why half of the rows of each shard cannot be read."""
    return (None, None, "it rhymes", "it hums")[number_of(sample.messages)[1] % 4]


@pytest.mark.parametrize(
    ("protocol", "kept"), [("openai", [0, 1, 4, 5, 8, 9]), ("vllm", [0, 4, 8])]
)
def test_rows_that_the_model_cannot_read_are_left_out_and_that_is_said(
    tmp_path: Path, protocol: str, kept: list[int]
) -> None:
    folder = write_rows(tmp_path, [row(2, number, 600 + number) for number in range(12)])
    config = config_of(folder, protocol=protocol, num_samples=12)
    choice = Choice(config, cannot_read=half)

    plan = chosen(config, choice=choice)

    samples = [choice.shards.load(ask.shard, ask.row) for ask in plan.asks]
    assert sorted(number_of(sample.messages)[1] for sample in samples) == kept
    whole = "6 rows were left out, because the probe cannot read such: it hums (3); it rhymes (3)."
    part = "3 rows were left out, because the probe cannot read such: it rhymes (3)."
    assert (whole if protocol == "openai" else part) in plan.notes
    if protocol == "openai":
        assert plan.cells[0].dropped == {"unreadable": 6}


def test_a_row_that_cannot_be_read_is_replaced_by_the_next_of_its_cell(tmp_path: Path) -> None:
    folder = write_rows(tmp_path, [row(2, number, 600 + number) for number in range(12)])
    config = config_of(folder, samples_per_cell=4)
    every = chosen(config_of(folder, samples_per_cell=12)).asks
    shards = Choice(config).shards
    readable = [a for a in every if half(shards.load(a.shard, a.row)) is None]

    plan = chosen(config, choice=Choice(config, cannot_read=half))

    assert [(a.shard, a.row) for a in plan.asks] == [(a.shard, a.row) for a in readable[:4]]


@pytest.mark.parametrize("protocol", ["openai", "vllm"])
def test_a_dataset_that_the_model_cannot_read_at_all_is_an_error_that_says_why(
    tmp_path: Path, protocol: str
) -> None:
    folder = write_rows(tmp_path, [row(2, number, 600) for number in range(4)])
    config = config_of(folder, protocol=protocol)
    choice = Choice(config, cannot_read=lambda _sample: "it rhymes")
    choice.prepare()

    with pytest.raises(NothingReadable, match=r"cannot read such: it rhymes \([24]\)"):
        chosen(config, choice=choice)
