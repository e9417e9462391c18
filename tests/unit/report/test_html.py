"""The HTML report as a document: what it says, and that nothing foreign in it is alive."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import zlib
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mrcr_action.baseline import Baseline, check_of, compared
from mrcr_action.comparison.document import Against
from mrcr_action.comparison.verdict import side_of
from mrcr_action.config import RunConfig
from mrcr_action.diagnosis.evidence import Diagnosis, Piece, Source, Wanted
from mrcr_action.gate import judge
from mrcr_action.report.html import render_html, render_overview, texts_of
from mrcr_action.report.html.samples import LONGEST_TEXT, packed
from mrcr_action.result import Problem
from mrcr_action.rounds import Round
from mrcr_action.stats import buckets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.grade import Grade
    from mrcr_action.plan import Plan
    from mrcr_action.result import Record, Result

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.unclosed: list[str] = []
        self.text: list[str] = []
        self.blocks: dict[str, str] = {}
        self.code: list[tuple[str, str]] = []
        self.feed(content.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        inside = self.unclosed[-1] if self.unclosed else ""
        if inside in {"script", "style"}:
            name = attributes.get("id")
            if name is None:
                self.code.append((inside, data))
            else:
                self.blocks[name] = data
        else:
            self.text.append(data)
        assert tag or not data.strip()

    def find(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [of for name, of in self.tags if name == tag and attributes.items() <= of.items()]

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.text).split())


def page_of(result: Result, records: list[Record] | None = None) -> Page:
    return Page(render_html(result, texts_of(records or [])))


def unpacked(block: str) -> list[str]:
    texts: list[str] = json.loads(zlib.decompress(base64.b64decode(block)))
    return texts


@pytest.fixture
def told(make_record: Callable[..., Record]) -> list[Record]:
    """Four records with texts: two exact, one of another needle, one lost."""

    def seen(form: Any, ordinal: int, **changes: Any) -> Diagnosis:
        wanted = Wanted(ordinal=ordinal, of=2, turn=4 * ordinal, depth=0.3 * ordinal, token=1000)
        return Diagnosis(form=form, wanted=wanted, **changes)

    answers = {"nonce": "abcdefghij", "answer": "abcdefghijThe wanted text."}
    return [
        make_record(0, 1.0, response=answers["answer"], diagnosis=seen("exact", 1), **answers),
        make_record(1, 1.0, response=answers["answer"], diagnosis=seen("exact", 2), **answers),
        make_record(
            2,
            0.2,
            response="abcdefghijAnother one.",
            diagnosis=seen("wrong needle", 2, source=Source(turn=4, ordinal=1, ratio=0.98)),
            **answers,
        ),
        make_record(3, None, diagnosis=seen("failed", 1)),
    ]


def test_the_code_of_others_is_what_was_published_and_comes_with_its_licence(
    bounded: Result,
) -> None:
    assets = resources.files("mrcr_action.report.html") / "assets"
    code = (assets / "diff.min.js").read_bytes()
    assert hashlib.sha256(code).hexdigest() == (
        "b51a9d2885f2c090dc97b981027395f7e7e6558a46c75ae3747db267913a89ab"
    )
    script = next(text for tag, text in page_of(bounded).code if tag == "script")
    assert script.endswith(code.decode())
    assert "BSD 3-Clause License" in script
    assert "Copyright (c) 2009-2015, Kevin Decker" in script


def colours(scheme: str) -> dict[str, str]:
    """The colours of the style, by name."""
    style = (resources.files("mrcr_action.report.html") / "assets" / "style.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\n *\}", style, re.DOTALL)[:2]
    found = dict(re.findall(r"--(\w[\w-]*): (#\w{6})", light))
    return found | dict(re.findall(r"--(\w[\w-]*): (#\w{6})", dark if scheme == "dark" else ""))


def luminance(colour: str) -> float:
    """As WCAG 2 defines it: https://www.w3.org/TR/WCAG21/#dfn-relative-luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("ground", "text"),
    [
        *((f"step{at}", "ink") for at in (2, 3, 4, 5)),
        *((f"step{at}", "on-strong") for at in (0, 1)),
        *((ground, text) for ground in ("paper", "surface", "shade") for text in ("ink", "muted")),
        *(("paper", text) for text in ("accent", "fail", "pass", "unclear", "look0", "look1")),
        ("paper", "look2"),
        ("surface", "accent"),
        ("surface", "fail"),
        ("lacking", "ink"),
        ("extra", "ink"),
        ("unclear-tint", "ink"),
    ],
)
def test_every_text_stands_out_from_its_ground(scheme: str, ground: str, text: str) -> None:
    found = colours(scheme)
    low, high = sorted((luminance(found[ground]), luminance(found[text])))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_policy_lets_run_and_apply_only_what_is_in_the_page(bounded: Result) -> None:
    page = page_of(bounded)
    (meta,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})

    def hashes(kind: str) -> list[str]:
        digests = (hashlib.sha256(t.encode()).digest() for tag, t in page.code if tag == kind)
        return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]

    assert len(hashes("script")) == 3
    assert meta["content"] == (
        f"default-src 'none'; script-src {' '.join(hashes('script'))};"
        f" style-src {' '.join(hashes('style'))}; base-uri 'none'; form-action 'none'"
    )


