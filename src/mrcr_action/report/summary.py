"""The job summary, in GitHub's Markdown; every foreign text in it is literal.

GitHub drops a summary that is too long altogether. So there are shorter forms of it: sections for
what did not pass only, the table of configurations alone, and that table cut.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Literal

from mrcr_action.diagnosis.floor import mean_floors
from mrcr_action.diagnosis.lines import told
from mrcr_action.report.baseline import baseline_markdown
from mrcr_action.report.cells import beyond, coverage_table, shown
from mrcr_action.report.cost import cost_markdown
from mrcr_action.report.diagnosis import (
    beside_markdown,
    looks_markdown,
    where_markdown,
    worst_of,
)
from mrcr_action.report.heat import chart_markdown, heat_markdown
from mrcr_action.report.html.groups import first_round
from mrcr_action.report.missed import missed_markdown
from mrcr_action.report.rows import MARKS, areas, number, rounds_table, table_of, tested
from mrcr_action.report.state import NOT_JUDGED, STATES, is_unjudged, state_of
from mrcr_action.report.text import code, lines, markdown
from mrcr_action.rounds import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mrcr_action.result import Record, Result

Detail = Literal["full", "failed", "table"]
"""full: a section a configuration. failed: a section for each that did not pass. table: none."""

HEADLINES = {
    "pass": "✅ MRCR passed",
    "fail": "❌ MRCR failed",
    "inconclusive": "⚠️ MRCR is inconclusive",
    "measured": "📏 MRCR measured, nothing gated",
}
"""By state, of which there is one more than there are conclusions: a pass without a threshold is no
praise."""

SHORTENED: dict[Detail, str] = {
    "failed": "Shortened to fit: sections only for what did not pass.",
    "table": "Shortened to fit: the table alone.",
}
CUT = "Shortened to fit: the table alone, and not all of it."
WHOLE = "The whole summary is `summary.md` in the output folder, or in the artifact made of it."

ROUTES = {
    "process": "served for this run",
    "container": "served for this run in a container",
    "external": "on a running server",
}
WORST_SHOWN = 5


def render_summary(results: Sequence[Result], *, detail: Detail = "full") -> str:
    """One section a result, in their order; a table of all before them unless there is only one."""
    return "\n".join(_blocks(results, _overview(results), detail))


def fit_summary(results: Sequence[Result], limit: int) -> str:
    """The fullest form that fits; empty where not even the verdict does.

    Args:
        results: what was found.
        limit: most bytes of UTF-8.
    """
    rows = _overview(results)
    for detail in ("full", *SHORTENED):
        text = _within(_blocks(results, rows, detail), limit)
        if text is not None:
            return text
    return _cut(results, rows, limit)


def _blocks(results: Sequence[Result], rows: Sequence[str], detail: Detail) -> Iterator[str]:
    """The parts of a form, each of them complete Markdown."""
    if detail != "full" or len(results) != 1:
        yield _opening(results, SHORTENED.get(detail))
        if rows:
            yield "".join([*OVERVIEW, *rows])
    if detail != "table":
        for result in results:
            if detail == "full" or result.verdict.conclusion != "pass":
                yield _section(result)


def _within(blocks: Iterable[str], limit: int) -> str | None:
    """The blocks as one text, or None as soon as they are too long."""
    found: list[str] = []
    left = limit + 1
    for block in blocks:
        left -= 1 + _size(block)
        if left < 0:
            return None
        found.append(block)
    return "\n".join(found)


def _cut(results: Sequence[Result], rows: Sequence[str], limit: int) -> str:
    opening = _opening(results, CUT)
    states = [state_of(result) for result in _ordered(results)]

    def closing(shown: int) -> str:
        return f"\n{len(rows) - shown:,} of {len(rows):,} left out: {_tally(states[shown:])}.\n"

    # With nothing shown, what was left out takes the most room to say.
    left = limit - _size("\n".join([opening, *OVERVIEW])) - _size(closing(0))
    shown = 0
    while shown < len(rows) and _size(rows[shown]) <= left:
        left -= _size(rows[shown])
        shown += 1
    table = "\n" + "".join([*OVERVIEW, *rows[:shown]]) if shown else ""
    forms = (f"{opening}{table}{closing(shown)}", f"{_overall(results)}\n")
    return next((form for form in forms if _size(form) <= limit), "")


def _opening(results: Sequence[Result], shortened: str | None) -> str:
    states = [state_of(result) for result in results]
    parts = [_overall(results)]
    if len(set(states)) > 1:
        parts.append(f"{_tally(states)}.")
    if shortened:
        parts.append(f"> [!NOTE]\n> {shortened} {WHOLE}")
    return "\n\n".join(parts) + "\n"


def _overall(results: Sequence[Result]) -> str:
    """A heading with the verdict on all of them: that of the worst."""
    if not results:
        return f"# {HEADLINES['inconclusive']}: nothing was run"
    counts = Counter(state_of(result) for result in results)
    worst = next(state for state in STATES if counts[state])
    how_many = f"{counts[worst]:,} of {len(results):,} configurations"
    if counts[worst] == len(results):
        how_many = f"all {len(results):,} configurations" if len(results) > 1 else "1 configuration"
    return f"# {HEADLINES[worst]}: {how_many}"


def _tally(states: Iterable[str]) -> str:
    counts = Counter(states)
    return ", ".join(f"{counts[state]:,} {did}" for state, did in STATES.items() if counts[state])


def _ordered(results: Iterable[Result]) -> list[Result]:
    """Those that failed, those without a verdict, and the others; each kind in the order given."""
    order = {"fail": 0, "inconclusive": 1, "measured": 2, "pass": 3}
    return sorted(results, key=lambda result: order[result.verdict.conclusion])


OVERVIEW = (
    "| configuration | verdict | ratio | samples | why |\n",
    "| --- | --- | ---: | ---: | --- |\n",
)


def _overview(results: Sequence[Result]) -> list[str]:
    """A row of a table for each configuration, the worst first."""
    rows = []
    for result in _ordered(results):
        overall = result.buckets[0]
        cells = (
            markdown(result.name, limit=80),
            MARKS[state_of(result)],
            number(result.match_ratio),
            f"{overall.graded}/{overall.wanted}",
            markdown(_why(result), limit=160),
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return rows


def _why(result: Result) -> str:
    conclusion = result.verdict.conclusion
    if conclusion == "inconclusive" and result.problem is not None:
        return result.problem.message
    if conclusion == "measured":
        return result.verdict.summary
    said = [check for check in result.verdict.checks if check.state == conclusion]
    if conclusion != "pass":
        return "; ".join(check.message for check in said) or result.verdict.summary
    # What was measured matters less here than that there is nothing to see.
    held = [check.message for check in said if not check.is_of_threshold]
    reached = len(said) - len(held)
    if held and not reached:
        return held[0]
    why = {0: "no threshold was set", 1: "the threshold was reached"}.get(
        reached, f"all {reached} thresholds were reached"
    )
    return "; ".join([why, *held])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _headline(result: Result) -> str:
    return f"📏 {NOT_JUDGED}" if is_unjudged(result) else HEADLINES[state_of(result)]


def _section(result: Result) -> str:
    parts = [
        f"## {_headline(result)}: {markdown(result.name)}",
        missed_markdown(result),
    ]
    if result.stopped is not None:
        parts.append(f"⏹️ {markdown(result.stopped.sentence, limit=1_000)}")
    if result.problem is not None:
        parts.append(_problem(result))
    if state_of(result) != "pass":
        parts.append(looks_markdown(result))
    if result.records:
        parts += [heat_markdown(result), _markdown(table_of(result), left=2)]
    if any(change.asked for change in result.rounds):
        parts.append(_markdown(rounds_table(result.rounds), left=1))
    if result.baseline is not None:
        parts.append(baseline_markdown(result.baseline))
    parts.extend(f"> [!NOTE]\n> {markdown(note, limit=1_000)}" for note in result.notes)
    parts += [_facts(result), cost_markdown(result)]
    if result.coverage:
        parts.append(_coverage(result))
    parts.append(chart_markdown(result))
    parts += [where_markdown(result), *_worst(result)]
    if result.invocation:
        parts.append(f"To reproduce: {code(shlex.join(result.invocation), limit=2_000)}")
    return "\n\n".join(filter(None, parts)) + "\n"


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
    """A table whose first columns are words and the others figures; no cell holds markup.

    Names of cells and rounds are made by a run; a document that is rendered again may have others.
    """
    head, *body = ("| " + " | ".join(map(markdown, row)) + " |" for row in table)
    rule = "|" + " --- |" * left + " ---: |" * (len(table[0]) - left)
    return "\n".join([head, rule, *body])


def _coverage(result: Result) -> str:
    intervals = {b.name: b.interval for b in result.buckets if b.bin is not None}
    rows = coverage_table(result.coverage, result.config.protocol, intervals or None)
    table = _markdown(rows, left=1)
    title = f"By needles and length: {len(shown(result.coverage))} cells"
    folded = f"<details><summary>{title}</summary>\n\n{table}\n\n</details>"
    rest = markdown(beyond(result.coverage), limit=2_000)
    return f"{rest}\n\n{folded}" if rest else folded


def _facts(result: Result) -> str:
    server, data = result.server, result.data
    origin = f", a bundle of {code(data.origin)}" if data.origin else ""
    revision = f" at {code(data.revision[:12])}" if data.revision else ""
    unverified = ", **not verified**" if data.verified is False else ""
    version = f", version {markdown(server.version)}" if server.version else ""
    image = f" of {code(server.image)}" if server.image else ""
    why = f", since {markdown(server.why)}" if server.why else ""
    told = areas(result)
    facts = [
        f"- Model {code(result.model or '?')}{version}, {ROUTES[server.route]}{image}{why}",
        f"- Samples from {code(data.dataset)}{origin}{revision}{unverified}; {tested(result)}",
        *([f"- {floors}"] if (floors := _floors(result)) else []),
        *([f"- {told}"] if told else []),
    ]
    return "\n".join(facts)


def _floors(result: Result) -> str:
    """What these samples would score without telling one needle from another."""
    protocol = result.config.protocol
    # Nobody mistakes the only one: its floor of 1 would make every good ratio look like guesses.
    several = (record for record in first_round(result.records) if record.n_needles > 1)
    found = mean_floors(several, protocol)
    told = ", ".join(f"{floor:.2f} with {needles} needles" for needles, floor in found.items())
    return f"Any of the needles, at random, would score {told} ({protocol})" if told else ""


def _worst(result: Result) -> list[str]:
    protocol = result.config.protocol
    low = worst_of(result.records, protocol)
    if not low:
        return []
    rows = [
        "| sample | needles | prompt tokens | outcome | ratio | what happened |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    for record in low[:WORST_SHOWN]:
        ratio = f"{record.grade.match_ratio(protocol):.4f}" if record.grade else "–"
        tokens = "–" if record.prompt_tokens is None else f"{record.prompt_tokens:,}"
        rows.append(
            f"| {code(f'{record.shard}#{record.row}')}{_round(record)} | {record.n_needles}"
            f" | {tokens} | {record.outcome} | {ratio} | {markdown(told(record))} |"
        )
    title = f"The worst of {len(low)} inexact or lost samples"
    table = f"<details><summary>{title}</summary>\n\n" + "\n".join(rows) + "\n\n</details>"
    return [table, beside_markdown(low[:WORST_SHOWN])]


def _round(record: Record) -> str:
    return "" if record.pass_name == FIRST else f", {markdown(record.pass_name)}"
