# ruff: noqa: INP001 - a script, not a package
"""How often a run with calibrated thresholds is red on the healthy server that they were made for.

A stand-in whose answers are imperfect now and then (``--fault noise=SHARE``, drawn anew for every
request) is calibrated once, and then ``mrcr run`` asks it again and again. Prints the share of red
runs with its exact 95 % interval, and exits 1 when the wanted share lies below all of that.

    .venv/bin/python benchmarks/false_alarms.py [RUNS] [FALSE_ALARM] [NOISE] [PER_CELL] [PASS…]
    .venv/bin/python benchmarks/false_alarms.py simulate [CALIBRATIONS] [REPEATS]

The second form calibrates made-up servers, whose true chance is then counted, for 0.01: 90 samples,
thresholds for all, 3 needle counts and 9 cells.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from mrcr_action.bins import parse_bin
from mrcr_action.calibration.levels import thresholds_for
from mrcr_action.data.writer import write_synthetic
from mrcr_action.intervals import share_interval
from mrcr_action.server.port import free_port

MRCR = Path(sys.executable).with_name("mrcr")
AT_A_TIME = 2
READY = b"Application startup complete"


def main(
    runs: int = 200, false_alarm: float = 0.01, noise: float = 0.2, per_cell: int = 5, *passes: str
) -> int:
    """Measure, and print what came out."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        bins = [parse_bin("1K-2K"), parse_bin("2K-4K")]
        write_synthetic(
            place / "samples",
            needles=(2, 4, 8),
            bins=bins,
            per_cell=per_cell,
            seed=0,
            progress=None,
        )
        (place / "model.yaml").write_text(
            "protocol: openai\ndataset: samples\n"
            f"samples_per_cell: {per_cell}\npasses: [{', '.join(passes or ('cold',))}]\n"
        )
        port = str(free_port())
        log = (place / "server.log").open("wb")
        command = [sys.executable, "-m", "mrcr_action.standin", "--port", port]
        server = subprocess.Popen(
            [*command, "--fault", f"noise={noise}"], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while READY not in (place / "server.log").read_bytes():
                if server.poll() is not None:
                    print("the stand-in did not start", file=sys.stderr)
                    return 1
                time.sleep(0.05)
            return _measure(place, f"http://127.0.0.1:{port}", runs, false_alarm)
        finally:
            server.terminate()
            server.wait()
            log.close()


def _measure(place: Path, url: str, runs: int, false_alarm: float) -> int:
    def mrcr(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [MRCR, *words, "--base-url", url],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )

    made = mrcr("calibrate", "model.yaml", "--false-alarm", str(false_alarm))
    print((place / "model-calibrated.yaml").read_text() if made.returncode == 0 else made.stderr)
    if made.returncode != 0:
        return 1
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        codes = Counter(
            threads.map(
                lambda at: (
                    mrcr("run", "model-calibrated.yaml", "--output-dir", f"r{at}").returncode
                ),
                range(runs),
            )
        )
    interval = share_interval(codes[1], runs)
    assert interval is not None
    print(
        f"{codes[1]} of {runs} runs are red ({codes[1] / runs:.2%}; 95 %: {interval.low:.2%} to"
        f" {interval.high:.2%}), wanted at most {false_alarm:.2%}; {codes[0]} green,"
        f" {runs - codes[0] - codes[1]} else"
    )
    return int(interval.low > false_alarm or codes[0] + codes[1] < runs)


KINDS = {
    "never varies": "every answer the same each time",
    "rare falls": "each answer scores 0.03 once in 50 times",
    "flips": "3 of 10 samples have a chance of their own, 0 to 1, to score 0.03",
    "wording": "every ratio moves by 0.02 or so",
    "both": "every ratio moves by 0.02 or so, and once in 20 times it is 0, 0.05 or 0.5",
}


def draw(kind: str, level: np.ndarray, chances: np.ndarray, runs: int, seed: int) -> np.ndarray:
    """Scores of so many runs of a made-up server, a row each."""
    random = np.random.default_rng(seed)
    size = (runs, level.size)
    moved = np.clip(level - np.abs(random.normal(0, 0.02, size)), 0, 1)
    if kind == "never varies":
        return np.tile(level, (runs, 1))
    if kind == "rare falls":
        return np.where(random.random(size) < 0.02, 0.03, level)  # noqa: PLR2004
    if kind == "flips":
        return np.where(random.random(size) < chances, 0.03, level)
    if kind == "wording":
        return moved
    return np.where(random.random(size) < 0.05, random.choice([0, 0.05, 0.5], size), moved)  # noqa: PLR2004


def simulate(calibrations: int = 40, repeats: int = 5, false_alarm: float = 0.01) -> int:
    """Calibrate made-up servers, and count how often runs of theirs are red."""
    n = 90
    members = np.vstack(
        [np.ones(n), *(np.repeat(np.eye(parts), n // parts, axis=1) for parts in (3, 9))]
    )
    shares = (members / members.sum(axis=1, keepdims=True)).T
    worst = 0.0
    for kind, meaning in KINDS.items():
        red, steps = [], []
        for seed in range(calibrations):
            random = np.random.default_rng(seed)
            level = np.where(random.random(n) < 0.6, 1, random.uniform(0.3, 1, n))  # noqa: PLR2004
            chances = np.where(random.random(n) < 0.7, 0, random.random(n))  # noqa: PLR2004
            seen = draw(kind, level, chances, repeats, 2 * seed)
            found = thresholds_for(
                [seen.T], members, false_alarm=false_alarm, servers=200, runs=250
            )
            future = draw(kind, level, chances, 5000, 2 * seed + 1) @ shares
            red.append(float((future < found).any(axis=1).mean()))
            steps.append((future.mean(axis=0) - found) * members.sum(axis=1))
        above = sum(share > false_alarm for share in red)
        margins = np.mean(steps, axis=0)
        worst = max(worst, float(np.mean(red)))
        print(
            f"{kind}: {meaning}. red {np.mean(red):.2%}, {above} of {calibrations} above"
            f" {false_alarm:.0%}, the worst {max(red):.2%}; margin in answers: all"
            f" {margins[0]:.1f} of 90, needle counts {margins[1:4].mean():.1f} of 30, cells"
            f" {margins[4:].mean():.1f} of 10",
            flush=True,
        )
    return int(worst > false_alarm)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["simulate"]:
        sys.exit(simulate(*map(int, words[1:])))
    kinds = (int, float, float, int)
    numbers = [kind(word) for kind, word in zip(kinds, words, strict=False)]
    sys.exit(main(*numbers, *words[len(kinds) :]))  # type: ignore[arg-type]