def test_the_page_asks_for_nothing_and_holds_no_handler(bounded: Result) -> None:
    for tag, attributes in page_of(bounded).tags:
        assert tag not in {"link", "img", "iframe", "object", "base", "form"}
        assert "src" not in attributes
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")


def test_every_element_is_closed_and_every_id_is_there_once(bounded: Result) -> None:
    page = page_of(bounded)
    assert page.unclosed == []
    names = [of["id"] for _, of in page.tags if "id" in of]
    assert len(names) == len(set(names))
    targets = [of["href"] for of in page.find("a")]
    assert {f"#{name}" for name in names} >= set(targets)
    labels = [of["aria-labelledby"] for _, of in page.tags if "aria-labelledby" in of]
    assert set(names) >= set(labels)


def test_the_verdict_comes_first_with_what_was_missed_and_by_how_much(bounded: Result) -> None:
    said = page_of(bounded).said
    words = (
        "3 of 5 thresholds were missed, that of n2/4K-8K by most: exact rate 0.0000 where at least"
        " 0.5000 is needed."
    )
    assert said.index("MRCR failed") < said.index(words) < said.index("off by")
    assert "Of 18 responses, 0 are exact, 13 inexact, 4 truncated, 1 failed." in said
    missed = said[said.index("off by") : said.index("model org/model")]
    assert "n2/4K-8K ✗ FAIL 0.4500 0.4500 ≥ 0.9000 8" in missed
    assert "n2/4K-8K ✗ FAIL 0.2500 truncation rate 0.5000 ≤ 0.2500 8" in missed


def test_a_cell_says_its_value_its_samples_its_threshold_and_its_mark(bounded: Result) -> None:
    page = page_of(bounded)
    assert "0.450 n 8 needs 0.900 ✗ fail" in page.said
    assert "0.800 n 1, 1 lost" in page.said
    (cell,) = page.find("button", **{"data-needles": "2", "data-bin": "8K-16K"})
    assert cell["data-pass"] == "cold"


def test_a_threshold_that_is_kept_is_no_miss(make_result: Callable[..., Result]) -> None:
    page = page_of(make_result(config=RunConfig(num_samples=3, match_ratio_threshold=0.5)))
    assert "MRCR passed" in page.said
    assert "off by" not in page.said


