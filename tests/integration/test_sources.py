"""The same samples from everywhere: the hub, local parquet, and bundles taken from either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.integration.conftest import Mrcr, commands, standins
from tests.integration.hub.fake_hub import FakeHub
from tests.integration.six_shards import NEEDLES, write_six_shards

from mrcr_action.cache import CACHE_VARIABLE
from mrcr_action.config.keys import REVISION
from mrcr_action.result import encode_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mrcr_action.result import DataInfo, Result

PROTOCOLS = ("openai", "vllm")

SOURCES = ("hub", "folder", "bundle of the hub", "bundle of the folder")

CHOICES: dict[str, dict[str, int]] = {
    "openai": {"samples_per_cell": 2},
    "vllm": {"num_samples": 9, "max_prompt_tokens": 8192 - 2304},
}
"""How many samples there are to be; the limit is what the window of the server comes to."""

Row = tuple[str, int, str]
"""Shard, row and hash."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Every run, by source, cache and protocol."""

    results: dict[tuple[str, str, str], Result]
    folder: str
    hub_requests: dict[tuple[str, str], int]
    """How many came in during a command, by source and cache."""

    def asked(self, source: str, cache: str, protocol: str) -> list[Row]:
        """What was asked, in order."""
        records = self.results[source, cache, protocol].records
        return [(record.shard, record.row, record.sha256) for record in records]

    def data(self, source: str) -> list[DataInfo]:
        """What the results say of the dataset."""
        return [result.data for key, result in self.results.items() if key[0] == source]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]
) -> Iterator[Runs]:
    """Both protocols from every source, from an empty cache of their own and again from it."""
    base = tmp_path_factory.mktemp("sources")
    folder = write_six_shards(base / "dataset")
    environment = {key: clean_environment[key] for key in clean_environment if key[:3] != "HF_"}
    with (
        standins(base) as start,
        FakeHub(folder) as hub,
        commands(base / "work", environment) as mrcr,
    ):
        mrcr.environment |= {"HF_HOME": str(base / "home"), "HF_ENDPOINT": hub.endpoint}
        url = start("--max-model-len", "8192").url
        fetch(mrcr, base, "openai/mrcr", "bundle of the hub", "--allow-unverified")
        fetch(mrcr, base, str(folder), "bundle of the folder")
        # What the fetch has brought shall not help a run from the hub.
        mrcr.environment["HF_HOME"] = str(base / "another home")
        names = dict(zip(SOURCES, ("openai/mrcr", str(folder), *SOURCES[2:]), strict=True))
        results, requests = {}, {}
        for source in SOURCES:
            # A bundle is its own store.
            for cache in ("cold", "warm") if not source.startswith("bundle") else ("cold",):
                before = len(hub.requests)
                for protocol, result in run(mrcr, base, url, source, names[source]).items():
                    results[source, cache, protocol] = result
                requests[source, cache] = len(hub.requests) - before
        yield Runs(results, str(folder), requests)


def fetch(mrcr: Mrcr, base: Path, dataset: str, to: str, *flags: str) -> None:
    """Write a bundle for each protocol, with a cache of its own."""
    for protocol in PROTOCOLS:
        ended = mrcr(
            *("data", "fetch", "--protocol", protocol, "--window", "8K", "--dataset", dataset),
            *("--to", f"{to}, {protocol}", *flags),
            env={CACHE_VARIABLE: str(base / f"cache to fetch {to}")},
        )
        assert ended.code == 0, ended.said


def run(mrcr: Mrcr, base: Path, url: str, source: str, dataset: str) -> dict[str, Result]:
    """Run both protocols in one command."""
    configs = [
        mrcr.config(
            protocol,
            protocol=protocol,
            dataset=f"{dataset}, {protocol}" if source.startswith("bundle") else dataset,
            base_url=url,
            allow_unverified=True,
            **CHOICES[protocol],
        )
        for protocol in PROTOCOLS
    ]
    ended = mrcr("run", *configs, env={CACHE_VARIABLE: str(base / f"cache of {source}")})
    assert ended.code == 0, ended.said
    return {protocol: ended.result_of(protocol) for protocol in PROTOCOLS}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("source", "cache"),
    [("hub", "warm"), ("folder", "cold"), ("folder", "warm"), *((s, "cold") for s in SOURCES[2:])],
)
def test_the_same_rows_are_asked_in_the_same_order(
    runs: Runs, source: str, cache: str, protocol: str
) -> None:
    expected = runs.asked("hub", "cold", protocol)
    assert runs.asked(source, cache, protocol) == expected
    assert len({row[2] for row in expected}) == len(expected)


def test_the_rows_are_worth_comparing(runs: Runs) -> None:
    """Both shards, all needle counts, several cells, and not in the order of the files."""
    asked = runs.asked("hub", "cold", "openai")
    assert {shard for shard, _, _ in asked} == {
        f"{n}needle/{n}needle_{part}.parquet" for n in NEEDLES for part in (0, 1)
    }
    assert asked != sorted(asked)
    result = runs.results["hub", "cold", "openai"]
    assert len({(cell.low, cell.n_needles) for cell in result.coverage if cell.scored}) >= 12
    assert any(cell.dropped.get("too long") for cell in result.coverage)
    asked = runs.asked("hub", "cold", "vllm")
    assert {shard for shard, _, _ in asked} == {f"{n}needle/{n}needle_0.parquet" for n in NEEDLES}
    assert len(asked) == 9
    assert asked != sorted(asked)


@pytest.mark.parametrize("source", SOURCES)
def test_answers_and_plans_are_the_same(runs: Runs, source: str) -> None:
    for protocol in PROTOCOLS:
        expected, found = (runs.results[s, "cold", protocol] for s in ("hub", source))
        assert [r.grade for r in found.records] == [r.grade for r in expected.records]
        assert found.plan is not None
        assert expected.plan is not None
        assert found.plan.asks == expected.plan.asks
        assert found.plan.max_prompt_tokens == 8192 - 2304


def test_a_result_says_where_its_rows_came_from(runs: Runs) -> None:
    for info in runs.data("hub"):
        assert (info.kind, info.dataset, info.origin) == ("hub", "openai/mrcr", None)
        assert (info.revision, info.verified) == (REVISION, False)
    for info in runs.data("folder"):
        assert (info.kind, info.dataset, info.origin) == ("folder", runs.folder, None)
        assert (info.revision, info.verified) == (None, None)
    for info in runs.data("bundle of the hub"):
        assert (info.kind, info.origin) == ("bundle", "openai/mrcr")
        assert info.dataset.startswith("bundle of the hub, ")
        assert (info.revision, info.verified) == (REVISION, False)
    for info in runs.data("bundle of the folder"):
        assert (info.kind, info.origin) == ("bundle", runs.folder)
        assert (info.revision, info.verified) == (None, None)


def test_the_hub_is_asked_once_for_each_file_and_never_for_a_bundle(runs: Runs) -> None:
    # One look and one fetch for each of the six files.
    assert runs.hub_requests.pop(("hub", "cold")) == 12
    assert set(runs.hub_requests.values()) == {0}


def test_a_result_is_what_its_file_says(runs: Runs) -> None:
    """The fields that the documentation names are those of the document."""
    for (source, _, _), result in runs.results.items():
        data = json.loads(encode_result(result))["data"]
        assert data["kind"] == source.split()[0]
        assert set(data) >= {"kind", "origin", "revision", "verified"}
