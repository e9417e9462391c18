from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from mrcr_action.errors import OutputError
from mrcr_action.server.engine.archive import archive

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_is_packed_by_its_place_and_anybody_may_read_it(tmp_path: Path) -> None:
    model = tmp_path / "model"
    (model / "sub").mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "config.json").chmod(0o600)
    (model / "sub").chmod(0o700)
    (tmp_path / "blob").write_text("weights")
    (model / "weights").symlink_to("../blob")

    with archive(str(model)) as file, tarfile.open(fileobj=file) as tar:
        entries = {entry.name: entry for entry in tar}

    place = str(model).lstrip("/")
    assert set(entries) == {
        place,
        *(f"{place}/{name}" for name in ("sub", "config.json", "weights")),
    }
    assert {(entry.uid, entry.uname) for entry in entries.values()} == {(0, "")}
    assert entries[f"{place}/config.json"].mode & 0o777 == 0o644
    assert entries[f"{place}/sub"].mode & 0o777 == 0o755
    # A file of the hub's library is a link to a folder beside the model's.
    assert (entries[f"{place}/weights"].isfile(), entries[f"{place}/weights"].size) == (True, 7)


def test_a_folder_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match="gone: cannot be copied"),
        archive(str(tmp_path / "gone")),
    ):
        pass
