from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis, Floor, Wanted
from mrcr_action.grade import Grade
from mrcr_action.report.rows import table_of
from mrcr_action.report.summary import WORST_SHOWN, render_summary
from mrcr_action.result import DataInfo, Problem, Record, Result, ServerInfo, Verdict

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OWN_HTML = {
    "<details><summary>The end of the log</summary>",
    "<details><summary>The worst of 3 inexact or lost samples</summary>",
    "<details><summary>By needles and length: 3 cells</summary>",
    "</details>",
}


def tables(text: str) -> list[list[list[str]]]:
    """Every table as rows of cells."""
    found: list[list[list[str]]] = []
    for token in MARKDOWN.parse(text):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and found[-1] and token.level >= 4:
            found[-1][-1].append("".join(t.content for t in token.children or []))
    return found


def flat(tokens: list[Token]) -> list[Token]:
    return [t for token in tokens for t in [token, *flat(token.children or [])]]


GATED = RunConfig(num_samples=3, match_ratio_threshold={2: 0.9, 4: 0.8, 8: 0.7})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "## 📏 MRCR measured, nothing gated: Qwen3.5-4B"),
        ({"config": GATED}, "## ✅ MRCR passed: Qwen3.5-4B"),
        (
            {"config": RunConfig(num_samples=3, match_ratio_threshold=0.95)},
            "## ❌ MRCR failed: Qwen3.5-4B",
        ),
        ({"records": []}, "## ⚠️ MRCR is inconclusive: Qwen3.5-4B"),
        (
            {"problem": Problem(kind="ServerError", message="it died")},
            "## ⚠️ MRCR is inconclusive: Qwen3.5-4B",
        ),
    ],
)
def test_the_first_line_is_the_verdict(
    make_result: MakeResult, changes: dict[str, Any], expected: str
) -> None:
    result = make_result(name="Qwen3.5-4B", **changes)
    first, blank, *_ = render_summary([result]).splitlines()
    assert (first, blank) == (expected, "")


def test_the_whole_section_of_a_pass(make_result: MakeResult) -> None:
    assert render_summary([make_result(config=GATED, model="org/model")]) == (
        "## ✅ MRCR passed: model\n"
        "\n"
        r"MRCR passed: match\_ratio\_n2: 0.9000 &gt;= 0.9000 - 0.0500;"
        r" match\_ratio\_n4: 0.8000 &gt;= 0.8000 - 0.0500;"
        r" match\_ratio\_n8: 0.7000 &gt;= 0.7000 - 0.0500"
        "\n\n"
        "| bucket | verdict | ratio | 95 % | needed | nonce | exact | graded | lost | step"
        " | openai |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| all samples | · measured | 0.8000 | – | – | 1.000 | 0.000 | 3/3 | 0 | 0.3333"
        " | 0.8000 |\n"
        "| 2 needles | ✓ pass | 0.9000 | – | 0.8500 | 1.000 | 0.000 | 1/1 | 0 | 1.0000"
        " | 0.9000 |\n"
        "| 4 needles | ✓ pass | 0.8000 | – | 0.7500 | 1.000 | 0.000 | 1/1 | 0 | 1.0000"
        " | 0.8000 |\n"
        "| 8 needles | ✓ pass | 0.7000 | – | 0.6500 | 1.000 | 0.000 | 1/1 | 0 | 1.0000"
        " | 0.7000 |\n"
        "\n"
        "- Model `org/model`, version 0.33.0, served for this run\n"
        "- Samples from `openai/mrcr` at `f4c69fae7cf8`; protocol vllm, prompts of 8,000 to 8,002"
        " tokens, limit 30,464, window 32,768\n"
        "\n"
        "**Cost**\n"
        "\n"
        "- 60.0 s in all: server start 50.0, choosing 5.0, asking 4.0\n"
        "- 1,200 output tokens, 300.0 output tokens/s\n"
        "\n"
        "<details><summary>By needles and length: 3 cells</summary>\n"
        "\n"
        "| cell | ratio | asked | graded | lost | o200k tokens | rows | fit |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| n2/8K-16K | 0.9000 | 1/1 | 1 | 0 | 9,000 | – | – |\n"
        "| n4/8K-16K | 0.8000 | 1/1 | 1 | 0 | 9,000 | – | – |\n"
        "| n8/8K-16K | 0.7000 | 1/1 | 1 | 0 | 9,000 | – | – |\n"
        "\n"
        "</details>\n"
        "\n"
        "<details><summary>The worst of 3 inexact or lost samples</summary>\n"
        "\n"
        "| sample | needles | prompt tokens | outcome | ratio | what happened |\n"
        "| --- | ---: | ---: | --- | ---: | --- |\n"
        "| `2needle/2needle_0.parquet#102` | 8 | 8,002 | scored | 0.7000 | not the wanted text |\n"
        "| `2needle/2needle_0.parquet#101` | 4 | 8,001 | scored | 0.8000 | not the wanted text |\n"
        "| `2needle/2needle_0.parquet#100` | 2 | 8,000 | scored | 0.9000 | not the wanted text |\n"
        "\n"
        "</details>\n"
        "\n"
        "To reproduce: `mrcr run configs/model.yaml`\n"
    )


