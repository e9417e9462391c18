"""How much to ask: what the key ``plan`` stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.config.keys import Effort

EFFORTS: dict[Effort, dict[str, Any]] = {
    "smoke": {"num_samples": 6, "passes": ("cold", "warm"), "boundaries": 1, "sweep": 4},
    "standard": {
        "num_samples": 12,
        "passes": ("cold", "warm"),
        "boundaries": 3,
        "sweep": 12,
        "small_pool": True,
    },
    "deep": {
        "samples_per_cell": 10,
        "passes": ("cold", "warm"),
        "concurrency": (8, 1),
        "repeats": 2,
        "boundaries": 8,
        "sweep": 24,
        "small_pool": True,
    },
}
"""Values of keys, by effort; docs/detection.md has what each one costs and finds."""

_COUNTS = {"num_samples", "samples_per_cell", "max_samples_per_cell"}
"""Keys of which one is enough to say how many."""


def preset(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the effort of some given keys sets of the others."""
    effort: Effort | None = given.get("plan")
    if effort is None:
        return {}
    left = {key: value for key, value in EFFORTS[effort].items() if key not in given}
    if given.get("shard") is not None:
        left.pop("small_pool", None)  # which no part could do: see `mrcr_action.config.faults`
    if not _COUNTS.isdisjoint(given):
        left = {key: value for key, value in left.items() if key not in _COUNTS}
    if given.get("protocol") != "openai":
        left.pop("samples_per_cell", None)  # which the other protocol does not know
    return left
