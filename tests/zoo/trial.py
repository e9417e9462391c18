"""One plan of asks, tried on one server by the real command; what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import yaml
from tests.zoo.server import FLAGS

from mrcr_action.diagnosis.breakdown import forms_of
from mrcr_action.diagnosis.probe_parts import parts_of
from mrcr_action.result import decode_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.zoo.server import Workplace

    from mrcr_action.result import Record

PlanName = Literal["standard", "stopped", "cold40"]

GATE = (
    *("--protocol=openai", "--dataset=rows", "--max-tokens=96"),
    *("--threshold=1.0", "--tolerance=0"),
)
"""The probe reads perfectly, so that nothing is tolerated."""

PLANS: dict[PlanName, tuple[str, ...]] = {
    "standard": ("--plan=standard", "--max-instability=0"),
    "stopped": ("--plan=standard", "--max-instability=0", "--stop-when=failed"),
    "cold40": ("--num-samples=40", "--concurrency=8", "--stop-when=failed"),
}
"""What is asked; cold40 is what vLLM's own test asks: 40 samples, once. It and ``stopped`` end at
the first wrong answer, after which they can no longer pass."""

RUN_SECONDS = 900
"""Bound against a hang."""

COLOURS = {0: "green", 1: "red"}


@dataclass(frozen=True, kw_only=True)
class Round:
    """What came back in one round."""

    asked: int
    wrong: int


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a plan saw of a server."""

    exit_code: int
    summary: str
    """The verdict's."""
    rounds: dict[str, Round]
    first_wrong: int | None
    """How many answers had come when the first wrong one did; None where none did."""
    struck: int
    """Requests that a fault of the plugin really struck."""
    seconds: float
    """Of the asking alone."""
    forms: dict[str, int] = field(default_factory=dict)
    """Wrong answers by what came back, the most frequent first."""
    parts: list[str] = field(default_factory=list)
    """What `mrcr probe` says of the part that broke."""

    @property
    def colour(self) -> str:
        """Green, red, or the exit code of a run without a verdict."""
        return COLOURS.get(self.exit_code, f"exit {self.exit_code}")

    @property
    def asked(self) -> int:
        """Requests in all rounds."""
        return sum(found.asked for found in self.rounds.values())

    @property
    def wrong(self) -> int:
        """Answers that were not exact."""
        return sum(found.wrong for found in self.rounds.values())


def attached(place: Workplace, url: str, plan: Sequence[str], output: Path) -> Trial:
    """Try a plan on a running server.

    Args:
        place: where the rows are.
        url: the server's address.
        plan: arguments that say what to ask.
        output: for the reports; the command's own words go beside it.
    """
    return _run(place, [f"--base-url={url}", *GATE, *plan], output)


def started(place: Workplace, plan: Sequence[str], output: Path) -> Trial:
    """Try a plan with servers that the command starts itself, the second with a small KV cache."""
    config = place.folder / "zoo.yaml"
    content = {
        "model_name": "probe",
        "server_args": list(FLAGS),
        "env": place.plugin_environment,
    }
    config.write_text(yaml.safe_dump(content))
    return _run(place, [str(config), "--server=process", *GATE, *plan], output)


def _run(place: Workplace, arguments: Sequence[str], output: Path) -> Trial:
    done = subprocess.run(
        [sys.executable, "-m", "mrcr_action", "run", *arguments, f"--output-dir={output}"],
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    (output.parent / f"{output.name}.log").write_text(done.stdout + done.stderr)
    if not (output / "result.json").exists():
        raise RuntimeError(f"no result, exit code {done.returncode}: {done.stderr[-2000:]}")
    result = decode_result((output / "result.json").read_bytes())
    by_ask = {record.ask: record for record in result.records}
    lines = (output / "samples.jsonl").read_text().splitlines()
    # The journal has them in the order in which their answers came.
    answers = [by_ask[json.loads(line)["ask"]] for line in lines]
    wrong = [at for at, record in enumerate(answers, start=1) if is_wrong(record)]
    inexact = [record for record in result.records if is_wrong(record)]
    return Trial(
        exit_code=done.returncode,
        summary=result.verdict.summary,
        rounds=rounds_of(result.records),
        first_wrong=wrong[0] if wrong else None,
        struck=place.struck,
        seconds=result.timeline.ask,
        forms=dict(forms_of(inexact).most_common()),
        parts=parts_of(inexact),
    )


def rounds_of(records: Iterable[Record]) -> dict[str, Round]:
    """What came back, by round, in their order."""
    found: dict[str, Round] = {}
    for record in records:
        before = found.get(record.pass_name, Round(asked=0, wrong=0))
        found[record.pass_name] = Round(
            asked=before.asked + 1, wrong=before.wrong + is_wrong(record)
        )
    return found


def is_wrong(record: Record) -> bool:
    """Whether anything else came back than the answer."""
    return record.grade is None or not record.grade.exact