def test_the_table_has_every_bucket(make_result: MakeResult) -> None:
    table = tables(render_summary([make_result(config=GATED)]))[0]
    assert table[0] == list(table_of(make_result(config=GATED))[0])
    assert [row[:5] for row in table[1:]] == [
        ["all samples", "· measured", "0.8000", "–", "–"],
        ["2 needles", "✓ pass", "0.9000", "–", "0.8500"],
        ["4 needles", "✓ pass", "0.8000", "–", "0.7500"],
        ["8 needles", "✓ pass", "0.7000", "–", "0.6500"],
    ]


def test_every_result_has_a_section_in_the_order_given(make_result: MakeResult) -> None:
    text = render_summary([make_result(name=name, config=GATED) for name in ("b", "a", "c")])
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [f"## ✅ MRCR passed: {name}" for name in ("b", "a", "c")]


def test_what_stopped_the_run_is_said_with_the_end_of_the_log(make_result: MakeResult) -> None:
    problem = Problem(kind="ServerError", message="it died", hint="look", details="one\n\ntwo")
    text = render_summary([make_result(records=[], problem=problem)])
    assert "**What stopped it:** it died\n\nlook\n" in text
    tokens = MARKDOWN.parse(text)
    assert [t.content for t in tokens if t.type == "code_block"] == ["one\n\ntwo\n"]
    assert tables(text) == []


