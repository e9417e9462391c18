"""What each report of a run says of its baseline."""

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from junitparser import Error, Failure, JUnitXml
from markdown_it import MarkdownIt

from mrcr_action.baseline import Baseline, check_of, compared
from mrcr_action.config import RunConfig
from mrcr_action.gate import judge
from mrcr_action.grade import Grade
from mrcr_action.report.annotations import Annotation, annotations_of
from mrcr_action.report.console import print_result
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import fit_summary, render_summary
from mrcr_action.result import Record, Result, ServerInfo

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]
MakeGrade = Callable[..., Grade]
Against = Callable[..., Result]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.fixture
def against(make_result: MakeResult, make_record: MakeRecord, make_grade: MakeGrade) -> Against:
    """A result that was compared with one whose eight samples were exact."""

    def make(
        ratios: Sequence[float | None],
        *,
        path: str = "base/result.json",
        before: dict[str, Any] | None = None,
        **config: Any,
    ) -> Result:
        settings = RunConfig(needles=(2,), num_samples=len(ratios), baseline=path, **config)
        exact = make_grade(1.0, exact=True)
        records = [
            make_record(i, ratio, **({"grade": exact} if ratio == 1 else {}))
            for i, ratio in enumerate(ratios)
        ]
        earlier = [make_record(i, grade=exact) for i in range(len(ratios))]
        result = make_result(config=settings, records=records)
        found = compared(
            Baseline(Path(path), make_result(config=settings, records=earlier, **(before or {}))),
            result,
        )
        verdict = judge(result.buckets, settings, (), (check_of(found),))
        return msgspec.structs.replace(result, verdict=verdict, baseline=found)

    return make


def printed(result: Result) -> str:
    stream = io.StringIO()
    print_result(result, [], stream)
    return stream.getvalue()


def cases(result: Result) -> dict[str, Any]:
    (suite,) = list(JUnitXml.fromstring(render_junit([result])))
    return {case.name: case for case in suite}


def section(text: str) -> str:
    return text.partition("### Against the baseline\n\n")[2]


WORSE = [0.25] * 6 + [1.0] * 2


def test_the_summary_shows_what_changed_and_folds_what_flipped(against: Against) -> None:
    text = section(render_summary([against(WORSE)]))
    assert text.startswith(
        "`base/result.json`: model `org/model`, server 0.33.0, run 2026-01-02T03:04:05Z, 8 of 8"
        " samples graded\n\n"
        "Regression: all samples fell by 0.5625 (1.0000 to 0.4375, p 0.016);"
    )
    assert "| all samples | ✗ WORSE | 6/8 | 1.0000 | 0.4375 | \\-0.5625 |" in text
    shown, _, folded = text.partition(
        "<details><summary>Changed by 0.1 or more: 6 for the worse, 0 better</summary>\n\n"
    )
    assert "exact → inexact" not in shown
    rows = re.findall(r"^\| 2needle/2needle\\_0.parquet\\#\d+ \| .* \|$", folded, re.MULTILINE)
    assert len(rows) == 6
    assert "exact in base alone: 6, exact in run alone: 0" in folded


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.0] * 8, "## ✅ MRCR passed: model"),
        (WORSE, "## ❌ MRCR failed: model"),
        ([1.0] * 7 + [None], "## ⚠️ MRCR is inconclusive: model"),
    ],
)
def test_the_headline_follows_a_baseline_without_any_threshold(
    against: Against, ratios: Sequence[float | None], expected: str
) -> None:
    assert render_summary([against(ratios, max_failures=0)]).startswith(expected)


def test_a_row_of_the_table_of_configurations_says_that_nothing_regressed(
    against: Against,
) -> None:
    text = render_summary([against([1.0] * 8), against([1.0] * 8, match_ratio_threshold=0.5)])
    assert "| baseline: no regression: no sample changed (8 compared) |" in text
    said = "| the threshold was reached; baseline: no regression: no sample changed (8 compared) |"
    assert said in text


def test_the_shortest_summary_says_that_a_baseline_was_missed(against: Against) -> None:
    results = [against(WORSE), against([1.0] * 8)]
    text = fit_summary(results, 600)
    assert "### Against the baseline" not in text
    assert "❌ MRCR failed: 1 of 2 configurations" in text


def test_the_console_shows_what_changed(against: Against) -> None:
    text = printed(against(WORSE))
    assert re.search(
        r"^  all samples  ✗ WORSE +6/8 +1\.0000  0\.4375  -0\.5625 ", text, re.MULTILINE
    )
    assert re.search(r"^  bucket +verdict +changed  base +run +change ", text, re.MULTILINE)
    assert "changed by 0.1 or more: 6 for the worse, 0 better" in text
    assert "MRCR failed: baseline: regression: all samples fell by 0.5625" in text


