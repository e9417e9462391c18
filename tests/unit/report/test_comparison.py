import io
import re
from collections.abc import Callable, Sequence

import msgspec
import pytest

from mrcr_action.comparison.document import Comparison
from mrcr_action.comparison.verdict import compare
from mrcr_action.config import RunConfig
from mrcr_action.grade import Grade
from mrcr_action.report.comparison import (
    FLIPS_SHOWN,
    bucket_table,
    chance,
    flip_table,
    lost_lines,
    print_comparison,
    signed,
)
from mrcr_action.result import Record, Result

MakeRecord = Callable[..., Record]
MakeResult = Callable[..., Result]
MakeGrade = Callable[..., Grade]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def compared(
    make_result: MakeResult, a: Sequence[Record], b: Sequence[Record], **config: object
) -> Comparison:
    settings = RunConfig(needles=(2,), num_samples=len(a), **config)  # type: ignore[arg-type]
    return compare(
        make_result(config=settings, records=a),
        make_result(config=settings, records=b, name="model-fp8"),
        paths=("a/result.json", "b/result.json"),
    )


def printed(comparison: Comparison, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    print_comparison(comparison, stream)
    return stream.getvalue()


@pytest.fixture
def worse(make_result: MakeResult, make_record: MakeRecord, make_grade: MakeGrade) -> Comparison:
    """Six of eight samples are exact no more, one is lost, one is as before."""
    exact = make_grade(1.0, exact=True)
    a = [make_record(i, grade=exact) for i in range(8)]
    b = [make_record(i, grade=make_grade(0.25 if i else 0.0, nonce_hit=i > 0)) for i in range(6)]
    b += [make_record(6, None, reason="HTTP 500"), make_record(7, grade=exact)]
    return compared(make_result, a, b)


def test_a_log_gets_plain_aligned_lines(worse: Comparison) -> None:
    assert printed(worse) == (
        "A: a/result.json: model, model org/model, server 0.33.0, 8 of 8 samples graded\n"
        "B: b/result.json: model-fp8, model org/model, server 0.33.0, 7 of 8 samples graded\n"
        "7 samples are graded in both; protocol vllm, change is B less A\n"
        "  bucket       verdict  changed  A       B       change   95 % interval  p\n"
        "  all samples  ✗ WORSE  6/7      1.0000  0.3214  -0.6786  -0.857…-0.429  0.016\n"
        "  2 needles    ✗ WORSE  6/7      1.0000  0.3214  -0.6786  -0.857…-0.429  0.016\n"
        "  n2/8K-16K    ✗ WORSE  6/7      1.0000  0.3214  -0.6786  -0.857…-0.429  0.016\n"
        "  share      A    95 % interval  B    95 % interval\n"
        "  exact      7/7  0.590…1.000    1/7  0.004…0.579\n"
        "  nonce      7/7  0.590…1.000    6/7  0.421…0.996\n"
        "  truncated  0/7  0.000…0.410    0/7  0.000…0.410\n"
        "  lost       0/8  0.000…0.369    1/8  0.003…0.527\n"
        "exact in A alone: 6, exact in B alone: 0\n"
        "not compared: 1 x scored → failed: HTTP 500\n"
        "changed by 0.1 or more: 6 for the worse, 0 better\n"
        "  sample                         cell       A       B       what\n"
        "  2needle/2needle_0.parquet#100  n2/8K-16K  1.0000  0.0000  exact → inexact, nonce lost\n"
        + "".join(
            f"  2needle/2needle_0.parquet#{row}  n2/8K-16K  1.0000  0.2500  exact → inexact\n"
            for row in range(101, 106)
        )
        + "note: What the chat template made of a prompt is not known of A and B, so that it could"
        " not be compared.\n"
        "Regression: all samples fell by 0.6786 (1.0000 to 0.3214, p 0.016);"
        " n2 fell by 0.6786 (1.0000 to 0.3214, p 0.016);"
        " n2/8K-16K fell by 0.6786 (1.0000 to 0.3214, p 0.016)\n"
    )


@pytest.mark.parametrize(
    ("conclusion", "colour"), [("no regression", 32), ("regression", 31), ("inconclusive", 33)]
)
def test_a_terminal_sees_the_verdict_in_colour(
    worse: Comparison, monkeypatch: pytest.MonkeyPatch, conclusion: str, colour: int
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    comparison = msgspec.structs.replace(worse, conclusion=conclusion, summary="The verdict")
    text = printed(comparison, Terminal())
    assert f"\x1b[1;{colour}mThe verdict" in text
    for words in ("✗ WORSE", "exact → inexact", "-0.857…-0.429"):
        assert words in text


def test_a_terminal_of_80_columns_holds_every_bucket_whole(
    worse: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    widest = msgspec.structs.replace(worse.buckets[0], n=240, changed=123, state="unclear")
    comparison = msgspec.structs.replace(worse, buckets=(widest,))
    text = printed(comparison, Terminal())
    assert " ".join(bucket_table(comparison)[1]) in " ".join(text.split())


def test_a_terminal_of_80_columns_holds_every_flipped_sample_whole(
    worse: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(worse, Terminal())
    for row in flip_table(worse)[2:]:
        assert " ".join(row) in " ".join(text.split())


def test_ten_flipped_samples_are_shown_and_the_others_counted(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a = [make_record(i, 1.0) for i in range(13)]
    b = [make_record(i, 0.5 + i / 100) for i in range(13)]
    comparison = compared(make_result, a, b)
    table = flip_table(comparison)
    assert len(table) == 1 + FLIPS_SHOWN
    assert [row[3] for row in table[1:]] == [f"{0.5 + i / 100:.4f}" for i in range(10)]
    assert "and 3 more, which --json lists\n" in printed(comparison)


def test_a_sample_that_recovers_is_marked(
    make_result: MakeResult, make_record: MakeRecord, make_grade: MakeGrade
) -> None:
    a = [make_record(0, grade=make_grade(0.0, nonce_hit=False), outcome="truncated")]
    b = [make_record(0, grade=make_grade(1.0, exact=True))]
    (_, row) = flip_table(compared(make_result, a, b))
    assert row[2:] == ("0.0000", "1.0000", "inexact → exact, nonce back, truncated → scored")


def test_lost_samples_are_counted_by_what_became_of_them_with_the_usual_reason(
    make_result: MakeResult, make_record: MakeRecord
) -> None:
    a = [make_record(0), make_record(1, None), *(make_record(i) for i in range(2, 5))]
    b = [
        make_record(0),
        make_record(1),
        make_record(2, None, reason="HTTP 500"),
        make_record(3, None, reason="HTTP 503"),
        make_record(4, None, reason="HTTP 503"),
    ]
    assert lost_lines(compared(make_result, a, b)) == [
        "not compared: 3 x scored → failed: HTTP 503",
        "not compared: 1 x failed → scored: the connection broke",
    ]


def test_figures_are_short_and_nothing_has_no_sign() -> None:
    assert [signed(value) for value in (0.0, -0.0, -1e-9, 0.25, -0.25)] == [
        *("0.0000", "0.0000", "0.0000", "+0.2500", "-0.2500")
    ]
    assert [chance(p) for p in (1.0, 0.05, 0.0005, None)] == ["1.000", "0.050", "<.001", "–"]


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_no_foreign_control_character_is_printed(
    make_result: MakeResult,
    make_record: MakeRecord,
    hostile: str,
    kind: type[io.StringIO],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    settings = RunConfig(needles=(2,), num_samples=7)
    a = [make_record(i, 1.0, shard=hostile) for i in range(7)]
    b = [make_record(i, 0.1, shard=hostile) for i in range(6)]
    b.append(make_record(6, None, shard=hostile, reason=hostile))
    comparison = compare(
        make_result(config=settings, records=a, model=hostile),
        make_result(config=settings, records=b, model=f"{hostile} 2", name=hostile),
        paths=(hostile, hostile),
    )
    text = re.sub("\x1b\\[[0-9;]*m", "", printed(comparison, kind()))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\x85\u2028\u2029\u202e\ud800-\udfff]", text)
    assert not re.search(r"(?m)^\s*::|##\[", text)
    text.encode()
