# ruff: noqa: INP001, S311 - a script, not a package; its draws are no secrets
"""What the reports cost for as many samples as the dataset has: 2,400.

A run is made up: three needle counts, eight lengths, 100 samples each, seven in ten of them exact
and the others of every kind there is; texts of words that occur as often as words do, so that they
pack about as well. ``report.html`` once with answers of the dataset's length, and once at the
worst: every response another, and as long as max_tokens allows. Each is written in a process of its
own, whose peak of memory is what it adds to the interpreter and the result. Then every report of
the usual run in one process: result.json, summary, junit.xml, report.html, console, annotations.
Run as ``.venv/bin/python benchmarks/report.py``. Exits 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import random
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from mrcr_action.bins import BINS
from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import (
    Diagnosis,
    FirstWrong,
    Form,
    Likeness,
    Piece,
    Source,
    Wanted,
)
from mrcr_action.diagnosis.evidence import Place as PromptPlace
from mrcr_action.diagnosis.outline import MOST
from mrcr_action.gate import judge
from mrcr_action.grade import Grade
from mrcr_action.plan import Ask, Cell, Plan
from mrcr_action.report.annotations import annotations_of
from mrcr_action.report.console import print_result
from mrcr_action.report.html import render_html, texts_of
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import render_summary
from mrcr_action.result import DataInfo, Record, Result, ServerInfo, Timeline, encode_result
from mrcr_action.rounds import Round
from mrcr_action.stats import buckets_of, coverage_of
from mrcr_action.telemetry.cost import telemetry_of
from mrcr_action.telemetry.document import Counted, Gpu, Peaks, ServerTelemetry, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDLES = (2, 4, 8)
FORMS: tuple[Form, ...] = (
    "near copy",
    "wrong needle",
    "distractor",
    "no nonce",
    "truncated",
    "stopped early",
    "garbled",
    "degenerate",
    "unrelated",
    "failed",
)
EXACT = 0.7
MOST_SECONDS, MOST_BYTES, MOST_MEMORY = 3.0, 15_000_000, 200_000_000
ALL_SECONDS, ALL_MEMORY = 5.0, 300_000_000


class Words:
    """Texts of made-up words, the commoner the earlier they come in the list."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgk"
        self._words = [
            "".join(self._draw.choices(letters, k=self._draw.randint(2, 9))) for _ in range(6_000)
        ]
        self._weights = [1 / (rank + 3) for rank in range(len(self._words))]

    def text(self, chars: int) -> str:
        """A text of about so many characters, in lines."""
        words = self._draw.choices(self._words, self._weights, k=chars // 6)
        for at in range(11, len(words), 12):
            words[at] += ".\n"
        return " ".join(words)


def made_up(
    per_cell: int = 100, *, worst: bool = False, seed: int = 1
) -> tuple[Result, list[Record]]:
    """A result, and its journal.

    Args:
        per_cell: samples of each needle count and length.
        worst: no response is exact, and each has 10,000 characters.
        seed: another one gives other samples.
    """
    draw, words = random.Random(seed), Words(seed)
    records: list[Record] = []
    for n_needles in NEEDLES:
        for bin_ in BINS:
            for at in range(per_cell):
                tokens = draw.randint(bin_.low + 1, bin_.high)
                records.append(
                    _record(draw, words, len(records), n_needles, tokens, row=at, worst=worst)
                )
    config = RunConfig(
        model_name="org/made-up",
        protocol="openai",
        samples_per_cell=per_cell,
        thresholds={"n2": 0.6, "n4/4K-8K": 0.5, "n8": 0.97},
        max_failures=per_cell * len(NEEDLES) * len(BINS),
    )
    cells = tuple(
        Cell(n_needles=n, low=b.low, high=b.high, rows=100, fitting=100, planned=per_cell)
        for n in NEEDLES
        for b in BINS
    )
    return _result(config, records, cells), records


def _record(
    draw: random.Random,
    words: Words,
    ask: int,
    n_needles: int,
    tokens: int,
    *,
    row: int,
    worst: bool,
) -> Record:
    nonce = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=10))
    answer = nonce + words.text(draw.randint(600, 3_600))
    form: Form = "exact" if draw.random() < EXACT and not worst else draw.choice(FORMS)
    ordinal = draw.randint(1, n_needles)
    outline = _outline(draw, n_needles, tokens)
    turns = _turns(outline)
    depth, turn = turns[ordinal]
    wanted = Wanted(
        ordinal=ordinal,
        of=n_needles,
        turn=turn,
        depth=depth,
        token=round(tokens * depth),
        distance=round(tokens * (1 - depth)),
    )
    values: dict[str, Any] = {
        "ask": ask,
        "pass_name": "cold",
        "shard": f"{n_needles}needle/{n_needles}needle_0.parquet",
        "row": row,
        "sha256": f"{draw.getrandbits(256):064x}",
        "n_needles": n_needles,
        "outcome": "failed" if form == "failed" else "scored",
        "o200k_tokens": tokens,
        "prompt_tokens": tokens - len(answer) // 5,
        "completion_tokens": len(answer) // 5,
        "seconds_to_first_token": round(tokens / 40_000, 3),
        "seconds": round(tokens / 30_000, 3),
        "diagnosis": Diagnosis(form=form, wanted=wanted),
        "nonce": nonce,
        "answer": answer,
        "outline": outline,
    }
    if form == "failed":
        return Record(**values, reason="the connection broke")
    if form == "exact":
        grade = Grade(nonce_hit=True, exact=True, match_ratio_openai=1.0, match_ratio_vllm=0.995)
        return Record(**values, grade=grade, response=answer)
    if form == "truncated":
        values["outcome"] = "truncated"
    kept = draw.randint(20, len(answer))
    response = answer[:kept] + words.text(10_000 if worst else len(answer) - kept + 60)
    ratio = round(2 * kept / (len(answer) + len(response)), 4)
    grade = Grade(nonce_hit=True, exact=False, match_ratio_openai=ratio, match_ratio_vllm=ratio)
    others = [n for n in range(1, n_needles + 1) if n != ordinal]
    other = draw.choice(others)
    sources = {
        "wrong needle": Source(turn=turns[other][1], ordinal=other, ratio=0.97),
        "distractor": Source(turn=7, ratio=0.6, share=0.9),
    }
    place = PromptPlace(turn=wanted.turn, char=kept, token=round(tokens * depth) + kept // 5)
    values["diagnosis"] = msgspec.structs.replace(
        values["diagnosis"],
        first_wrong=FirstWrong(offset=kept, place=place),
        ratio=ratio,
        siblings=tuple(Likeness(ordinal=n, ratio=0.24) for n in others),
        source=sources.get(form),
    )
    return Record(**values, grade=grade, response=response)


def _outline(draw: random.Random, n_needles: int, tokens: int) -> tuple[Piece, ...]:
    """As large as one may be: pieces of many lengths."""
    turns = sorted(draw.sample(range(1, MOST - 1, 2), n_needles))
    needles = {turn: at for at, turn in enumerate(turns, start=1)}
    each = tokens // 10
    return tuple(
        Piece(
            speaker="a" if at % 2 else "u",
            chars=each + draw.randint(0, each),
            turns=1 if at in needles or at == MOST - 1 else draw.randint(1, 9),
            needle=needles.get(at),
        )
        for at in range(MOST)
    )


def _turns(outline: tuple[Piece, ...]) -> dict[int, tuple[float, int]]:
    """How deep each needle lies, and which turn it is, by its ordinal."""
    found: dict[int, tuple[float, int]] = {}
    before, turn = 0, 0
    total = sum(piece.chars for piece in outline)
    for piece in outline:
        if piece.needle is not None:
            found[piece.needle] = (round(before / total, 4), turn)
        before, turn = before + piece.chars, turn + piece.turns
    return found


def _result(config: RunConfig, records: list[Record], cells: tuple[Cell, ...]) -> Result:
    asks = tuple(
        Ask(
            index=r.ask,
            shard=r.shard,
            row=r.row,
            sha256=r.sha256,
            n_needles=r.n_needles,
            prompt_tokens=r.prompt_tokens or 1,
            o200k_tokens=r.o200k_tokens,
        )
        for r in records
    )
    quotas = dict.fromkeys(NEEDLES, len(records) // len(NEEDLES))
    plan = Plan(
        asks=asks, max_prompt_tokens=1_048_576, quotas=quotas, counted_by="server", cells=cells
    )
    buckets = buckets_of(records, quotas, protocol="openai", cells=cells)
    coverage = coverage_of(plan, records)
    overall = buckets[0]
    return Result(
        model="org/made-up",
        match_ratio=overall.match_ratio("openai"),
        prefix_hit_rate=overall.prefix_hit_rate,
        per_needle={},
        num_samples=overall.graded,
        latency=60.0,
        total_output_tokens=sum(r.completion_tokens or 0 for r in records),
        tokens_per_second=1_000.0,
        max_tokens=config.max_tokens,
        needles=config.needles,
        max_prompt_tokens=1_048_576,
        name="made up",
        tool_version="0",
        config_path="configs/made-up.yaml",
        config=config,
        started="2026-01-02T03:04:05Z",
        finished="2026-01-02T04:04:05Z",
        server=ServerInfo(
            route="process",
            base_url="http://127.0.0.1:8000",
            version="0.0",
            max_model_len=1_048_576,
            command=("vllm", "serve", "org/made-up", "--max-num-seqs", "8", "--port", "8000"),
        ),
        telemetry=_telemetry(records),
        data=DataInfo(dataset="made up", kind="folder"),
        plan=plan,
        coverage=coverage,
        buckets=buckets,
        verdict=judge(buckets, config, coverage),
        problem=None,
        timeline=Timeline(total=3_600.0),
        notes=("Every sample of this run was made up.",),
        records=tuple(record.without_text() for record in records),
    )


def _telemetry(records: list[Record]) -> Telemetry:
    """What eight GPUs and a server would tell of such a run."""
    found = telemetry_of(
        records,
        (Round(name="cold", kind="cold", concurrency=1),),
        servers=(
            ServerTelemetry(
                counted=Counted(
                    prompt_tokens=9, output_tokens=9, preemptions=1, finished={"stop": 9}
                ),
                peaks=Peaks(samples=9, kv_cache_usage=0.9, running=8, waiting=1),
            ),
        ),
        gpus=[
            Gpu(
                index=index,
                name="NVIDIA H200",
                driver="580.95.05",
                samples=9,
                memory_total=150 * 2**30,
                memory_used_peak=120 * 2**30,
                power_mean=412.4,
                power_max=690.0,
            )
            for index in range(8)
        ],
    )
    assert found is not None
    return found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _measure(worst: bool) -> tuple[float, float, int, int, int]:  # noqa: FBT001 - a process's target
    """Seconds of CPU and of the clock, bytes of the page, memory before, and its peak."""
    result, journal = made_up(worst=worst)
    texts = texts_of(journal)
    del journal
    gc.collect()
    before = _peak()
    start, clock = time.process_time(), time.perf_counter()
    page = render_html(result, texts)
    return (
        time.process_time() - start,
        time.perf_counter() - clock,
        len(page),
        before,
        _peak(),
    )


def _measure_all() -> tuple[dict[str, float], int]:
    """Seconds of CPU by report, and the peak of memory of the process."""
    result, journal = made_up()
    texts = texts_of(journal)
    del journal
    gc.collect()
    rendered: dict[str, Callable[[], object]] = {
        "result.json": lambda: encode_result(result),
        "summary": lambda: render_summary([result]),
        "junit": lambda: render_junit([result]),
        "html": lambda: render_html(result, texts),
        "console": lambda: print_result(result, (), io.StringIO()),
        "annotations": lambda: annotations_of([result]),
    }
    found = {}
    for name, render in rendered.items():
        start = time.process_time()
        render()
        found[name] = time.process_time() - start
    return found, _peak()


def main() -> int:
    """Measure both runs and compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="FILE", help="write the usual one there, and stop")
    given = parser.parse_args()
    if given.write:
        result, journal = made_up()
        with open(given.write, "wb") as file:  # noqa: PTH123
            file.write(render_html(result, texts_of(journal)))
        return 0
    missed = False
    context = multiprocessing.get_context("spawn")
    for worst in (False, True):
        with context.Pool(1) as pool:
            cpu, clock, size, before, peak = pool.apply(_measure, (worst,))
        name = "worst" if worst else "usual"
        print(
            f"{name}: {cpu:.2f} s of CPU ({clock:.2f} s), {size / 1e6:.1f} MB,"
            f" memory {peak / 1e6:.0f} MB, {(peak - before) / 1e6:.0f} more than with the result"
            " and its texts read"
        )
        missed |= cpu > MOST_SECONDS or size > MOST_BYTES or peak > MOST_MEMORY
    with context.Pool(1) as pool:
        seconds, peak = pool.apply(_measure_all)
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in seconds.items())
    whole = sum(seconds.values())
    print(f"all reports: {whole:.2f} s of CPU ({parts}), memory {peak / 1e6:.0f} MB")
    missed |= whole > ALL_SECONDS or peak > ALL_MEMORY
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
