"""``mrcr report``: the reports of results that were written before, to the byte."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Mrcr, StandIn, StartStandIn

RENDERED = ("report.html", "junit.xml", "summary.md")


@pytest.fixture(scope="module")
def server(start_shared_standin: StartStandIn) -> StandIn:
    return start_shared_standin("--fault", "wrong-needle@%4", "--fault", "status=400@5")


@pytest.fixture(scope="module")
def ran(shared_mrcr: Mrcr, server: StandIn, dataset: Path) -> Mrcr:
    """A failed run of one configuration in ``one``, and one of two in ``two``."""
    flags = ("--base-url", server.url, "--dataset", dataset, "--num-samples", "9")
    ended = shared_mrcr(
        *("run", *flags, "--protocol", "openai", "--thresholds", "0.99", "--max-failures", "2"),
        *("--passes", "cold", "warm", "--output-dir", "one"),
    )
    assert ended.code == 1, ended.said
    keys = {"protocol": "openai", "max_failures": 2}
    # Not in the order of their names.
    zebra = shared_mrcr.config("zebra", **keys, thresholds=0.99)
    apple = shared_mrcr.config("apple", **keys)
    ended = shared_mrcr("run", zebra, apple, *flags, "--output-dir", "two")
    assert ended.code in {0, 1}, ended.said
    return shared_mrcr


@pytest.fixture
def copy(ran: Mrcr, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a run's folder, which may be changed; times of files are kept."""

    def of(name: str) -> Path:
        return shutil.copytree(ran.cwd / name, tmp_path / "copied" / name)

    return of


def rendered(folder: Path) -> dict[str, bytes]:
    found = [path for name in RENDERED for path in folder.rglob(name)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize(("name", "count"), [("one", 3), ("two", 5)])
def test_lost_reports_are_written_again_to_the_byte(
    mrcr: Mrcr, copy: Callable[[str], Path], name: str, count: int
) -> None:
    folder = copy(name)
    before = rendered(folder)
    for path in before:
        (folder / path).unlink()

    ended = mrcr("report", folder)

    assert ended.code == 0, ended.said
    assert len(before) == count
    assert rendered(folder) == before


def test_the_verdict_is_told_and_is_not_the_exit_code(ran: Mrcr) -> None:
    ended = ran("report", "one", "--output-dir", "told")

    assert ended.code == 0
    assert "MRCR thresholds failed: " in ended.stdout


def test_another_folder_gets_the_reports_and_the_results_own_is_left(
    mrcr: Mrcr, copy: Callable[[str], Path]
) -> None:
    folder = copy("one")
    before = rendered(folder)
    result = (folder / "result.json").read_bytes()

    assert mrcr("report", folder / "result.json", "--output-dir", "other").code == 0

    assert rendered(mrcr.cwd / "other") == before
    assert not (mrcr.cwd / "other" / "result.json").exists()
    assert (folder / "result.json").read_bytes() == result


def test_single_reports_go_to_the_files_that_are_named(ran: Mrcr, tmp_path: Path) -> None:
    before = rendered(ran.cwd / "one")
    names = ("page.html", "new/tests.xml", "s.md")
    html, junit, summary = (tmp_path / name for name in names)

    ended = ran("report", "one", "--html", html, "--junit", junit, "--summary", summary)

    assert ended.code == 0, ended.said
    assert html.read_bytes() == before["report.html"]
    assert junit.read_bytes() == before["junit.xml"]
    assert summary.read_bytes() == before["summary.md"]


def test_several_results_have_a_suite_each_and_a_page_above_theirs(ran: Mrcr) -> None:
    ended = ran("report", "one", "two", "--output-dir", "three")

    assert ended.code == 0, ended.said
    folder = ran.cwd / "three"
    assert [(folder / "junit.xml").read_text().count(f'"mrcr {n}"') for n in ("run", "zebra")] == [
        1,
        1,
    ]
    assert sorted(path.parent.name for path in folder.glob("*/report.html")) == [
        "apple",
        "run",
        "zebra",
    ]
    assert 'href="./zebra/report.html"' in (folder / "report.html").read_text()


def test_without_the_journal_the_page_lacks_texts_and_that_is_said(
    mrcr: Mrcr, copy: Callable[[str], Path]
) -> None:
    folder = copy("one")
    whole = (folder / "report.html").stat().st_size
    (folder / "samples.jsonl").unlink()

    ended = mrcr("report", folder)

    assert ended.code == 0, ended.said
    assert "one/samples.jsonl: not there" in ended.stderr
    assert (folder / "report.html").stat().st_size < whole


def version(document: dict[str, Any], number: int) -> None:
    document["schema_version"] = number


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda d: version(d, 2), "schema_version: 2, and this mrcr reads 1"),
        (lambda d: version(d, 0), "schema_version: 0, and this mrcr reads 1"),
        (lambda d: d.pop("verdict"), "missing required field `verdict`"),
        (lambda d: d["verdict"].update(conclusion="great"), "`$.verdict.conclusion`"),
    ],
)
def test_a_result_of_another_version_or_broken_is_named_with_its_key(
    mrcr: Mrcr, copy: Callable[[str], Path], edit: Callable[[dict[str, Any]], Any], told: str
) -> None:
    path = copy("one") / "result.json"
    document = json.loads(path.read_bytes())
    edit(document)
    path.write_text(json.dumps(document))
    before = rendered(path.parent)

    ended = mrcr("report", path)

    assert ended.code == 3
    assert f"mrcr: error: {path}: " in ended.stderr
    assert told in ended.stderr
    assert rendered(path.parent) == before


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("nowhere",), 3, "nowhere: cannot be read: No such file or directory"),
        (("n" * 300,), 3, "n: cannot be read: File name too long"),
        ((".",), 0, ""),
        (("one", "two"), 2, "2 results are named, and no folder for their reports"),
        (("one", "--html", "a.html", "--output-dir", "b"), 2, "a single report is named too"),
        (("two", "--html", "a.html"), 2, "2 results have a page each"),
        (("one", "--junit", "two"), 2, "--junit two: is a folder"),
        (("one", "--html", "one/result.json"), 2, "holds a result, its answers, or another report"),
        (("one", "--junit", "one/../one/samples.jsonl"), 2, "--junit one/../one/samples.jsonl: "),
        (("one", "--junit", "a", "--summary", "a"), 2, "--summary a: holds a result"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_what_to_name(
    mrcr: Mrcr, copy: Callable[[str], Path], arguments: tuple[str, ...], code: int, told: str
) -> None:
    root = copy("one").parent
    copy("two")
    mrcr.cwd = root
    sources = [*root.rglob("result.json"), *root.rglob("samples.jsonl")]
    before = [path.read_bytes() for path in sources]

    ended = mrcr("report", *arguments)

    assert ended.code == code, ended.said
    assert told in ended.stderr
    assert [path.read_bytes() for path in sources] == before


def test_an_empty_folder_is_no_result(mrcr: Mrcr) -> None:
    (mrcr.cwd / "empty").mkdir()
    ended = mrcr("report", "empty")

    assert ended.code == 3
    assert "empty: no result.json in this folder" in ended.stderr
