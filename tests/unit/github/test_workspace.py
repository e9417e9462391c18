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


def test_a_way_up_out_of_a_linked_folder_is_the_kernels(folder: Path) -> None:
    (folder / "a/b/c").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "a/b/c")
    workspace = Workspace(folder, "")

    assert workspace.place("link/../../../x", called="x") == Path("x")
    with pytest.raises(UsageError, match="lies outside the workspace"):
        workspace.place("link/../../../../x", called="x")


def test_a_path_in_the_workspace_is_not_taken_for_the_runners_name(folder: Path) -> None:
    assert Workspace(folder, "/b").place(f"{folder}/a/b/c", called="x") == Path("a/b/c")


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_was_written_belongs_to_the_workspaces_owner_and_can_be_read(folder: Path) -> None:
    os.chown(folder, 1234, 2345)
    written = folder / "made/on/the/way"
    written.mkdir(parents=True)
    report = written / "result.json"
    report.write_text("{}")
    report.chmod(0o600)
    written.chmod(0o700)
    Workspace(folder, "").hand_over([written])

    for path in (folder / "made", written, report):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)
    assert stat.S_IMODE(report.stat().st_mode) == 0o644
    assert stat.S_IMODE(written.stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("owner", [0, 1234])
def test_what_somebody_else_keeps_there_stays_theirs_and_secret(folder: Path, owner: int) -> None:
    os.chown(folder, owner, owner)
    credentials = folder / ".git/config"
    credentials.parent.mkdir()
    credentials.write_text("token")
    credentials.chmod(0o600)
    anothers = folder / "key"
    anothers.write_text("key")
    anothers.chmod(0o600)
    for path, user in ((credentials.parent, owner), (credentials, owner), (anothers, 4242)):
        os.chown(path, user, user)
    Workspace(folder, "").hand_over([folder])

    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
    assert (anothers.stat().st_uid, stat.S_IMODE(anothers.stat().st_mode)) == (4242, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_a_link_leads_to_is_left_alone(folder: Path, tmp_path: Path) -> None:
    os.chown(folder, 1234, 2345)
    foreign = tmp_path / "foreign"
    foreign.write_text("")
    foreign.chmod(0o600)
    reports = folder / "reports"
    reports.mkdir()
    (reports / "link").symlink_to(foreign)
    (reports / "folder").symlink_to(tmp_path)
    (folder / "away").symlink_to(tmp_path)
    Workspace(folder, "").hand_over([reports, folder / "away", tmp_path])

    assert (foreign.stat().st_uid, stat.S_IMODE(foreign.stat().st_mode)) == (0, 0o600)


def test_without_a_workspace_there_is_nothing_to_hand_over(tmp_path: Path) -> None:
    Workspace(tmp_path / "absent", "").hand_over([tmp_path / "absent/results"])

    assert list(tmp_path.iterdir()) == []
