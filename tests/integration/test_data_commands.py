"""`mrcr data fetch`, `check`, `stats` and `key`, and runs with a bundle of too little."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.integration.conftest import MRCR
from tests.integration.hub.fake_hub import FakeHub, Fault
from tests.integration.six_shards import NEEDLES, SHORT, write_six_shards
from tests.unit.handmade import row, write_rows

from mrcr_action.arguments import make_parser
from mrcr_action.cache import CACHE_VARIABLE
from mrcr_action.cli import COMMANDS, main
from mrcr_action.data.bundle import read_bundle
from mrcr_action.plan import Plan

if TYPE_CHECKING:
    from tests.integration.conftest import Ended, Mrcr, StartStandIn

ROOT = Path(__file__).parents[2]

FIRST = "2needle/2needle_0.parquet"


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    stdout: str
    stderr: str


DataCommand = Callable[..., Said]
"""Called with the arguments of ``mrcr data``."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all tests here: what the first one counts, the others need not."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_six_shards(tmp_path_factory.mktemp("short"), SHORT)


@pytest.fixture
def data(
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> DataCommand:
    """Runs the command in this process, in a folder of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Said:
        code = main(["data", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


def config(name: str, **keys: Any) -> Path:
    """Write a configuration into the working folder."""
    path = Path(f"{name}.yaml")
    path.write_text(json.dumps(keys))
    return path


def table(text: str) -> dict[str, list[str]]:
    """The lines of a table by their first column; columns are two blanks apart or more."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {line[0]: line[1:] for line in lines if line[0] == "all" or line[0].startswith("n")}


# fetch


def test_fetch_writes_what_a_configuration_can_use_and_says_how_to_use_it(
    data: DataCommand, short: Path
) -> None:
    path = config(
        "mrcr", dataset=str(short), protocol="openai", needles=[2, 8], bins=["512-1K", "4K-8K"]
    )
    said = data("fetch", path, "--window", "8K", "--to", "bundle")
    assert said.code == 0
    assert said.stderr.splitlines() == [
        f"{n}needle/{n}needle_{part}.parquet: 2 of 6 rows, 0.0 MiB"
        for n in (2, 8)
        for part in (0, 1)
    ]
    bundle = read_bundle(Path("bundle"))
    assert [(shard.path, shard.rows) for shard in bundle.shards] == [
        (f"{n}needle/{n}needle_{part}.parquet", 6) for n in (2, 8) for part in (0, 1)
    ]
    # 600 and 900; 4096, 5000; 8192 has more than a third more tokens than the limit of 5,888.
    assert sum(shard.texts for shard in bundle.shards) == 2 * 4
    first, second = said.stdout.splitlines()
    assert first.startswith("8 rows, 0.1 MiB, in bundle; key mrcr-data-1-")
    assert second == "Use it with: mrcr run … --dataset bundle"
    assert data("key", path, "--window", "8K").stdout == f"{bundle.key}\n"


def test_fetch_without_a_configuration_takes_both_shards_of_every_needle_count(
    data: DataCommand, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data("fetch", "--dataset", short, "--to", "all").code == 0
    bundle = read_bundle(Path("all"))
    assert [(shard.rows, shard.texts) for shard in bundle.shards] == [(6, 6)] * 6
    assert data("fetch", "--dataset", short, "--protocol", "vllm", "--to", "half").code == 0
    first = [f"{n}needle/{n}needle_0.parquet" for n in NEEDLES]
    assert [shard.path for shard in read_bundle(Path("half")).shards] == first
    monkeypatch.setenv("MRCR_PROTOCOL", "vllm")
    assert data("fetch", "--dataset", short, "--to", "half again").code == 0
    assert [shard.path for shard in read_bundle(Path("half again")).shards] == first


def test_fetch_replaces_an_earlier_bundle_whole_and_nothing_else(
    data: DataCommand, short: Path
) -> None:
    flags = ("fetch", "--dataset", short, "--to")
    assert data(*flags, "bundle", "--needles", "2", "8").code == 0
    assert data(*flags, "bundle", "--needles", "4", "--bins", "512-1K").code == 0
    assert sorted(path.name for path in Path("bundle").iterdir()) == [
        "4needle",
        "README.md",
        "bundle.json",
    ]
    assert data("check", "bundle").code == 0
    Path("home").mkdir()
    Path("home/thesis.tex").write_text("precious")
    said = data(*flags, "home")
    assert (said.code, said.stdout) == (3, "")
    assert said.stderr.splitlines() == [
        "mrcr: error: home: holds other files and no bundle",
        "  Name an empty folder with --to.",
    ]
    assert [path.name for path in Path("home").iterdir()] == ["thesis.tex"]


def test_fetch_says_so_when_no_row_is_of_use(data: DataCommand, short: Path) -> None:
    said = data("fetch", "--dataset", short, "--bins", "512K-1M", "--to", "bundle")
    assert said.code == 3
    assert "no row of the dataset is of use for this configuration" in said.stderr
    assert list(Path().iterdir()) == []


def test_a_bundle_is_no_source_of_another(data: DataCommand, short: Path) -> None:
    assert data("fetch", "--dataset", short, "--needles", "2", "--to", "one").code == 0
    for command in (("fetch", "--to", "two"), ("key",)):
        said = data(command[0], "--dataset", "one", *command[1:])
        assert (said.code, said.stdout) == (2, "")
        assert "one: is a bundle already" in said.stderr
    assert not Path("two").exists()


def test_fetch_of_a_dataset_that_lacks_a_shard_names_it_before_anything_is_written(
    data: DataCommand, short: Path
) -> None:
    said = data("fetch", "--dataset", short, "--needles", "2", "3", "--to", "bundle")
    assert said.code == 3
    assert "3needle/3needle_0.parquet: no such file" in said.stderr
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "flags", [("--window", "128X"), ("--bins", "5K-9K"), ("--needles", "99"), ("--seed", "1")]
)
def test_wrong_flags_end_in_a_usage_error(
    data: DataCommand, short: Path, flags: tuple[str, str]
) -> None:
    for command in (("fetch", "--to", "bundle"), ("key",)):
        try:
            code = data(*command, "--dataset", short, *flags).code
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        assert code == 2
    assert not Path("bundle").exists()


@pytest.fixture
def hub_command(mrcr: Mrcr, tmp_path: Path) -> Callable[[FakeHub], dict[str, str]]:
    """Lets the installed command use a hub on this machine, with empty caches."""
    del mrcr.environment["HF_HUB_OFFLINE"]
    mrcr.environment["HF_HOME"] = str(tmp_path / "home")
    mrcr.environment[CACHE_VARIABLE] = str(tmp_path / "cache")
    return lambda hub: {"HF_ENDPOINT": hub.endpoint}


def test_a_killed_fetch_leaves_no_bundle_and_the_next_one_clears_what_it_left(
    mrcr: Mrcr, hub_command: Callable[[FakeHub], dict[str, str]], short: Path
) -> None:
    flags = ("data", "fetch", "--allow-unverified", "--needles", "2", "--to", "bundle")
    with FakeHub(short) as hub:
        hub.fail("GET", Fault(), Fault(stall=100))
        running = mrcr.start(*flags, env=hub_command(hub))
        running.wait_for(f"{FIRST}: 6 of 6 rows")
        while len(hub.seen("GET")) < 2:
            assert running.process.poll() is None
            time.sleep(0.01)
        running.process.send_signal(signal.SIGKILL)
        assert running.wait().code == -signal.SIGKILL
        left = [path.name for path in mrcr.cwd.iterdir() if not path.name.startswith(".std")]
        assert len(left) == 1
        assert re.fullmatch(r"\.bundle\.[0-9a-f]{8}\.partial", left[0])
        for command in (("data", "check"), ("data", "stats")):
            ended = mrcr(*command, left[0])
            assert ended.code == 3
            assert "holds no shard" in ended.stderr
        ended = mrcr(*flags, env=hub_command(hub))
        assert ended.code == 0, ended.said
    assert [path.name for path in mrcr.cwd.iterdir() if not path.name.startswith(".std")] == [
        "bundle"
    ]
    assert mrcr("data", "check", "bundle").code == 0


def test_a_fetch_that_the_hub_ends_leaves_the_earlier_bundle_and_no_litter(
    mrcr: Mrcr, hub_command: Callable[[FakeHub], dict[str, str]], short: Path
) -> None:
    flags = ("data", "fetch", "--allow-unverified", "--to", "bundle", "--needles")
    with FakeHub(short) as hub:
        assert mrcr(*flags, "2", env=hub_command(hub)).code == 0
        hub.fail("GET", Fault(), Fault(status=403))
        ended = mrcr(*flags, "4", env=hub_command(hub))
    assert ended.code == 3
    assert "4needle_1.parquet" in ended.stderr
    names = [path.name for path in mrcr.cwd.iterdir() if not path.name.startswith(".std")]
    assert names == ["bundle"]
    assert read_bundle(mrcr.cwd / "bundle").selection.needles == (2,)
    assert mrcr("data", "check", "bundle").code == 0


# check


def test_check_reads_a_bundle_and_a_local_dataset_to_their_ends(
    data: DataCommand, short: Path
) -> None:
    assert data("fetch", "--dataset", short, "--needles", "4", "--to", "bundle").code == 0
    said = data("check", "bundle")
    assert (said.code, said.stderr) == (0, "")
    assert said.stdout == f"bundle: 12 rows of {short}, all as they should be\n"
    said = data("check", short)
    assert said.code == 0
    assert said.stdout == f"{short}: 36 rows, all as they should be\n"
    assert said.stderr.splitlines() == [
        f"{n}needle/{n}needle_{part}.parquet: 6 rows counted" for n in NEEDLES for part in (0, 1)
    ]


def test_check_names_what_is_wrong_with_a_bundle(data: DataCommand, short: Path) -> None:
    assert data("fetch", "--dataset", short, "--needles", "2", "--to", "bundle").code == 0
    rows = Path("bundle/2needle/2needle_1.rows")
    content = bytearray(rows.read_bytes())
    content[100] ^= 1
    rows.write_bytes(content)
    said = data("check", "bundle")
    assert said.code == 3
    assert [line.partition(": expected SHA-256")[0] for line in said.stdout.splitlines()] == [
        str(rows),
        f"{rows}: row 0 is damaged",
    ]
    assert said.stderr.startswith("mrcr: error: bundle: 2 faults\n  Fetch it again")


def test_check_names_no_more_faults_than_a_person_reads(data: DataCommand, tmp_path: Path) -> None:
    rows = [row(2, number, 200) for number in range(30)]
    for entry in rows:
        entry["n_chars"] += 1
    write_rows(tmp_path / "rows", rows)
    said = data("check", "rows")
    assert said.code == 3
    assert len(said.stdout.splitlines()) == 20
    assert "rows: 30 faults (10 more)" in said.stderr


def test_check_names_the_rows_of_local_parquet_that_break_an_invariant(
    data: DataCommand, tmp_path: Path
) -> None:
    rows = [row(2, number, 200) for number in range(8)]
    rows[2]["answer"] = "another one"
    rows[4]["prompt"] = "not JSON \x1b[31m"
    write_rows(tmp_path / "rows", rows)
    said = data("check", "rows")
    assert said.code == 3
    first, second = said.stdout.splitlines()
    assert first == f"{FIRST}, row 1: the answer is not the nonce followed by the wanted reply"
    assert second.startswith(f"{FIRST}, row 2: ")
    assert "2 faults" in said.stderr


@pytest.mark.parametrize("command", ["check", "stats"])
@pytest.mark.parametrize("name", ["nowhere", "openai/mrcr", "a/file"])
def test_what_is_no_folder_is_a_usage_error(data: DataCommand, command: str, name: str) -> None:
    Path("a").mkdir()
    Path("a/file").touch()
    said = data(command, name)
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.startswith(f"mrcr: error: {name}: no such folder\n")


@pytest.mark.parametrize("command", ["check", "stats"])
def test_an_empty_and_an_odd_folder_say_what_was_expected(data: DataCommand, command: str) -> None:
    Path("empty").mkdir()
    Path("odd/2needle").mkdir(parents=True)
    Path("odd/2needle/2needle_7.parquet").touch()
    for name in ("empty", "odd"):
        said = data(command, name)
        assert (said.code, said.stdout) == (3, "")
        assert said.stderr.startswith(
            f"mrcr: error: {name}: holds no shard, such as 2needle/2needle_0.parquet\n"
        )
    Path(f"odd/{FIRST}").write_text("no parquet")
    said = data(command, "odd")
    assert (said.code, said.stdout) == (3, "")
    assert said.stderr.startswith(f"mrcr: error: odd/{FIRST}: not a parquet file")


# stats


def test_stats_count_every_cell_of_local_parquet(data: DataCommand, short: Path) -> None:
    said = data("stats", short)
    assert said.code == 0
    found = table(said.stdout)
    bins = ("0-512", "512-1K", "1K-2K", "2K-4K", "4K-8K", "8K-16K")
    assert list(found) == [*(f"n{n}/{bin_}" for n in NEEDLES for bin_ in bins), "all"]
    for n in NEEDLES:
        assert found[f"n{n}/0-512"][:5] == ["2", "2", "300", "406", "512"]
        assert found[f"n{n}/4K-8K"][:5] == ["3", "3", "4,096", "5,000", "8,192"]
        assert found[f"n{n}/8K-16K"][:5] == ["1", "1", "9,000", "9,000", "9,000"]
        assert found[f"n{n}/4K-8K"][-1] == str(2 * n + 2)
    assert found["all"][:5] == ["36", "36", "300", "2,000", "9,000"]


def test_stats_of_a_bundle_tell_which_rows_have_texts(data: DataCommand, short: Path) -> None:
    flags = ("--needles", "2", "--bins", "1K-2K", "4K-8K", "--to", "bundle")
    assert data("fetch", "--dataset", short, *flags).code == 0
    said = data("stats", "bundle")
    assert (said.code, said.stderr) == (0, "")
    found = table(said.stdout)
    assert {cell: line[:2] for cell, line in found.items()} == {
        "n2/0-512": ["2", "0"],
        "n2/512-1K": ["2", "0"],
        "n2/1K-2K": ["2", "2"],
        "n2/2K-4K": ["2", "0"],
        "n2/4K-8K": ["3", "3"],
        "n2/8K-16K": ["1", "0"],
        "all": ["12", "5"],
    }
    assert found["all"][2:5] == ["300", "2,000", "9,000"]


# key


def test_keys_are_equal_for_equal_bundles_and_others_for_others(data: DataCommand) -> None:
    def key(*flags: str) -> str:
        said = data("key", *flags)
        assert (said.code, said.stderr) == (0, "")
        assert re.fullmatch(r"mrcr-data-1-[0-9a-f]{16}\n", said.stdout)
        return said.stdout

    base = key("--needles", "2", "4", "--bins", "4K-8K", "64K-128K", "--window", "128K")
    assert base == key("--needles", "4", "2", "--bins", "64K-128K", "4K-8K", "--window", "131072")
    path = config(
        "mrcr",
        protocol="openai",
        needles=[4, 2],
        bins=["4K-8K", "64K-128K"],
        samples_per_cell=3,
        seed=7,
        model_name="some/model",
        server_args="--max-model-len 128K",
    )
    assert base == key(str(path))
    others = [
        key(str(path), *flags)
        for flags in (
            ("--needles", "2"),
            ("--bins", "4K-8K"),
            ("--window", "64K"),
            ("--revision", "0" * 40),
            ("--dataset", "someone/mrcr"),
        )
    ]
    others.append(key("--protocol", "vllm", "--needles", "2", "4", "--window", "128K"))
    assert len({base, *others}) == 7


def test_the_documented_step_of_a_ci_sets_the_key(mrcr: Mrcr, short: Path) -> None:
    step = re.search(r"^  run: (echo .*mrcr data key.*)$", documentation(), re.MULTILINE)
    assert step is not None
    config = mrcr.config("mrcr", dataset=str(short), protocol="openai")
    subprocess.run(
        ["/bin/bash", "-eu", "-c", step[1]],
        cwd=mrcr.cwd,
        env={
            **mrcr.environment,
            "GITHUB_OUTPUT": "output.txt",
            "PATH": f"{MRCR.parent}:{mrcr.environment['PATH']}",
        },
        check=True,
    )
    key = mrcr("data", "key", config, "--window", "128K").stdout.strip()
    assert (mrcr.cwd / "output.txt").read_text() == f"key={key}\n"


def documentation() -> str:
    return (ROOT / "docs" / "data.md").read_text()


def test_every_documented_command_is_one() -> None:
    commands = re.findall(r"^\$ mrcr ([^#\n]*)", documentation(), re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        assert make_parser().parse_args(shlex.split(command)).command in COMMANDS


# a bundle of too little


def test_a_bundle_that_lacks_cells_that_are_chosen_ends_the_run_and_they_are_named(
    mrcr: Mrcr, short: Path, start_standin: StartStandIn, cache: Path
) -> None:
    mrcr.environment[CACHE_VARIABLE] = str(cache)
    flags = ("--needles", "2", "--bins", "512-1K", "--to", "bundle")
    assert mrcr("data", "fetch", "--dataset", short, *flags).code == 0
    keys = {"dataset": "bundle", "protocol": "openai", "needles": [2]}
    url = start_standin().url
    named = mrcr.config("named", **keys, bins=["512-1K", "1K-2K"], base_url=url)
    unnamed = mrcr.config("unnamed", **keys, base_url=url)
    held = mrcr.config("held", **keys, bins=["512-1K"], base_url=url)

    ended = mrcr("run", named, unnamed, held)

    assert ended.code == 3
    all_others = "n2/0-512 (2 of 2), n2/1K-2K (2 of 2), n2/2K-4K (2 of 2), n2/4K-8K (3 of 3),"
    for name, lacking in (
        ("named", "n2/1K-2K (2 of 2)"),
        ("unnamed", f"{all_others} n2/8K-16K (1 of 1)"),
    ):
        result = ended.result_of(name)
        assert result.problem is not None
        assert (result.problem.kind, result.problem.exit_code) == ("DataError", 3)
        message = f"bundle: this bundle lacks samples that are chosen: {lacking}"
        assert result.problem.message == message
        assert "mrcr data fetch CONFIG --window TOKENS --to DIR" in result.problem.hint
        assert result.verdict.summary == f"MRCR is inconclusive: {message}"
        assert message in ended.stdout
        assert result.records == ()
    result = ended.result_of("held")
    assert result.verdict.conclusion == "pass"
    cells = {cell.name: cell for cell in result.coverage}
    assert (cells["n2/512-1K"].planned, cells["n2/512-1K"].scored) == (2, 2)
    assert cells["n2/1K-2K"].dropped == {"excluded": 2}


def test_a_bundle_is_asked_for_the_rows_that_are_chosen_and_no_others_in_their_place(
    mrcr: Mrcr, short: Path, cache: Path
) -> None:
    mrcr.environment[CACHE_VARIABLE] = str(cache)
    flags = ("--needles", "2", "--max-prompt-tokens", "2700", "--to", "bundle")
    # Of the cell 2K-4K, with rows of 2,500 and 4,000 tokens, the first alone.
    assert mrcr("data", "fetch", "--dataset", short, *flags).code == 0

    def plan(dataset: str | Path, *more: str) -> Ended:
        cells = ("--protocol", "openai", "--needles", "2", "--bins", "2K-4K", "--window", "128K")
        return mrcr("plan", "--dataset", dataset, *cells, *more)

    ended = plan("bundle")
    assert (ended.code, ended.stdout) == (3, "")
    complaint = "mrcr: error: bundle: this bundle lacks samples that are chosen: n2/2K-4K"
    assert ended.stderr.startswith(f"{complaint} (1 of 2)\n")
    for seed, chosen in (("1", 2_500), ("2", 4_000)):
        one = ("--samples-per-cell", "1", "--seed", seed, "--json")
        (ask,) = decode_plan(plan(short, *one).stdout).asks
        assert ask.o200k_tokens == chosen
        ended = plan("bundle", *one)
        if chosen == 2_500:
            found = decode_plan(ended.stdout)
            assert found.asks == (ask,)
            (cell,) = (cell for cell in found.cells if cell.planned)
            assert cell.dropped == {"not in the bundle": 1}
        else:
            assert (ended.code, ended.stdout) == (3, "")
            assert ended.stderr.startswith(f"{complaint} (1 of 1)\n")


def decode_plan(text: str) -> Plan:
    return msgspec.json.decode(text, type=Plan)


def test_the_vllm_protocol_says_how_to_fetch_the_rows_that_a_bundle_lacks(
    mrcr: Mrcr, short: Path, start_standin: StartStandIn, cache: Path
) -> None:
    mrcr.environment[CACHE_VARIABLE] = str(cache)
    flags = ("--protocol", "vllm", "--needles", "2", "--max-prompt-tokens", "1000")
    assert mrcr("data", "fetch", "--dataset", short, *flags, "--to", "bundle").code == 0
    keys = {"dataset": "bundle", "protocol": "vllm", "base_url": start_standin().url}

    ended = mrcr(
        "run",
        mrcr.config("longer", **keys, needles=[2]),
        mrcr.config("more", **keys, needles=[2, 4], max_prompt_tokens=1000),
        mrcr.config("same", **keys, needles=[2], max_prompt_tokens=1000),
    )

    assert ended.code == 3
    for name, complaint in (
        ("longer", r"bundle: 2needle/2needle_0\.parquet, row \d is not in this bundle"),
        ("more", r"bundle: 4needle/4needle_0\.parquet is not in this bundle"),
    ):
        problem = ended.result_of(name).problem
        assert problem is not None
        assert re.fullmatch(complaint, problem.message)
        assert problem.hint == (
            "Fetch a bundle for this configuration: mrcr data fetch CONFIG --to DIR."
        )
    same = ended.result_of("same")
    assert same.problem is None
    assert {record.outcome for record in same.records} == {"scored"}


@pytest.mark.parametrize(
    "protocol",
    ["openai", "vllm"],
)
def test_a_bundle_for_a_window_is_enough_for_a_server_of_that_window(
    mrcr: Mrcr, short: Path, start_standin: StartStandIn, cache: Path, protocol: str
) -> None:
    mrcr.environment[CACHE_VARIABLE] = str(cache)
    flags = ("--protocol", protocol, "--needles", "2")
    fetch = ("data", "fetch", "--dataset", short, "--window", "4K", "--to", "bundle")
    assert mrcr(*fetch, *flags).code == 0
    assert all(shard.texts < shard.rows for shard in read_bundle(mrcr.cwd / "bundle").shards)
    url = start_standin("--max-model-len", "4096").url

    ended = mrcr("run", "--dataset", "bundle", "--base-url", url, *flags)

    assert ended.code == 0, ended.said
    assert {record.outcome for record in ended.result.records} == {"scored"}


# names


@pytest.mark.parametrize(
    "name", ["a b", "x\n::error::boo", "::warning::x", "[a]*?{b}", "~", "ü 日本", "'`$(id)`|<b>"]
)
def test_folders_may_be_called_anything(data: DataCommand, tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / name, [row(2, number, 200) for number in range(2)])
    said = [
        data("fetch", "--dataset", f"./{name}", "--needles", "2", "--to", f"{name} bundle"),
        data("check", f"./{name} bundle"),
        data("stats", f"./{name} bundle"),
        data("check", f"./{name}"),
        data("key", "--dataset", f"./{name}", "--needles", "2"),
    ]
    assert [each.code for each in said] == [0] * 5
    printed = "".join(each.stdout + each.stderr for each in said)
    assert not re.search(r"^::", printed, re.MULTILINE)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, f"{name} bundle"])
    assert "\n::" not in Path(f"{name} bundle/README.md").read_text()


