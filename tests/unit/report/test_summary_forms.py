import itertools
import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from mrcr_action.config import RunConfig
from mrcr_action.report.summary import SHORTENED, WHOLE, fit_summary, render_summary
from mrcr_action.result import Problem, Result

MakeResult = Callable[..., Result]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PASSING = RunConfig(num_samples=3, match_ratio_threshold={2: 0.9, 4: 0.8, 8: 0.7})
FAILING = RunConfig(num_samples=3, match_ratio_threshold=0.9)
DIED = Problem(kind="ServerError", message="it died", hint="look", details="one\n\n```\ntwo")
AMPLE = 1_000_000


@pytest.fixture
def one_of_each(make_result: MakeResult) -> list[Result]:
    return [
        make_result(name="good", config=PASSING),
        make_result(name="seen"),
        make_result(name="dead", records=[], problem=DIED),
        make_result(name="bad", config=FAILING),
    ]


def size(text: str) -> int:
    return len(text.encode())


def headings(text: str) -> list[str]:
    tokens = MARKDOWN.parse(text)
    return [
        f"{token.tag} {content.content}"
        for token, content in itertools.pairwise(tokens)
        if token.type == "heading_open"
    ]


def overview(text: str) -> list[list[str]]:
    """The rows of the first table, without its header."""
    tokens = MARKDOWN.parse(text)
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append("".join(child.content for child in token.children or []))
        elif token.type == "table_close":
            break
    return rows[1:]


def assert_complete(text: str) -> None:
    """Nothing is left open, and every row of every table has as many cells as its header."""
    tokens = MARKDOWN.parse(text)
    assert sum(token.nesting for token in tokens) == 0
    html = "".join(token.content for token in tokens if token.type == "html_block")
    assert html.count("<details>") == html.count("</details>") == text.count("<details>")
    assert not [token for token in tokens if token.type == "fence"]
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert text == "" or text.endswith("\n")


def test_several_configurations_have_one_verdict_and_a_table_before_their_sections(
    one_of_each: list[Result],
) -> None:
    text = render_summary(one_of_each)
    assert text.startswith(
        "# ❌ MRCR failed: 1 of 4 configurations\n"
        "\n"
        "1 failed, 1 inconclusive, 1 passed, 1 measured.\n"
        "\n"
        "| configuration | verdict | ratio | samples | why |\n"
        "| --- | --- | ---: | ---: | --- |\n"
        r"| bad | ✗ FAIL | 0.8000 | 3/3 | match\_ratio: 0.8000 &lt; 0.9000 - 0.0500 |"
        "\n"
        "| dead | ? unclear | – | 0/3 | it died |\n"
        "| good | ✓ pass | 0.8000 | 3/3 | all 3 thresholds were reached |\n"
        "| seen | · measured | 0.8000 | 3/3 | no threshold was set |\n"
        "\n"
        "## ✅ MRCR passed: good\n"
    )
    assert text.endswith(
        "\n".join(["", *(render_summary([result]) for result in one_of_each)]),
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((), "# ⚠️ MRCR is inconclusive: nothing was run"),
        ((0, 0), "# ✅ MRCR passed: all 2 configurations"),
        ((1, 1), "# 📏 MRCR measured, nothing gated: all 2 configurations"),
        ((0, 1, 1), "# ✅ MRCR passed: 1 of 3 configurations"),
        ((0, 1, 2, 2), "# ⚠️ MRCR is inconclusive: 2 of 4 configurations"),
        ((2, 3), "# ❌ MRCR failed: 1 of 2 configurations"),
        ((3, 3), "# ❌ MRCR failed: all 2 configurations"),
    ],
)
def test_the_verdict_on_several_is_that_of_the_worst(
    one_of_each: list[Result], chosen: tuple[int, ...], expected: str
) -> None:
    text = render_summary([one_of_each[i] for i in chosen])
    assert text.splitlines()[0] == expected


def test_one_configuration_needs_no_table_of_configurations(make_result: MakeResult) -> None:
    assert headings(render_summary([make_result()])) == [
        "h2 📏 MRCR measured, nothing gated: model"
    ]


def test_the_first_shorter_form_has_sections_for_what_did_not_pass(
    one_of_each: list[Result],
) -> None:
    text = render_summary(one_of_each, detail="failed")
    assert headings(text) == [
        "h1 ❌ MRCR failed: 1 of 4 configurations",
        "h2 ⚠️ MRCR is inconclusive: dead",
        "h2 ❌ MRCR failed: bad",
    ]
    assert [row[0] for row in overview(text)] == ["bad", "dead", "good", "seen"]
    assert text.endswith(
        "\n".join(["", *(render_summary([result]) for result in one_of_each[2:])]),
    )