def test_lost_samples_are_worst_and_the_rest_follow_by_ratio(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    ratios = [0.9, 0.2, None, 0.5, 0.4, 0.3, None]
    records = [make_record(i, ratio) for i, ratio in enumerate(ratios)]
    config = RunConfig(needles=(2,), num_samples=7)
    text = render_summary([make_result(config=config, records=records)])
    assert "The worst of 7 inexact or lost samples" in text
    table = tables(text)[-1]
    assert len(table) == WORST_SHOWN + 1
    assert [row[0].partition("#")[2] for row in table[1:]] == ["102", "106", "101", "105", "104"]
    assert table[1][3:] == ["failed", "–", "the connection broke"]


def test_what_happened_to_a_sample_is_said_in_words(
    make_result: MakeResult, make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> None:
    records = [
        make_record(0, grade=make_grade(0.0, nonce_hit=False)),
        make_record(1, 0.5, outcome="truncated"),
        make_record(2, 0.6, prompt_tokens=None),
    ]
    config = RunConfig(needles=(2,), num_samples=3)
    table = tables(render_summary([make_result(config=config, records=records)]))[-1]
    assert [row[2:] for row in table[1:]] == [
        ["8,000", "scored", "0.0000", "the answer does not start with the nonce"],
        ["8,001", "truncated", "0.5000", "cut at max_tokens"],
        ["–", "scored", "0.6000", "not the wanted text"],
    ]


def test_without_an_inexact_sample_none_is_listed(
    make_result: MakeResult, make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> None:
    exact = make_grade(0.99, exact=True)
    config = RunConfig(needles=(2,), num_samples=1)
    text = render_summary([make_result(config=config, records=[make_record(0, grade=exact)])])
    assert "worst" not in text


def test_notes_are_alerts(make_result: MakeResult) -> None:
    text = render_summary([make_result(notes=("Only 3 of 5 fit.", "[!CAUTION] planted"))])
    assert "> [!NOTE]\n> Only 3 of 5 fit.\n" in text
    assert "> [!NOTE]\n> \\[!CAUTION\\] planted\n" in text


def test_hostile_text_anywhere_is_inert(
    make_result: MakeResult, make_record: MakeRecord, hostile: str
) -> None:
    config = RunConfig(num_samples=3)
    records = [
        make_record(0, None, reason=hostile, shard=hostile),
        make_record(1, None, n_needles=4, outcome="rejected", reason=hostile),
        make_record(2, 0.7, n_needles=8, shard=hostile),
    ]
    result = make_result(
        config=config,
        records=records,
        problem=Problem(kind="ServerError", message=hostile, hint=hostile, details=hostile),
        name=hostile,
        model=hostile,
        data=DataInfo(dataset=hostile, revision=hostile),
        server=ServerInfo(route="external", base_url=hostile, version=hostile),
        notes=(hostile, f"x {hostile}"),
        invocation=("mrcr", "run", hostile),
    )
    verdict = Verdict(conclusion="inconclusive", summary=hostile, checks=result.verdict.checks)
    result = msgspec.structs.replace(result, verdict=verdict)
    text = render_summary([result])
    tokens = flat(MARKDOWN.parse(text))
    assert not {"html_inline", "link_open", "image", "s_open", "fence", "hr"} & {
        token.type for token in tokens
    }
    assert {t.content.strip() for t in tokens if t.type == "html_block"} <= OWN_HTML
    assert [t.tag for t in tokens if t.type == "heading_open"] == ["h2"]
    assert [len(table) for table in tables(text)] == [5, 4, 4]
    assert [{len(row) for row in table} for table in tables(text)] == [{11}, {8}, {6}]
    assert [c for c in text if not c.isprintable() and c not in "\n\ufffe\uffff"] == []


def test_cells_are_folded_away_and_what_was_not_tested_is_said_before_them(
    by_cell: Result,
) -> None:
    text = render_summary([by_cell])
    assert (
        "\n\nNot tested: 100 rows excluded (512K-1M).\n\n"
        "<details><summary>By needles and length: 2 cells</summary>\n\n| cell |"
    ) in text
    assert text.count("Not tested") == 1
    table = next(table for table in tables(text) if table[0][0] == "cell")
    assert [row[:6] for row in table[1:]] == [
        ["n2/8K-16K", "0.9000", "no spread", "10/10", "10", "0"],
        ["n2/64K-128K", "–", "–", "0/0", "0", "0"],
    ]
    assert [row[-3:] for row in table[1:]] == [
        ["100", "60", "40 too long"],
        ["100", "0", "100 too long"],
    ]


def test_a_cell_that_was_named_in_vain_is_in_the_first_lines(by_cell: Result) -> None:
    first = render_summary([by_cell]).partition("| bucket")[0]
    assert first.startswith("## ⚠️ MRCR is inconclusive: model")
    assert "n2/64K-128K: no row to ask: 100 of 100 too long" in first


def test_that_scores_are_not_comparable_is_an_alert(merged: Result) -> None:
    assert f"> [!NOTE]\n> {merged.notes[0]}\n" in render_summary([merged])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DataInfo(dataset="rows"), "- Samples from `rows`; protocol"),
        (DataInfo(dataset="rows", verified=False), "- Samples from `rows`, **not verified**; "),
        (DataInfo(dataset="rows", verified=True), "- Samples from `rows`; protocol"),
        (
            DataInfo(dataset="dir", origin="openai/mrcr", revision="f4c69fae7cf8", kind="bundle"),
            "- Samples from `dir`, a bundle of `openai/mrcr` at `f4c69fae7cf8`; protocol",
        ),
    ],
)
def test_where_samples_come_from_is_said_and_that_nobody_verified_them(
    make_result: MakeResult, data: DataInfo, expected: str
) -> None:
    assert expected in render_summary([make_result(data=data)])


