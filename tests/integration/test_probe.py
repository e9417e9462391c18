"""``mrcr probe`` as a command; what the model itself reads is tested on real vLLM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_parquet
from mrcr_action.synthetic import synthetic_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Mrcr, StartStandIn

    FakeVllm = Callable[..., dict[str, str]]


def test_the_model_is_served_and_any_inexact_answer_is_red(mrcr: Mrcr, fake_vllm: FakeVllm) -> None:
    healthy = mrcr("probe", "--plan=smoke", env=fake_vllm())
    assert healthy.code == 0, healthy.said
    command = healthy.result.server.command
    assert command[1] == "serve"
    assert command[2].endswith("/model")
    assert command[3:7] == ("--served-model-name", "probe", "--max-model-len", "16384")
    config = healthy.result.config
    assert (config.protocol, config.plan, config.tolerance) == ("openai", "smoke", 0)
    assert (config.max_instability, config.bounds[0].bound) == (0, 1)

    broken = fake_vllm("become_stand_in('--fault', 'garble@7')")
    ended = mrcr("probe", "--plan=smoke", env=broken)
    assert ended.code == 1
    # One wrong answer is enough to say which part of an engine it leads to.
    assert "1 of 1 wrong answers are " in ended.said
    assert "1 of 1 wrong answers are " in (ended.folder / "summary.md").read_text()


def test_the_users_arguments_come_last_so_that_they_win(mrcr: Mrcr, fake_vllm: FakeVllm) -> None:
    flags = ("--plan=smoke", "--server-args=--max-model-len 12K")
    ended = mrcr("probe", *flags, env=fake_vllm())
    assert ended.code == 0, ended.said
    assert ended.result.server.max_model_len == 12 * 1024

    # In an action they are a variable.
    variable = {"MRCR_SERVER_ARGS": "--max-model-len 12K"}
    ended = mrcr("probe", "--plan=smoke", env=fake_vllm() | variable)
    assert ended.code == 0, ended.said
    assert ended.result.server.max_model_len == 12 * 1024


def test_a_running_server_is_asked_if_it_serves_the_probe(
    mrcr: Mrcr, start_standin: StartStandIn
) -> None:
    right = start_standin("--served-model-name", "probe")
    ended = mrcr("probe", "--plan=smoke", "--base-url", right.url)
    assert ended.code == 0, ended.said

    wrong = start_standin("org/Model")
    ended = mrcr("probe", "--plan=smoke", "--base-url", wrong.url)
    assert ended.code == 2, ended.said
    assert "--model probe: not served there; /v1/models lists org/Model" in ended.said


def test_longer_prompts_are_asked_where_they_are_wanted(mrcr: Mrcr, fake_vllm: FakeVllm) -> None:
    ended = mrcr("probe", "--plan=smoke", "--longest=32K", env=fake_vllm())
    assert ended.code == 0, ended.said
    # The stand-in's tokens are some three bytes; the rows are the same.
    assert max(record.o200k_tokens for record in ended.result.records) > 5_000
    # Room for the prompt, for what pads it, and for the answer.
    assert "37120" in ended.result.server.command


@pytest.mark.parametrize("text", ["", "100", "1M", "much"])
def test_a_length_that_the_model_cannot_read_is_an_error(mrcr: Mrcr, text: str) -> None:
    ended = mrcr("probe", f"--longest={text}")
    assert ended.code == 2
    assert "expected a number of tokens such as 8K" in ended.stderr


def test_the_model_is_written_for_a_server_elsewhere(mrcr: Mrcr) -> None:
    ended = mrcr("probe", "--build", "model")
    assert ended.code == 0, ended.said
    files = {path.name for path in (mrcr.cwd / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= files
    assert "vllm serve model --served-model-name probe --dtype auto" in ended.stdout


def test_a_folder_that_cannot_be_written_is_an_error_and_no_traceback(
    mrcr: Mrcr, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ended = mrcr("probe", "--build", tmp_path / "file" / "model")
    assert ended.code == 3
    assert "cannot be written" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_narrow_lead_is_red_though_every_answer_is_right(
    mrcr: Mrcr, start_standin: StartStandIn
) -> None:
    narrow = start_standin("--served-model-name", "probe", "--fault", "lead=3@2")
    ended = mrcr("probe", "--plan=smoke", "--min-logit-margin=5", "--base-url", narrow.url)
    assert ended.code == 1, ended.said
    result = ended.result
    assert result.match_ratio == 1
    assert min(r.logit_margin or 0 for r in result.records) == 3
    told = "a token of 1 of 20 answers led the second best by less than 5 nats, one by 3.00"
    assert f"MRCR failed: logit margin: {told}" in ended.said
    case = ET.parse(ended.folder / "junit.xml").find(  # noqa: S314 - our own file
        ".//testcase[@name='logit margin']/failure"
    )
    assert case is not None
    assert case.get("type") == "margin"
    assert told in (ended.folder / "summary.md").read_text()


def test_a_server_without_log_probabilities_is_judged_by_its_answers(
    mrcr: Mrcr, start_standin: StartStandIn
) -> None:
    silent = start_standin("--served-model-name", "probe", "--fault", "no-logprobs")
    ended = mrcr("probe", "--plan=smoke", "--base-url", silent.url)
    assert ended.code == 0, ended.said
    assert "The logit margin of 20 of 20 answers could not be checked" in ended.said
    assert {record.attempts for record in ended.result.records} == {1}


def rows_with(folder: Path, change: Callable[[str], str]) -> Path:
    """A dataset of the dataset's shape with every question changed; the rows stay consistent."""
    made = []
    for row in synthetic_rows((2,), [parse_bin("512-1K")], 6, 3, hostile=True):
        turns = json.loads(row["prompt"])
        turns[-1]["content"] = change(turns[-1]["content"])
        chars = sum(len(turn["content"]) for turn in turns)
        made.append({**row, "prompt": json.dumps(turns), "n_chars": chars})
    write_parquet(made, folder)
    return folder


