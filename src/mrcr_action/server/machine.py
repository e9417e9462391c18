"""What is around this process that bears on where a model can be served."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mrcr_action.errors import MrcrError
from mrcr_action.server.engine import connect, is_there
from mrcr_action.server.gpu import ROOT, visible_gpus
from mrcr_action.server.own import find_own, ids_here
from mrcr_action.server.vllm import find_vllm, look_for_vllm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mrcr_action.server.engine import Engine
    from mrcr_action.server.own import OwnContainer

CONTAINER_MARKS = (".dockerenv", "run/.containerenv")
"""Files that engines put into every container."""


class Machine:
    """Looks when it is asked, so that nobody waits for an engine that nobody needs."""

    def __init__(self, environ: Mapping[str, str] | None = None, root: Path = ROOT) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self._root = root

    def gpus(self) -> str:
        """The GPUs that are visible here, in words; empty without any."""
        return visible_gpus(self._root)

    def has_vllm(self) -> bool:
        """Whether ``vllm`` can be started here.

        Raises:
            UsageError: MRCR_VLLM names something else.
        """
        return look_for_vllm(self.environ) is not None

    def vllm(self) -> str:
        """Path of ``vllm``.

        Raises:
            UsageError: there is none.
        """
        return find_vllm(self.environ)

    def is_contained(self) -> bool:
        """Whether this is the container of an Action, or another that the engine knows."""
        marked = any((self._root / mark).exists() for mark in CONTAINER_MARKS)
        if marked and self.environ.get("GITHUB_ACTIONS") == "true":
            return True
        return bool(ids_here()) and self.siblings_trouble() == ""

    def siblings_trouble(self) -> str:
        """Why no server can be started beside this container; empty if it can."""
        if not is_there(self.environ):
            return "no container engine is reachable from here"
        try:
            known = self.own() is not None
        except MrcrError as error:
            return str(error)
        return "" if known else "the engine that is reachable does not run this container"

    def own(self) -> OwnContainer | None:
        """The container around this process, if it is one of the engine's.

        Raises:
            UsageError: there is no engine.
            ServerError: it does not answer.
        """
        with self.engine() as engine:
            return find_own(engine)

    def engine(self) -> Engine:
        """A new connection to the container engine.

        Raises:
            UsageError: there is none.
            ServerError: it does not answer.
        """
        return connect(self.environ)
