"""``mrcr run`` with a server of its own: started, watched, and gone afterwards."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, Running

    FakeVllm = Callable[..., dict[str, str]]

BECOME = "become_stand_in()"

QUICK = {"needles": [2], "num_samples": 1, "model_name": "org/Model"}


def command_lines(running: Running) -> list[list[str]]:
    found = []
    for process in running.descendants():
        with contextlib.suppress(psutil.Error):
            found.append(process.cmdline())
    return found


def test_a_configuration_is_served_for_the_time_of_its_run(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    served = ["--served-model-name", "a name", "--max-model-len=64K"]
    config = mrcr.config(
        "served", dataset=str(dataset), server_args=served, env={"SHOWN": 1}, **QUICK
    )
    running = mrcr.start("run", config, env=fake_vllm("print(os.environ['SHOWN'] * 7)\n" + BECOME))
    ended = running.wait()

    assert ended.code == 0, ended.said
    log = (ended.folder / "server.log").read_text()
    assert "1111111" in log
    assert "Application startup complete" in log
    server = ended.result.server
    assert (server.route, server.model, server.max_model_len) == ("process", "a name", 65536)
    assert server.command[1:6] == ("serve", "org/Model", *served)
    assert running.gone(0.5)


def test_nobody_elses_code_is_trusted_unless_it_is_asked_for(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    plain = mrcr.config("plain", dataset=str(dataset), **QUICK)
    trusting = mrcr.config("trusting", dataset=str(dataset), trust_remote_code=True, **QUICK)
    by_hand = mrcr.config(
        "by-hand", dataset=str(dataset), server_args="--trust-remote-code", **QUICK
    )

    ended = mrcr("run", plain, trusting, by_hand, env=fake_vllm())

    assert ended.code == 0, ended.said
    note = "The model's repository may run its own code (trust_remote_code)."
    for name, wanted in (("plain", 0), ("trusting", 1), ("by-hand", 1)):
        result = ended.result_of(name)
        assert result.server.command.count("--trust-remote-code") == wanted
        assert result.notes.count(note) == wanted
    assert ended.stdout.count(f"note: {note}") == 2
    assert "may run its own code" in (ended.folder / "summary.md").read_text()


def test_several_configurations_share_the_reports_and_the_worst_decides(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    common = {"dataset": str(dataset), "match_ratio_threshold": 0.9, **QUICK}
    good = mrcr.config("good", server_args="--max-model-len 64K", **common)
    bad = mrcr.config("bad", server_args="--fault drop-nonce", **common)
    dead = mrcr.config("dead", server_args="--no-such-flag", **common)
    listed = mrcr.list_of(bad, dead, good)

    running = mrcr.start("run", listed, env=fake_vllm())
    ended = running.wait()

    assert ended.code == 1
    suites = ET.parse(ended.folder / "junit.xml").getroot()  # noqa: S314 - written here
    assert [suite.get("name") for suite in suites] == ["mrcr bad", "mrcr dead", "mrcr good"]
    assert [(s.get("failures"), s.get("errors")) for s in suites] == [
        ("1", "0"),
        ("0", "3"),
        ("0", "0"),
    ]
    conclusions = [ended.result_of(name).verdict.conclusion for name in ("bad", "dead", "good")]
    assert conclusions == ["fail", "inconclusive", "pass"]
    assert (ended.folder / "summary.md").read_text().count("\n## ") == 3
    assert all((ended.folder / name / "server.log").is_file() for name in ("bad", "dead", "good"))
    above = (ended.folder / "report.html").read_text()
    for name in ("bad", "dead", "good"):
        assert f'href="./{name}/report.html"' in above
        assert (ended.folder / name / "report.html").is_file()
    assert running.gone(0.5)


@pytest.fixture(scope="module")
def early_deaths(
    shared_mrcr: Mrcr, dataset: Path, tmp_path_factory: pytest.TempPathFactory
) -> Ended:
    """Servers that exit before they are ready, each with another code."""
    script = tmp_path_factory.mktemp("bin") / "vllm"
    script.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "for number in range(30):\n"
        "    print('INFO 10-01 10:00:00 [loader.py:1] loading shard', number)\n"
        "print('(EngineCore_DP0 pid=7) ERROR 10-01 10:00:00 [core.py:718] ValueError: No available"
        " memory for the cache blocks. Try increasing gpu_memory_utilization.')\n"
        "print('RuntimeError: Engine core initialization failed. See root cause above.')\n"
        "sys.exit(int(sys.argv[3]))\n"
    )
    script.chmod(0o755)
    configs = [
        shared_mrcr.config(f"exit-{code}", dataset=str(dataset), server_args=str(code), **QUICK)
        for code in (0, 1, 2)
    ]
    return shared_mrcr("run", *configs, env={"MRCR_VLLM": str(script)})


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_server_that_exits_before_it_is_ready_is_named_with_its_cause(
    early_deaths: Ended, code: int
) -> None:
    result = early_deaths.result_of(f"exit-{code}")

    assert result.problem is not None
    assert result.problem.exit_code == 3
    assert result.problem.message == (
        f"the server ended by itself with exit code {code}: ValueError: No available memory for"
        " the cache blocks. Try increasing gpu_memory_utilization."
    )
    assert "loading shard 29" in result.problem.details
    assert "loading shard 2\n" not in result.problem.details
    assert result.timeline.total < 15


def test_the_end_of_the_log_is_shown_and_the_limit_not_waited_out(early_deaths: Ended) -> None:
    assert early_deaths.code == 3
    assert early_deaths.stdout.count("The end of the server's log:") == 3
    assert early_deaths.stdout.count("loading shard 29") == 3


def test_a_server_that_is_never_healthy_is_waited_for_as_long_as_configured(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--startup-max-wait-seconds", "1.5"),
        *("--server-args", "--fault unhealthy"),
        env=fake_vllm(),
    )
    ended = running.wait()

    assert ended.code == 3
    assert "was not healthy within 1.5 s" in ended.stdout
    assert "raise startup_max_wait_seconds" in ended.stdout
    assert 1.5 < ended.result.timeline.total < 6
    assert running.gone(0.5)


def test_a_port_that_is_taken_exits_2_before_anything_is_started(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = mrcr(
            *("run", "--model", "m", "--server", "process", "--port", port, "--dataset", dataset),
            env=fake_vllm(),
        )

    assert ended.code == 2
    assert f"--port {port}: Address already in use" in ended.result.verdict.summary
    assert "--base-url" in ended.said
    assert not (ended.folder / "server.log").exists()


def test_a_missing_entry_of_a_list_exits_2_before_anything_is_started(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    there = mrcr.config("there", dataset=str(dataset), **QUICK)
    listed = mrcr.list_of(there, mrcr.cwd / "gone.yaml")

    ended = mrcr("run", listed, env=fake_vllm())

    assert ended.code == 2
    assert f"{listed}:2: gone.yaml: no such file" in ended.stderr
    assert not ended.folder.exists()


def test_a_vllm_that_is_not_there_exits_2(mrcr: Mrcr, dataset: Path) -> None:
    ended = mrcr(*("run", "--model", "m", "--dataset", dataset), env={"MRCR_VLLM": "/nowhere/vllm"})

    assert ended.code == 2
    assert "MRCR_VLLM: /nowhere/vllm: not an executable" in ended.stderr


def test_a_key_in_server_args_reaches_the_server_unseen(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--num-samples", "1", "--needles", "2"),
        *("--server-args", "--api_key sesame-0123 --fault stall=1.5"),
        env=fake_vllm(),
    )
    running.wait_for("Asking")
    shown = [word for line in command_lines(running) for word in line]
    assert any("mrcr_action.standin" in word for word in shown)
    assert not any("sesame-0123" in word for word in shown)
    ended = running.wait()

    assert ended.code == 0, ended.said
    assert b"sesame-0123" not in ended.written


def test_a_key_in_the_servers_environment_is_used_for_the_requests(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    config = mrcr.config(
        "keyed", dataset=str(dataset), env={"VLLM_API_KEY": "sesame-0123"}, **QUICK
    )

    ended = mrcr("run", config, env=fake_vllm())

    assert ended.code == 0, ended.said
    assert b"sesame-0123" not in ended.written


def test_a_child_that_outlives_a_dead_server_is_killed(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    leave = "subprocess.Popen(['setsid', 'sleep', '600'])\nsys.exit(0)"
    running = mrcr.start("run", "--model", "m", "--dataset", dataset, env=fake_vllm(leave))
    ended = running.wait()

    assert ended.code == 3
    assert "the server ended by itself with exit code 0" in ended.stdout
    assert running.gone(0.5)


def test_a_killed_command_leaves_no_server_behind(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    spawn = "subprocess.Popen(['setsid', 'sleep', '600'])\n" + BECOME
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--server-args", "--fault stall=60@1-"),
        env=fake_vllm(spawn),
    )
    running.wait_for("Asking")
    assert len(running.descendants()) >= 3
    running.process.kill()

    assert running.process.wait(5) == -9
    assert running.gone(10)


def test_a_killed_command_does_not_leave_the_verdict_of_its_predecessor(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    folder = mrcr.cwd / "mrcr-results"
    folder.mkdir()
    for name in ("result.json", "junit.xml", "summary.md"):
        (folder / name).write_text("green")
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--server-args", "--startup-delay 60"),
        env=fake_vllm(),
    )
    running.wait_for("Starting the server")
    running.process.kill()

    assert running.process.wait(5) == -9
    assert running.gone(10)
    assert {path.name for path in folder.iterdir()} == {"samples.jsonl", "server.log"}


def test_a_dataset_that_cannot_be_read_is_found_before_the_server_is_started(
    mrcr: Mrcr, fake_vllm: FakeVllm, tmp_path: Path
) -> None:
    shard = tmp_path / "data" / "2needle" / "2needle_0.parquet"
    shard.parent.mkdir(parents=True)
    shard.write_text("not parquet at all")
    config = mrcr.config("unread", dataset=str(tmp_path / "data"), **QUICK)

    ended = mrcr("run", config, env=fake_vllm())

    assert ended.code == 3
    assert f"{shard}: not a parquet file" in ended.stdout
    assert not (ended.folder / "server.log").exists()
    assert (ended.folder / "junit.xml").is_file()


def test_secrets_that_a_dying_server_prints_stand_in_its_own_log_alone(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    body = "print('ValueError: bad token', sys.argv, os.environ['HF_TOKEN']); sys.exit(1)"
    running = mrcr.start(
        *("run", "--model", "m", "--dataset", dataset, "--server-args=--hf-token hf_planted1"),
        *("--env", "{HF_TOKEN: hf_planted2}", "--debug"),
        env=fake_vllm(body),
    )
    ended = running.wait()
    assert ended.code == 3
    assert "ValueError: bad token" in ended.result.verdict.summary
    for path in ended.folder.iterdir():
        assert ("hf_planted" in path.read_text()) is (path.name == "server.log"), path
    assert "Traceback" in ended.stderr
    assert "hf_planted" not in ended.said
