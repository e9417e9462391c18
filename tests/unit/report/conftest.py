"""Text that others might plant in a name, a log or an answer."""

from __future__ import annotations

import pytest

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details><h1>PASSED</h1>",
    "<!-- hidden",
    "a | b | c",
    "a\n\n| x | y |\n| --- | --- |\n| 1 | 2 |",
    "`code` ``more`` ```",
    "```\nfenced\n```",
    "`",
    "line\nbreak\r\nand\x0bmore\x85\u2028\u2029end",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "\x00\x01\x02\x08\x7f",
    "user\u202etxt.exe\u202c \u2066hidden\u2069 zero\u200bwidth\ufeff",
    "::error::planted",
    "  ::set-output name=x::y",
    "##[error]planted",
    "a ##[group]b",
    "\n::stop-commands::token",
    "\ud800 lone \udfff",
    "\ufffe\uffff",
    "@octocat and a@example.org",
    "https://example.org/x www.example.org ftp://example.org",
    "[text](javascript:alert(1)) ![image](https://example.org/x.png)",
    "[ref]: https://example.org",
    "*bold* _it_ ~~gone~~ **b**",
    "# heading",
    "> quote",
    "- item",
    "1. item",
    "12) item",
    "===",
    "---",
    "+ item",
    ": term",
    "&lt;b&gt; &amp; &#60; &nbsp;",
    "back\\slash \\| \\\\| \\",
    "$x^2$ and $$y$$",
    "]]> <![CDATA[x]]> <?xml?> \"'",
    "[!WARNING] planted",
    "[^1] [x] #12",
    "",
    "   ",
    "x" * 5_000,
    "😀 é e\u0301 中",
    "[bold red]markup[/]",
    "{braces} %s {0}",
]


@pytest.fixture(params=HOSTILE, ids=lambda text: ascii(text[:30]))
def hostile(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text
