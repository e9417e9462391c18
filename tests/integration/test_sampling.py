"""Which samples are chosen, compared with the real ``datasets`` library."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrcr_action.data.order import candidates_in_order
from mrcr_action.data.paths import shard_path
from mrcr_action.data.shards import Shards
from mrcr_action.data.writer import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Mrcr, StartStandIn

ROWS = 75


def row(n_needles: int, part: int, number: int) -> dict[str, Any]:
    return {
        "prompt": '[{"role": "user", "content": ""}]',
        "answer": f"{n_needles}/{part}/{number}",
        "random_string_to_prepend": "0123456789",
        "n_needles": n_needles,
        "desired_msg_index": 0,
        "total_messages": 0,
        "n_chars": 1000 * part + number,
        "date_added": "2025-12-01",
    }


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every shard with 75 rows in three row groups, as a real one has several."""
    folder = tmp_path_factory.mktemp("shards")
    for n_needles in (2, 4, 8):
        for part in (0, 1):
            path = folder / shard_path(n_needles, part)
            path.parent.mkdir(exist_ok=True)
            rows = [row(n_needles, part, number) for number in range(ROWS)]
            pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path, row_group_size=25)
    return folder


@pytest.fixture(autouse=True)
def _on_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the library neither count downloads on the network nor see another test's cache."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("n_needles", [2, 4, 8])
@pytest.mark.parametrize("seed", [0, 42])
def test_the_vllm_protocol_sees_rows_in_the_order_of_vllms_streaming_shuffle(
    shards: Path, n_needles: int, seed: int
) -> None:
    import datasets

    files = str(shards / shard_path(n_needles, 0))
    stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    expected = [entry["n_chars"] for entry in stream.shuffle(seed=seed + n_needles, buffer_size=16)]

    found = candidates_in_order(
        Shards(str(shards), "main"), protocol="vllm", n_needles=n_needles, seed=seed
    )

    assert [candidate.row for candidate in found] == expected
    assert expected != sorted(expected)
    assert {candidate.shard for candidate in found} == {shard_path(n_needles, 0)}


def test_a_folder_of_samples_is_read_without_a_word_to_the_network(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    asked: list[Any] = []

    def look_up(*address: Any, **_: Any) -> Any:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", True)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    Shards(str(shards), "main").load(shard_path(2, 0), 3)

    assert asked == []


def test_the_openai_protocol_draws_on_both_shards_by_seed(shards: Path) -> None:
    def order(seed: int) -> list[tuple[str, int]]:
        found = candidates_in_order(
            Shards(str(shards), "main"), protocol="openai", n_needles=4, seed=seed
        )
        return [(candidate.shard, candidate.row) for candidate in found]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(order(2))
    assert len(set(order(1))) == 2 * ROWS
    assert {shard for shard, _ in order(1)[:20]} == {shard_path(4, 0), shard_path(4, 1)}


def test_a_larger_openai_sample_contains_a_smaller_one_and_a_repeated_run_is_the_same(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    url = start_standin().url
    configs = [
        mrcr.config(name, base_url=url, dataset=str(dataset), protocol="openai", num_samples=count)
        for name, count in (("small", 6), ("again", 6), ("large", 15))
    ]

    ended = mrcr("run", *configs)

    chosen = {
        name: {(record.shard, record.row) for record in ended.result_of(name).records}
        for name in ("small", "again", "large")
    }
    assert chosen["small"] == chosen["again"]
    assert chosen["small"] < chosen["large"]
    assert len(chosen["large"]) == 15
