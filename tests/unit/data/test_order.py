"""In which order rows are considered; the streaming library itself is compared in integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.handmade import row, write_rows

from mrcr_action.data import order
from mrcr_action.data.order import candidates_in_order, parts_of
from mrcr_action.data.shards import Shards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row(2, number, 100) for number in range(60)]
    return write_rows(tmp_path_factory.mktemp("rows"), rows)


def rows_of(dataset: Path, protocol: str, seed: int = 42) -> list[tuple[str, int]]:
    found = candidates_in_order(Shards(str(dataset), ""), protocol=protocol, n_needles=2, seed=seed)
    return [(candidate.shard[-9], candidate.row) for candidate in found]


def test_a_protocol_reads_both_shards_or_vllms_first_one() -> None:
    assert (list(parts_of("openai")), list(parts_of("vllm"))) == ([0, 1], [0])


def test_the_order_of_the_openai_protocol_never_changes(dataset: Path) -> None:
    # Fixed here, since results of different versions are compared with each other.
    assert rows_of(dataset, "openai")[:5] == [("1", 10), ("0", 24), ("1", 16), ("1", 8), ("1", 17)]


def test_a_rows_place_depends_on_the_seed_and_itself_alone(dataset: Path, tmp_path: Path) -> None:
    longer = write_rows(tmp_path, [row(2, number, 100) for number in range(90)])

    known = set(rows_of(dataset, "openai"))
    assert [place for place in rows_of(longer, "openai") if place in known] == rows_of(
        dataset, "openai"
    )
    assert rows_of(dataset, "openai", seed=1) != rows_of(dataset, "openai")


def test_the_order_of_the_vllm_protocol_is_remembered(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rows_of(dataset, "vllm")
    assert sorted(first) == [("0", number) for number in range(30)]
    assert rows_of(dataset, "vllm", seed=1) != first

    def refuse(*_: object) -> list[int]:
        raise AssertionError("shuffled again")

    monkeypatch.setattr(order, "_shuffle", refuse)
    assert rows_of(dataset, "vllm") == first


@pytest.mark.parametrize("content", ["", "[]", "null", "{", "[0, 1, 2]", '["a"]', "5"])
def test_an_order_that_is_none_is_found_out_anew(
    dataset: Path, own_cache: Path, content: str
) -> None:
    first = rows_of(dataset, "vllm")
    (remembered,) = (own_cache / "order").rglob("*.json")
    remembered.write_text(content)

    assert rows_of(dataset, "vllm") == first
