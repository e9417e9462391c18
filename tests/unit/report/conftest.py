"""Text that others might plant in a name, a log or an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mrcr_action.config import RunConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.plan import Cell, Plan
    from mrcr_action.result import Record, Result

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


@pytest.fixture
def bounded(
    make_result: Callable[..., Result],
    make_record: Callable[..., Record],
    make_plan: Callable[..., Plan],
    make_cell: Callable[..., Cell],
) -> Result:
    """A result by cell: one misses three bounds, one a lost sample, one neither bound nor loss."""
    config = RunConfig(
        protocol="openai",
        needles=(2,),
        samples_per_cell=8,
        thresholds={
            "all": {"match_ratio": 0.5, "failure_rate": 0.5},
            "n2/4K-8K": {"match_ratio": 0.95, "exact_rate": 0.5, "truncation_rate": 0.25},
        },
    )
    records = [
        make_record(
            *(i, 0.1 * (i + 1)),
            o200k_tokens=5_000,
            outcome="truncated" if i < 4 else "scored",
        )
        for i in range(8)
    ]
    records += [make_record(8 + i, 0.95, o200k_tokens=9_000) for i in range(8)]
    records += [make_record(16 + i, None if i else 0.8, o200k_tokens=20_000) for i in range(2)]
    cells = (
        make_cell(2, "4K-8K", planned=8),
        make_cell(2, "8K-16K", planned=8),
        make_cell(2, "16K-32K", planned=2),
    )
    plan = make_plan(records, config, cells=cells, passed={}, quotas={2: 18})
    return make_result(config=config, records=records, plan=plan)
