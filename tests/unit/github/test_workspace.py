import os
import stat
from pathlib import Path

import pytest

from mrcr_action.errors import UsageError
from mrcr_action.github.workspace import Workspace, find_workspace

ON_RUNNER = "/home/runner/_work/repo/repo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def test_a_relative_path_is_one_of_the_workspace(folder: Path) -> None:
    workspace = Workspace(folder, "")

    assert workspace.place("a/../b.yaml", called="x") == Path("b.yaml")
    assert workspace.place(f"{folder}/a/b", called="x") == Path("a/b")


@pytest.mark.parametrize("prefix", ["", "/mnt/disk"])
def test_the_runner_s_name_of_a_path_is_understood(folder: Path, prefix: str) -> None:
    workspace = Workspace(folder, ON_RUNNER)

    assert workspace.place(f"{prefix}{ON_RUNNER}/a/b", called="x") == Path("a/b")
    assert workspace.place(f"{prefix}{ON_RUNNER}", called="x") == Path()


@pytest.mark.parametrize(
    "path", ["..", "../other", "/etc/passwd", f"{ON_RUNNER}-2/a", f"{ON_RUNNER}/.."]
)
def test_a_path_outside_is_refused_with_both_names(folder: Path, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        Workspace(folder, ON_RUNNER).place(path, called="input config")

    message = str(caught.value)
    assert message.startswith(f"input config: {path}: lies outside the workspace")
    assert f"{folder} in this container, {ON_RUNNER} on the runner" in message


def test_a_link_that_leads_outside_is_refused_with_where_it_leads(folder: Path) -> None:
    (folder / "inside.yaml").symlink_to("/etc/passwd")

    with pytest.raises(UsageError, match=r"inside.yaml: .*\(it leads to /etc/passwd\)"):
        Workspace(folder, "").place("inside.yaml", called="x")


def test_a_path_that_is_none_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="x: "):
        Workspace(folder, "").place("a\0b", called="x")


def test_the_mounts_tell_the_runner_s_name(folder: Path, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    escaped = str(folder).replace(" ", "\\040")
    mounts.write_text(
        "22 1 0:20 / /proc rw - proc proc rw\n"
        f"40 22 254:0 /home/my\\040runner/_work {escaped} rw,relatime - ext4 /dev/vda rw\n"
    )

    assert find_workspace(folder, mounts) == Workspace(folder, "/home/my runner/_work")


def test_without_mounts_there_is_one_name(folder: Path, tmp_path: Path) -> None:
    assert find_workspace(folder, tmp_path / "absent") == Workspace(folder, "")


def test_what_was_written_can_be_read_by_everybody(folder: Path) -> None:
    written = folder / "made/on/the/way"
    written.mkdir(parents=True)
    report = written / "result.json"
    report.write_text("{}")
    report.chmod(0o600)
    written.chmod(0o700)
    Workspace(folder, "").hand_over([written])

    assert stat.S_IMODE(report.stat().st_mode) == 0o644
    assert stat.S_IMODE(written.stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_was_written_belongs_to_the_workspace_s_owner(folder: Path) -> None:
    os.chown(folder, 1234, 2345)
    written = folder / "made/reports"
    written.mkdir(parents=True)
    (written / "result.json").write_text("{}")
    Workspace(folder, "").hand_over([written])

    for path in (folder / "made", written, written / "result.json"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_what_a_link_leads_to_is_left_alone(folder: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("")
    foreign.chmod(0o600)
    reports = folder / "reports"
    reports.mkdir()
    (reports / "link").symlink_to(foreign)
    (folder / "away").symlink_to(tmp_path)
    Workspace(folder, "").hand_over([reports, folder / "away", tmp_path])

    assert stat.S_IMODE(foreign.stat().st_mode) == 0o600