def test_the_route_to_the_server_is_told_with_what_decided_for_it(
    make_result: MakeResult,
) -> None:
    server = ServerInfo(
        route="container",
        base_url="http://127.0.0.1:8000",
        why="no GPU is visible in this container",
        image="org/vllm:`1`",
    )
    summary = render_summary([make_result(server=server)])

    told = "served for this run in a container of `` org/vllm:`1` ``, since no GPU is visible"
    assert told in summary


def test_a_cell_with_a_threshold_stands_among_the_buckets_with_its_interval(
    bounded: Result,
) -> None:
    _, _, buckets, cells, _ = tables(render_summary([bounded]))
    assert [row[:5] for row in buckets[3:]] == [
        ["n2/4K-8K", "✗ FAIL", "0.4500", "0.29–0.61", "0.9000"],
        ["n2/16K-32K", "· measured", "0.8000", "–", "–"],
    ]
    assert [row[-2] for row in buckets] == ["step", "0.0588", "0.0588", "0.1250", "1.0000"]
    assert [row[:3] for row in cells[1:]] == [
        ["n2/4K-8K", "0.4500", "0.29–0.61"],
        ["n2/8K-16K", "0.9500", "no spread"],
        ["n2/16K-32K", "0.8000", "–"],
    ]


def test_what_chance_would_score_on_these_samples_is_said(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    def record(ask: int, n: int, floor: float) -> Record:
        wanted = Wanted(
            ordinal=1, of=n, turn=1, depth=0.5, floor=Floor(openai=floor, vllm=floor + 0.1)
        )
        exact = Diagnosis(form="exact", wanted=wanted)
        return make_record(ask, 1.0, n_needles=n, diagnosis=exact)

    records = [record(0, 2, 0.51), record(1, 8, 0.15), record(2, 8, 0.17)]
    config = RunConfig(needles=(2, 8), num_samples=3)
    expected = "would score 0.61 with 2 needles, 0.26 with 8 needles (vllm)\n"
    assert expected in render_summary([make_result(config=config, records=records)])
    assert "at random" not in render_summary([make_result()])


def test_of_a_single_needle_nothing_is_said_of_chance(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    wanted = Wanted(ordinal=1, of=1, turn=1, depth=0.5, floor=Floor(openai=1.0, vllm=1.0))
    exact = Diagnosis(form="exact", wanted=wanted)
    records = [make_record(0, 1.0, n_needles=1, diagnosis=exact)]
    result = make_result(config=RunConfig(needles=(1,), num_samples=1), records=records)
    assert "at random" not in render_summary([result])


def test_lengths_make_a_heat_map_and_a_chart(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    records = [
        make_record(i, ratio, o200k_tokens=tokens)
        for i, (ratio, tokens) in enumerate([(1.0, 5_000), (0.9, 9_000), (0.1, 20_000)])
    ]
    config = RunConfig(needles=(2,), num_samples=3, match_ratio_threshold=0.9)
    text = render_summary([make_result(config=config, records=records)])
    missed, heat, buckets, *_ = (table[0][0] for table in tables(text))
    assert (missed, heat, buckets) == ("missed", "needles", "bucket")
    (fence,) = [token for token in MARKDOWN.parse(text) if token.type == "fence"]
    assert fence.info == "mermaid"
