import io
from pathlib import Path

import pytest

from mrcr_action.report.stream import QuietStream, quiet_streams


def test_a_stream_that_can_be_written_is_written() -> None:
    inner = io.StringIO()
    stream = QuietStream(inner)
    print("text", file=stream, flush=True)
    assert inner.getvalue() == "text\n"
    assert not stream.isatty()


def test_a_full_disk_or_a_missing_stream_silences_and_raises_nothing() -> None:
    with Path("/dev/full").open("w") as full:
        stream = QuietStream(full)
        for _ in range(3):
            print("text", file=stream, flush=True)
        full.flush()
    print("text", file=QuietStream(None), flush=True)


def test_the_standard_streams_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet_streams():
        print("inside")
    print("outside")
    assert capsys.readouterr().out == "inside\noutside\n"
