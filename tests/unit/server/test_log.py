from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mrcr_action.server.log import TAIL_LINES, Explanation, explain, root_cause

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
INFO 10-01 12:00:01 [__init__.py:216] Automatically detected platform cuda.
WARNING 10-01 12:00:02 [import.py:9] ImportError: libxyz.so.1: No such file or directory
(APIServer pid=411) INFO 10-01 12:00:05 [api_server.py:1839] vLLM API server version 0.33.0
(APIServer pid=411) INFO 10-01 12:00:05 [utils.py:233] non-default args: {'model': 'org/M'}
(EngineCore_DP0 pid=540) INFO 10-01 12:00:15 [core.py:76] Initializing a V1 LLM engine
"""

TAIL = """\
(APIServer pid=411)   File "/usr/lib/python3.12/site-packages/vllm/v1/utils.py", line 9, in wait
(APIServer pid=411)     raise RuntimeError("Engine core initialization failed. "
(APIServer pid=411) RuntimeError: Engine core initialization failed. See root cause above. \
Failed core proc(s): {}
"""


def engine(message: str) -> str:
    lines = [
        "EngineCore failed to start.",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 709, in run',
        message,
    ]
    prefix = "(EngineCore_DP0 pid=540) ERROR 10-01 12:00:21 [core.py:718] "
    return HEAD + "".join(f"{prefix}{line}\n" for line in lines) + TAIL


@pytest.mark.parametrize(
    "message",
    [
        "ValueError: No available memory for the cache blocks. Try increasing the utilization.",
        "ValueError: Free memory on device (3.1/79.1 GiB) on startup is less than desired (0.9).",
        "ValueError: To serve at least one request with the model's max seq len (131072), (16 GiB",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "OSError: org/M is not a local folder and is not a valid model identifier listed on hub",
        "AssertionError: tensor parallel size must divide the heads",
    ],
)
def test_the_engines_own_exception_is_the_cause_and_not_what_follows_from_it(message: str) -> None:
    assert root_cause(engine(message)) == message


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "vllm serve: error: unrecognized arguments: --max-model-length 8192",
            "vllm serve: error: unrecognized arguments: --max-model-length 8192",
        ),
        (
            "ERROR:    [Errno 98] error while attempting to bind: address already in use",
            "ERROR: [Errno 98] error while attempting to bind: address already in use",
        ),
        (
            "pydantic_core.ValidationError: 1 validation error\n  Value error, 9 > 4",
            "Value error, 9 > 4",
        ),
        (
            "OSError: Can't load the configuration of 'org/M'. If you were trying to load it from",
            "OSError: Can't load the configuration of 'org/M'. If you were trying to load it from",
        ),
        ("vllm: No such file or directory", "vllm: No such file or directory"),
    ],
)
def test_what_stops_the_front_end_is_the_cause(line: str, cause: str) -> None:
    assert root_cause(HEAD + line + "\n") == cause


def test_a_sentence_of_vllms_wins_over_an_earlier_exception() -> None:
    text = "ValueError: something tried first\n" + engine(
        "ValueError: No available memory for the cache blocks."
    )

    assert root_cause(text) == "ValueError: No available memory for the cache blocks."


@pytest.mark.parametrize("text", ["", HEAD, TAIL, "All is well.\nError\nTheError:\n"])
def test_where_no_line_names_a_cause_there_is_none(text: str) -> None:
    assert root_cause(text) == ""


def test_a_cause_is_one_short_line() -> None:
    assert len(root_cause("ValueError: " + "x " * 900)) == 300


def test_a_log_is_explained_by_its_cause_and_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(engine("ValueError: no").encode() + b"\xff\n" + b"late\n" * (TAIL_LINES - 1))

    found = explain(log)

    assert found.cause == "ValueError: no"
    shown = found.details.splitlines()
    assert shown[:3] == ["The end of the server's log:", "  \ufffd", "  late"]
    assert len(shown) == TAIL_LINES + 1


def test_the_cause_is_found_at_the_head_of_a_log_that_goes_on_for_long(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"ValueError: first\n" + b"INFO noise\n" * 200_000 + b"last\n")

    found = explain(log)

    assert found.cause == "ValueError: first"
    assert found.details.endswith("  INFO noise\n  last")


def test_a_missing_or_empty_log_explains_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()

    for name in ("missing.log", "empty.log"):
        found = explain(tmp_path / name)
        assert (found.cause, found.details) == ("", "")


def test_what_a_server_put_into_the_place_of_its_log_is_not_read(tmp_path: Path) -> None:
    secret, link, pipe = tmp_path / "secret", tmp_path / "link", tmp_path / "pipe"
    secret.write_text("RuntimeError: a token of this process\n")
    link.symlink_to(secret)
    os.mkfifo(pipe)

    for path in (link, pipe, tmp_path):
        assert explain(path) == Explanation("", "")