def test_rows_that_the_probe_cannot_read_are_left_out_and_that_is_said(
    mrcr: Mrcr, fake_vllm: FakeVllm, tmp_path: Path
) -> None:
    asked = (
        "probe",
        "--plan=smoke",
        "--needles=2",
        "--num-samples=3",
        f"--dataset={tmp_path / 'rows'}",
    )
    # The stand-in reads the other ordinal as well: what is left out is so for the probe's sake.
    rows_with(tmp_path / "rows", lambda text: text.replace("the 1st", "the 01st"))
    ended = mrcr(*asked, env=fake_vllm())
    assert ended.code == 0, ended.said
    assert {record.row for record in ended.result.records} == {0, 1, 2}
    assert ended.result.config.max_tokens == 4096
    told = (
        "rows were left out, because the probe cannot read such: the question asks for one before"
    )
    assert any(told in note for note in ended.result.notes)
    assert told in ended.said
    # Of the three, one comes after the last that was needed.
    assert ended.result.coverage[0].dropped == {"unreadable": 2}


def test_a_dataset_that_the_probe_cannot_read_at_all_gets_no_verdict(
    mrcr: Mrcr, fake_vllm: FakeVllm, tmp_path: Path
) -> None:
    rows = rows_with(tmp_path / "rows", lambda text: text.replace("Prepend", "Please prepend"))
    ended = mrcr("probe", "--plan=smoke", "--needles=2", f"--dataset={rows}", env=fake_vllm())
    assert ended.code == 3, ended.said
    assert "the question is not worded as the dataset's (6)" in ended.said
    assert "docs/probe.md says what the probe can read" in ended.said


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        (("--threshold=0.9",), {}),
        (("--thresholds=0.9",), {}),
        ((), {"MRCR_THRESHOLD": "0.9"}),
    ],
)
def test_a_threshold_of_ones_own_takes_the_place_of_the_probes(
    mrcr: Mrcr, start_standin: StartStandIn, flags: tuple[str, ...], environ: dict[str, str]
) -> None:
    server = start_standin("--served-model-name", "probe", "--fault", "garble@7")
    own = ("--plan=smoke", "--max-instability=1", *flags, "--base-url", server.url)
    ended = mrcr("probe", *own, env=environ)
    assert ended.code == 0, ended.said
    assert ended.result.config.bounds[0].bound == 0.9


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--protocol=vllm",), "--protocol vllm: the probe is judged by openai's"),
        (("--base-url=http://h", "--sensitivity=high"), "serves the form that it was started with"),
        (("--dtype=float16",), "--dtype: of what --build writes"),
        (("--build=model", "--base-url=http://h"), "--build only writes the model: --base-url"),
        (("--build=",), "--build only writes the model: DIR is empty"),
        (("--head-size=64", "--dataset=rows"), "reads rows of its own only"),
        (("--architecture=qwen3", "--head-size=64"), "a qwen3 needs heads of 128"),
    ],
)
def test_flags_that_could_not_act_are_errors_and_not_ignored(
    mrcr: Mrcr, flags: tuple[str, ...], message: str
) -> None:
    ended = mrcr("probe", *flags)
    assert ended.code == 2, ended.said
    assert message in ended.stderr


def test_the_command_that_repeats_the_run_is_the_one_that_was_given(
    mrcr: Mrcr, fake_vllm: FakeVllm
) -> None:
    flags = ("--plan=smoke", "--sensitivity=high", "--longest=4K")
    ended = mrcr("probe", *flags, env=fake_vllm())
    assert ended.code == 0, ended.said
    assert set(ended.result.invocation) == {"mrcr", "probe", *flags}
