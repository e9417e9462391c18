import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.telemetry.exposing import exposed

from mrcr_action.telemetry.counters import COUNTERS, between, read_counters
from mrcr_action.telemetry.exposition import LINES, samples_of
from mrcr_action.telemetry.gauges import GAUGES, read_load

NAME = "vllm:prompt_tokens_total"


def test_only_whole_names_are_taken() -> None:
    text = f"{NAME}_of_others 5\n{NAME} 3\nx{NAME} 7\n"
    assert [(s.name, s.value) for s in samples_of(text, {NAME})] == [(NAME, 3.0)]


def test_lines_of_others_may_be_of_any_form() -> None:
    strange = 'other{a="\n# TYPE other bogus bogus\nx 1 2 3 4\n\x00\n'
    assert samples_of(strange + exposed(prompt=4), {NAME})[0].value == 4


@pytest.mark.parametrize(
    "text",
    [
        f'{NAME}{{a="\n',
        f"{NAME}{{a=\n{NAME} 3\n",
        f"{NAME}\n",
        f'{NAME}{{a="b}} 3\n',
        f"{NAME} <script>\n",
        f'{NAME}{{a="{"x" * 5_000}"}} 3\n',
    ],
)
def test_a_line_that_cannot_be_read_makes_all_unknown(text: str) -> None:
    assert samples_of(f"{NAME} 1\n" + text, {NAME}) == []


def test_more_lines_than_any_server_has_are_not_read() -> None:
    def lines(count: int) -> str:
        return "".join(f'{NAME}{{engine="{index}"}} 1\n' for index in range(count))

    assert len(samples_of(lines(LINES), {NAME})) == LINES
    assert samples_of(lines(LINES + 1), {NAME}) == []


def test_sixteen_megabytes_are_looked_through_at_once() -> None:
    text = "# HELP other nothing of ours\nother_total 1\n" * 350_000 + exposed(prompt=4)
    assert len(text) > 15_000_000
    begin = time.process_time()
    assert samples_of(text, {NAME})[0].value == 4
    assert time.process_time() - begin < 2


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(COUNTERS | GAUGES)), st.text(max_size=60)), max_size=6
    )
)
def test_no_text_behind_our_names_raises(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(name + rest for name, rest in lines)
    read_load(text)
    between(read_counters(exposed()), read_counters(text))


@given(st.text(alphabet='{}="\\, \n0123456789.eNaIf+-#abc:_', max_size=200))
def test_no_text_of_the_formats_own_letters_raises(rest: str) -> None:
    text = exposed() + NAME + rest
    read_load(text)
    between(read_counters(exposed()), read_counters(text))
