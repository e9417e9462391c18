"""Print the pinned requirements that apply to one Python on 64-bit Linux, unconditionally.

usage: applicable.py VERSION FILE [FILE …]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pip._vendor.packaging.markers import Marker


def applicable(text: str, environment: dict[str, str]) -> str:
    """Keep the entries (a name and its hashes, on lines joined by ``\\``) whose condition holds."""
    kept = []
    for entry in re.split(r"(?<!\\)\n", text):
        head, separator, hashes = entry.partition(" \\\n")
        requirement, _, condition = head.partition(" ; ")
        if requirement and (not condition or Marker(condition).evaluate(environment)):
            kept.append(f"{requirement}{separator}{hashes}\n")
    return "".join(kept)


def main(version: str, *paths: str) -> None:
    environment = {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "implementation_name": "cpython",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
        "extra": "",
    }
    # The same pin may stand in several files; pip refuses to be told twice.
    entries = dict.fromkeys(
        entry
        for path in paths
        for entry in re.split(r"(?<!\\)(?<=\n)", applicable(Path(path).read_text(), environment))
        if entry.strip()
    )
    sys.stdout.writelines(entries)


if __name__ == "__main__":
    main(*sys.argv[1:])
