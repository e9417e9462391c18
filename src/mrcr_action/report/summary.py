"""The job summary, in GitHub's Markdown; every foreign text in it is literal."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mrcr_action.report.cells import beyond, coverage_table, shown
from mrcr_action.report.rows import table_of, tested
from mrcr_action.report.text import code, lines, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.result import Record, Result

HEADLINES = {
    "pass": "✅ MRCR passed",
    "fail": "❌ MRCR failed",
    "inconclusive": "⚠️ MRCR is inconclusive",
}
MEASURED = "📏 MRCR measured, nothing gated"
"""A pass without a threshold is no praise."""

ROUTES = {
    "process": "served for this run",
    "container": "served for this run in a container",
    "external": "on a running server",
}
WORST_SHOWN = 5


def render_summary(results: Sequence[Result]) -> str:
    """One section a result, in their order."""
    return "\n".join(_section(result) for result in results)


def _section(result: Result) -> str:
    parts = [
        f"## {_headline(result)}: {markdown(result.name)}",
        markdown(result.verdict.summary, limit=2_000),
    ]
    if result.problem is not None:
        parts.append(_problem(result))
    if result.records:
        parts.append(_markdown(table_of(result), left=2))
    parts.extend(f"> [!NOTE]\n> {markdown(note, limit=1_000)}" for note in result.notes)
    parts.append(_facts(result))
    if result.coverage:
        parts.append(_coverage(result))
    worst = _worst(result)
    if worst:
        parts.append(worst)
    if result.invocation:
        parts.append(f"To reproduce: {code(shlex.join(result.invocation), limit=2_000)}")
    return "\n\n".join(parts) + "\n"


def _headline(result: Result) -> str:
    gated = any(check.threshold is not None for check in result.verdict.checks)
    if result.verdict.conclusion == "pass" and not gated:
        return MEASURED
    return HEADLINES[result.verdict.conclusion]


def _problem(result: Result) -> str:
    problem = result.problem
    assert problem is not None
    text = f"**What stopped it:** {markdown(problem.message, limit=1_000)}"
    if problem.hint:
        text += f"\n\n{markdown(problem.hint, limit=1_000)}"
    if problem.details:
        body = "\n".join("    " + line for line in lines(problem.details))
        text += f"\n\n<details><summary>The end of the log</summary>\n\n{body}\n\n</details>"
    return text


def _markdown(table: Sequence[Sequence[str]], *, left: int) -> str:
    """A table whose first columns are words and the others figures."""
    head, *body = ("| " + " | ".join(row) + " |" for row in table)
    rule = "|" + " --- |" * left + " ---: |" * (len(table[0]) - left)
    return "\n".join([head, rule, *body])


def _coverage(result: Result) -> str:
    table = _markdown(coverage_table(result.coverage, result.config.protocol), left=1)
    title = f"By needles and length: {len(shown(result.coverage))} cells"
    folded = f"<details><summary>{title}</summary>\n\n{table}\n\n</details>"
    rest = beyond(result.coverage)
    return f"{rest}\n\n{folded}" if rest else folded


def _facts(result: Result) -> str:
    server, data, time = result.server, result.data, result.timeline
    origin = f", a bundle of {code(data.origin)}" if data.origin else ""
    revision = f" at {code(data.revision[:12])}" if data.revision else ""
    unverified = ", **not verified**" if data.verified is False else ""
    version = f", version {markdown(server.version)}" if server.version else ""
    facts = [
        f"- Model {code(result.model or '?')}{version}, {ROUTES[server.route]}",
        f"- Samples from {code(data.dataset)}{origin}{revision}{unverified}; {tested(result)}",
        (
            f"- {time.total:.1f} s in all: start-up {time.start_up:.1f}, choosing {time.plan:.1f},"
            f" asking {time.ask:.1f}; {result.total_output_tokens:,} tokens answered,"
            f" {result.tokens_per_second:.1f} a second"
        ),
    ]
    return "\n".join(facts)


def _worst(result: Result) -> str:
    protocol = result.config.protocol
    low = [r for r in result.records if r.grade is None or not r.grade.exact]
    if not low:
        return ""

    def place(record: Record) -> tuple[float, int]:
        return (record.grade.match_ratio(protocol) if record.grade else -1.0, record.ask)

    rows = [
        "| sample | needles | prompt tokens | outcome | ratio | what happened |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    for record in sorted(low, key=place)[:WORST_SHOWN]:
        ratio = f"{record.grade.match_ratio(protocol):.4f}" if record.grade else "–"
        tokens = "–" if record.prompt_tokens is None else f"{record.prompt_tokens:,}"
        rows.append(
            f"| {code(f'{record.shard}#{record.row}')} | {record.n_needles} | {tokens}"
            f" | {record.outcome} | {ratio} | {markdown(_what(record))} |"
        )
    title = f"The worst of {len(low)} inexact or lost samples"
    return f"<details><summary>{title}</summary>\n\n" + "\n".join(rows) + "\n\n</details>"


def _what(record: Record) -> str:
    if record.grade is None:
        return record.reason
    if record.outcome == "truncated":
        thought = f", after {record.reasoning_chars:,} characters of reasoning"
        return "cut at max_tokens" + (thought if record.reasoning_chars else "")
    if not record.grade.nonce_hit:
        return "the answer does not start with the nonce"
    return "not the wanted text"
