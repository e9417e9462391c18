# ruff: noqa: INP001 - a script, not a package
"""How alike the needles of a synthetic row are, and how fast rows are made.

A server that answers with another needle than the wanted one is graded for every pair of needles
of the rows of a few bins; the dataset's own figures are 0.03-0.06 (openai) and 0.22-0.28 (vllm).
Run with the interpreter that mrcr is installed for: ``.venv/bin/python benchmarks/synthetic.py``.
Exits 1 when a median is out of range: 0.15 to 0.30 by the vllm protocol, under 0.10 by openai's.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time

from mrcr_action.bins import BINS, Bin
from mrcr_action.grade import grade
from mrcr_action.sample import Sample
from mrcr_action.synthetic import SyntheticSpec, synthetic_row, synthetic_rows
from mrcr_action.tokens import count

MEASURED = (BINS[0], BINS[2], BINS[4])
NEEDLES = (2, 4, 8)
VLLM_RANGE = (0.15, 0.30)
OPENAI_LIMIT = 0.10
MEGABYTE = 1e6


def wrong_needles(bin_: Bin, rows: int, non_latin: int) -> tuple[list[float], list[float]]:
    """Both ratios, openai's and vllm's, of every ordered pair of needles of every row."""
    openai, vllm = [], []
    for row in synthetic_rows(NEEDLES, [bin_], rows, 1, non_latin=non_latin):
        read = Sample.from_row(row, shard="synthetic", index=0)
        wanted = read.messages[read.desired_msg_index]
        needles = [
            reply.content for asked, reply in itertools.pairwise(read.messages) if asked == wanted
        ]
        for answer, other in itertools.permutations(needles, 2):
            graded = grade(read.nonce + other, read.nonce + answer, read.nonce)
            openai.append(graded.match_ratio_openai)
            vllm.append(graded.match_ratio_vllm)
    return openai, vllm


def spread(ratios: list[float]) -> str:
    """The median, with the 5th and 95th percentiles."""
    cuts = statistics.quantiles(ratios, n=20)
    return f"median {statistics.median(ratios):.3f} (5 % {cuts[0]:.3f}, 95 % {cuts[-1]:.3f})"


def speed(bin_: Bin) -> str:
    """Megabytes of prompt a second of CPU time, for one row."""
    start = time.process_time()
    row = synthetic_row(SyntheticSpec(n_needles=8, bin=bin_, seed=1))
    seconds = time.process_time() - start
    chars = row["n_chars"]
    return (
        f"{bin_}: {chars / MEGABYTE:.2f} M characters in {seconds:.2f} s, "
        f"{chars / MEGABYTE / seconds:.1f} MB/s"
    )


def main() -> int:
    """Measure, print, and compare with the ranges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6, help="rows per needle count and bin")
    parser.add_argument("--non-latin", type=int, default=0, metavar="PERCENT")
    options = parser.parse_args()
    missed = False
    for bin_ in MEASURED:
        openai, vllm = wrong_needles(bin_, options.rows, options.non_latin)
        print(f"{bin_}, {len(vllm)} pairs")
        print(f"  openai: {spread(openai)}")
        print(f"  vllm:   {spread(vllm)}")
        low, high = VLLM_RANGE
        missed |= not low <= statistics.median(vllm) <= high
        missed |= statistics.median(openai) >= OPENAI_LIMIT
    count("loads the vocabulary")
    for bin_ in (BINS[0], BINS[4], BINS[-1]):
        print(speed(bin_))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
