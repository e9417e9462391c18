import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mrcr_action.report.text import code, lines, markdown, one_line, xml_text

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
BREAK = "\u200b"
"""What keeps an @ from being a mention."""

SPECIAL = "\n\r\\`*_{}[]()#|~<>&@$!+-=:.;/'\" \t\u202e\u2028\x1b\x00\ud800\ufffe1ahwpst"
TEXTS = st.text() | st.text(SPECIAL, max_size=40)


def words_of(tokens: list[Token]) -> str:
    """The text of inline tokens, which must be nothing but text."""
    assert {token.type for token in tokens} <= {"text", "text_special"}
    return "".join(token.content for token in tokens)


def check_line(text: str) -> None:
    assert text == " ".join(text.split())
    assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert not text.startswith("::")
    assert "##[" not in text


def check_markdown(text: str) -> None:
    """What a reader sees is the text, as a paragraph and in a table, and nothing else."""
    seen = one_line(text)
    made = markdown(text)
    assert "\n" not in made
    assert not re.search(r"[<>@$]|://|www\.", made)
    tokens = MARKDOWN.parse(made)
    if not seen:
        assert tokens == []
        return
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert words_of(tokens[1].children or []).replace(BREAK, "") == seen
    inline = in_table(made)
    assert words_of(inline.children or []).replace(BREAK, "") == seen


def check_code(text: str) -> None:
    seen = one_line(text).replace("|", "¦") or " "
    made = code(text)
    assert "\n" not in made
    tokens = MARKDOWN.parse(f"x {made} y")
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    for inline in (tokens[1], in_table(f"x {made} y")):
        children = inline.children or []
        assert [t.type for t in children] == ["text", "code_inline", "text"]
        assert children[1].content == seen


def in_table(cell: str) -> Token:
    tokens = MARKDOWN.parse(f"| a | b |\n| --- | --- |\n| {cell} | end |")
    inlines = [t for t in tokens if t.type == "inline"]
    assert [t.content for t in inlines[:2]] == ["a", "b"]
    assert len(inlines) == 4
    assert inlines[3].content == "end"
    return inlines[2]


def check_xml(text: str) -> None:
    clean = xml_text(text)
    assert len(clean) == len(text)
    root = ET.fromstring(f"<a>{escape(clean)}</a>")  # noqa: S314 - made here
    assert (root.text or "") == clean.replace("\r\n", "\n").replace("\r", "\n")


def test_hostile_text_stays_on_one_line_without_what_a_runner_obeys(hostile: str) -> None:
    check_line(one_line(hostile))


@given(text=TEXTS)
def test_any_text_stays_on_one_line(text: str) -> None:
    check_line(one_line(text))


def test_hostile_text_is_literal_in_markdown(hostile: str) -> None:
    check_markdown(hostile)


@given(text=TEXTS)
def test_any_text_is_literal_in_markdown(text: str) -> None:
    check_markdown(text)


def test_hostile_text_is_literal_in_inline_code(hostile: str) -> None:
    check_code(hostile)


@given(text=TEXTS)
def test_any_text_is_literal_in_inline_code(text: str) -> None:
    check_code(text)


def test_hostile_text_can_stand_in_xml(hostile: str) -> None:
    check_xml(hostile)


@given(text=TEXTS)
def test_any_text_can_stand_in_xml(text: str) -> None:
    check_xml(text)


def test_a_browser_finds_no_element_in_markdown_that_html_comes_from(hostile: str) -> None:
    class Tags(HTMLParser):
        found: tuple[str, ...] = ()

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found += (tag,)

    tags = Tags()
    tags.feed(MARKDOWN.render(markdown(hostile) + "\n\n" + code(hostile)))
    assert set(tags.found) <= {"p", "code"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match_ratio: 0.7 < 0.8", r"match\_ratio: 0.7 &lt; 0.8"),
        ("0.33.0", "0.33.0"),
        ("1. item", r"1\. item"),
        ("12)", r"12\)"),
        ("- item", r"\- item"),
        ("a | b", r"a \| b"),
        ("@user", "&#64;&#8203;user"),
        ("https://x www.y", "https&#58;//x www&#46;y"),
        ("&#60;", r"&amp;\#60;"),
        ("$x$", "&#36;x&#36;"),
    ],
)
def test_markdown_escapes_what_has_a_meaning_and_nothing_else(text: str, expected: str) -> None:
    assert markdown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "`plain`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a``", "``` a`` ```"),
        ("a|b", "`a¦b`"),
        ("", "` `"),
        ("a\nb", "`a b`"),
    ],
)
def test_code_is_fenced_by_more_backticks_than_it_holds(text: str, expected: str) -> None:
    assert code(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::error::x", ": :error::x"),
        ("  ::error::x", ": :error::x"),
        ("\u200b::error::x", ": :error::x"),
        (":::error::x", ": ::error::x"),
        ("a ::error::x", "a ::error::x"),
        ("##[error]x", "# #[error]x"),
        ("###[[error]x", "## #[[error]x"),
        ("#\u200b#[error]", "# #[error]"),
    ],
)
def test_workflow_commands_are_broken_up(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("abcdef", 3) == "ab…"


def test_every_line_of_a_text_is_made_harmless() -> None:
    assert lines("a\r\n::error::b\n\n  c\x1b[1m") == ["a", ": :error::b", "", "c [1m"]


@pytest.mark.parametrize("text", ["\ufffe", "\uffff", "\ud800", "\x0b", "\x00", "\x1b"])
def test_what_xml_cannot_hold_is_replaced_and_not_dropped(text: str) -> None:
    assert xml_text(f"a{text}b") == "a\ufffdb"


def test_what_xml_can_hold_is_kept() -> None:
    text = "\t\n\r é中😀\ufffd\ue000\U0010ffff"
    assert xml_text(text) == text


def test_blanks_that_align_are_kept_where_wanted_and_commands_are_broken_up_all_the_same() -> None:
    assert one_line("  300   406", keep_blanks=True) == "  300   406"
    assert one_line("  ::error::  x\n", keep_blanks=True) == "  : :error::  x "
