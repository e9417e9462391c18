"""The stand-in for GitHub's runner reads lines as the runner does."""

from __future__ import annotations

import pytest
from tests.container.runner_log import StepLog, parse_command, split_lines


@pytest.mark.parametrize(
    ("line", "name", "data"),
    [
        ("::error::text", "error", "text"),
        (" \t\u3000::error::text", "error", "text"),
        ("::ERROR::text", "error", "text"),
        ("::error title=a,file=b::te::xt", "error", "te::xt"),
        ("::error::a%0Ab%250A%25", "error", "a\nb%0A%"),
        ("anything ##[error]text", "error", "text"),
        ("##[error title=a;file=b]te%5Dxt", "error", "te]xt"),
        ("::unknown::##[warning]text", "warning", "text"),
    ],
)
def test_a_line_is_a_command(line: str, name: str, data: str) -> None:
    command = parse_command(line)

    assert command is not None
    assert (command.name, command.data) == (name, data)


@pytest.mark.parametrize(
    "line",
    [
        *("", "text ::error::text", "::error", "::unknown::text", ": :error::text"),
        *("##[error text", "##[unknown]text", "# #[error]x", "\x1c::error::text", "::err or::x"),
    ],
)
def test_a_line_is_no_command(line: str) -> None:
    assert parse_command(line) is None


def test_properties_are_read_and_unescaped() -> None:
    command = parse_command("::error title=a%3Ab%2Cc%250A,file=,line=3,,=x::text")

    assert command is not None
    assert command.properties == {"title": "a:b,c%0A", "line": "3"}


def test_a_carriage_return_ends_a_line() -> None:
    assert split_lines("a\rb\r\nc\n\nd") == ["a", "b", "c", "", "d"]
    assert split_lines("a\n") == ["a"]
    assert split_lines("\u2028a\v") == ["\u2028a\v"]


def test_stopped_commands_are_text_until_the_token_resumes_them() -> None:
    log = StepLog()

    for line in ("::stop-commands::tOken", "::error::a", "##[error]b", "::stop-commands::x"):
        log.receive(line)
    stopped = log.stopped
    for line in ("##[token]", "::error::c"):
        log.receive(line)

    assert stopped
    assert not log.stopped
    assert [one.message for one in log.annotations] == ["c"]
    assert "::error::a" in log.lines


@pytest.mark.parametrize("token", ["", "error", "Warning", "pause-logging"])
def test_commands_cannot_be_stopped_with_a_token_that_means_something(token: str) -> None:
    log = StepLog()

    log.receive(f"::stop-commands::{token}")

    assert log.failed
    assert not log.stopped


def test_what_is_masked_is_masked_from_then_on_line_by_line() -> None:
    log = StepLog()

    for line in (
        "one secret",
        "::add-mask::secret%0Aother",
        "one secret, an other",
        "::add-mask::",
    ):
        log.receive(line)

    assert log.lines == ["one secret", "one ***, an ***"]


def test_ten_annotations_of_a_level_are_kept_and_each_is_cut() -> None:
    log = StepLog(to_host=str.upper)

    for _ in range(12):
        log.receive("::error file=a,title=t::" + 5_000 * "x")
    log.receive("::notice::n")

    assert [one.level for one in log.annotations] == ["error"] * 10 + ["notice"]
    assert {len(one.message) for one in log.annotations} == {4_096, 1}
    assert log.annotations[0].file == "A"
    assert log.dropped == {"error": 2}
    assert not log.failed


def test_commands_that_are_switched_off_fail_the_step() -> None:
    log = StepLog()

    log.receive("::set-env name=a::b")

    assert log.failed


def test_groups_are_shown_the_other_way() -> None:
    log = StepLog()

    for line in ("::group::a%25", "b", "::endgroup::", "::debug::c"):
        log.receive(line)

    assert log.lines == ["##[group]a%", "b", "##[endgroup]"]
