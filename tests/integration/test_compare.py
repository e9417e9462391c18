"""``mrcr compare``: results of real runs, refused pairs, and what is unreadable."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Mrcr, StartStandIn

GUIDE = Path(__file__).parents[2] / "docs/comparing.md"

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f\x85\u2028\u2029\u202e\ud800-\udfff]")

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def runs(shared_mrcr: Mrcr, start_shared_standin: StartStandIn, dataset: Path) -> Mrcr:
    """Folders of real runs over 27 samples: one, the same again, and others that differ."""
    healthy = start_shared_standin()
    faulty = start_shared_standin("--fault", "wrong-needle@%4")
    losing = start_shared_standin("--fault", "status=400@5")
    for name, server, more in (
        ("before", healthy, ()),
        ("again", healthy, ()),
        ("after", faulty, ()),
        ("lost", losing, ()),
        ("vllm", healthy, ("--protocol", "vllm", "--max-tokens", "1000")),
    ):
        ended = shared_mrcr(
            *("run", "--base-url", server.url, "--dataset", dataset, "--protocol", "openai"),
            *("--num-samples", "27", "--output-dir", name, *more),
        )
        assert ended.code == (3 if name == "lost" else 0), ended.said
    return shared_mrcr


@pytest.fixture
def edited(runs: Mrcr, tmp_path: Path) -> Callable[[Edit], Path]:
    """A copy of the first result that was changed by hand."""

    def edit(change: Edit) -> Path:
        document = json.loads((runs.cwd / "before" / "result.json").read_bytes())
        change(document)
        path = tmp_path / "edited.json"
        path.write_text(json.dumps(document))
        return path

    return edit


def test_the_same_run_twice_is_no_regression_and_no_change(runs: Mrcr) -> None:
    ended = runs("compare", "before", "again")

    assert ended.code == 0, ended.said
    assert ended.stdout.splitlines()[-1] == "No regression: no sample changed (27 compared)"
    assert "all samples  ·        0/27     1.0000  1.0000  0.0000  all alike" in ended.stdout
    assert "note:" not in ended.stdout


def test_a_broken_server_is_a_regression_and_every_flipped_sample_is_named(runs: Mrcr) -> None:
    ended = runs("compare", "before", "after/result.json")

    assert ended.code == 1, ended.said
    assert re.search(r"^  all samples +✗ WORSE +6/27 ", ended.stdout, re.MULTILINE)
    assert "exact in A alone: 6, exact in B alone: 0" in ended.stdout
    assert "changed by 0.1 or more: 6 for the worse, 0 better" in ended.stdout
    wrong = {
        (record["shard"], record["row"])
        for record in map(
            json.loads, (runs.cwd / "after" / "samples.jsonl").read_text().splitlines()
        )
        if not record["grade"]["exact"]
    }
    shown = re.findall(r"^  (\S+)#(\d+) .* exact → inexact$", ended.stdout, re.MULTILINE)
    assert {(shard, int(row)) for shard, row in shown} == wrong
    assert len(shown) == 6
    assert ended.stdout.splitlines()[-1].startswith("Regression: all samples fell by 0.")


def test_the_way_back_is_no_regression(runs: Mrcr) -> None:
    ended = runs("compare", "after", "before")

    assert ended.code == 0, ended.said
    assert "0 for the worse, 6 better" in ended.stdout


@pytest.mark.parametrize(("limit", "code"), [("0.05", 1), ("0.9", 0)])
def test_a_limit_decides_how_much_may_be_lost(runs: Mrcr, limit: str, code: int) -> None:
    ended = runs("compare", "before", "after", "--max-regression", limit)

    assert ended.code == code, ended.said
    assert f"egression of more than {limit}: " in ended.stdout.splitlines()[-1]


def test_a_sample_that_the_second_server_lost_is_never_green(runs: Mrcr) -> None:
    ended = runs("compare", "before", "lost")

    assert ended.code == 3, ended.said
    assert "not compared: 1 x scored → rejected: HTTP 400" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith(
        "No verdict: 1 of 27 samples graded in A were lost in B"
    )


def test_json_holds_all_of_it(runs: Mrcr) -> None:
    ended = runs("compare", "before", "after", "--json")

    assert ended.code == 1, ended.said
    document = json.loads(ended.stdout)
    assert (document["schema_version"], document["conclusion"]) == (1, "regression")
    assert (document["compared"], document["exact_lost"], len(document["flips"])) == (27, 6, 6)
    assert document["buckets"][0]["p_lower"] == 2**-6
    assert [bucket["name"] for bucket in document["buckets"][:4]] == ["all", "n2", "n4", "n8"]


def test_runs_of_other_settings_are_refused_with_every_difference(runs: Mrcr) -> None:
    ended = runs("compare", "before", "vllm")

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        "mrcr: error: A and B cannot be compared: 2 things differ",
        "  Compare two runs of one plan: the same configuration but for the server.",
        "  protocol: openai in A, vllm in B",
        "  max_tokens: 2048 in A, 1000 in B",
    ]


def change_revision(document: dict[str, Any]) -> None:
    document["data"] |= {"kind": "hub", "revision": "0123abcd", "dataset": "openai/mrcr"}


def change_template(document: dict[str, Any]) -> None:
    document["preflight"]["fingerprint"] = "0" * 64


def change_samples(document: dict[str, Any]) -> None:
    for part in (document["records"], document["plan"]["asks"]):
        for item in part:
            item["sha256"] = "f" * 64
            item["row"] += 1_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema_version=2), "schema version: 1 in A, 2 in B"),
        (change_revision, "dataset: files of one's own in A, openai/mrcr at 0123abcd in B"),
        (change_template, "chat template and tokenizer: "),
        (change_samples, "samples: 27 in A, 27 in B, none in both"),
        (lambda d: d["config"].update(temperature=1), "temperature: 0.0 in A, 1.0 in B"),
        (lambda d: d["config"].update(needles=[2]), "needles: [2, 4, 8] in A, [2] in B"),
        (
            lambda d: d["config"].update(merge_leading_user_turns=True),
            "merge_leading_user_turns: false in A, true in B",
        ),
        (lambda d: d["config"].update(extra_body={"a": 1}), "extra_body.a: none in A, 1 in B"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_both_values(
    runs: Mrcr, edited: Callable[[Edit], Path], change: Edit, message: str
) -> None:
    ended = runs("compare", "before", edited(change))

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("mrcr: error: A and B cannot be compared: ")
    assert message in ended.stderr


def lose_all(document: dict[str, Any]) -> None:
    document["records"] = []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a result that this mrcr can read"),
        (b"{}", "missing required field `schema_version`"),
        (b'{"schema_version": 1}', "not a result that this mrcr can read"),
        (b"\xff\xfe", "not a result that this mrcr can read"),
        (b"[" * 100_000, "not a result that this mrcr can read"),
    ],
)
def test_what_is_no_result_exits_3(
    runs: Mrcr, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    ended = runs("compare", path, path)

    assert (ended.code, ended.stdout) == (3, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_results_of_a_later_version_exit_3(runs: Mrcr, edited: Callable[[Edit], Path]) -> None:
    later = edited(lambda document: document.update(schema_version=9))
    ended = runs("compare", later, later)

    assert (ended.code, ended.stdout) == (3, "")
    assert "schema version 9, not 1" in ended.stderr


def test_results_without_a_sample_graded_in_both_exit_3(
    runs: Mrcr, edited: Callable[[Edit], Path]
) -> None:
    ended = runs("compare", "before", edited(lose_all))

    assert (ended.code, ended.stdout) == (3, "")
    assert "no sample is graded in both: 27 of 27 in A, 0 of 27 in B" in ended.stderr


def test_a_folder_without_a_result_names_those_that_have_one(runs: Mrcr) -> None:
    missing = runs("compare", "before", "nowhere")
    several = runs("compare", ".", "before")

    assert (missing.code, several.code) == (3, 3)
    assert "nowhere: cannot be read: No such file or directory" in missing.stderr
    assert "after, again, before, lost, vllm" in several.stderr


@pytest.mark.parametrize("limit", ["-1", "2", "nan"])
def test_a_limit_that_is_no_ratio_exits_2(runs: Mrcr, limit: str) -> None:
    ended = runs("compare", "before", "after", f"--max-regression={limit}")

    assert (ended.code, ended.stdout) == (2, "")
    assert "not a ratio" in ended.stderr


def make_hostile(document: dict[str, Any]) -> None:
    text = "::error::x\x1b[31m\n##[group]\u202e\u2028<b>"
    document["model"] = document["name"] = text
    document["server"] |= {"version": text, "root": text}
    document["config"]["server_args"] = [text]
    for part in (document["records"], document["plan"]["asks"]):
        for item in part:
            item["shard"] = text
    for record in document["records"]:
        record["grade"] = record["grade"] | {"match_ratio_openai": 0.2, "exact": False}
    document["records"][0] |= {"outcome": "failed", "grade": None, "reason": text}


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_text_of_a_result_is_inert(
    runs: Mrcr, edited: Callable[[Edit], Path], more: tuple[str, ...]
) -> None:
    hostile = edited(make_hostile)
    other = hostile.with_name("other.json")
    other.write_text(hostile.read_text().replace("0.2", "0.9"))

    ended = runs("compare", other, hostile, *more)

    assert ended.code == 1, ended.said
    assert not re.search(r"(?m)^\s*::", ended.said)
    assert not CONTROL.search(ended.said.replace("\u202e", "").replace("\u2028", "")) or not more
    if more:
        assert json.loads(ended.stdout)["a"]["model"].startswith("::error::x")
    else:
        assert not CONTROL.search(ended.said)
        assert "##[" not in ended.said


def test_the_guides_commands_print_what_it_says(mrcr: Mrcr) -> None:
    text = GUIDE.read_text()
    commands = re.findall(r"^\$ mrcr (.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    codes = []
    for command in commands:
        ended = mrcr(*shlex.split(command))
        codes.append(ended.code)
        if command == "compare before after":
            (shown,) = re.findall(r"^```\n(A: before/.*?)```$", text, re.MULTILINE | re.DOTALL)
            assert ended.stdout == shown
    assert codes == [0, 1, 1, 1]
    assert json.loads(ended.stdout)["conclusion"] == "regression"