def test_a_folder_whose_name_is_no_text_is_a_usage_error(data: DataCommand) -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    Path(name).mkdir()
    for command in (("check", name), ("stats", name), ("key", "--dataset", f"./{name}")):
        said = data(*command)
        assert (said.code, said.stdout) == (2, "")
        assert "not text in UTF-8" in said.stderr


def test_what_a_bundle_says_of_itself_is_shown_as_plain_text(
    mrcr: Mrcr, short: Path, start_standin: StartStandIn, cache: Path
) -> None:
    mrcr.environment[CACHE_VARIABLE] = str(cache)
    assert mrcr("data", "fetch", "--dataset", short, "--needles", "2", "--to", "bundle").code == 0
    path = mrcr.cwd / "bundle" / "bundle.json"
    told = json.loads(path.read_bytes())
    told |= {
        "dataset": "evil\n::error::dataset\x1b[31m <img src=x> | @everyone",
        "revision": "rev\n## heading\n::set-output name=a::b\x1b[2J",
        "key": "key\n::add-mask::x",
        "licence": "\n::error::licence",
        "tool_version": "\n::error::version",
    }
    path.write_text(json.dumps(told))

    ended = mrcr("run", "--dataset", "bundle", "--protocol", "openai", "--needles", "2",
                 "--base-url", start_standin().url)  # fmt: skip
    checked = mrcr("data", "check", "bundle")

    assert ended.code == 0, ended.said
    assert ended.result.data.origin == told["dataset"]
    assert checked.code == 3
    summary = (ended.folder / "summary.md").read_text()
    for text in (ended.said, checked.said, summary):
        assert not re.search(r"^(::|##)(error|set-output|add-mask| heading)", text, re.MULTILINE)
        assert "\x1b" not in text
    outside_of_code = re.sub(r"`[^`\n]*`", "", summary)
    assert "<img" not in outside_of_code
    assert "@everyone" not in outside_of_code
