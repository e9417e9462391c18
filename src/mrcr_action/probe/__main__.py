"""``python -m mrcr_action.probe DIR`` writes the model's files to DIR."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mrcr_action.probe.build import DEFAULT_MAX_LEN, build
from mrcr_action.probe.checkpoint import Dtype
from mrcr_action.probe.variant import Architecture, HeadSize, Sensitivity, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and build; 0 when the files are written."""
    parser = argparse.ArgumentParser(
        prog="python -m mrcr_action.probe",
        description="Write a hand-set model that answers MRCR prompts exactly.",
    )
    parser.add_argument("directory", type=Path, help="where to write; made if missing")
    parser.add_argument("--architecture", choices=get_args(Architecture), default="llama")
    parser.add_argument("--head-size", type=int, choices=get_args(HeadSize), default=128)
    parser.add_argument("--sensitivity", choices=get_args(Sensitivity), default="normal")
    parser.add_argument("--dtype", choices=get_args(Dtype), default="bfloat16")
    parser.add_argument(
        "--max-len", type=int, default=DEFAULT_MAX_LEN, help="longest context, in tokens (bytes)"
    )
    options = parser.parse_args(argv)
    variant = Variant(
        architecture=options.architecture,
        head_size=options.head_size,
        sensitivity=options.sensitivity,
    )
    build(options.directory, variant=variant, dtype=options.dtype, max_len=options.max_len)
    return 0


if __name__ == "__main__":
    sys.exit(main())
