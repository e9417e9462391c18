from collections.abc import Callable

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.grade import Grade
from mrcr_action.intervals import Interval
from mrcr_action.report import rows
from mrcr_action.report.rows import COLUMNS, bucket_title, lost, number, span, table_of
from mrcr_action.result import Bucket, Record, Result, ServerInfo


def test_there_is_a_row_for_every_bucket(
    make_result: Callable[..., Result], make_record: Callable[..., Record]
) -> None:
    config = RunConfig(num_samples=4, match_ratio_threshold={2: 0.9, 4: 0.9}, protocol="openai")
    records = [
        make_record(0, 0.95),
        make_record(1, 0.85),
        make_record(2, 0.5, n_needles=4, outcome="truncated"),
        make_record(3, None, n_needles=8),
    ]
    header, *found = table_of(make_result(config=config, records=records))
    assert header == (*COLUMNS, "step", "vllm")
    assert [len(row) for row in found] == [len(header)] * 4
    assert found[1] == (
        *("2 needles", "✓ pass", "0.9000", "–", "0.8500"),
        *("1.000", "0.000", "2/2", "0", "0.5000", "0.9000"),
    )
    assert found[2][:5] == ("4 needles", "✗ FAIL", "0.5000", "–", "0.8500")
    assert found[2][7:] == ("1/1", "1 truncated", "1.0000", "0.5000")
    assert found[3] == ("8 needles", "? unclear", *("–",) * 5, "0/1", "1 failed", "–", "–")
    assert found[0][:5] == ("all samples", "? unclear", "0.7667", "–", "–")


def test_the_ratio_column_is_the_gated_protocols(
    make_result: Callable[..., Result],
    make_record: Callable[..., Record],
    make_grade: Callable[..., Grade],
) -> None:
    grade = make_grade(exact=True, match_ratio_openai=1.0, match_ratio_vllm=0.95)
    for protocol, expected, other, its_ratio in (
        ("openai", "1.0000", "vllm", "0.9500"),
        ("vllm", "0.9500", "openai", "1.0000"),
    ):
        config = RunConfig(num_samples=1, needles=(2,), protocol=protocol)  # type: ignore[arg-type]
        result = make_result(config=config, records=[make_record(0, grade=grade)])
        header, *rows = table_of(result)
        assert [row[2] for row in rows] == [expected, expected]
        assert [row[header.index(other)] for row in rows] == [its_ratio, its_ratio]


def test_an_ungated_bucket_is_marked_as_measured(make_result: Callable[..., Result]) -> None:
    assert {row[1] for row in table_of(make_result())[1:]} == {"· measured"}


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "–"), (0.0, "0.0000"), (1.0, "1.0000"), (0.12345, "0.1235")]
)
def test_a_ratio_has_four_decimals_and_a_missing_one_is_no_zero(
    value: float | None, expected: str
) -> None:
    assert number(value) == expected


def test_what_was_lost_is_said_in_words(make_bucket: Callable[..., Bucket]) -> None:
    assert lost(make_bucket()) == "0"
    assert lost(make_bucket(failed=1, rejected=2, truncated=3)) == (
        "1 failed, 2 refused, 3 truncated"
    )


def test_buckets_are_called_as_a_person_would(make_bucket: Callable[..., Bucket]) -> None:
    assert bucket_title(make_bucket(None)) == "all samples"
    assert bucket_title(make_bucket(8)) == "8 needles"


def test_what_was_asked_is_said_in_a_line(make_result: Callable[..., Result]) -> None:
    assert rows.tested(make_result()) == (
        "protocol vllm, prompts of 8,000 to 8,002 tokens, limit 30,464, window 32,768"
    )
    server = ServerInfo(route="external", base_url="http://h")
    assert rows.tested(make_result(records=[], server=server)) == "protocol vllm"


def test_a_cell_has_a_row_if_a_threshold_speaks_of_it_or_some_of_it_was_lost(
    bounded: Result,
) -> None:
    assert [row[:5] for row in table_of(bounded)[1:]] == [
        ("all samples", "✓ pass", "0.7059", "0.56–0.84", "0.4500"),
        ("2 needles", "· measured", "0.7059", "0.56–0.84", "–"),
        ("n2/4K-8K", "✗ FAIL", "0.4500", "0.29–0.61", "0.9000"),
        ("n2/16K-32K", "· measured", "0.8000", "–", "–"),
    ]


def test_what_a_stopped_run_did_not_ask_gives_a_cell_no_row(bounded: Result) -> None:
    unasked = tuple(
        msgspec.structs.replace(bucket, unasked=bucket.failed) for bucket in bounded.buckets
    )
    result = msgspec.structs.replace(bounded, buckets=unasked)
    assert [row[0] for row in table_of(result)[1:]] == ["all samples", "2 needles", "n2/4K-8K"]


def test_a_narrow_table_fits_a_terminal(bounded: Result) -> None:
    quiet = tuple(
        msgspec.structs.replace(b, failed=0, scored=b.scored + b.truncated, truncated=0)
        for b in bounded.buckets
    )
    table = table_of(msgspec.structs.replace(bounded, buckets=quiet), wide=False)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    assert widths[3] == len("0.56–0.84")
    assert 2 + sum(widths) + 2 * (len(widths) - 1) <= 80


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (None, "–"),
        (Interval(0.714, 0.926), "0.71–0.93"),
        (Interval(0.5, 0.5), "no spread"),
        (Interval(0.0, 1.0), "0.00–1.00"),
    ],
)
def test_an_interval_is_two_ends_unless_nothing_was_seen_to_vary(
    interval: Interval | None, expected: str
) -> None:
    assert span(interval) == expected


def test_a_cell_is_called_by_its_name(bounded: Result) -> None:
    assert bucket_title(bounded.buckets[2]) == "n2/4K-8K"
