"""`mrcr plan`: what a run would ask, without asking it."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from tests.integration.six_shards import EDGES, NEEDLES, SHORT, write_six_shards

from mrcr_action.cache import CACHE_VARIABLE
from mrcr_action.cli import main
from mrcr_action.data.shards import Shards
from mrcr_action.plan import Plan
from mrcr_action.standin.tokens import prompt_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Mrcr, Recorder, StartStandIn

REACHED = ("4K-8K", "8K-16K", "16K-32K", "32K-64K", "64K-128K")


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    stdout: str
    stderr: str

    @property
    def plan(self) -> Plan:
        return msgspec.json.decode(self.stdout, type=Plan)


PlanCommand = Callable[..., Said]
"""Called with the arguments of ``mrcr plan``."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all tests here: what the first one counts, the others need not."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows up to 256K tokens, with rows on the edges of every bin."""
    return write_six_shards(tmp_path_factory.mktemp("edges"), EDGES)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_six_shards(tmp_path_factory.mktemp("short"), SHORT)


@pytest.fixture
def plan(
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> PlanCommand:
    """Runs the command in this process, in a folder of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Said:
        code = main(["plan", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


def config(folder: Path, name: str, **keys: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(keys))
    return path


def lines(text: str) -> list[list[str]]:
    """The lines of the table, by column."""
    return [line.split() for line in text.splitlines() if line.startswith("  n")]


def test_every_cell_that_the_window_reaches_is_planned_with_rows_on_the_right_side_of_each_edge(
    plan: PlanCommand, six: Path
) -> None:
    said = plan("--dataset", six, "--protocol", "openai", "--window", "128K")
    assert (said.code, said.stderr) == (0, "")
    table = lines(said.stdout)
    assert [line[0] for line in table] == [f"n{n}/{bin_}" for n in NEEDLES for bin_ in REACHED]
    # cell, rows, fit, planned, then least, median and most o200k tokens between dashes.
    for n in NEEDLES:
        (first,) = [line for line in table if line[0] == f"n{n}/4K-8K"]
        assert first[1:9] == ["2", "2", "2", "4,096", "–", "6,144", "–", "8,192"]
        (last,) = [line for line in table if line[0] == f"n{n}/64K-128K"]
        assert last[1:5] == ["2", "1", "1", "65,537"]
        assert last[6:] == ["1", "too", "long"]


def test_the_output_says_what_was_not_reached_and_that_the_top_of_the_last_bin_is_untested(
    plan: PlanCommand, six: Path
) -> None:
    said = plan("--dataset", six, "--protocol", "openai", "--window", "128K")
    assert "Not tested: 6 rows too long (128K-256K).\n" in said.stdout
    assert (
        "note: The top of the last bin, 64K-128K, is untested: the limit is about " in said.stdout
    )
    assert " of its 131,072 o200k tokens, and 3 of its rows are longer.\n" in said.stdout
    assert "27 samples (9 with 2 needles, 9 with 4 needles, 9 with 8 needles)" in said.stdout
    assert "Counted in o200k tokens; a server's own count decides in a run.\n" in said.stdout
    assert said.stdout.startswith(
        f"run: protocol openai, seed 42, samples from {six}, up to 128,768"
    )


def test_a_window_beyond_every_row_leaves_nothing_untested(plan: PlanCommand, six: Path) -> None:
    said = plan("--dataset", six, "--protocol", "openai", "--window", "1M")
    assert len(lines(said.stdout)) == 18
    assert "ntested" not in said.stdout
    assert "Not tested" not in said.stdout


def test_json_is_the_plan_and_nothing_else(plan: PlanCommand, six: Path) -> None:
    said = plan("--dataset", six, "--protocol", "openai", "--window", "128K", "--json")
    assert (said.code, said.stderr) == (0, "")
    found = said.plan
    assert {cell.name for cell in found.cells if cell.planned} == {
        f"n{n}/{bin_}" for n in NEEDLES for bin_ in REACHED
    }
    assert found.max_prompt_tokens == 128 * 1024 - 2048 - 256
    assert (found.counted_by, found.tokenized) == ("o200k", 0)
    lengths = sorted(ask.o200k_tokens for ask in found.asks if ask.n_needles == 4)
    assert lengths == list(EDGES[:9])
    assert len({(ask.shard, ask.row) for ask in found.asks}) == len(found.asks) == 27
    assert all(len(ask.sha256) == 64 for ask in found.asks)


def test_the_window_is_that_of_server_args_unless_one_is_named(
    plan: PlanCommand, short: Path, tmp_path: Path
) -> None:
    path = config(
        tmp_path,
        "served",
        model_name="some/model",
        dataset=str(short),
        protocol="openai",
        server_args="--dtype auto --max-model-len 8K",
    )
    assert plan(path, "--json").plan.max_prompt_tokens == 8192 - 2304
    assert plan(path, "--json", "--window", "6000").plan.max_prompt_tokens == 6000 - 2304
    assert plan(path, "--json", "--max-prompt-tokens", "900").plan.max_prompt_tokens == 900


def test_without_a_window_the_command_asks_for_one(plan: PlanCommand, short: Path) -> None:
    said = plan("--dataset", short, "--protocol", "openai")
    assert (said.code, said.stdout) == (2, "")
    first, hint = said.stderr.splitlines()
    assert first == "mrcr: error: nothing says how long the server's window is"
    assert "--window 128K" in hint
    assert "--base-url" in hint


@pytest.mark.parametrize("window", ["", "0", "0K", "-5", "128X", "128 K", "1e5", "128KB"])
def test_a_window_that_is_no_number_of_tokens_is_refused(
    plan: PlanCommand, short: Path, window: str
) -> None:
    said = plan("--dataset", short, f"--window={window}")
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.startswith(f"mrcr: error: --window {window}: expected a number of tokens")


def test_a_window_too_short_for_every_row_is_an_error(plan: PlanCommand, six: Path) -> None:
    said = plan("--dataset", six, "--protocol", "openai", "--window", "4K")
    assert said.code == 3
    assert "no sample fits into 1,792 prompt tokens" in said.stderr


def test_a_running_server_counts_and_is_asked_nothing(
    plan: PlanCommand, short: Path, start_standin: StartStandIn
) -> None:
    url = start_standin("--max-model-len", "8192").url
    said = plan("--dataset", short, "--protocol", "openai", "--base-url", url, "--json")
    assert said.code == 0
    found = said.plan
    assert (found.counted_by, found.max_prompt_tokens) == ("server", 8192 - 2304)
    assert found.tokenized > 0
    assert any(not ask.estimated for ask in found.asks)
    # Of words that have from 3 to 7 characters and are one o200k token, it counts 4 characters.
    assert {round(ask.prompt_tokens / ask.o200k_tokens, 1) for ask in found.asks} != {1.0}
    metrics = httpx.get(f"{url}/metrics").text
    assert "vllm:prompt_tokens_total{" in metrics
    counted = [line for line in metrics.splitlines() if line[0] != "#" and "_config_" not in line]
    assert all(line.endswith(" 0.0") for line in counted)


def test_a_named_window_holds_beside_a_running_server(
    plan: PlanCommand, short: Path, start_standin: StartStandIn
) -> None:
    url = start_standin().url
    said = plan("--dataset", short, "--base-url", url, "--window", "6000", "--json")
    assert (said.plan.counted_by, said.plan.max_prompt_tokens) == ("server", 6000 - 2304)


def test_only_the_model_and_token_counts_are_asked_for(
    plan: PlanCommand, short: Path, recorder: Recorder
) -> None:
    for protocol in ("openai", "vllm"):
        said = plan("--dataset", short, "--protocol", protocol, "--base-url", recorder.url)
        assert said.code == 0
    assert set(recorder.bodies) == {"/v1/models", "/tokenize"}


def test_the_vllm_protocol_fills_its_quotas_from_the_first_shards(
    plan: PlanCommand, short: Path, start_standin: StartStandIn
) -> None:
    flags = ("--dataset", short, "--num-samples", "7", "--json")
    found = plan(*flags, "--window", "128K").plan
    assert found.quotas == {2: 3, 4: 2, 8: 2}
    assert [found.planned(n) for n in NEEDLES] == [3, 2, 2]
    assert {ask.shard for ask in found.asks} == {f"{n}needle/{n}needle_0.parquet" for n in NEEDLES}
    assert (found.counted_by, found.cells) == ("o200k", ())
    counted = plan(*flags, "--base-url", start_standin().url).plan
    assert counted.counted_by == "server"
    assert [(a.shard, a.row) for a in counted.asks] == [(a.shard, a.row) for a in found.asks]
    assert not any(ask.estimated for ask in counted.asks)


def test_every_configuration_has_its_own_plan_in_their_order(
    plan: PlanCommand, short: Path, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"dataset": str(short), "protocol": "openai"}
    one = config(tmp_path, "one", **keys, needles=[2], bins=["4K-8K"])
    two = config(tmp_path, "two", **keys, needles=[4, 8], samples_per_cell=1)
    (tmp_path / "list.txt").write_text("two.yaml\none.yaml\n")

    said = plan("list.txt", "--window", "128K")
    assert said.code == 0
    assert [line.partition(":")[0] for line in said.stdout.splitlines() if " seed " in line] == [
        "two",
        "one",
    ]
    assert len(lines(said.stdout)) == 2 * 6 + 1

    said = plan(one, two, "--window", "128K", "--json")
    assert said.code == 0
    found = msgspec.json.decode(said.stdout, type=list[Plan])
    assert [sorted(each.quotas) for each in found] == [[2], [4, 8]]


def test_a_wrong_configuration_is_told_before_any_plan_is_printed(
    plan: PlanCommand, short: Path, tmp_path: Path
) -> None:
    good = config(tmp_path, "good", dataset=str(short), protocol="openai")
    bad = config(tmp_path, "bad", dataset=str(short), protocol="openai", bins=["5K-9K"])
    said = plan(good, bad, "--window", "128K")
    assert (said.code, said.stdout) == (2, "")
    assert "bad.yaml" in said.stderr


def test_a_server_that_refuses_is_named_with_what_to_do(
    plan: PlanCommand, short: Path, start_standin: StartStandIn
) -> None:
    url = start_standin("--api-key", "sesame").url
    flags = ("--dataset", short, "--protocol", "openai", "--base-url", url)
    said = plan(*flags)
    assert said.code == 2
    assert said.stderr.startswith(f"mrcr: error: {url}: ")
    assert "MRCR_API_KEY" in said.stderr
    assert plan(*flags, "--api-key", "sesame").code == 0


def test_cells_that_are_named_but_cannot_be_asked_are_shown_with_their_reason_and_an_error(
    plan: PlanCommand, six: Path
) -> None:
    said = plan(
        *("--dataset", six, "--protocol", "openai", "--window", "64K", "--needles", "2"),
        *("--bins", "4K-8K", "128K-256K", "512K-1M", "--exclude", "n2/512K-1M"),
    )
    assert said.code == 3
    assert said.stderr.splitlines() == [
        "mrcr: error: n2/128K-256K: no row to ask: 2 of 2 too long",
        (
            "  Leave the cell out with exclude, and without a threshold, or name other bins."
            " `mrcr plan` shows what there is."
        ),
    ]
    table = {line[0]: line[1:4] + line[-3:] for line in lines(said.stdout)}
    assert table["n2/4K-8K"][:3] == ["2", "2", "2"]
    assert table["n2/128K-256K"] == ["2", "0", "0", "2", "too", "long"]
    assert "n2/512K-1M" not in table
    assert "Not tested: 8 rows excluded (8K-16K, 16K-32K, 32K-64K, 64K-128K).\n" in said.stdout


def test_every_plan_is_shown_before_the_first_that_lacks_a_cell_ends_the_command(
    plan: PlanCommand, short: Path, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"dataset": str(short), "protocol": "openai", "needles": [2]}
    lacking = config(tmp_path, "lacking", **keys, bins=["4K-8K", "512K-1M"])
    good = config(tmp_path, "good", **keys, bins=["4K-8K"])

    said = plan(lacking, good, "--window", "128K")
    assert said.code == 3
    assert [line[:2] for line in lines(said.stdout)] == [
        ["n2/4K-8K", "3"],
        ["n2/512K-1M", "0"],
        ["n2/4K-8K", "3"],
    ]
    complaint = "mrcr: error: n2/512K-1M: no row to ask: the dataset has none\n"
    assert said.stderr.startswith(complaint)

    said = plan(lacking, good, "--window", "128K", "--json")
    assert said.code == 3
    assert len(msgspec.json.decode(said.stdout, type=list[Plan])) == 2
    assert said.stderr.startswith(complaint)


def test_a_cell_that_gets_no_share_of_the_samples_is_told_so(
    plan: PlanCommand, short: Path
) -> None:
    said = plan(
        *("--dataset", short, "--protocol", "openai", "--needles", "2", "--window", "128K"),
        *("--bins", "512-1K", "4K-8K", "--num-samples", "1"),
    )
    assert said.code == 3
    assert re.match(
        r"mrcr: error: n2/(512-1K|4K-8K): no row to ask: none chosen fits, or num_samples is too"
        r" small\n",
        said.stderr,
    )


def test_bins_that_leave_no_row_are_a_usage_error_that_names_those_there_are(
    plan: PlanCommand, six: Path
) -> None:
    flags = ("--dataset", six, "--protocol", "openai", "--needles", "2", "4", "--window", "64K")
    for cells in (("--bins", "512K-1M"), ("--bins", "4K-8K", "--exclude", "4K-8K")):
        said = plan(*flags, *cells)
        assert (said.code, said.stdout) == (2, "")
        assert said.stderr == (
            f"mrcr: error: bins and exclude leave no row of {six}, which has rows of 4K-8K, 8K-16K,"
            " 16K-32K, 32K-64K, 64K-128K, 128K-256K with 2, 4 needles\n"
        )


def test_an_answer_as_long_as_the_window_is_a_usage_error(
    plan: PlanCommand, short: Path, start_standin: StartStandIn
) -> None:
    url = start_standin("--max-model-len", "2048").url
    flags = ("--dataset", short, "--protocol", "openai", "--needles", "2", "--base-url", url)
    said = plan(*flags)
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [
        (
            "mrcr: error: max_tokens 2,048: the server's window has 2,048 tokens for prompt and"
            " answer together"
        ),
        "  Lower --max-tokens, or serve with a longer --max-model-len.",
    ]
    assert plan(*flags, "--max-tokens", "512").code == 0


def test_an_interrupted_command_says_that_it_was_cancelled(
    mrcr: Mrcr, recorder: Recorder, short: Path
) -> None:
    recorder.stalled.add("/tokenize")
    running = mrcr.start(
        *("plan", "--dataset", short, "--protocol", "openai", "--base-url", recorder.url)
    )
    while "/tokenize" not in recorder.bodies:
        assert running.process.poll() is None, running.stderr
        time.sleep(0.01)
    running.process.send_signal(signal.SIGINT)
    ended = running.wait()
    assert (ended.code, ended.stdout, ended.stderr) == (130, "", "mrcr: cancelled\n")


def test_the_answer_of_a_server_is_what_the_plan_counts_by(
    plan: PlanCommand, tmp_path: Path, start_standin: StartStandIn
) -> None:
    folder = write_six_shards(tmp_path / "few", (300, 400))
    said = plan("--dataset", folder, "--needles", "2", "--base-url", start_standin().url, "--json")
    shards = Shards(str(folder), "main")
    for ask in said.plan.asks:
        messages = shards.load(ask.shard, ask.row).messages
        assert ask.prompt_tokens == prompt_tokens(message.content for message in messages)


def test_a_window_that_answers_alone_may_fill_is_an_error(mrcr: Mrcr, six: Path) -> None:
    ended = mrcr("plan", "--dataset", six, "--protocol", "openai", "--window", "2K")
    assert ended.code == 2
    assert "max_tokens 2,048: the server's window has 2,048 tokens" in ended.stderr