def test_a_run_without_records_says_what_stopped_it_and_runs_no_script(
    make_result: Callable[..., Result],
) -> None:
    problem = Problem(kind="X", message="no server", hint="Start one.", details="a\n<b>c")
    page = page_of(make_result(records=[], problem=problem))
    assert "What stopped it: no server Start one. The end of the log a <b>c" in page.said
    assert page.find("script") == []
    (meta,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "script-src 'none'" in (meta["content"] or "")


def test_nothing_foreign_becomes_markup(
    make_result: Callable[..., Result], make_record: Callable[..., Record], hostile: str
) -> None:
    record = make_record(
        0, 0.5, reason=hostile, shard=hostile, nonce=hostile, answer=hostile, response=hostile + "x"
    )
    lost = make_record(1, None, reason=hostile)
    records = [record, lost]

    def build(text: str) -> Page:
        result = make_result(
            records=records,
            name=text,
            model=text,
            config_path=text,
            notes=(text,),
            problem=Problem(kind="X", message=text, hint="h", details="d"),
            invocation=("mrcr", text),
        )
        return page_of(result, records)

    planted, plain = build(hostile), build("plain")
    tags = [tag for tag, _ in planted.tags]
    assert tags == [tag for tag, _ in plain.tags] or not hostile
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x0b-\x1f\x7f]", planted.said)
    for name, block in planted.blocks.items():
        assert not set("<>&") & set(block), name
    rows = json.loads(planted.blocks["rows"])
    seen = hostile.encode("utf-8", "replace").decode()
    assert rows[1]["reason"] == seen if hostile else "reason" not in rows[1]
    texts = unpacked(planted.blocks["texts-0"])
    assert texts[rows[0]["returned"][1]] == (seen + "x")[:LONGEST_TEXT]


def test_a_viewer_finds_both_texts_of_a_request(
    make_result: Callable[..., Result], told: list[Record]
) -> None:
    result = make_result(records=[record.without_text() for record in told])
    page = page_of(result, told)
    rows = json.loads(page.blocks["rows"])
    texts = unpacked(page.blocks["texts-0"])
    assert [row["kind"] for row in rows] == ["exact", "exact", "wrong needle", "failed"]
    assert texts[rows[2]["wanted"][1]] == "abcdefghijThe wanted text."
    assert texts[rows[2]["returned"][1]] == "abcdefghijAnother one."
    assert rows[0]["wanted"] == rows[0]["returned"]
    assert "wanted" not in rows[3]


def test_a_viewer_finds_the_outline_of_a_conversation_also_of_a_lost_request(
    make_record: Callable[..., Record],
) -> None:
    outline = (Piece(speaker="u", chars=70), Piece(speaker="a", chars=1_200, needle=1))
    lost = make_record(0, None, outline=outline)
    same = make_record(1, 0.5, outline=outline, nonce="n", answer="na", response="nb")
    older = make_record(2, 0.5, nonce="n", answer="na", response="nb")
    records = [lost, same, older]
    rows, (block,) = packed(records, texts_of(records), "openai")
    assert rows[0].outline == rows[1].outline
    assert rows[0].outline is not None
    assert json.loads(unpacked(block)[rows[0].outline.at]) == [
        ["u", 70, 1, None],
        ["a", 1200, 1, 1],
    ]
    assert rows[0].wanted is None
    assert rows[0].nonce is None
    assert rows[2].outline is None


WANTED = Wanted(ordinal=1, of=2, turn=2, depth=0.1)


@pytest.mark.parametrize(
    ("seen", "came"),
    [
        (Diagnosis(form="exact", wanted=WANTED), 2),
        (Diagnosis(form="no nonce", wanted=WANTED), 2),
        (Diagnosis(form="wrong needle", wanted=WANTED, source=Source(turn=8, ratio=0.9)), 8),
        (Diagnosis(form="garbled", wanted=WANTED, source=Source(turn=5, ratio=0.9)), 5),
        (Diagnosis(form="garbled", wanted=WANTED), None),
        (Diagnosis(form="unrelated", wanted=WANTED), None),
        (Diagnosis(form="failed"), None),
        (None, None),
    ],
)
def test_the_turn_that_came_back_is_told_where_it_is_known(
    make_record: Callable[..., Record], seen: Diagnosis | None, came: int | None
) -> None:
    (row,), _ = packed([make_record(0, 0.5, diagnosis=seen)], {}, "openai")
    assert row.came == came


