"""The outputs of the Action; ``action.yml`` describes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mrcr_action.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mrcr_action.result import Conclusion, Result

NEEDLES = (2, 4, 8)
"""Needle counts whose ratio is an output of its own."""


def outputs_of(
    results: Sequence[Result], code: ExitCode, folder: Path | None, workspace: Path
) -> dict[str, str]:
    """Every output by name; empty where there is nothing to tell.

    Of several configurations the ratios are the lowest, and the conclusion is the worst.

    Args:
        results: of the configurations that were run.
        code: the verdict, whatever the job makes of it.
        folder: with the reports, if it came to that.
        workspace: the folder that the paths are relative to, as later steps know it under another
            name.
    """
    overall = [result.match_ratio for result in results]
    parts = any(result.verdict.conclusion == "measured" for result in results)
    outputs = {
        "passed": "true" if code is ExitCode.PASS else "false",
        "conclusion": conclusion_of(code),
        # Parts of a plan neither pass nor fail; unless something else did.
        **({"passed": "", "conclusion": "measured"} if code is ExitCode.PASS and parts else {}),
        "match-ratio": _lowest(overall),
    }
    for n in NEEDLES:
        per_needle = [result.per_needle.get(f"match_ratio_n{n}") for result in results]
        outputs[f"match-ratio-n{n}"] = _lowest([r for r in per_needle if r is not None])
    single = folder / "result.json" if folder and len(results) == 1 else None
    if single is not None and not single.exists():
        single = None  # the first of several, which have a subfolder each
    for name, path in (
        ("junit-path", folder / "junit.xml" if folder else None),
        ("summary-path", folder / "summary.md" if folder else None),
        ("result-path", single or folder),
    ):
        there = path is not None and path.exists()
        outputs[name] = os.path.relpath(path, workspace) if path is not None and there else ""
    return outputs


def conclusion_of(code: ExitCode) -> Conclusion:
    """The conclusion that an exit code stands for."""
    if code is ExitCode.PASS:
        return "pass"
    return "fail" if code is ExitCode.FAIL else "inconclusive"


def _lowest(ratios: Sequence[float | None]) -> str:
    """The lowest, with all its digits; nothing where one is missing, which may be lower still."""
    known = [ratio for ratio in ratios if ratio is not None]
    return repr(min(known)) if known and len(known) == len(ratios) else ""
