"""``mrcr synth``, and folders of samples that are not what they should be."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrcr_action.sample import Sample

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StartStandIn


def test_what_is_synthesised_can_be_run(mrcr: Mrcr, start_standin: StartStandIn) -> None:
    made = mrcr(
        *("synth", "--needles", "2", "8", "--bins", "1K-2K", "2K-4K", "--per-cell", "2"),
        *("--out", "samples"),
    )
    assert made.code == 0, made.said
    assert made.stdout.splitlines() == [
        "8 rows in 4 files under samples",
        (
            "Use them with: mrcr run --dataset samples --needles 2 8 --protocol openai"
            " --samples-per-cell 2 …"
        ),
    ]

    ended = mrcr(
        *("run", "--dataset", "samples", "--needles", "2", "8", "--protocol", "openai"),
        *("--samples-per-cell", "2", "--base-url", start_standin().url),
        *("--threshold", "1", "--tolerance", "0"),
    )
    assert ended.code == 0, ended.said
    assert ended.result.buckets[0].graded == 8
    lengths = sorted(record.o200k_tokens for record in ended.result.records)
    assert all(1024 < length <= 2048 for length in lengths[:4])
    assert all(2048 < length <= 4096 for length in lengths[4:])
    assert (ended.result.data.dataset, ended.result.data.revision) == ("samples", None)


def test_needle_counts_beyond_the_datasets_are_written_in_its_layout(mrcr: Mrcr) -> None:
    made = mrcr(
        *("synth", "--needles", "1", "3", "16", "3", "--bins", "1K-2K", "--per-cell", "2"),
        *("--non-latin", "30", "--out", "odd"),
    )

    assert made.code == 0, made.said
    assert "6 rows in 6 files under odd" in made.stdout
    for n_needles in (1, 3, 16):
        for part in (0, 1):
            path = mrcr.cwd / "odd" / f"{n_needles}needle" / f"{n_needles}needle_{part}.parquet"
            (row,) = pq.read_table(path).to_pylist()
            assert row["n_needles"] == n_needles
            sample = Sample.from_row(row, shard=path.name, index=0)
            assert sample.violations() == []


def test_a_single_sample_can_be_run_though_its_second_file_is_empty(
    mrcr: Mrcr, start_standin: StartStandIn
) -> None:
    made = mrcr(*("synth", "--needles", "2", "--bins", "512-1K", "--per-cell", "1", "--out", "one"))
    assert made.code == 0, made.said
    assert pq.read_metadata(mrcr.cwd / "one" / "2needle" / "2needle_1.parquet").num_rows == 0

    ended = mrcr(
        *("run", "--dataset", "one", "--base-url", start_standin().url, "--needles", "2"),
        *("--protocol", "openai", "--num-samples", "1", "--threshold", "1"),
    )

    assert ended.code == 0, ended.said
    assert ended.result.buckets[0].graded == 1


def test_a_folder_that_reads_like_a_pattern_is_only_a_folder(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    shutil.copytree(dataset, mrcr.cwd / "rows[1]")

    ended = mrcr(
        *("run", "--dataset", "rows[1]", "--base-url", start_standin().url, "--needles", "2"),
        *("--num-samples", "2", "--threshold", "1"),
    )

    assert ended.code == 0, ended.said
    assert ended.result.data.dataset == "rows[1]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bins", "4K"], "--bins"),
        (["--bins", "1-2", "--needles", "8"], "8 needles"),
        (["--per-cell", "0"], "--per-cell 0"),
        (["--needles", "0"], "0 needles were asked for; a synthetic row has 1 to 16"),
        (["--needles", "2", "17"], "17 needles were asked for; a synthetic row has 1 to 16"),
        (["--needles", "two"], "invalid int value: 'two'"),
        (["--bins", "1M-2M"], "the bin 1M-2M is too long"),
        (["--non-latin", "101"], "101 percent"),
    ],
)
def test_samples_that_cannot_be_made_exit_2(mrcr: Mrcr, arguments: list[str], message: str) -> None:
    ended = mrcr("synth", "--out", "samples", *arguments)

    assert ended.code == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.said


def test_a_folder_that_cannot_be_written_exits_3(mrcr: Mrcr) -> None:
    (mrcr.cwd / "taken").write_text("a file")

    ended = mrcr("synth", "--bins", "512-1K", "--per-cell", "1", "--out", "taken/samples")

    assert ended.code == 3
    assert "mrcr: error: the samples cannot be written to taken/samples" in ended.stderr
    assert "Traceback" not in ended.said


@pytest.fixture(scope="module")
def bad_data(shared_mrcr: Mrcr, dataset: Path) -> Ended:
    """Runs over folders that hold no samples, without any server to be asked."""

    def folder(name: str) -> Path:
        shard = shared_mrcr.cwd / name / "2needle" / "2needle_0.parquet"
        shard.parent.mkdir(parents=True)
        return shard

    pq.write_table(pa.table({"prompt": ["[]"], "label": [1]}), folder("foreign"))
    folder("text").write_text("prompt,answer\n")
    folder("empty").write_bytes(b"")
    whole = dataset / "2needle" / "2needle_0.parquet"
    folder("cut").write_bytes(whole.read_bytes()[:-100])
    shutil.copy(whole, folder("half"))
    rows = whole.read_bytes()
    folder("spoilt").write_bytes(rows[:100] + b"?" * 1000 + rows[1100:])
    pq.write_table(pq.read_schema(whole).empty_table(), folder("rowless"))
    configs = [
        shared_mrcr.config(
            f"{name}-data",
            dataset=f"./{name}",
            base_url="http://127.0.0.1:9",
            needles=[2, 4] if name == "half" else [2],
        )
        for name in ("foreign", "text", "empty", "cut", "half", "spoilt", "rowless", "missing")
    ]
    return shared_mrcr("run", *configs)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "foreign",
            "foreign/2needle/2needle_0.parquet: not MRCR rows: the columns answer, random_string",
        ),
        ("text", "text/2needle/2needle_0.parquet: not a parquet file"),
        ("empty", "empty/2needle/2needle_0.parquet: not a parquet file"),
        ("cut", "cut/2needle/2needle_0.parquet: not a parquet file"),
        ("half", "half/4needle/4needle_0.parquet: no such file"),
        ("spoilt", "spoilt/2needle/2needle_0.parquet: cannot be read: "),
        ("rowless", "rowless/2needle/2needle_0.parquet: no rows"),
        ("missing", "missing/2needle/2needle_0.parquet: no such file"),
    ],
)
def test_files_that_hold_no_samples_are_named_with_what_is_wrong(
    bad_data: Ended, name: str, message: str
) -> None:
    problem = bad_data.result_of(f"{name}-data").problem

    assert problem is not None
    assert (problem.kind, problem.exit_code) == ("DataError", 3)
    assert problem.message.startswith(message)
    assert f"MRCR is inconclusive: {message}" in bad_data.stdout
    assert "An error occurred" not in problem.message
    assert not any(word in problem.hint for word in ("internet", "rate limit", "HF_TOKEN"))


def test_no_samples_exit_3_without_a_traceback(bad_data: Ended) -> None:
    assert bad_data.code == 3
    assert "Traceback" not in bad_data.said
