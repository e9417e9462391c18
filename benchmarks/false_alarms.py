# ruff: noqa: INP001 - a script, not a package
"""How often a run with calibrated thresholds is red on the healthy server that they were made for.

A stand-in whose answers are imperfect now and then (``--fault noise=SHARE``, drawn anew for every
request) is calibrated once, and then ``mrcr run`` asks it again and again. Prints the share of red
runs with its exact 95 % interval, and exits 1 when the wanted share lies below all of that.

    .venv/bin/python benchmarks/false_alarms.py [RUNS] [FALSE_ALARM] [NOISE] [PER_CELL] [PASS…]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mrcr_action.bins import parse_bin
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


if __name__ == "__main__":
    words = sys.argv[1:]
    kinds = (int, float, float, int)
    numbers = [kind(word) for kind, word in zip(kinds, words, strict=False)]
    sys.exit(main(*numbers, *words[len(kinds) :]))  # type: ignore[arg-type]
