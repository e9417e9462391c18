"""Choosing the samples of a run: which rows, in which order, as far as the window goes."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from mrcr_action.choice.cells import CellChoice
from mrcr_action.choice.fit import Fit
from mrcr_action.choice.quotas import QuotaChoice
from mrcr_action.config.faults import server_arguments
from mrcr_action.daemon_thread import in_daemon_thread
from mrcr_action.data.lengths import Lengths
from mrcr_action.data.order import candidates_in_order, parts_of
from mrcr_action.data.paths import shards_of
from mrcr_action.data.shards import Shards
from mrcr_action.errors import NothingFits, NothingReadable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mrcr_action.client import Client, ModelEntry
    from mrcr_action.config import RunConfig
    from mrcr_action.plan import Plan
    from mrcr_action.sample import Sample
    from mrcr_action.template import Preflight

USUAL_WINDOW = 131_072
"""Tokens; the window that is prepared for while a server is still starting and has not told its."""


class Choice:
    """The samples of one configuration, from the dataset's names to a plan."""

    def __init__(
        self,
        config: RunConfig,
        *,
        report: Callable[[str], None] | None = None,
        cannot_read: Callable[[Sample], str | None] | None = None,
    ) -> None:
        """Point at the dataset; nothing is read yet.

        Args:
            config: the configuration.
            report: told of the fetch of files, a line each.
            cannot_read: tells why the model cannot answer a sample, whatever serves it, and None
                where it can; None for a model of which that is not known.
        """
        self.config = config
        self.cannot_read = cannot_read
        self.shards = Shards(
            config.dataset,
            config.revision,
            allow_unverified=config.allow_unverified,
            report=report,
        )
        self._chooser: CellChoice | QuotaChoice | None = None
        self._fit: Fit | None = None

    def check(self) -> None:
        """See at once whether local files can be read at all, before a server is started.

        Raises:
            DataError: a file is missing, is not parquet or lacks columns.
        """
        for n_needles, quota in self.config.quotas().items():
            if quota:
                self.shards.check(shards_of(n_needles, parts_of(self.config.protocol)))

    def prepare(self) -> None:
        """Fetch, open, count and read what will be needed; slow, so run off the loop.

        The window may not be known yet: what this guesses wrong is made good by `choose`.

        Raises:
            DataError: the dataset cannot be read.
        """
        chooser = self._open()
        if self.shards.kind == "bundle":
            # Nothing there is slow, and it need not hold what a guessed window reaches.
            return
        window = window_of(self.config) or USUAL_WINDOW
        limit = self.config.prompt_limit(window)
        assert limit is not None
        fit = Fit(self.config, self.shards, limit=limit)
        with contextlib.suppress(NothingFits, NothingReadable):
            asyncio.run(chooser.choose(fit, lambda _chosen, _wanted: None))

    async def choose(
        self,
        *,
        limit: int,
        client: Client | None = None,
        model: ModelEntry | None = None,
        seen: Preflight | None = None,
        progress: Callable[[int, int], None] = lambda _chosen, _wanted: None,
    ) -> Plan:
        """The plan.

        Args:
            limit: longest prompt, in the server's tokens.
            client: the server; without one, o200k tokens decide what fits.
            model: its model.
            seen: what the preflight showed.
            progress: told of every sample chosen.

        Raises:
            DataError: the dataset cannot be read, or not one row fits.
            ApiError: the server is in trouble.
        """
        fit = Fit(self.config, self.shards, limit=limit, client=client, model=model, seen=seen)
        self._fit = fit
        chooser = await in_daemon_thread(self._open)
        return await chooser.choose(fit, progress)

    async def more(
        self,
        levels: Mapping[str, int],
        *,
        progress: Callable[[int, int], None] = lambda _chosen, _wanted: None,
    ) -> Plan:
        """The plan once more, with more rows of some cells; all of the last one's are in it.

        Args:
            levels: how many of the first rows of a cell to take, by its name.
            progress: told of every sample chosen.

        Raises:
            DataError, ApiError: as `choose` does, before which this cannot be called.
        """
        chooser, fit = self._chooser, self._fit
        assert isinstance(chooser, CellChoice)
        assert fit is not None
        return await chooser.choose(fit, progress, levels)

    def _open(self) -> CellChoice | QuotaChoice:
        if self._chooser is None:
            config, shards = self.config, self.shards
            by_needles = {
                n: candidates_in_order(
                    shards, protocol=config.protocol, n_needles=n, seed=config.seed
                )
                for n, quota in config.quotas().items()
                if quota
            }
            if config.protocol == "openai":
                self._chooser = CellChoice(
                    config, shards, Lengths(shards, by_needles), self.cannot_read
                )
            else:
                self._chooser = QuotaChoice(config, shards, by_needles, self.cannot_read)
        return self._chooser


def window_of(config: RunConfig) -> int | None:
    """The window that ``server_args`` ask for, in tokens; None if they do not."""
    words = iter(server_arguments(config))
    found = None
    for word in words:
        name, equals, value = word.partition("=")
        if name.replace("_", "-") == "--max-model-len":
            # The last one counts, as for vLLM.
            found = tokens_in(value if equals else next(words, ""))
    return found


def named_window(text: str | None) -> int | None:
    """The window that ``--window`` names, in tokens; None without one.

    Raises:
        UsageError: it is no number of tokens.
    """
    tokens = None if text is None else tokens_in(text)
    if text is not None and not tokens:
        raise UsageError(f"--window {text}: expected a number of tokens such as 131072 or 128K")
    return tokens


def tokens_in(text: str) -> int | None:
    """A number of tokens as vLLM reads it: 131072, 128K (x 1,024) or 128k (x 1,000); or None."""
    match = re.fullmatch(r"([0-9]{1,9})([kmKM]?)", text)
    unit = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 1024**2}
    return int(match[1]) * unit[match[2]] if match else None
