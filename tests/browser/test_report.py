"""What a person does with report.html, by mouse, by keyboard, in the dark and on a phone."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from benchmarks.report import made_up
from playwright.sync_api import expect
from tests.unit.conftest import build_record, build_result
from tests.unit.report.conftest import HOSTILE

from mrcr_action.config import RunConfig
from mrcr_action.report.files import write_pages
from mrcr_action.result import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from tests.browser.conftest import Opened

    from mrcr_action.result import Record, Result

    Show = Callable[..., Opened]
    Some = tuple[Result, list[Record]]


def listed(page: Page) -> list[dict[str, str]]:
    """The rows of the list, by the names of its columns."""
    rows: list[dict[str, str]] = page.evaluate(
        """() => {
          const table = document.querySelector("#list").closest("table");
          const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
          return [...table.tBodies[0].rows].map((row) =>
            Object.fromEntries([...row.cells].map((cell, at) => [names[at], cell.textContent])));
        }"""
    )
    return rows


def counted(page: Page) -> str:
    return page.locator("#count").inner_text()


def test_it_opens_from_a_file_and_asks_for_nothing_else(
    show: Show, some: Some, tmp_path: Path
) -> None:
    opened = show(*some)
    assert opened.requests == [(tmp_path / "report.html").as_uri()]
    expect(opened.page).to_have_title("MRCR failed: made up")
    expect(opened.page.get_by_role("heading", level=1)).to_contain_text("MRCR failed")


def test_the_worst_requests_are_listed_first(show: Show, some: Some) -> None:
    page = show(*some).page
    rows = listed(page)
    assert counted(page) == "144 of 144 requests, the first 100 listed"
    assert len(rows) == 100
    ratios = [-1.0 if row["ratio"] == "–" else float(row["ratio"]) for row in rows]
    assert ratios == sorted(ratios)
    page.get_by_role("button", name="Show more").click()
    assert len(listed(page)) == 144
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()


def test_a_cell_of_the_heat_map_lists_its_samples(show: Show, some: Some) -> None:
    page = show(*some).page
    page.locator(".heat button[data-needles='8'][data-bin='64K-128K']").click()
    assert counted(page) == "6 of 144 requests"
    assert {row["needles"] for row in listed(page)} == {"8"}
    tokens = [int(row["o200k tokens"].replace(",", "")) for row in listed(page)]
    assert all(65_536 < count <= 131_072 for count in tokens)
    expect(page.locator("#samples-title")).to_be_focused()
    expect(page.locator("#samples-title")).to_be_in_viewport()


def test_a_kind_of_fault_lists_its_samples(show: Show, some: Some) -> None:
    page = show(*some).page
    page.locator(".kinds").get_by_role("button", name="wrong needle").click()
    assert {row["kind"] for row in listed(page)} == {"wrong needle"}
    page.get_by_role("button", name="Show all").click()
    assert counted(page).startswith("144 of 144")


def test_filters_narrow_each_other_and_the_count_is_announced(show: Show, some: Some) -> None:
    page = show(*some).page
    page.get_by_label("kind", exact=True).select_option("not exact")
    page.get_by_label("needles", exact=True).select_option("4")
    rows = listed(page)
    expected = sum(r.n_needles == 4 and r.diagnosis.form != "exact" for r in some[1] if r.diagnosis)
    assert counted(page) == f"{expected} of 144 requests"
    assert {row["needles"] for row in rows} == {"4"}
    assert "exact" not in {row["kind"] for row in rows}
    page.get_by_label("search").fill("connection BROKE")
    assert {row["kind"] for row in listed(page)} == {"failed"}
    expect(page.locator("#count")).to_have_attribute("aria-live", "polite")


def test_a_sample_shows_both_texts_with_what_differs_marked(show: Show, some: Some) -> None:
    page = show(*some).page
    record = next(r for r in some[1] if r.grade and not r.grade.exact)
    page.goto(f"{page.url.partition('#')[0]}#ask-{record.ask}")
    expect(page.locator("#viewer-title")).to_have_text(f"{record.shard}#{record.row}")
    expect(page.locator("#returned ins").first).to_be_visible()
    assert page.locator("#wanted").text_content() == record.answer
    assert page.locator("#returned").text_content() == record.response
    texts = "(side) => [...document.querySelectorAll(side)].map((e) => e.textContent).join('')"
    assert page.evaluate(texts, "#wanted del") != ""
    assert record.diagnosis is not None
    assert record.diagnosis.wanted is not None
    place = f"wanted: needle {record.diagnosis.wanted.ordinal}"
    expect(page.locator("#viewer svg")).to_contain_text(place)


def opened_one(show: Show, some: Some, form: str, **context: Any) -> tuple[Page, Record]:
    """The page with a sample of a form shown, and its record."""
    record = next(r for r in some[1] if r.diagnosis and r.diagnosis.form == form)
    page = show(*some, address=f"#ask-{record.ask}", **context).page
    page.locator(".texts[data-ask]").wait_for()
    return page, record


def test_the_needles_of_a_sample_are_marked_with_the_one_that_came_back(
    show: Show, some: Some
) -> None:
    page, record = opened_one(show, some, "wrong needle")
    seen = record.diagnosis
    assert seen is not None
    assert seen.wanted is not None
    assert seen.source is not None
    needles = page.get_by_role("list", name="Needles").get_by_role("listitem")
    assert needles.count() == record.n_needles + 1
    wanted, came = seen.wanted, seen.source
    expect(needles.nth(wanted.ordinal - 1)).to_contain_text(f"wanted: turn {wanted.turn},")
    assert came.ordinal is not None
    expect(needles.nth(came.ordinal - 1)).to_contain_text(f"came back: turn {came.turn},")
    expect(needles.last).to_contain_text("question: turn")
    drawn = page.locator("#viewer svg")
    expect(drawn).to_contain_text(f"came back: needle {came.ordinal}")
    assert drawn.locator("rect.part-needle, rect.part-wanted, rect.part-came").count() == (
        record.n_needles
    )
    # The mark is where the needle is: its depth is a share of the characters before it.
    x = float(drawn.locator("rect.part-wanted").get_attribute("x") or 0)
    assert abs((x - 10) / 700 - wanted.depth) < 0.001


def test_a_distractor_is_marked_as_the_turn_that_it_is(show: Show, some: Some) -> None:
    page, record = opened_one(show, some, "distractor")
    assert record.diagnosis is not None
    assert record.diagnosis.source is not None
    turn = record.diagnosis.source.turn
    expect(page.locator("#viewer svg")).to_contain_text(f"came back: turn {turn}, no needle")
    expect(page.get_by_role("list", name="Needles")).to_contain_text(f"came back: turn {turn}")


def test_the_turns_of_a_conversation_are_read_by_the_keyboard(show: Show, some: Some) -> None:
    page, record = opened_one(show, some, "exact")
    assert record.outline is not None
    title = page.locator(".where summary")
    title.focus()
    page.keyboard.press("Enter")
    rows = page.get_by_role("region", name="Turns of the conversation").locator("tbody tr")
    assert rows.count() == len(record.outline)
    expect(rows.last).to_contain_text("the question")
    chars = sum(piece.chars for piece in record.outline)
    expect(title).to_contain_text(f"{chars:,} characters")
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="Turns of the conversation")).to_be_focused()
    assert Axe().run(page).violations_count == 0


def test_a_lost_request_shows_its_conversation_all_the_same(show: Show, some: Some) -> None:
    record = next(r for r in some[1] if r.outcome == "failed")
    page = show(*some, address=f"#ask-{record.ask}").page
    expect(page.get_by_role("list", name="Needles")).to_contain_text("wanted")


def test_without_an_outline_the_wanted_needle_is_marked_by_the_diagnosis(
    show: Show, some: Some
) -> None:
    result, journal = some
    bare = [r.without_text() for r in journal]
    record = next(r for r in bare if r.diagnosis and r.diagnosis.form == "wrong needle")
    page = show(result, bare, address=f"#ask-{record.ask}").page
    assert record.diagnosis is not None
    assert record.diagnosis.wanted is not None
    expect(page.locator("#viewer svg")).to_contain_text(
        f"wanted: needle {record.diagnosis.wanted.ordinal} of {record.n_needles}"
    )
    assert page.get_by_role("list", name="Needles").count() == 0


def test_the_cost_is_told_with_tables_that_have_headers(show: Show, some: Some) -> None:
    page = show(*some).page
    part = page.get_by_role("region", name="Cost", exact=True)
    expect(part.get_by_role("rowheader", name="0: NVIDIA H200")).to_be_visible()
    expect(part.get_by_role("columnheader", name="first token p50")).to_be_visible()
    expect(part).to_contain_text("--max-num-seqs")


def test_an_exact_sample_has_no_mark(show: Show, some: Some) -> None:
    exact = next(r for r in some[1] if r.grade and r.grade.exact)
    page = show(*some, address=f"#ask-{exact.ask}").page
    expect(page.locator("#returned")).to_have_text(exact.response or "")
    assert page.locator("#viewer ins, #viewer del").count() == 0


def test_everything_is_reached_by_the_keyboard(show: Show, some: Some) -> None:
    page = show(*some).page
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the samples")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("8needle")
    assert {row["needles"] for row in listed(page)} == {"8"}
    buttons = page.locator("#list button")
    buttons.first.focus()
    page.keyboard.press("ArrowDown")
    expect(buttons.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(buttons.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#viewer-title")).to_be_focused()
    expect(buttons.first).to_have_attribute("aria-current", "true")
    page.keyboard.press("Escape")
    expect(buttons.first).to_be_focused()


def test_next_walks_through_what_is_listed(show: Show, some: Some) -> None:
    page = show(*some).page
    page.locator("#list button").first.click()
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()
    second = listed(page)[1]["sample"]
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#viewer-title")).to_have_text(second)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_rule_of_accessibility_is_broken(show: Show, scheme: str) -> None:
    page = show(*made_up(1), color_scheme=scheme).page
    page.locator("#list button").nth(5).click()
    page.locator("#returned").wait_for()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_the_page_is_dark_where_a_person_wants_that(
    show: Show, some: Some, scheme: str, *, is_dark: bool
) -> None:
    page = show(*some, color_scheme=scheme).page
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour))) < 3 * 60) == is_dark


def test_400_pixels_are_wide_enough(show: Show, some: Some) -> None:
    page = show(*some, viewport={"width": 400, "height": 800}).page
    page.locator("#list button").first.click()
    page.locator("#viewer-title").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    # What is wider than the page lies in a box that scrolls by itself.
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
          .filter((e) => e.getBoundingClientRect().right > 401 && !e.closest(".scroll, .list, pre"))
          .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert beyond == []


def test_print_has_no_controls_and_all_that_is_listed(show: Show, some: Some) -> None:
    page = show(*some, color_scheme="dark", viewport={"width": 760, "height": 1000}).page
    page.locator("#list button").first.click()
    page.locator(".texts[data-ask]").wait_for()
    page.emulate_media(media="print")
    for controls in (".filters", "nav", ".bar-of-buttons"):
        expect(page.locator(controls)).to_be_hidden()
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(page.locator("body")).to_have_css("color", "rgb(30, 33, 38)")
    expect(page.locator("#list tr").last).to_be_visible()
    box = page.locator(".list")
    assert box.evaluate("(e) => e.scrollHeight - e.clientHeight") <= 1


def test_a_browser_that_cannot_unpack_says_so_and_shows_the_rest(show: Show, some: Some) -> None:
    page = show(*some, before="delete window.DecompressionStream").page
    page.locator("#list button").nth(30).click()
    expect(page.locator("#viewer")).to_contain_text("This browser cannot unpack the texts")
    expect(page.locator("#viewer")).to_contain_text("samples.jsonl")


def test_a_run_that_found_nothing_still_says_why(show: Show) -> None:
    problem = Problem(kind="ServerError", message="the server died", hint="See its log.")
    page = show(build_result(records=[], problem=problem)).page
    expect(page.get_by_role("heading", level=1)).to_contain_text("MRCR is inconclusive")
    expect(page.get_by_role("banner")).to_contain_text("the server died")


def test_the_page_above_several_configurations_leads_to_each(
    browser: Browser, some: Some, tmp_path: Path
) -> None:
    folders = [tmp_path / "a", tmp_path / "b #?%"]
    for folder in folders:
        folder.mkdir()
    write_pages([some[0]], folders[:1], tmp_path)
    write_pages([some[0], some[0]], folders, tmp_path)
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto((tmp_path / "report.html").as_uri())
    assert Axe().run(page).violations_count == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.get_by_role("link").nth(1).click()
    page.locator("#list tr").first.wait_for()
    assert page.url == (folders[1] / "report.html").as_uri()
    page.close()


@pytest.fixture
def planted() -> tuple[Result, list[Record]]:
    """Every text that could be foreign is one that somebody planted."""
    script = "<script>document.title = 'planted'; alert(1)</script>"
    handler = "<img src=x onerror=\"document.title = 'planted'; alert(1)\">"
    texts = [*HOSTILE, script, handler, "</script>" + script, "<!--<script>", "]]>" + script]
    journal = []
    for at, text in enumerate(texts):
        values: dict[str, Any] = {"nonce": text[:10], "answer": f"a {text} b", "shard": text}
        journal.append(build_record(at, 0.5, response=f"c {text} d", reason=text, **values))
    result = build_result(
        config=RunConfig(needles=(2,), num_samples=len(journal)),
        records=[record.without_text() for record in journal],
        name=script,
        model=handler,
        config_path="</dd>" + script,
        notes=tuple(texts),
        invocation=("mrcr", script),
    )
    return result, journal


def test_planted_texts_do_nothing(show: Show, planted: tuple[Result, list[Record]]) -> None:
    result, journal = planted
    page = show(result, journal).page
    expect(page).to_have_title(f"MRCR measured, nothing gated: {result.name}")
    shown = 0
    for record in journal:
        page.goto(f"{page.url.partition('#')[0]}#ask-{record.ask}")
        page.locator(f".texts[data-ask='{record.ask}']").wait_for()
        text = page.locator("#returned").text_content() or ""
        assert not re.search(
            "[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", text
        )
        shown += "[U+202E]" in text
    assert shown == 1
    assert page.locator("img, iframe, object, main script, #viewer h1").count() == 0
    assert page.evaluate("document.querySelectorAll('h1').length") == 1


def test_the_policy_stops_a_script_that_got_in(show: Show, some: Some) -> None:
    opened = show(*some)
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'ran'";
          document.body.append(script);
          const image = document.createElement("img");
          image.setAttribute("onerror", "document.title = 'ran'");
          document.body.append(image);
          image.src = "data:,x";
        }"""
    )
    opened.page.wait_for_timeout(200)
    expect(opened.page).to_have_title("MRCR failed: made up")
    assert any("Content Security Policy" in message for message in opened.messages)
    opened.messages.clear()


def test_2400_samples_open_in_less_than_two_seconds(show: Show, write: Callable[..., Path]) -> None:
    result, journal = made_up()
    page = show(result, journal).page
    assert write(result, journal).stat().st_size < 15_000_000
    seconds: list[float] = []
    # The best of five, since other work shares the machine.
    while len(seconds) < 5 and min(seconds, default=2) >= 2:
        start = time.perf_counter()
        page.reload()
        page.locator("#list tr").first.wait_for()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 2
    assert counted(page) == "2,400 of 2,400 requests, the first 100 listed"
    start = time.perf_counter()
    page.get_by_label("order", exact=True).select_option("longest")
    page.locator("#list button").first.click()
    page.locator("#viewer-title").wait_for()
    assert time.perf_counter() - start < 2
