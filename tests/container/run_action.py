"""Runs this repository's Action here as GitHub's runner would, against a stand-in for vLLM.

The samples are made up: short ones with 2, 4 and 8 needles, in the workspace's folder `rows`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path

from tests.container.engine import Engine
from tests.container.images import REPOSITORY, base_image, make_standin_base, provide
from tests.container.runner import Job

from mrcr_action.bins import parse_bin
from mrcr_action.data.writer import write_synthetic

DEFAULTS = {
    "model": "org/Model",
    "dataset": "rows",
    "protocol": "openai",
    "samples-per-cell": "2",
    "thresholds": "0.9",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.container.run_action")
    parser.description = __doc__
    parser.add_argument("--with", dest="given", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--cancel-after", type=float, metavar="SECONDS")
    parser.add_argument("--buildkit", action="store_true", help="rather than the legacy builder")
    parser.add_argument("--folder", type=Path, help="where the job's folders are made")
    options = parser.parse_args()
    inputs = DEFAULTS | dict(entry.split("=", 1) for entry in options.given)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="mrcr-job-"))

    with Engine() as engine:
        job = Job(engine, REPOSITORY, folder, show=print)
        bins = [parse_bin(text) for text in ("512-1K", "1K-2K")]
        write_synthetic(job.workspace / "rows", needles=(2, 4, 8), bins=bins, per_cell=2, seed=0)
        make_standin_base(engine, provide(), base_image(REPOSITORY / "Dockerfile"))
        job.image = job.build(buildkit=options.buildkit)
        running = job.start(inputs, dict(entry.split("=", 1) for entry in options.env))
        timer = threading.Timer(options.cancel_after or 0, running.cancel)
        if options.cancel_after is not None:
            timer.start()
        step = running.wait()
        timer.cancel()
        job.run(stage="post")

    print(f"\nexit code {step.exit_code} after {step.seconds:.1f} s")
    for name, value in step.outputs.items():
        print(f"output {name}={value}")
    for one in step.annotations:
        print(f"annotation {one.level}: {one.title}: {one.message} {one.file}".rstrip())
    print(f"summary {step.summary_path}")
    print(f"workspace {job.workspace}")
    return step.exit_code


if __name__ == "__main__":
    sys.exit(main())
