# ruff: noqa: INP001 - a script, not a package
"""What choosing and reading samples costs: CPU time and peak memory, against `datasets`.

``.venv/bin/python benchmarks/data.py FOLDER`` measures on the shards of ``benchmarks/fixture.py``,
which it writes into the folder unless they are there (one of 270 MB; six with ``--plan``, and
5 GB in all). Every method runs in a process of its own, all of them in turn, several times; the
medians are compared with the targets. Exits 1 when one is missed.

The task is vLLM's: of the first shard, in the order of a streaming shuffle with a buffer of 16, the
first 40 rows that pass the filter of 4 characters for each of 131,072 tokens. The peers read them
and no more. This project also hashes each row and keeps it for the next run. With nothing cached it
is measured in its own order of rows (the openai protocol's), and in vLLM's, for which it imports
`datasets`; and with all that a run does then: counting tokens and checking invariants.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fixture import SHARDS, describe, fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mrcr_action.config import RunConfig

ROWS = 40
WINDOW = 131_072
LONGEST_WINDOW = 1_048_576
SEED = 42
NEEDLES = 2
MAX_CHARS = 4 * WINDOW


@dataclass(frozen=True)
class Measured:
    """One process."""

    cpu: float
    """Seconds, the user's and the system's, from the interpreter's start to its end."""
    stage: float
    """Seconds thereof after the imports that a program has at its top."""
    wall: float
    """Seconds on the clock of the stage."""
    peak: float
    """Megabytes (10**6) of memory, at most."""
    rows: int
    chars: int


@dataclass(frozen=True)
class Place:
    """Where things lie."""

    folder: Path

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"

    @property
    def full_bundle(self) -> Path:
        return self.folder / "full-bundle"

    @property
    def first_shard(self) -> Path:
        return self.shards / SHARDS[0]


def _datasets(place: Place) -> Iterator[int]:
    import datasets

    yield 0
    stream = datasets.load_dataset(
        "parquet", data_files=str(place.first_shard), split="train", streaming=True
    )
    taken = 0
    for row in stream.shuffle(seed=SEED + NEEDLES, buffer_size=16):
        if row["n_chars"] <= MAX_CHARS:
            yield len(row["prompt"])
            taken += 1
            if taken == ROWS:
                return


def _pandas(place: Place) -> Iterator[int]:
    import pandas as pd  # type: ignore[import-untyped]

    yield 0
    frame = pd.read_parquet(place.first_shard)
    yield from map(len, frame[frame.n_chars <= MAX_CHARS].head(ROWS).prompt)


def _pyarrow(place: Place) -> Iterator[int]:
    """A pass that keeps what is wanted: the first 40 rows that pass, in the file's order."""
    import pyarrow.parquet as pq

    yield 0
    taken = 0
    with pq.ParquetFile(place.first_shard, buffer_size=1 << 20, pre_buffer=False) as file:
        for batch in file.iter_batches(4, columns=["n_chars", "prompt"], use_threads=False):
            sizes = batch.column("n_chars").to_pylist()
            for size, prompt in zip(sizes, batch.column("prompt"), strict=True):
                if size <= MAX_CHARS and taken < ROWS:
                    yield len(prompt.as_py())
                    taken += 1
            if taken == ROWS:
                return


def _reader(place: Place) -> Iterator[int]:
    """The project's reader alone: which rows is known from the short columns."""
    from mrcr_action.data.parquet import read_short, read_texts

    yield 0
    sizes = read_short(place.first_shard)["n_chars"]
    rows = [row for row, size in enumerate(sizes) if size <= MAX_CHARS][:ROWS]
    for _, text in read_texts(place.first_shard, rows):
        yield len(text.prompt.decode())


def _config(dataset: Path) -> RunConfig:
    from mrcr_action.config import RunConfig

    return RunConfig(protocol="vllm", needles=(NEEDLES,), seed=SEED, dataset=str(dataset))


