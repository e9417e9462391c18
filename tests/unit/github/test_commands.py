import io

import pytest

from mrcr_action.github.commands import Commands, command, escape_data, escape_property


def said(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_what_would_end_a_command_is_escaped() -> None:
    assert escape_data("50 %\r\nnext: a, b") == "50 %25%0D%0Anext: a, b"
    assert escape_property("50 %\r\nnext: a, b") == "50 %25%0D%0Anext%3A a%2C b"


def test_a_property_without_a_value_is_left_out() -> None:
    assert command("error", "x", title="a, b", file=None) == "::error title=a%2C b::x"
    assert command("endgroup") == "::endgroup::"


def test_nothing_is_a_command_before_and_after_one() -> None:
    stream = io.StringIO()
    commands = Commands(stream)
    stream.write("::error::from a model\n")
    commands.annotate("error", "title", "ours")
    stream.write("##[error]from a log\n")

    first, hostile, resumed, ours, second, _ = said(stream)
    token = first.removeprefix("::stop-commands::")
    assert (hostile, resumed) == ("::error::from a model", f"::{token}::")
    assert ours == "::error title=title::ours"
    assert second.startswith("::stop-commands::")
    assert second != first


def test_a_token_cannot_be_guessed() -> None:
    tokens = set()
    for _ in range(3):
        stream = io.StringIO()
        Commands(stream)
        tokens.add(said(stream)[0])

    assert len(tokens) == 3
    assert all(len(token) == len("::stop-commands::") + 32 for token in tokens)


def test_the_runner_reads_commands_again_at_the_end() -> None:
    stream = io.StringIO()
    commands = Commands(stream)
    token = said(stream)[0].removeprefix("::stop-commands::")
    commands.close()

    assert said(stream)[-1] == f"::{token}::"


def test_every_line_of_a_secret_is_masked() -> None:
    stream = io.StringIO()
    commands = Commands(stream)
    commands.mask(["first\n\n  second %\n", "first"])
    commands.mask(["first"])

    masks = [line for line in said(stream) if line.startswith("::add-mask::")]
    assert masks == ["::add-mask::  second %25", "::add-mask::first"]


def test_without_a_secret_nothing_is_masked() -> None:
    stream = io.StringIO()
    Commands(stream).mask(["", " \n"])

    assert "add-mask" not in stream.getvalue()


def test_a_group_ends_before_the_next_and_before_the_end() -> None:
    stream = io.StringIO()
    commands = Commands(stream)
    commands.group("one")
    commands.group("two\n::error::")
    commands.close()
    commands.end_group()

    kinds = [line for line in said(stream) if "group" in line]
    assert kinds == ["::group::one", "::endgroup::", "::group::two%0A::error::", "::endgroup::"]


@pytest.mark.parametrize("length", [4_000, 4_001, 100_000])
def test_a_message_is_no_longer_than_the_runner_takes(length: int) -> None:
    stream = io.StringIO()
    Commands(stream).annotate("error", "t", "x" * length)

    assert max(map(len, said(stream))) == len("::error title=t::") + 4_000


def test_a_line_of_a_secret_that_is_part_of_everything_is_not_masked() -> None:
    stream = io.StringIO()
    Commands(stream).mask(['{\n  "private": "planted"\n}', "e", "1"])

    masks = [line for line in said(stream) if line.startswith("::add-mask::")]
    assert masks == ['::add-mask::  "private": "planted"']
