"""The workspace: the only folder that a container action shares with the steps around it."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mrcr_action.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Workspace:
    """The folder under both its names."""

    here: Path
    """In this container, resolved."""
    on_runner: str
    """On the runner's machine, as far as it can be told from the mounts; else empty."""

    def place(self, given: str, *, called: str) -> Path:
        """A path relative to the workspace, in which the program works.

        Args:
            given: relative to the workspace, or absolute under either of its names.
            called: what to call it in an error.

        Raises:
            UsageError: it lies outside, perhaps by way of a symbolic link; names both places.
        """
        path = self.here / (self._translated(given) or given)
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"{called}: {given}: not a path: {error}") from error
        if not resolved.is_relative_to(self.here):
            leads = f" (it leads to {resolved})" if str(resolved) != given else ""
            names = f"{self.here} in this container"
            if self.on_runner:
                names += f", {self.on_runner} on the runner"
            raise UsageError(
                f"{called}: {given}: lies outside the workspace{leads}; the workspace is {names}",
                hint="Write the path relative to the workspace. Nothing else of the runner's"
                " machine is there in the Action's container.",
            )
        # A link followed by .. leads elsewhere than its name without them.
        return Path(os.path.relpath(resolved if ".." in path.parts else path, self.here))

    def hand_over(self, folders: Iterable[Path]) -> None:
        """Give what was written to the workspace's owner, readable for everybody.

        The container runs as root; what it leaves would otherwise stop the next checkout from
        cleaning up. Folders outside the workspace are left alone, no link is followed, and what is
        somebody's already keeps its owner and mode: a folder may be the workspace itself, in which
        other steps keep their credentials.
        """
        try:
            owner = self.here.stat()
        except OSError:
            return  # there is none to write to
        if owner.st_uid == os.geteuid():
            return
        for folder in folders:
            top = folder.absolute()
            if not top.is_relative_to(self.here):
                continue
            for parent in top.parents:
                # Folders on the way that were made for it.
                if parent == self.here or not parent.is_relative_to(self.here):
                    break
                _give(parent, owner)
            _give(top, owner)
            if not top.is_symlink():
                for path, names, files in os.walk(top):
                    for name in (*names, *files):
                        _give(Path(path, name), owner)

    def _translated(self, given: str) -> str:
        """A path under the workspace's name on the runner, relative to it; else nothing."""
        if not self.on_runner or Path(given).is_relative_to(self.here):
            return ""
        head, found, rest = given.partition(self.on_runner)
        # Of a file system that is itself mounted somewhere, the mounts tell no more than the end.
        if not found or (rest and not rest.startswith("/")) or not (head or given).startswith("/"):
            return ""
        return rest.lstrip("/") or "."


def find_workspace(folder: Path, mounts: Path = MOUNTS) -> Workspace:
    """The workspace that is mounted at a folder."""
    on_runner = ""
    with contextlib.suppress(OSError):
        for line in mounts.read_text("utf-8", "replace").splitlines():
            fields = line.split(" ")
            if len(fields) > 4 and _unescaped(fields[4]) == str(folder):  # noqa: PLR2004
                on_runner = _unescaped(fields[3])
    return Workspace(folder.resolve(), "" if on_runner == "/" else on_runner)


def _unescaped(field: str) -> str:
    """A field of mountinfo, in which blanks and backslashes are octal (proc(5))."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def _give(path: Path, owner: os.stat_result) -> None:
    # What cannot be given away is still there to be read; the run is not worth less for it.
    with contextlib.suppress(OSError):
        found = path.lstat()
        if found.st_uid != os.geteuid():
            return
        mode = found.st_mode
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        if stat.S_ISDIR(mode):
            path.chmod(stat.S_IMODE(mode) | 0o755)
        elif stat.S_ISREG(mode):
            path.chmod(stat.S_IMODE(mode) | 0o644)