def test_the_second_shorter_form_is_the_table_alone(one_of_each: list[Result]) -> None:
    text = render_summary(one_of_each, detail="table")
    assert headings(text) == ["h1 ❌ MRCR failed: 1 of 4 configurations"]
    assert text.splitlines()[-1].startswith("| seen |")


def test_a_shorter_form_says_so_first_and_where_the_whole_is(one_of_each: list[Result]) -> None:
    cut = fit_summary(one_of_each, size(render_summary(one_of_each, detail="table")) - 1)
    for text in (*(render_summary(one_of_each, detail=detail) for detail in SHORTENED), cut):
        note = text.splitlines()[5]
        assert text.splitlines()[4] == "> [!NOTE]"
        assert note.startswith("> Shortened to fit: ")
        assert note.endswith(WHOLE)
    assert "Shortened" not in render_summary(one_of_each)


def test_the_fullest_form_that_fits_is_taken(one_of_each: list[Result]) -> None:
    full = render_summary(one_of_each)
    failed = render_summary(one_of_each, detail="failed")
    table = render_summary(one_of_each, detail="table")
    assert size(full) > size(failed) > size(table)
    assert fit_summary(one_of_each, size(full)) == full
    assert fit_summary(one_of_each, size(full) - 1) == failed
    assert fit_summary(one_of_each, size(failed)) == failed
    assert fit_summary(one_of_each, size(failed) - 1) == table
    assert fit_summary(one_of_each, size(table)) == table
    assert "left out" in fit_summary(one_of_each, size(table) - 1)


def test_a_cut_table_keeps_the_worst_and_counts_what_is_left_out(make_result: MakeResult) -> None:
    results = [make_result(name=f"good{i}", config=PASSING) for i in range(200)]
    results.insert(150, make_result(name="dead", records=[], problem=DIED))
    results.append(make_result(name="bad", config=FAILING))
    text = fit_summary(results, 2_000)
    shown = [row[0] for row in overview(text)]
    assert shown == ["bad", "dead", *(f"good{i}" for i in range(len(shown) - 2))]
    assert len(shown) > 5
    left = len(results) - len(shown)
    assert text.splitlines()[-1] == f"{left} of 202 left out: {left} passed."
    assert size(text) > 1_800
    assert_complete(text)


def test_no_limit_is_ever_passed_and_the_verdict_goes_last(one_of_each: list[Result]) -> None:
    heading = "# ❌ MRCR failed: 1 of 4 configurations\n"
    for limit in range(size(render_summary(one_of_each, detail="failed")) + 2):
        text = fit_summary(one_of_each, limit)
        assert size(text) <= limit
        assert text.startswith(heading) if limit >= size(heading) else text == ""
        assert_complete(text)


def test_one_configuration_that_does_not_fit_becomes_a_row(make_result: MakeResult) -> None:
    endless = Problem(kind="ServerError", message="it died", details="line\n" * 300_000)
    result = make_result(name="dead", records=[], problem=endless)
    text = fit_summary([result], AMPLE)
    assert headings(text) == ["h1 ⚠️ MRCR is inconclusive: 1 configuration"]
    assert overview(text) == [["dead", "? unclear", "–", "0/3", "it died"]]


@pytest.mark.parametrize("limit", [0, 10, 300, 700, 5_000, 50_000])
def test_hostile_text_neither_opens_anything_nor_passes_the_limit(
    make_result: MakeResult, hostile: str, limit: int
) -> None:
    problem = Problem(kind="ServerError", message=hostile, hint=hostile, details=hostile)
    results = [
        make_result(name=hostile, config=PASSING),
        make_result(name=hostile, records=[], problem=problem),
        make_result(name=hostile * 3, config=FAILING, notes=(hostile,)),
    ]
    text = fit_summary(results, limit)
    assert size(text) <= limit
    assert_complete(text)
    assert {len(row) for row in overview(text)} <= {5, 9}
    assert [heading[:2] for heading in headings(text)].count("h1") == (limit >= 100)


def test_thousands_of_configurations_with_endless_names_fit(make_result: MakeResult) -> None:
    good = make_result(name="@" * 10_000, config=PASSING)
    bad = make_result(name="😀" * 10_000, config=FAILING)
    text = fit_summary([good] * 1_500 + [bad] * 50, 900_000)
    assert size(text) <= 900_000
    assert text.startswith("# ❌ MRCR failed: 50 of 1,550 configurations\n")
    assert [row[1] for row in overview(text)].count("✗ FAIL") == 50
    assert re.search(r"\n\n[\d,]+ of 1,550 left out: [\d,]+ passed\.\n$", text)
    assert_complete(text)
