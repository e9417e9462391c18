"""Chosen samples out of the Prometheus text of /metrics, which may be anything and of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LINES = 5_000
"""Most lines of the chosen names; a server with 64 engines has some 1,000."""
LINE = 4_000
"""Most characters of such a line."""

LARGEST = 2.0**53
"""Above this, a float64, as the format has them, no longer counts by ones."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples_of(text: str, names: Collection[str]) -> list[Sample]:
    """The samples with one of these names, in the order of the text.

    Whatever else a server tells there, in megabytes or in a form of its own, is in no way. What
    is said under these names in another form, or without bound, makes all of it unknown.

    Args:
        text: of /metrics, version 0.0.4 of the format.
        names: whole ones, a counter's with ``_total``.
    """
    from prometheus_client.parser import text_string_to_metric_families

    own = [line for line in text.split("\n") if line.startswith(tuple(names))]
    if len(own) > LINES or any(len(line) > LINE for line in own):
        return []
    try:
        return [
            Sample(sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families("\n".join(own))
            for sample in family.samples
            if sample.name in names
        ]
    except (ValueError, KeyError, IndexError):
        return []  # not in that format


def is_count(value: float) -> bool:
    """Whether a value can be the number of anything."""
    return math.isfinite(value) and 0 <= value <= LARGEST
