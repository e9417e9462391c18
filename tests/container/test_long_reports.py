"""A report that is too long for a job summary, of which the runner would drop all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from junitparser import JUnitXml
from tests.container.conftest import QUICK
from tests.container.runner_files import SUMMARY_LIMIT

if TYPE_CHECKING:
    from tests.container.runner import Job

CONFIGURATIONS = 80

LONG = "/".join(["💥" * 60] * 12)
"""A path, nearly as long as there can be one, of characters that take four bytes each."""


def test_a_report_of_over_a_mebibyte_reaches_the_job_summary_in_a_shorter_form(job: Job) -> None:
    names = [f"case-{number:02}" for number in range(CONFIGURATIONS)]
    for name in names:
        job.write(f"ci/{name}.yaml", f"model_name: org/{name}\nserver: process\n")
    job.write("ci/all.txt", "".join(f"{name}.yaml\n" for name in names))
    inputs = {name: value for name, value in QUICK.items() if name != "model"}
    # No server is started: there is no such folder.
    endless = {"dataset": f"./{LONG}", "server-args": f"--note {LONG}"}

    step = job.run({**inputs, **endless, "config": "ci/all.txt"})

    assert step.exit_code == 3, step.log
    whole = (job.workspace / step.outputs["summary-path"]).read_text()
    assert len(whole.encode()) > SUMMARY_LIMIT
    heading = f"# ⚠️ MRCR is inconclusive: all {CONFIGURATIONS} configurations\n"
    assert whole.startswith(heading)
    sections = [line for line in whole.splitlines() if line.startswith("## ")]
    assert sections == [f"## ⚠️ MRCR is inconclusive: {name}" for name in names]
    assert "Shortened" not in whole

    # What the runner gets; over its limit, this would be empty.
    assert 0 < step.summary_path.stat().st_size < SUMMARY_LIMIT
    assert step.summary.startswith(heading)
    assert "Shortened to fit: the table alone." in step.summary
    assert "The whole summary is `summary.md`" in step.summary
    rows = [line for line in step.summary.splitlines() if line.startswith("| case-")]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in names]

    xml = JUnitXml.fromfile(str(job.workspace / step.outputs["junit-path"]))
    assert [suite.name for suite in xml] == [f"mrcr {name}" for name in names]
    assert xml.errors >= CONFIGURATIONS
    assert xml.failures == 0

    assert 1 < len(step.annotations) <= 10
    assert step.dropped == {}
    untold = CONFIGURATIONS - len(step.annotations)
    assert f"(and {untold} more: MRCR of " in step.annotations[-1].message
    result_path = Path(step.outputs["result-path"])
    for name in names:
        assert (job.workspace / result_path / name / "result.json").is_file()