def test_the_console_is_short_where_nothing_changed(against: Against) -> None:
    text = printed(against([1.0] * 8))
    assert "against the baseline base/result.json: model org/model, server 0.33.0, run" in text
    assert "baseline: No regression: no sample changed (8 compared)\n" in text
    assert "changed  base" not in text


def test_more_flipped_samples_than_are_listed_are_counted(against: Against) -> None:
    result = against([0.0] * 12 + [1.0])
    assert "and 2 more, which `mrcr compare` lists" in printed(result)
    assert "and 2 more, which `mrcr compare` lists" in render_summary([result])


@pytest.mark.parametrize(
    ("ratios", "kind"),
    [([1.0] * 8, None), (WORSE, Failure), ([1.0] * 7 + [None], Error)],
)
def test_junit_has_one_case_for_the_baseline(
    against: Against, ratios: Sequence[float | None], kind: type[Failure | Error] | None
) -> None:
    result = against(ratios)
    case = cases(result)["baseline"]
    if kind is None:
        assert case.result == []
        assert "no sample changed" in case.system_out
        return
    (found,) = case.result
    assert type(found) is kind
    assert found.message == result.verdict.of("baseline")[0].message
    assert "bucket verdict changed base run change" in found.text


def test_without_a_baseline_no_report_speaks_of_one(make_result: MakeResult) -> None:
    result = make_result()
    assert "baseline" not in cases(result)
    assert "baseline" not in render_summary([result])
    assert "baseline" not in printed(result)


def test_a_regression_is_one_annotation(against: Against) -> None:
    assert annotations_of([against(WORSE)]) == [
        Annotation(
            level="error",
            title="MRCR of model: worse than the baseline",
            message=(
                "baseline: regression: all samples fell by 0.5625 (1.0000 to 0.4375, p 0.016); n2"
                " fell by 0.5625 (1.0000 to 0.4375, p 0.016); n2/8K-16K fell by 0.5625 (1.0000 to"
                " 0.4375, p 0.016). Compared with base/result.json. protocol vllm, prompts of"
                " 8,000 to 8,007 tokens, limit 30,464, window 32,768."
            ),
            file="configs/model.yaml",
        )
    ]
    assert [a.level for a in annotations_of([against(WORSE)], fail_on="never")] == ["warning"]


def test_a_missed_threshold_and_a_regression_are_two_annotations(against: Against) -> None:
    found = annotations_of([against(WORSE, match_ratio_threshold=0.9)])
    assert [a.title for a in found] == [
        "MRCR of model: 0.44 < 0.85",
        "MRCR of model: worse than the baseline",
    ]


def test_a_baseline_that_decides_nothing_is_why_a_run_is_inconclusive(against: Against) -> None:
    result = against([1.0] * 7 + [0.0])
    (annotation,) = annotations_of([result])
    assert annotation.title == "MRCR of model is inconclusive"
    assert annotation.message.startswith("baseline: no verdict: all samples fell by 0.1250")


def test_why_nothing_was_compared_is_said_everywhere(against: Against) -> None:
    result = against([None] * 8, max_failures=8)
    said = "no sample is graded in both: 8 of 8 in the baseline, 0 of 8 in this run"
    assert f"**Not compared:** {said}" in render_summary([result])
    assert f"not compared: {said}" in printed(result)
    (error,) = cases(result)["baseline"].result
    assert error.message == f"baseline: {said}"


def test_foreign_text_is_inert_in_every_report(against: Against, hostile: str) -> None:
    server = ServerInfo(route="external", base_url="http://a", version=hostile)
    before = {"model": hostile, "name": hostile, "started": hostile, "server": server}
    result = against(WORSE, path=f"base/{hostile}".replace("\0", ""), before=before)
    assert result.baseline is not None
    unclear = msgspec.structs.replace(result.baseline, comparison=None, problem=hostile)
    broken = msgspec.structs.replace(result, baseline=unclear)
    for one in (result, broken):
        text = section(render_summary([one]))
        own = {"<details>", "<summary>", "</summary>", "</details>"}
        tokens = [t for token in MARKDOWN.parse(text) for t in (token, *(token.children or []))]
        html = "".join(t.content for t in tokens if t.type in {"html_block", "html_inline"})
        assert set(re.findall(r"</?\w+[^>]*>", html)) <= own
        kinds = {token.type for token in tokens}
        assert not {"link_open", "image", "em_open", "s_open"} & kinds
        assert not re.search(r"(?m)^\s*::|##\[", printed(one))
        assert "baseline" in cases(one)