def test_a_text_that_comes_again_is_kept_once(told: list[Record]) -> None:
    _, blocks = packed(told, texts_of(told), "openai")
    assert [len(unpacked(block)) for block in blocks] == [2]


def test_a_long_text_is_cut_and_says_by_how_much(make_record: Callable[..., Record]) -> None:
    record = make_record(0, 0.1, nonce="n", answer="na", response="x" * (LONGEST_TEXT + 7))
    (row,), (block,) = packed([record], texts_of([record]), "openai")
    assert row.returned is not None
    assert row.returned.left_out == 7
    assert len(unpacked(block)[row.returned.at]) == LONGEST_TEXT


def test_exact_responses_are_left_out_first_where_there_is_no_room(
    make_record: Callable[..., Record], make_grade: Callable[..., Grade]
) -> None:
    draw = random.Random(1)

    def record(ask: int) -> Record:
        answer = draw.randbytes(LONGEST_TEXT // 2).hex()
        exact = ask < 20
        return make_record(
            ask,
            grade=make_grade(1.0 if exact else 0.1, exact=exact),
            nonce="n",
            answer=answer,
            response=answer if exact else "something else",
        )

    records = [record(ask) for ask in range(34)]
    rows, blocks = packed(records, texts_of(records), "openai", room=200_000)
    assert len(blocks) == 1
    assert all(row.wanted is None and row.returned is None for row in rows[:20])
    assert sum(row.wanted is not None for row in rows[20:]) >= 13
    assert sum(map(len, blocks)) <= 200_000 * 4 / 3 + 4


def test_without_the_journal_the_excerpt_stays(
    make_result: Callable[..., Result], told: list[Record]
) -> None:
    page = page_of(make_result(records=told))
    assert "texts-0" not in page.blocks
    assert all("wanted" not in row for row in json.loads(page.blocks["rows"]))


def test_kinds_and_returned_needles_are_counted(
    make_result: Callable[..., Result], told: list[Record]
) -> None:
    said = page_of(make_result(records=told)).said
    assert "exact 50% 2 2 the answer, character for character" in said
    assert "wrong needle 25% 1 1" in said
    matrix = said[said.index("2 needles: wanted and returned") :]
    assert matrix.startswith(
        "2 needles: wanted and returned wanted ↓ returned → 1 2 none 1 1 · · 2 1 1 ·"
    )


def test_without_a_diagnosis_the_grade_tells_the_kind(
    make_result: Callable[..., Result], make_record: Callable[..., Record]
) -> None:
    records = [
        make_record(0, 0.5),
        make_record(1, 0.5, outcome="truncated"),
        make_record(2, None),
    ]
    page = page_of(make_result(records=records))
    kinds = [row["kind"] for row in json.loads(page.blocks["rows"])]
    assert kinds == ["inexact", "truncated", "failed"]
    assert "Which needle came back" not in page.said
    assert "By depth" not in page.said


def test_the_curve_by_depth_shows_how_many_samples_a_tenth_has(
    make_result: Callable[..., Result], told: list[Record]
) -> None:
    said = page_of(make_result(records=told)).said
    assert "where the wanted needle begins. all samples: 30–40 % 1.000 (n 1); 60–70" not in said
    assert "all samples: 30–40 % 1.000 (n 1), 60–70 % 0.600 (n 2)" in said


def test_a_baseline_is_shown_side_by_side(
    make_result: Callable[..., Result],
    make_record: Callable[..., Record],
    make_grade: Callable[..., Grade],
) -> None:
    config = RunConfig(needles=(2,), num_samples=8, baseline="base/result.json")
    before = [make_record(i, grade=make_grade(1.0, exact=True)) for i in range(8)]
    result = make_result(config=config, records=[make_record(i, 0.25) for i in range(8)])
    baseline = Baseline(Path("base/result.json"), make_result(config=config, records=before))
    against = compared(baseline, result)
    verdict = judge(result.buckets, config, (), (check_of(against),))
    said = page_of(msgspec.structs.replace(result, baseline=against, verdict=verdict)).said
    assert "Against the baseline Regression: all samples fell by 0.7500" in said
    assert "n2: baseline 1.0000, this run 0.2500, n 8 n2 -0.750" in said
    assert "2 needles ✗ WORSE 8/8 1.0000 0.2500 -0.7500" in said
    assert "baseline ✗ FAIL regression: all samples fell by 0.7500" in said


def test_a_baseline_that_could_not_be_compared_says_why(
    make_result: Callable[..., Result],
) -> None:
    side = side_of(make_result(), "base/<b>.json", {})
    against = Against(baseline=side, problem="another <i>template</i>")
    said = page_of(msgspec.structs.replace(make_result(), baseline=against)).said
    assert "base/<b>.json: model org/model, server 0.33.0" in said
    assert "Not compared: another <i>template</i>" in said


def test_another_pass_has_a_heat_map_of_its_own(
    make_result: Callable[..., Result],
    make_record: Callable[..., Record],
    make_plan: Callable[..., Plan],
) -> None:
    config = RunConfig(needles=(2,), num_samples=2, passes=("cold", "warm"))
    records = [make_record(i, 0.75) for i in range(2)]
    records += [make_record(2 + i, 0.25, pass_name="warm") for i in range(2)]
    plan = make_plan(records, config, rounds=(Round(), Round(name="warm", kind="warm")))
    buckets = buckets_of(records, plan.quotas, plan=plan)
    page = page_of(make_result(config=config, records=records, plan=plan, buckets=buckets))
    cold, _, warm = page.said.partition("The same, pass warm")
    assert "2 needles 0.750 n 2 0.750 n 2 Choose a cell" in cold
    assert "2 needles 0.250 n 2 0.250 n 2" in warm
    cells = page.find("button", **{"data-needles": "2", "data-bin": "8K-16K"})
    assert [cell["data-pass"] for cell in cells] == ["cold", "warm"]


def test_levels_for_comparison_are_those_of_the_protocol_they_hold_for(
    by_cell: Result, make_result: Callable[..., Result]
) -> None:
    assert "any of 2 needles, at random" in page_of(by_cell).said
    assert "at random" not in page_of(make_result()).said


def test_a_page_above_several_configurations_leads_to_each(
    make_result: Callable[..., Result],
) -> None:
    failed = RunConfig(num_samples=3, match_ratio_threshold=0.95)
    results = [make_result(name="good"), make_result(name="<b>bad", config=failed)]
    page = Page(render_overview(results, ["good", "javascript:alert(1) #?/x"]))
    assert page.unclosed == []
    assert "MRCR failed 1 of 2 configurations failed." in page.said
    assert "<b>bad ✗ FAIL 0.8000 3/3 1 threshold was missed, that of all samples" in page.said
    assert page.said.index("<b>bad") < page.said.index("good · measured")
    assert [of["href"] for of in page.find("a")] == [
        "./javascript%3Aalert%281%29%20%23%3F/x/report.html",
        "./good/report.html",
    ]
    (meta,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "script-src 'none'" in (meta["content"] or "")


def test_published_scores_are_those_of_the_protocol_and_say_whose_they_are(
    by_cell: Result, make_result: Callable[..., Result]
) -> None:
    openai, vllm = page_of(by_cell).said, page_of(make_result()).said
    assert "Published scores, second-hand" in openai
    assert "GPT-4.1 2 128K before the dataset's correction 0.572" in openai
    assert "Qwen3-0.6B" not in openai
    assert "Qwen3-0.6B 2 16K-33K version not stated 0.342" in vllm
    assert "GPT-4.1" not in vllm
