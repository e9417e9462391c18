"""JUnit files as the programs of others read them: the same counts everywhere, and a schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from junitparser import Error, Failure, JUnitXml
from tests.lint.conftest import BIN, NODE
from tests.unit.conftest import build_cell, build_grade, build_plan, build_record, build_result

from mrcr_action.config import RunConfig
from mrcr_action.report.junit import render_junit
from mrcr_action.result import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.result import Result


class Counts(NamedTuple):
    tests: int
    failures: int
    errors: int


PROBLEM = Problem(
    kind="server",
    message="the server ended by itself with exit code 1",
    hint="Look into server.log.",
    details="ValueError: ]]> \x1b[31m<&> \ufffe\ud800\n::error::planted",
)
HOSTILE = "]]>&<\"'\x00\x1b[0m\ufffe\ud800 ##[error]x | 😀"


def passed() -> Result:
    config = RunConfig(protocol="openai", num_samples=3, match_ratio_threshold=0.5)
    return build_result(config=config, name="passed")


def mixed() -> Result:
    """A missed threshold, a bucket without an answer, and one that was only measured."""
    config = RunConfig(needles=(2, 4, 8), num_samples=3, match_ratio_threshold={4: 0.99, 8: 0.5})
    records = [build_record(0), build_record(1, 0.5, n_needles=4)]
    return build_result(config=config, records=records, name="mixed")


def stopped() -> Result:
    return build_result(records=[], problem=PROBLEM, name="stopped")


def missing() -> Result:
    """A cell that was named in vain."""
    config = RunConfig(protocol="openai", needles=(2,), bins=("8K-16K", "64K-128K"))
    records = [build_record(i) for i in range(10)]
    named = build_cell(2, "64K-128K", requested=True, fitting=0, planned=0, dropped={"too long": 9})
    cells = (build_cell(2, "8K-16K", requested=True), named)
    plan = build_plan(records, config, cells=cells, passed={})
    return build_result(config=config, records=records, plan=plan, name="missing")


def hostile() -> Result:
    records = [build_record(0, None, reason=HOSTILE), build_record(1, 0.1, n_needles=4)]
    config = RunConfig(model_name=HOSTILE, num_samples=2, match_ratio_threshold={2: 0.5, 4: 0.5})
    return build_result(config=config, records=records, name=HOSTILE, notes=(HOSTILE,))


def listed() -> Result:
    """A case for each sample: exact, inexact where none may be, and lost within the budget."""
    config = RunConfig(
        needles=(2, 4),
        num_samples=4,
        junit="samples",
        protocol="openai",
        thresholds={"n2": {"exact_rate": 1.0}},
        max_failures=1,
    )
    exact = build_record(0, grade=build_grade(1.0, exact=True))
    records = [exact, build_record(1, 0.2), build_record(2, None, n_needles=4, reason=HOSTILE)]
    records.append(build_record(3, n_needles=4))
    return build_result(config=config, records=records, name="listed.1")


DOCUMENTS = {
    "passed": (render_junit([passed()]), Counts(5, 0, 0)),
    "mixed": (render_junit([mixed()]), Counts(5, 1, 1)),
    "stopped": (render_junit([stopped()]), Counts(5, 0, 5)),
    "missing": (render_junit([missing()]), Counts(5, 0, 1)),
    "hostile": (render_junit([hostile()]), Counts(5, 1, 2)),
    "listed": (render_junit([listed()]), Counts(8, 2, 0)),
    "several": (render_junit([passed(), mixed(), stopped(), mixed()]), Counts(20, 2, 7)),
    "none": (render_junit([]), Counts(0, 0, 0)),
}


@pytest.fixture(params=DOCUMENTS)
def document(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Counts]:
    content, counts = DOCUMENTS[request.param]
    path = tmp_path / "junit.xml"
    path.write_bytes(content)
    return path, counts


def test_every_reader_finds_the_same_counts(
    document: tuple[Path, Counts], node_folder: Path
) -> None:
    path, counts = document
    assert readers(path, node_folder) == agreed(counts)


def test_the_schema_of_jenkins_allows_it(document: tuple[Path, Counts], node_folder: Path) -> None:
    assert in_javascript(document[0], node_folder)["forbidden"] == []


def test_the_schema_bites(tmp_path: Path, node_folder: Path) -> None:
    content, _ = DOCUMENTS["mixed"]
    path = tmp_path / "junit.xml"
    path.write_bytes(re.sub(rb'time="\d+\.\d+"', b'time="0.30000000000000004"', content))

    assert "0.30000000000000004" in str(in_javascript(path, node_folder)["forbidden"])


@pytest.mark.parametrize(
    ("arguments", "exit_code", "counts"),
    [
        ([], 0, Counts(14, 0, 0)),
        (["--break", "window"], 1, Counts(14, 3, 0)),
        (["--break", "status=500"], 3, Counts(14, 0, 4)),
    ],
)
def test_what_the_command_writes_is_read_the_same(
    tmp_path: Path,
    node_folder: Path,
    arguments: list[str],
    exit_code: int,
    counts: Counts,
) -> None:
    ended = subprocess.run(
        [BIN / "mrcr", "demo", *arguments, "--output-dir", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == exit_code, ended.stderr

    path = tmp_path / "out/junit.xml"
    assert readers(path, node_folder) == agreed(counts)
    assert in_javascript(path, node_folder)["forbidden"] == []


def agreed(counts: Counts) -> dict[str, tuple[int, ...]]:
    """What the readers say that agree on these; junit2html tells no failure from an error."""
    return {
        "junitparser": counts,
        "junit2html": (counts.tests, counts.failures + counts.errors),
        "junit2json": counts,
        "test-results-parser": counts,
    }


def readers(path: Path, node_folder: Path) -> dict[str, tuple[int, ...]]:
    """The counts that each reader comes to."""
    found = in_javascript(path, node_folder)
    return {
        "junitparser": in_junitparser(path),
        "junit2html": in_junit2html(path),
        "junit2json": Counts(**found["junit2json"]),
        "test-results-parser": Counts(**found["test-results-parser"]),
    }


def in_javascript(path: Path, node_folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [NODE, node_folder / "junit.mjs", node_folder / "junit-10.xsd", path],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def in_junitparser(path: Path) -> Counts:
    """Counted from the cases, and equal to what the suites say of themselves."""
    suites = list(JUnitXml.fromfile(str(path)))
    results = [case.result for suite in suites for case in suite]
    counts = Counts(
        tests=len(results),
        failures=sum(any(isinstance(one, Failure) for one in of) for of in results),
        errors=sum(any(isinstance(one, Error) for one in of) for of in results),
    )
    said = Counts(
        tests=sum(suite.tests for suite in suites),
        failures=sum(suite.failures for suite in suites),
        errors=sum(suite.errors for suite in suites),
    )
    assert said == counts
    return counts


def in_junit2html(path: Path) -> tuple[int, int]:
    """All cases, and those that did not pass."""
    done = subprocess.run(
        [sys.executable, "-m", "junit2htmlreport", "--summary-matrix", path],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    totals = dict(re.findall(r"^  (Failed|Passed|Skipped) +: +(\d+)$", done.stdout, re.MULTILINE))
    failed = int(totals.get("Failed", 0))
    return sum(map(int, totals.values())), failed
