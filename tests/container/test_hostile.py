"""Text of models, servers, samples and names that is made to be taken for something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from junitparser import JUnitXml
from markdown_it import MarkdownIt
from tests.container.conftest import QUICK
from tests.container.images import REPOSITORY

from mrcr_action.data.writer import write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.container.runner import Job
    from tests.container.runner_step import Step

COMMANDS = (
    "::error title=PWNED::PWNED",
    " \t::warning::PWNED",
    "::add-mask::MRCR",
    "::set-output name=passed::true",
    "::save-state name=pwned::true",
    "::stop-commands::pwned",
    "::pwned::",
    "::group::PWNED",
    "::endgroup::",
    "a line that goes on ##[error]PWNED",
    "##[add-path]/pwned",
    "\r::error::PWNED",
    "%0A::error::PWNED",
)

MARKUP = (
    "</td></table></details><script>pwned()</script> | `` ``` | **b** ![i](http://x) @octocat\n# H"
)

CONTROLS = (
    "\x1b[2J\x1b[31mred\x1b[0m \x00 \x07 \x9b31m \u202eevil\u2066 \ufffe \u2028::error::PWNED"
)

HOSTILE = "\n".join([*COMMANDS, MARKUP, "# A heading", "| a | b |", CONTROLS])

OWN = {"add-mask", "endgroup", "error", "group", "notice", "stop-commands", "warning"}
"""The commands that the Action itself says."""

TAGS = {"<details><summary>", "<details>", "</details>", "<summary>", "</summary>", "<br>"}


def check_nothing_was_taken_for_a_command(step: Step) -> None:
    declared = yaml.safe_load((REPOSITORY / "action.yml").read_text())["outputs"]
    tokens = {command.data for command in step.commands if command.name == "stop-commands"}
    assert {command.name for command in step.commands} <= OWN | tokens
    assert [command for command in step.commands if command.name == "add-mask"] == []
    assert all(one.title.startswith("MRCR") for one in step.annotations), step.annotations
    assert set(step.outputs) == set(declared)
    assert (step.state, step.env) == ({}, {})
    assert not step.commands_stopped
    for character in "\x1b\x00\x07\x9b\u202e":
        assert character not in step.printed, repr(character)


def check_the_summary_is_whole(summary: str) -> None:
    """As GitHub's Markdown it holds no tags but its own, and tables of one width each."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(summary)
    inline = [child for token in tokens for child in token.children or []]
    folded = 0
    for token in (*tokens, *inline):
        if token.type in {"html_block", "html_inline"}:
            bare = token.content
            folded += bare.count("<details>") - bare.count("</details>")
            for tag in TAGS:
                bare = bare.replace(tag, "")
            assert "<" not in bare, token.content
        assert token.type not in {"image", "link_open"}, token
    headings = [token.content for token in tokens if token.type == "inline" and token.level == 1]
    assert "A heading" not in headings
    widths: list[int] = []
    for token in tokens:
        if token.type == "tr_open":
            widths.append(0)
        elif token.type in {"td_open", "th_open"}:
            widths[-1] += 1
        elif token.type == "table_close":
            assert len(set(widths)) == 1, widths
            widths = []
    assert folded == 0


def check(job: Job, step: Step) -> JUnitXml:
    """Everything at once; returns the JUnit file, read."""
    check_nothing_was_taken_for_a_command(step)
    check_the_summary_is_whole(step.summary)
    return JUnitXml.fromfile(str(job.workspace / step.outputs["junit-path"]))


@pytest.mark.parametrize("route", ["process", "container"])
def test_a_servers_log_is_shown_and_does_nothing(job: Job, route: str) -> None:
    job.write("hostile.txt", HOSTILE.encode() + b"\n\xff\xfe\xed\xa0\x80 ValueError: ##[error]X\n")
    arguments = "--print-file hostile.txt --max-model-len none"

    step = job.run({**QUICK, "server": route, "server-args": arguments})

    assert step.exit_code == 3, step.log
    assert check(job, step).errors > 0
    assert "PWNED" in step.log
    assert "PWNED" in step.summary
    assert b"\xff\xfe" in (job.workspace / "mrcr-results/server.log").read_bytes()


def test_what_a_model_answers_is_shown_and_does_nothing(job: Job) -> None:
    write_parquet(hostile_rows(), job.workspace / "hostile")
    inputs = {**QUICK, "dataset": "hostile", "needles": "2", "server-args": "--fault garble"}

    step = job.run({**inputs, "server": "process"})

    assert step.exit_code == 1, step.log
    assert check(job, step).failures == 1
    records = (job.workspace / "mrcr-results/samples.jsonl").read_text()
    assert "::" in records


@pytest.mark.parametrize(
    "name", [COMMANDS[0], COMMANDS[2], "##[error]PWNED", "two\n::error::PWNED\r\n", MARKUP]
)
def test_a_models_name_is_a_name(job: Job, name: str) -> None:
    step = job.run({**QUICK, "model": name, "server": "process"})

    assert step.exit_code in {0, 2}, step.log
    check_nothing_was_taken_for_a_command(step)
    check_the_summary_is_whole(step.summary)


def test_the_name_of_a_configuration_is_a_name(job: Job) -> None:
    job.write("%0A::error::PWNED |,.yaml", "model_name: m\nserver: process\n")
    inputs = {key: value for key, value in QUICK.items() if key != "model"}

    step = job.run(
        {**inputs, "config": "%0A::error::PWNED |,.yaml", "server-args": "--fault drop-nonce"}
    )

    assert step.exit_code == 1, step.log
    check(job, step)
    assert [one.file for one in step.errors()] == ["%0A::error::PWNED |,.yaml"]
    assert [c.data for c in step.commands if c.name == "group"] == ["MRCR: %0A::error::PWNED |,"]


def test_an_output_with_line_ends_is_one_output(job: Job) -> None:
    folder = "out\npassed=true\nconclusion<<E\npass\nE"

    step = job.run(
        {**QUICK, "output-dir": folder, "server": "process", "server-args": "--fault drop-nonce"}
    )

    assert step.exit_code == 1, step.log
    check_nothing_was_taken_for_a_command(step)
    assert (step.outputs["passed"], step.outputs["conclusion"]) == ("false", "fail")
    assert (job.workspace / step.outputs["junit-path"]).is_file()


def hostile_rows() -> Iterator[dict[str, Any]]:
    """Rows whose every text is hostile; the pieces differ by their number."""
    for index in range(2):
        nonce = f"n0nce{index:05}"
        turns = [{"role": "user", "content": f"Examples: {HOSTILE.replace(chr(0), ' ')}"}]
        pieces = [f"{HOSTILE.replace(chr(0), ' ')} {number}" for number in range(2)]
        for piece in pieces:
            turns.append({"role": "user", "content": "write a poem about lamps"})
            turns.append({"role": "assistant", "content": piece})
        question = f"Prepend {nonce} to the 2nd (1 indexed) poem about lamps."
        turns.append({"role": "user", "content": question})
        yield {
            "prompt": json.dumps(turns),
            "answer": nonce + pieces[1],
            "random_string_to_prepend": nonce,
            "n_needles": 2,
            "desired_msg_index": 3,
            "total_messages": len(turns),
            "n_chars": sum(len(turn["content"]) for turn in turns),
            "date_added": "12-01-2025",
        }
