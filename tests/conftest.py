"""What every test gets: a cache of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mrcr_action.cache import CACHE_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program's cache folder in this test, not yet there.

    What a test reads of a dataset is kept neither in the user's cache nor for another test. The
    fixtures of a whole session, such as the one that installs real vLLM, are made before this one
    and so see the variable as it was.
    """
    folder = tmp_path / "mrcr-cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder
