"""Whatever others write into any text of a run, every report is built as with a plain text.

Each text of a result is replaced by a planted one, and once by a plain one; then all reports of
both are made, and read by what reads them: an XML parser, an HTML parser, a Markdown renderer, and
a runner that looks for workflow commands.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import msgspec
import pytest
from benchmarks.report import made_up
from tests.unit.report.conftest import HOSTILE
from tests.unit.report.planting import planted
from tests.unit.report.test_summary import MARKDOWN, flat

from mrcr_action.action.report import report
from mrcr_action.action.run import Run
from mrcr_action.baseline import Baseline, check_of, compared
from mrcr_action.comparison.document import RoundChange
from mrcr_action.errors import ExitCode, ServerError
from mrcr_action.gate import judge
from mrcr_action.github.commands import Commands
from mrcr_action.github.workspace import Workspace
from mrcr_action.report.console import print_result
from mrcr_action.report.html import render_html, render_overview, texts_of
from mrcr_action.report.html.document import asset
from mrcr_action.report.junit import render_junit
from mrcr_action.report.summary import render_summary
from mrcr_action.result import (
    CacheInfo,
    DataInfo,
    Problem,
    Record,
    Result,
    ServerInfo,
    Stopped,
    decode_result,
    encode_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FURTHER = [
    "]]><script>alert(1)</script><![CDATA[",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "</bdi></td></tr></table><table><tr><td>",
    "</summary></details><details open><summary>",
    "```mermaid\ngraph TD; A-->B\n```",
    "~~~\nx\n~~~",
    "| --- |\n| x |",
    "x\r\n::error file=a,line=1::planted\r\n",
    "\u2028::warning::planted",
    "EOF\npassed=true",
    "<<EOF\nx\nEOF",
    "\x9b31mred\x9b0m \x9d0;title\x9c",
    "\u061c\u200e\u200f\u202a\u202b\u202d\u2067\u2068",
    "\ufe0f\u180e\u2060\ufeff",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<a href=//example.org>x</a>",
    "<http://example.org> <a@example.org>",
    "[x]: //example.org\n[x]",
    "![x][y]",
    "\\\n# x",
    "`````\n",
    "`` ` ``",
    "|`|` |",
    "%0A::error::planted",
]
TEXTS = [*HOSTILE, *FURTHER]


class Reports(NamedTuple):
    """All that is written about a run."""

    summary: str
    junit: bytes
    page: bytes
    overview: bytes
    console: str
    log: str
    """What the step prints, annotations included."""
    outputs: str
    step_summary: str


@pytest.fixture(scope="module")
def whole() -> tuple[Result, list[Record]]:
    """A result in which every part has something in it, and its journal."""
    result, journal = made_up(1)
    reasons = [msgspec.structs.replace(r, reason="lost", finish_reason="stop") for r in journal]
    before = msgspec.structs.replace(result, records=result.records[:-6])
    config = msgspec.structs.replace(result.config, baseline="base/result.json")
    result = msgspec.structs.replace(result, config=config)
    against = compared(Baseline(Path("base/result.json"), before), result)
    round_ = RoundChange(
        name="warm", kind="warm", asked=1, change=None, differing=0, comparable=1, p_corrected=None
    )
    result = msgspec.structs.replace(
        result,
        records=tuple(record.without_text() for record in reasons),
        invocation=("mrcr", "run", "x.yaml"),
        server=ServerInfo(
            route="container",
            base_url="http://127.0.0.1:8000",
            why="a reason",
            image="image",
            model="model",
            root="root",
            max_model_len=9,
            version="0.0",
            command=("vllm", "serve", "model", "--max-num-seqs", "8"),
        ),
        data=DataInfo(dataset="data", origin="origin", revision="0123", verified=False),
        cache=CacheInfo(block_size=16, capacity=32, prefix_caching=True),
        rounds=(round_,),
        baseline=against,
        verdict=judge(result.buckets, config, result.coverage, (check_of(against),)),
        problem=Problem(kind="ServerError", message="it died", hint="a hint", details="a log"),
        stopped=Stopped(why="certain", asked=1, planned=2, skipped=1),
        notes=("a note",),
    )
    assert result.verdict.conclusion == "fail"
    return result, reasons


@pytest.fixture(scope="module")
def all_reports(
    whole: tuple[Result, list[Record]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Reports]:
    """Make every report of a run with a text in the place of all its texts."""
    tmp_path = tmp_path_factory.mktemp("step")

    @functools.cache
    def made(text: str) -> Reports:
        result = planted(whole[0], text)
        journal = [planted(record, text) for record in whole[1]]
        folder = os.fsdecode(text.encode("utf-8", "replace"))
        console, log = io.StringIO(), io.StringIO()
        print_result(result, [Path(f"out/{text}"[:200].replace("\0", ""))], console)
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.unlink(missing_ok=True)
        run = Run(
            environ={name: str(path) for name, path in files.items()},
            commands=Commands(log),
            workspace=Workspace(tmp_path, ""),
            results=[result],
        )
        error = ServerError(text, hint=text, details=text)
        with contextlib.redirect_stdout(log):
            run.begins(result.name)
            run.show(result, [])
            report(run, ExitCode.FAIL, None)
            report(run, ExitCode.FAIL, error)
            run.commands.close()
        return Reports(
            summary=render_summary([result]),
            junit=render_junit([result]),
            page=render_html(result, texts_of(journal)),
            overview=render_overview([result, result], [folder, f"a/{folder}"]),
            console=console.getvalue(),
            log=log.getvalue(),
            outputs=files["GITHUB_OUTPUT"].read_text(),
            step_summary=files["GITHUB_STEP_SUMMARY"].read_text(),
        )

    return made


def plain_like(text: str) -> str:
    """A plain text of as many lines, which is what a log is told in."""
    return "\n".join(["plain"] * max(1, len(text.splitlines())))


@pytest.fixture(params=TEXTS, ids=lambda text: ascii(text[:30]))
def text(request: pytest.FixtureRequest) -> str:
    """A planted text; one that nobody would see is within another, since it is left out."""
    planted: str = request.param
    seen = "".join(char for char in planted if char.isprintable()).strip()
    return planted if seen else f"a{planted}z"


def test_every_report_is_built_as_with_a_plain_text(
    all_reports: Callable[[str], Reports], text: str
) -> None:
    same_build(all_reports(text), all_reports(plain_like(text)))


def same_build(hostile: Reports, plain: Reports) -> None:
    """See that two sets of reports differ in texts only, and that nothing unseen is in them."""
    assert elements(hostile.junit) == elements(plain.junit)
    for name in ("page", "overview"):
        assert tags(getattr(hostile, name)) == tags(getattr(plain, name)), name
    for name in ("summary", "step_summary"):
        assert blocks(getattr(hostile, name)) == blocks(getattr(plain, name)), name
    assert len(hostile.console.splitlines()) == len(plain.console.splitlines())
    assert [kind for kind, _ in commands(hostile.log)] == [kind for kind, _ in commands(plain.log)]
    assert outputs(hostile.outputs) == outputs(plain.outputs)
    for name, content in hostile._asdict().items():
        text = content.decode() if isinstance(content, bytes) else content
        # Others' code, which is the same in every page, has such characters of its own.
        assert unseen(text.replace(asset("diff.min.js"), "")) == set(), name
    for text in (hostile.console, hostile.log):
        assert "##[" not in text
    assert not re.search(r"^\s*::", hostile.console, re.MULTILINE)


def unseen(text: str) -> set[str]:
    """Characters that control something, change the direction, or are half of a pair."""
    return {
        char
        for char in text
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char != "\n"
    }


def elements(document: bytes) -> list[tuple[str, list[str]]]:
    root = ET.fromstring(document)  # noqa: S314 - made by a report
    return [(e.tag, sorted(e.attrib)) for e in root.iter()]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        links = [value for name, value in attrs if name in {"href", "src", "action", "style"}]
        assert all(value and value.startswith(("#", "./")) for value in links)
        inside = (name for name, _ in attrs)
        self.found.append((tag, [name for name in inside if not name.startswith("data-")]))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"comment {data}")

    def handle_pi(self, data: str) -> None:
        self.found.append(f"instruction {data}")


def tags(page: bytes) -> list[Any]:
    """Every tag with the names of its attributes, in their order, but for packed texts."""
    parser = Tags()
    parser.feed(page.decode())
    parser.close()
    return parser.found


OWN_HTML = "<br>"
"""Of cells with several lines. Where a text brings more of it, its plain twin has fewer."""


def blocks(text: str) -> list[tuple[str, str, str]]:
    """What Markdown becomes: every element, and HTML word for word."""
    found = []
    for token in flat(MARKDOWN.parse(text)):
        if token.type in {"text", "text_special", "softbreak", "inline"}:
            continue
        if token.type == "html_inline":
            assert token.content == OWN_HTML
        # An indented block is a log, whose lines are literal. A fence is the chart, and no text
        # from outside is in it, so that its twin's is the same.
        assert token.type not in {"link_open", "image", "hr", "hardbreak"}
        is_code = token.type in {"html_block", "html_inline", "fence"}
        content = token.content if is_code else ""
        found.append((token.type, token.tag, content))
    return found


def commands(log: str) -> Iterator[tuple[str, str]]:
    """What a runner takes from what a step prints: commands, but for those that stop it."""
    stopped = ""
    for line in log.splitlines():
        match = re.match(r"\s*::([a-z-]+)( [^:]*)?::(.*)$", line)
        if stopped:
            if line.strip() == f"::{stopped}::":
                stopped = ""
        elif match and match[1] == "stop-commands":
            stopped = match[3]
        elif match:
            yield match[1], match[3]


def outputs(file: str) -> dict[str, str]:
    """The outputs of a step, as a runner reads them."""
    found = {}
    lines = iter(file.split("\n"))
    for line in lines:
        if not line:
            continue
        name, _, delimiter = line.partition("<<")
        assert delimiter
        value = []
        for inner in lines:
            if inner == delimiter:
                break
            value.append(inner)
        found[name] = "\n".join(value)
    return found


def test_a_text_is_planted_in_every_place(whole: tuple[Result, list[Record]]) -> None:
    content = encode_result(planted(whole[0], "PLANTED")).decode()
    for word in ("it died", "a log", "a hint", "a note", "580.95", "certain", "base/"):
        assert word in encode_result(whole[0]).decode()
        assert word not in content
    assert content.count("PLANTED") > 100
    decode_result(content.encode())
