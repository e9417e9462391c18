"""Which rows of a dataset are of use for a configuration, and what a cache calls that choice."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import msgspec

from mrcr_action.bins import ALL_BINS, bin_of, known_bin
from mrcr_action.config.faults import parse_excluded
from mrcr_action.data.order import CHARS_PER_TOKEN, parts_of
from mrcr_action.data.paths import shards_of
from mrcr_action.data.store import STORE_FORMAT

if TYPE_CHECKING:
    from mrcr_action.config import RunConfig
    from mrcr_action.data.store import Row

MOST_TOKENS_PER_O200K = 0.75
"""Fewest tokens of a server for one of o200k: a row longer than the limit by more is left out."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows a bundle holds with their texts."""

    protocol: Literal["vllm", "openai"]
    needles: tuple[int, ...]
    bins: tuple[str, ...] | None = None
    """None for all."""
    max_prompt_tokens: int | None = None
    """Longest prompt that is of use, in a server's tokens; None where that is not known."""

    def __contains__(self, row: Row) -> bool:
        """Whether a counted row is of use."""
        if not row.sha256 or not row.tokens or row.prompt_tokens is None:
            return False  # no conversation
        limit = self.max_prompt_tokens
        if self.protocol == "vllm":
            # Also one that breaks an invariant: like vLLM's script, this protocol looks at none.
            return limit is None or row.n_chars <= CHARS_PER_TOKEN * limit
        if row.fault:
            return False
        if limit is not None and row.prompt_tokens * MOST_TOKENS_PER_O200K > limit:
            return False
        bin_ = bin_of(row.tokens)
        return bin_ is not None and (self.bins is None or bin_ in map(known_bin, self.bins))

    def shards(self) -> list[str]:
        """The shards that the selected rows lie in."""
        return [shard for n in self.needles for shard in shards_of(n, parts_of(self.protocol))]


def selection_of(config: RunConfig, window: int | None) -> Selection:
    """What a configuration can use.

    Args:
        config: the configuration.
        window: the server's, in tokens, where it is known.
    """
    excluded = [bin_ for n, bin_ in map(parse_excluded, config.exclude) if n is None]
    bins = None if config.bins is None else [known_bin(text) for text in config.bins]
    if excluded:
        bins = [bin_ for bin_ in bins or ALL_BINS if bin_ not in excluded]
    return Selection(
        protocol=config.protocol,
        needles=tuple(sorted(config.needles)),
        bins=None if bins is None else tuple(map(str, sorted(bins))),
        max_prompt_tokens=config.prompt_limit(window),
    )


def bundle_key(dataset: str, revision: str | None, selection: Selection) -> str:
    """A name for a bundle in a cache: equal for equal contents, apart from local files' own."""
    parts = msgspec.json.encode([STORE_FORMAT, dataset, revision, selection])
    return f"mrcr-data-{STORE_FORMAT}-{hashlib.sha256(parts).hexdigest()[:16]}"
