"""``mrcr probe`` as a command; what the model itself reads is tested on real vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

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
    assert mrcr("probe", "--plan=smoke", env=broken).code == 1


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
    assert "36864" in ended.result.server.command


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