def _read(place: Place, protocol: str) -> Iterator[int]:
    """Choose and read, as far as the peers go."""
    from mrcr_action.data.order import candidates_in_order
    from mrcr_action.data.shards import Shards

    yield 0
    shards = Shards(str(place.shards), "")
    order = candidates_in_order(shards, protocol=protocol, n_needles=NEEDLES, seed=SEED)
    own = [row for row in order if row.shard == SHARDS[0]]
    chosen = [row for row in own if row.n_chars <= MAX_CHARS][:ROWS]
    shards.keep({SHARDS[0]: [row.row for row in chosen]}, count=False)
    for row in chosen:
        yield shards.load(row.shard, row.row).n_chars


def _chosen(dataset: Path) -> Iterator[int]:
    """What a run does before it asks: it chooses, then loads what it will send."""
    from mrcr_action.choice import Choice

    yield 0
    choice = Choice(_config(dataset))
    choice.check()
    plan = asyncio.run(choice.choose(limit=WINDOW))
    for ask in plan.asks:
        yield choice.shards.load(ask.shard, ask.row).n_chars


def _planned(place: Place) -> Iterator[int]:
    """The openai protocol's choice over six shards, as a server with a window of 1M gets it."""
    from mrcr_action.choice import Choice
    from mrcr_action.config import RunConfig

    yield 0
    config = RunConfig(protocol="openai", seed=SEED, dataset=str(place.full_bundle))
    choice = Choice(config)
    choice.check()
    plan = asyncio.run(choice.choose(limit=LONGEST_WINDOW))
    for ask in plan.asks:
        yield ask.o200k_tokens


METHODS: dict[str, tuple[str, Callable[[Place], Iterator[int]]]] = {
    "datasets": ("datasets, streaming, shuffle(16)", _datasets),
    "pandas": ("pandas, whole file", _pandas),
    "pyarrow": ("pyarrow, iter_batches", _pyarrow),
    "reader": ("the reader alone", _reader),
    "first": ("choose and read, nothing cached", lambda place: _read(place, "openai")),
    "vllm": ("the same, in vLLM's order", lambda place: _read(place, "vllm")),
    "counted": ("the same, counted and checked", lambda place: _chosen(place.shards)),
    "cache": ("choose and load, from the cache", lambda place: _chosen(place.shards)),
    "bundle": ("choose and load, from a bundle", lambda place: _chosen(place.bundle)),
    "plan": ("plan over six shards of a bundle", _planned),
}


def child(method: str, place: Place) -> None:
    """Run a method and print what it cost inside."""
    found = METHODS[method][1](place)
    next(found)
    begin, wall = time.process_time(), time.perf_counter()
    rows = chars = 0
    for size in found:
        rows += 1
        chars += size
    wall = time.perf_counter() - wall
    print(json.dumps([time.process_time() - begin, wall, rows, chars]))


def write_bundles(place: Place, *, full: bool) -> None:
    """Write the bundles that are not there yet, as `mrcr data fetch` does."""
    from mrcr_action.config import RunConfig
    from mrcr_action.data.fetch import write_bundle
    from mrcr_action.data.selection import selection_of
    from mrcr_action.data.shards import Shards

    wanted = [(place.bundle, _config(place.shards), WINDOW)]
    if full:
        config = RunConfig(protocol="openai", dataset=str(place.shards))
        wanted.append((place.full_bundle, config, LONGEST_WINDOW))
    for folder, config, window in wanted:
        if not folder.exists():
            shards, selection = Shards(config.dataset, ""), selection_of(config, window)
            write_bundle(shards, folder, selection, seed=SEED)


