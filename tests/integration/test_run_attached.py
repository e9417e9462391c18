"""``mrcr run`` against a server that already runs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from mrcr_action.result import decode_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.conftest import Ended, Mrcr, Recorder, StandIn, StartStandIn

QUICK = ("--needles", "2", "--num-samples", "1")
"""For what one sample shows as well as forty."""


@pytest.fixture(scope="module")
def healthy(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin("org/Model", "--served-model-name", "first", "second")


@pytest.fixture(scope="module")
def openai_run(shared_mrcr: Mrcr, healthy: StandIn, dataset: Path) -> Ended:
    return shared_mrcr(
        "run",
        *("--base-url", healthy.url, "--dataset", dataset, "--protocol", "openai"),
        *("--num-samples", "9", "--threshold", "1", "--tolerance", "0"),
        *("--save-results", "saved/measured.json"),
    )


def test_a_healthy_server_scores_exactly_1_in_every_bucket(openai_run: Ended) -> None:
    assert openai_run.code == 0, openai_run.said
    buckets = openai_run.result.buckets
    cells = [f"n{n}/{b}" for n in (2, 4, 8) for b in ("512-1K", "1K-2K", "2K-4K")]
    assert [bucket.name for bucket in buckets] == ["all", "n2", "n4", "n8", *cells]
    assert {bucket.match_ratio_openai for bucket in buckets} == {1.0}
    assert [bucket.graded for bucket in buckets] == [9, 3, 3, 3, *([1] * 9)]
    assert "MRCR passed: match_ratio: 1.0000 >= 1.0000 - 0.0000" in openai_run.stdout


def test_every_report_is_written_and_can_be_read(openai_run: Ended) -> None:
    suites = ET.parse(openai_run.folder / "junit.xml").getroot()  # noqa: S314 - written here
    assert [suite.get("name") for suite in suites] == ["mrcr run"]
    assert (suites.get("failures"), suites.get("errors"), suites.get("tests")) == ("0", "0", "14")
    assert "MRCR passed" in (openai_run.folder / "summary.md").read_text()
    assert [record.grade.exact for record in openai_run.records() if record.grade] == [True] * 9
    saved = json.loads((openai_run.folder.parent / "saved/measured.json").read_bytes())
    assert (saved["match_ratio"], saved["num_samples"]) == (1.0, 9)


def test_a_server_that_runs_is_left_running(openai_run: Ended, healthy: StandIn) -> None:
    assert openai_run.result.server.route == "external"
    assert healthy.process.poll() is None


def test_the_first_served_model_is_asked_unless_another_is_named(
    openai_run: Ended, mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    named = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, *QUICK, "--model", "second")
    )

    assert openai_run.result.model == "first"
    assert (named.code, named.result.model) == (0, "second")


def test_host_and_port_attach_in_vllms_own_protocol(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    ended = mrcr(
        "run",
        *("--host", "http://127.0.0.1", "--port", healthy.port, "--dataset", dataset),
        *("--num-samples", "3", "--threshold", "0.99"),
    )

    assert ended.code == 0, ended.said
    result = ended.result
    assert result.config.protocol == "vllm"
    assert result.match_ratio == result.buckets[0].match_ratio_vllm
    assert 0.9 < (result.match_ratio or 0) < 1
    assert {record.shard[-9:] for record in result.records} == {"0.parquet"}


def test_a_base_path_a_key_and_a_proxy_in_the_environment_are_no_obstacle(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    server = start_standin("--root-path", "/base", "--api-key", "sesame-0123")
    proxy = "http://127.0.0.1:9"
    ended = mrcr(
        *("run", "--base-url", f"{server.url}/v1", "--dataset", dataset, *QUICK),
        env={"MRCR_API_KEY": "sesame-0123\n", "HTTP_PROXY": proxy, "ALL_PROXY": proxy},
    )

    assert ended.code == 0, ended.said
    assert b"sesame-0123" not in ended.written


def test_the_key_may_be_a_flag_and_stays_out_of_every_report(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    server = start_standin("--api-key", "sesame-0123")
    attach = ("run", "--base-url", server.url, "--dataset", dataset, *QUICK)

    ended = mrcr(*attach, "--api-key", "sesame-0123")
    assert ended.code == 0, ended.said
    assert b"sesame-0123" not in ended.written

    ended = mrcr(*attach, "--api-key", "wrong-0123")
    assert ended.code == 2
    assert f"{server.url}: HTTP 401: Unauthorized" in ended.stdout
    assert b"wrong-0123" not in ended.written


@pytest.fixture(scope="module")
def obstacles(
    shared_mrcr: Mrcr, start_shared_standin: StartStandIn, healthy: StandIn, dataset: Path
) -> Ended:
    """Servers and configurations that do not go together, one after the other."""
    locked = start_shared_standin("--api-key", "sesame")
    windowless = start_shared_standin("m", "--fault", "no-max-model-len")
    plain = start_shared_standin("--fault", "no-tokenize")
    common = {"dataset": str(dataset), "needles": [2], "num_samples": 1}
    secret = healthy.url.replace("//", "//user:pass-0123@")
    config = shared_mrcr.config
    files = [
        config("locked", base_url=locked.url, **common),
        config("unknown-model", base_url=secret, model_name="third", **common),
        config("windowless", base_url=windowless.url, **common),
        config("limited", base_url=windowless.url, max_prompt_tokens=4000, **common),
        config("no-tokenize", base_url=plain.url, **common),
        config("too-short", base_url=healthy.url, max_prompt_tokens=50, **common),
    ]
    return shared_mrcr("run", shared_mrcr.list_of(*files), "--output-dir", "obstacles")


def problem(ended: Ended, name: str) -> tuple[int, str]:
    """Exit code and message of what stopped one of the runs."""
    found = ended.result_of(f"../obstacles/{name}").problem
    assert found is not None
    assert found.message in ended.stdout
    assert found.hint in ended.stdout
    return found.exit_code, f"{found.message} {found.hint}"


def test_a_mistake_of_the_users_exits_2_whatever_else_goes_well(obstacles: Ended) -> None:
    assert obstacles.code == 2
    assert "Traceback" not in obstacles.said


def test_a_missing_key_is_a_mistake_and_it_is_said_where_to_put_it(obstacles: Ended) -> None:
    code, message = problem(obstacles, "locked")

    assert code == 2
    assert "HTTP 401: Unauthorized Pass the server's key in MRCR_API_KEY" in message


def test_an_unknown_model_is_a_mistake_and_those_served_are_named(obstacles: Ended) -> None:
    code, message = problem(obstacles, "unknown-model")

    assert code == 2
    assert "--model third: not served there; /v1/models lists first, second" in message


def test_a_password_in_the_address_is_shown_nowhere(obstacles: Ended) -> None:
    assert "Connecting to http://***@127.0.0.1" in obstacles.stderr
    assert "pass-0123" not in obstacles.said
    for path in (obstacles.folder.parent / "obstacles").rglob("*.*"):
        assert b"pass-0123" not in path.read_bytes()


def test_without_a_window_the_user_is_told_to_name_a_limit(obstacles: Ended) -> None:
    code, message = problem(obstacles, "windowless")

    assert code == 2
    assert "does not tell the context length of m Pass --max-prompt-tokens N" in message
    assert obstacles.result_of("../obstacles/limited").verdict.conclusion == "pass"


def test_without_tokenize_the_run_goes_on_with_a_note(obstacles: Ended) -> None:
    result = obstacles.result_of("../obstacles/no-tokenize")

    assert result.verdict.conclusion == "pass"
    assert "note: The server has no /tokenize" in obstacles.stdout
    assert result.plan is not None
    assert result.plan.counted_by == "o200k"


def test_no_sample_that_fits_leaves_nothing_to_judge(obstacles: Ended) -> None:
    code, message = problem(obstacles, "too-short")

    assert code == 3
    assert "no sample fits into 50 prompt tokens" in message


def test_an_address_where_nobody_answers_exits_3_within_the_limit(
    mrcr: Mrcr, dataset: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ended = mrcr(
            *("run", "--base-url", url, "--dataset", dataset, "--startup-max-wait-seconds", "2")
        )

    assert ended.code == 3
    assert f"the server at {url} was not healthy within 2 s" in ended.stdout
    assert 2 < ended.result.timeline.total < 7
    assert ET.parse(ended.folder / "junit.xml").getroot().get("errors") == "5"  # noqa: S314


def test_tokens_are_counted_with_the_requests_own_template_arguments(
    mrcr: Mrcr, recorder: Recorder, dataset: Path
) -> None:
    arguments = {"enable_thinking": False, "effort": "low"}
    extra = json.dumps({"chat_template_kwargs": arguments, "top_k": 5, "seed": 7, "min_p": None})
    attach = ("run", "--base-url", recorder.url, "--dataset", dataset, *QUICK)

    mrcr(*attach, "--extra-body", extra, "--seed", "3")

    counted = [body for body in recorder.bodies["/tokenize"] if "messages" in body]
    assert len(counted) > 2
    assert all(body["chat_template_kwargs"] == arguments for body in counted)
    preflight, request = recorder.bodies["/v1/chat/completions"]
    for body in (preflight, request):
        assert body["chat_template_kwargs"] == arguments
        assert (body["seed"], body["top_k"], body["top_p"]) == (3, 5, 1.0)
        assert "min_p" not in body
    assert len(preflight["messages"]) == 4
    assert request["messages"] in [body["messages"] for body in counted]


def test_a_sign_that_standard_output_cannot_take_does_not_change_the_verdict(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    ended = mrcr(
        *("run", "--base-url", healthy.url, "--dataset", dataset, *QUICK, "--threshold", "0.9"),
        env={"PYTHONIOENCODING": "ascii"},
    )

    assert ended.code == 0, ended.said
    assert "? pass" in ended.stdout


def test_a_server_whose_health_says_503_is_not_asked(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    server = start_standin("--fault", "unhealthy")
    ended = mrcr(
        *("run", "--base-url", server.url, "--dataset", dataset, *QUICK),
        *("--startup-max-wait-seconds", "1"),
    )
    assert ended.code == 3
    assert "was not healthy within 1 s" in ended.result.verdict.summary
    assert "POST" not in server.log


def test_debug_shows_what_stopped_a_run(mrcr: Mrcr, dataset: Path) -> None:
    ended = mrcr(
        *("run", "--base-url", "http://127.0.0.1:9", "--dataset", dataset, *QUICK),
        *("--startup-max-wait-seconds", "1", "--debug"),
    )
    assert ended.code == 3
    assert "Traceback" in ended.stderr
    assert "mrcr_action.errors.ServerError" in ended.stderr


def test_reports_are_written_whether_or_not_anybody_reads_along(
    mrcr: Mrcr, healthy: StandIn, dataset: Path
) -> None:
    command = ["run", "--base-url", healthy.url, "--dataset", str(dataset), *QUICK]
    with Path("/dev/full").open("w") as full:
        code = subprocess.run(
            [sys.executable, "-m", "mrcr_action", *command],
            cwd=mrcr.cwd,
            env=dict(mrcr.environment),
            stdout=full,
            stderr=full,
            check=False,
        ).returncode
    assert code == 0
    assert decode_result((mrcr.cwd / "mrcr-results/result.json").read_bytes()).num_samples == 1
    assert (mrcr.cwd / "mrcr-results/junit.xml").exists()


def test_a_fault_of_this_program_keeps_its_reports_and_the_next_configuration(
    mrcr: Mrcr, healthy: StandIn, dataset: Path, fake_vllm: Callable[..., dict[str, str]]
) -> None:
    keys = {"dataset": str(dataset), "needles": [2], "num_samples": 1}
    big = mrcr.config("big", model_name="m", env={"A": "x" * 200_000}, **keys)
    good = mrcr.config("good", base_url=healthy.url, **keys)
    ended = mrcr("run", big, good, env=fake_vllm())
    assert ended.code == 3
    assert "internal error: OSError" in ended.result_of("big").verdict.summary
    assert ended.result_of("good").verdict.conclusion == "pass"


def test_reasons_for_lost_requests_are_printed(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    server = start_standin("--fault", "status=500")
    ended = mrcr("run", "--base-url", server.url, "--dataset", dataset, *QUICK)
    assert "lost: 1 x HTTP 500" in ended.stdout
