"""What the reports say of answers that are not exact."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis, Excerpt, FirstWrong, Place, Source, Wanted
from mrcr_action.report.annotations import annotations_of
from mrcr_action.report.console import print_result
from mrcr_action.report.diagnosis import LONGEST_EXCERPT
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import fit_summary, render_summary
from mrcr_action.result import decode_result, encode_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.grade import Grade
    from mrcr_action.result import Record, Result

    MakeResult = Callable[..., Result]
    MakeRecord = Callable[..., Record]

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
FAILING = RunConfig(needles=(2,), num_samples=8, match_ratio_threshold=0.95)

LOOKS = (
    "All wrong answers are to questions whose needle begins more than about 5,000 tokens before"
    " the end (4 of 4 answers there; the 4 others, up to 4,000, are all exact; p 0.014): an"
    " attention window, or a beginning that was cut off?"
)
FORM = (
    "4 of 4 wrong answers of 8 are the reply to another of the same requests (4 times the next"
    " one)."
)


@pytest.fixture
def broken(
    make_result: MakeResult, make_record: MakeRecord, make_grade: Callable[..., Grade]
) -> Callable[..., Result]:
    """Eight samples, of which the four whose needle lies furthest get the next needle."""

    def make(
        wanted: str = "He said <b>x</b>", returned: str = "She\nsaid", **changes: Any
    ) -> Result:
        records = []
        for at in range(8):
            place = Wanted(
                ordinal=1,
                of=2,
                turn=7,
                depth=0.2,
                token=8000 - 1000 * (at + 1),
                distance=1000 * (at + 1),
            )
            found = Diagnosis(form="exact", wanted=place)
            if at > 3:
                found = Diagnosis(
                    form="wrong needle",
                    wanted=place,
                    first_wrong=FirstWrong(offset=12, place=Place(turn=7, char=2, token=1200)),
                    ratio=0.2,
                    source=Source(turn=9, ordinal=2, ratio=1.0),
                    excerpt=Excerpt(offset=0, wanted=wanted, returned=returned),
                )
            right = at < 4
            grade = make_grade(1.0 if right else 0.2, exact=right)
            records.append(make_record(at, grade=grade, diagnosis=found, prompt_tokens=8000))
        return make_result(**({"config": FAILING, "records": records} | changes))

    return make


def test_the_section_on_what_it_looks_like_follows_the_verdict(
    broken: Callable[..., Result],
) -> None:
    text = render_summary([broken()])
    head = text.partition("| bucket")[0]

    assert head.endswith(
        f"### What this looks like\n\n4 of 8 exact; 4 wrong needle.\n\n- {LOOKS}\n- {FORM}\n\n"
    )


def test_the_worst_samples_say_which_needle_came_back(broken: Callable[..., Result]) -> None:
    text = render_summary([broken()])

    told = "needle 2 of 2 instead of 1 (turn 9, ratio 1.00, the wanted one 0.20) |\n"
    assert text.count(told) == 4
    assert "not the wanted text" not in text


def test_wanted_and_returned_stand_beside_each_other_as_literal_text(
    broken: Callable[..., Result],
) -> None:
    text = render_summary([broken()])

    assert (
        "<details><summary>Wanted and returned</summary>\n\n"
        "`2needle/2needle_0.parquet#104`, from character 0 on; they part at 12:\n"
        "- wanted: `He said <b>x</b>`\n"
        "- returned: `She⏎said`\n\n"
    ) in text


def test_where_it_breaks_is_folded_away(broken: Callable[..., Result]) -> None:
    text = render_summary([broken()])

    where = text.partition("<details><summary>Where it breaks</summary>\n\n")[2]
    assert where.startswith(
        "| by | | asked | exact | not exact |\n"
        "| --- | --- | ---: | ---: | --- |\n"
        "| tokens from the needle to the end | 512–1,024 | 1 | 1 | – |\n"
        "|  | 1,024–2,048 | 1 | 1 | – |\n"
        "|  | 2,048–4,096 | 2 | 2 | – |\n"
        "|  | 4,096–8,192 | 4 | 0 | 4 wrong needle |\n"
        "| order of the requests | part 1 of 4 | 2 | 2 | – |\n"
    )


def test_a_pass_is_told_no_suspicions(broken: Callable[..., Result]) -> None:
    result = broken(
        config=RunConfig(needles=(2,), num_samples=8, match_ratio_threshold=0.5, tolerance=0.0)
    )
    stream = io.StringIO()
    print_result(result, (), stream)

    assert result.verdict.conclusion == "pass"
    for text in (render_summary([result]), render_junit([result]).decode(), stream.getvalue()):
        assert "looks like" not in text.lower()


def test_exact_answers_leave_nothing_to_say(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    exact = Diagnosis(form="exact")
    result = make_result(records=[make_record(at, 1.0, diagnosis=exact) for at in range(3)])

    text = render_summary([result])
    assert "What this looks like" not in text
    assert "Where it breaks" not in text


def test_a_failed_case_says_what_came_back(broken: Callable[..., Result]) -> None:
    root = ET.fromstring(render_junit([broken()]))  # noqa: S314 - made here
    (failure,) = root.iter("failure")

    assert failure.text is not None
    lines = failure.text.splitlines()
    at = lines.index("4 of 8 exact; 4 wrong needle")
    assert lines[at + 1 : at + 3] == [f"Looks like: {LOOKS}", f"Looks like: {FORM}"]
    assert lines[at + 3] == (
        "2needle/2needle_0.parquet#104: needle 2 of 2 instead of 1 (turn 9, ratio 1.00, the wanted"
        " one 0.20)"
    )
    assert len(lines) == at + 6


def test_the_console_says_it_after_the_verdict(broken: Callable[..., Result]) -> None:
    stream = io.StringIO()
    print_result(broken(), (), stream)
    lines = stream.getvalue().splitlines()

    at = next(i for i, line in enumerate(lines) if line.startswith("MRCR thresholds failed"))
    assert lines[at + 1 :] == [
        "Answers: 4 of 8 exact; 4 wrong needle",
        f"Looks like: {LOOKS}",
        f"Looks like: {FORM}",
    ]


def test_an_annotation_has_the_surest_suspicion(broken: Callable[..., Result]) -> None:
    (annotation, *_) = annotations_of([broken()])

    assert f"Looks like: {LOOKS}" in annotation.message


def test_hostile_texts_are_inert(broken: Callable[..., Result], hostile: str) -> None:
    text = render_summary([broken(wanted=hostile, returned=f"x{hostile}y")])
    tokens = MARKDOWN.parse(text)
    flat = [t for token in tokens for t in [token, *(token.children or [])]]

    assert not {"html_inline", "link_open", "image", "s_open", "fence", "hr", "em_open"} & {
        token.type for token in flat
    }
    assert [t.tag for t in flat if t.type == "heading_open"] == ["h2", "h3"]
    summaries = {t.content.strip() for t in flat if t.type == "html_block"}
    assert summaries <= {
        "<details><summary>Wanted and returned</summary>",
        "<details><summary>Where it breaks</summary>",
        "<details><summary>By needles and length: 1 cells</summary>",
        "<details><summary>The worst of 4 inexact or lost samples</summary>",
        "</details>",
    }
    assert "\n::" not in text
    assert "##[" not in text
    assert [c for c in text if not c.isprintable() and c not in "\n\ufffe\uffff"] == []


def test_excerpts_are_bounded(broken: Callable[..., Result]) -> None:
    short = len(render_summary([broken()]))
    long = len(render_summary([broken(wanted="w" * 100_000, returned="r" * 100_000)]))

    assert long < short + 4 * 2 * (LONGEST_EXCERPT + 10)


def test_the_shorter_forms_of_the_summary_still_fit(broken: Callable[..., Result]) -> None:
    results = [broken(name=f"model-{at}") for at in range(200)]
    whole = len(render_summary(results).encode())

    for limit in (whole, whole // 2, 4_000, 100):
        assert len(fit_summary(results, limit).encode()) <= limit


def test_a_result_with_diagnoses_is_read_back_whole(broken: Callable[..., Result]) -> None:
    result = broken()

    assert decode_result(encode_result(result)) == result


def test_a_document_of_before_there_were_diagnoses_is_read(broken: Callable[..., Result]) -> None:
    document = json.loads(encode_result(broken()))
    for record in document["records"]:
        del record["diagnosis"]
    result = decode_result(json.dumps(document).encode())

    assert [record.diagnosis for record in result.records] == [None] * 8
    text = render_summary([result])
    assert "What this looks like" not in text
    assert text.count("not the wanted text") == 4