def measure(method: str, place: Place, cache: Path) -> Measured:
    """Run a method in a process of its own, and have it waited for by what counts its memory."""
    command = [sys.executable, __file__, str(place.folder), "--child", method]
    environ = os.environ | {"MRCR_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    # Where `datasets` keeps what it finds out about files: not in the user's own folder.
    environ["HF_HOME"] = str(place.folder / "hf")
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{method}: exit code {process.returncode}")
    stage, wall, rows, chars = json.loads(said)
    return Measured(
        cpu=usage.ru_utime + usage.ru_stime,
        stage=stage,
        wall=wall,
        peak=usage.ru_maxrss * 1024 / 1e6,
        rows=rows,
        chars=chars,
    )


def measure_all(methods: list[str], place: Place, runs: int) -> dict[str, Measured]:
    """Medians of all methods, run in turn."""
    found: dict[str, list[Measured]] = {method: [] for method in methods}
    for _ in range(runs):
        for method in methods:
            with tempfile.TemporaryDirectory(prefix="mrcr-bench-") as empty:
                cache = place.cache if method == "cache" else Path(empty)
                found[method].append(measure(method, place, cache))
    return {method: _median(several) for method, several in found.items()}


def _median(several: list[Measured]) -> Measured:
    return Measured(
        cpu=statistics.median(m.cpu for m in several),
        stage=statistics.median(m.stage for m in several),
        wall=statistics.median(m.wall for m in several),
        peak=statistics.median(m.peak for m in several),
        rows=several[0].rows,
        chars=several[0].chars,
    )


def targets(found: dict[str, Measured]) -> list[tuple[str, float, bool]]:
    """Each target as a sentence, what was found, and whether it is met."""
    peer = found["datasets"]
    listed = []

    def at_least(what: str, ratio: float, target: float) -> None:
        listed.append((f"{what}: at least {target:g} times less", ratio, ratio >= target))

    def at_most(what: str, value: float, limit: float, unit: str) -> None:
        listed.append((f"{what}: at most {limit:g} {unit}", value, value <= limit))

    first = found["first"]
    at_least("nothing cached, CPU of the process", peer.cpu / first.cpu, 5)
    at_least("nothing cached, peak memory", peer.peak / first.peak, 2.5)
    for method in ("cache", "bundle"):
        at_least(f"{method}, CPU of the process", peer.cpu / found[method].cpu, 100)
        at_least(f"{method}, CPU of the stage", peer.stage / found[method].stage, 100)
        at_most(f"{method}, peak memory", found[method].peak, 60, "MB")
    if "plan" in found:
        at_most("plan over six shards, on the clock", found["plan"].wall, 1, "s")
    return listed


def main() -> int:
    """Measure, print, and compare with the targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the shards lie or will")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plan", action="store_true", help="with six shards, plan over them")
    parser.add_argument("--child", choices=METHODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    place = Place(options.folder)
    if options.child:
        child(options.child, place)
        return 0
    prepare(place, full=options.plan)
    methods = [method for method in METHODS if method != "plan" or options.plan]
    found = measure_all(methods, place, options.runs)
    print(f"medians of {options.runs} runs, methods in turn")
    print(f"{'':36}{'CPU s':>9}{'stage s':>9}{'clock s':>9}{'peak MB':>9}{'rows':>6}{'MB':>7}")
    for method, m in found.items():
        print(
            f"{METHODS[method][0]:36}{m.cpu:9.3f}{m.stage:9.3f}{m.wall:9.3f}{m.peak:9.0f}"
            f"{m.rows:6}{m.chars / 1e6:7.1f}"
        )
    missed = 0
    peer, reader = found["datasets"], found["reader"]
    print(
        f"the reader alone: {peer.cpu / reader.cpu:.1f} times less CPU of the process,"
        f" {peer.peak / reader.peak:.1f} times less memory"
    )
    for what, value, met in targets(found):
        print(f"{'met   ' if met else 'MISSED'}  {what}: {value:.2f}")
        missed += not met
    return int(missed > 0)


def prepare(place: Place, *, full: bool) -> None:
    """Have shards, bundles and a filled cache there; in processes whose memory does not count."""
    # The peak of a child counts from its parent's size on, so this process stays small.
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import data;"
        " data.prepare_here(data.Place(pathlib.Path(sys.argv[2])), full=sys.argv[3] == 'True')"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(place.folder), str(full)]
    subprocess.run(command, check=True)
    shutil.rmtree(place.cache, ignore_errors=True)
    measure("counted", place, place.cache)


def prepare_here(place: Place, *, full: bool) -> None:
    """Write what is not there yet."""
    for path in fixture(place.shards, shards=6 if full else 1):
        print(describe(path))
    with tempfile.TemporaryDirectory(prefix="mrcr-bench-") as cache:
        os.environ["MRCR_CACHE"] = cache
        write_bundles(place, full=full)


if __name__ == "__main__":
    sys.exit(main())
