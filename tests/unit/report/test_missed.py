from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from mrcr_action.config import RunConfig
from mrcr_action.intervals import Interval
from mrcr_action.report.html.verdict import MOST_MISSED
from mrcr_action.report.missed import MOST_OTHERS, missed_markdown
from mrcr_action.result import Check, Record, Result, Verdict

MakeResult = Callable[..., Result]
MakeRecord = Callable[..., Record]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def check(**changes: Any) -> Check:
    values: dict[str, Any] = {
        "bucket": "n2",
        "state": "fail",
        "message": "match_ratio_n2: 0.5000 < 0.9000 - 0.0500",
        "measured": 0.5,
        "threshold": 0.9,
        "tolerance": 0.05,
        "samples": 8,
    }
    return Check(**(values | changes))


def failed(make_result: MakeResult, *checks: Check) -> Result:
    verdict = Verdict(conclusion="fail", summary="MRCR failed: s", checks=checks)
    return make_result(verdict=verdict)


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ][2:]


def test_a_missed_threshold_is_a_row_with_what_it_missed_by(bounded: Result) -> None:
    text = missed_markdown(bounded)
    assert text.splitlines()[0] == (
        r"3 of 5 thresholds were missed, that of n2/4K-8K by most: exact rate 0.0000 where at"
        " least 0.5000 is needed."
    )
    assert rows(text) == [
        [
            *("n2/4K-8K, exact rate", "**0.5000**", "no, 0.00–0.37"),
            *("0.0000", "0.5000", "8"),
        ],
        ["n2/4K-8K", "**0.4500**", "no, 0.29–0.61", "0.4500", "0.9000", "8"],
        [
            *("n2/4K-8K, truncation rate", "**0.2500**", "maybe, 0.16–0.84"),
            *("0.5000", "at most 0.2500", "8"),
        ],
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"interval": Interval(0.4, 0.84)}, "no, 0.40–0.84"),
        ({"interval": Interval(0.4, 0.85)}, "maybe, 0.40–0.85"),
        ({"interval": Interval(0.5, 0.5)}, "no, all alike"),
        ({"interval": None}, "too few to tell"),
        ({"interval": None, "threshold": 1.0, "tolerance": 0.0}, "no, one is enough"),
        (
            {"metric": "truncation_rate", "threshold": 0.0, "tolerance": None},
            "no, one is enough",
        ),
        (
            {
                "metric": "truncation_rate",
                "threshold": 0.2,
                "tolerance": None,
                "interval": Interval(0.21, 0.7),
            },
            "no, 0.21–0.70",
        ),
    ],
)
def test_whether_a_miss_may_be_chance_is_said(
    make_result: MakeResult, changes: dict[str, Any], expected: str
) -> None:
    ((_, _, said, *_),) = rows(missed_markdown(failed(make_result, check(**changes))))
    assert said == expected


def test_the_worst_come_first_and_the_others_are_counted(make_result: MakeResult) -> None:
    checks = [check(bucket=f"n{i}", measured=0.8 - 0.01 * i) for i in range(MOST_MISSED + 3)]
    text = missed_markdown(failed(make_result, *checks))
    found = rows(text)
    assert [row[3] for row in found] == sorted(row[3] for row in found)
    assert len(found) == MOST_MISSED
    assert text.endswith("\n\nand 3 more, below.")


def test_what_is_no_missed_threshold_is_a_line(make_result: MakeResult) -> None:
    regression = check(bucket="baseline", message="baseline: worse", against="b", threshold=None)
    unclear = [
        check(state="inconclusive", bucket=f"n{i}", message=f"unclear {i}")
        for i in range(MOST_OTHERS + 1)
    ]
    text = missed_markdown(failed(make_result, check(), regression, *unclear))
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert lines[0] == "- baseline: worse"
    assert lines[-1] == "- and 2 more, below"
    assert len(lines) == MOST_OTHERS + 1


def test_a_run_that_missed_no_threshold_has_the_verdicts_own_words(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    regression = check(bucket="baseline", message="baseline: worse", against="b", threshold=None)
    assert missed_markdown(failed(make_result, regression)) == "MRCR failed: s"
    passed = make_result()
    assert missed_markdown(passed) == passed.verdict.summary
    lost = make_result(
        config=RunConfig(needles=(2,), num_samples=1), records=[make_record(0, None)]
    )
    assert missed_markdown(lost).startswith("MRCR is inconclusive: match\\_ratio: ")


def test_hostile_text_is_inert(make_result: MakeResult, hostile: str) -> None:
    unclear = check(state="inconclusive", message=f"x {hostile}")
    result = failed(make_result, check(bucket=hostile), unclear)
    tokens = MARKDOWN.parse(missed_markdown(result))
    flat = [inner for token in tokens for inner in [token, *(token.children or [])]]
    assert not {"html_inline", "html_block", "link_open", "image", "heading_open"} & {
        token.type for token in flat
    }
    assert [token.type for token in tokens].count("table_open") == 1
    summary = msgspec.structs.replace(result.verdict, conclusion="inconclusive", summary=hostile)
    said = missed_markdown(msgspec.structs.replace(result, verdict=summary))
    assert len(said.splitlines()) <= 1
