"""The grammar of thresholds: which bucket, which metric, and how much of it.

::

    thresholds: 0.8                            # the mean match ratio of all samples
    thresholds:
      all: 0.8                                 # the same
      8: 0.76                                  # a needle count, as in vLLM's files; or n8
      n8/64K-128K: 0.7                         # a cell
      n4: {match_ratio: 0.84, nonce_rate: 1}   # more than one metric of a bucket

Pure; no I/O.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from mrcr_action.bins import Bin, known_bin

if TYPE_CHECKING:
    from collections.abc import Iterator

Metric = Literal["match_ratio", "nonce_rate", "exact_rate", "truncation_rate", "failure_rate"]
"""What can be bounded. The match ratio is the gated protocol's mean. Of the graded samples,
``nonce_rate`` starts with the nonce, ``exact_rate`` equals the answer and ``truncation_rate`` was
cut; ``failure_rate`` are the requests that failed or were refused, of all."""

METRICS: tuple[Metric, ...] = get_args(Metric)

AT_MOST: frozenset[Metric] = frozenset({"truncation_rate", "failure_rate"})
"""Metrics whose bound is the most that is allowed; of the others it is the least."""

NEEDLES = "[1-9]|1[0-6]"
"""Needle counts, 1 to 16, as a pattern."""

BUCKET = rf"all|n?({NEEDLES})"
"""A bucket that is no cell, as a pattern; a needle count may stand alone, as in vLLM's files."""

CELL = rf"n({NEEDLES})/[0-9]+[KMkm]?-[0-9]+[KMkm]?"
"""A cell, as a pattern; which bins there are it does not say."""

FORMS = "all, a needle count such as n8, or a cell such as n8/64K-128K"


class Place(NamedTuple):
    """What a bucket is of: all samples, a needle count, or a cell."""

    n_needles: int | None
    bin: Bin | None


@dataclass(frozen=True, kw_only=True)
class Bound:
    """One threshold: a bucket, a metric, and its least or most."""

    bucket: str
    """``all``, ``n8`` or ``n8/64K-128K``."""
    metric: Metric
    bound: float

    @property
    def is_most(self) -> bool:
        """Whether more than the bound is too much, rather than less too little."""
        return self.metric in AT_MOST

    @property
    def place(self) -> Place:
        """What the bucket is of."""
        return place_of(self.bucket)


class BadThreshold(ValueError):
    """A threshold that cannot be read; the text says why."""

    def __init__(self, where: tuple[object, ...], value: object, reason: str) -> None:
        super().__init__(reason)
        self.where = where
        """Bucket and metric, as far as it goes, as they were given."""
        self.value = value


def place_of(bucket: str) -> Place:
    """What a bucket is of, by its name.

    Raises:
        ValueError: there is no such bucket.
    """
    if bucket == "all":
        return Place(None, None)
    name, slash, bin_ = bucket.partition("/")
    if not re.fullmatch(CELL if slash else BUCKET, bucket):
        raise ValueError(f"unknown bucket; expected {FORMS}")
    return Place(int(name.removeprefix("n")), known_bin(bin_) if slash else None)


def name_of(place: Place) -> str:
    """The one name of a bucket that has several."""
    if place.n_needles is None:
        return "all"
    return f"n{place.n_needles}" + (f"/{place.bin}" if place.bin else "")


def read_thresholds(value: Any) -> float | dict[str, float | dict[Metric, float]]:
    """The value of ``thresholds`` with every bucket under its one name.

    Raises:
        BadThreshold: it is none.
    """
    if not isinstance(value, dict):
        return _ratio((), value, or_else=", or buckets with theirs")
    if not value:
        raise BadThreshold((), value, "names no bucket")
    found: dict[str, float | dict[Metric, float]] = {}
    for key, given in value.items():
        try:
            name = name_of(place_of(str(key) if type(key) in {int, str} else ""))
        except ValueError as error:
            raise BadThreshold((key,), given, str(error)) from error
        if name in found:
            raise BadThreshold((key,), given, f"the bucket {name} occurs twice")
        found[name] = _metrics(key, given)
    return found


def bounds_in(
    thresholds: float | dict[str, float | dict[Metric, float]] | None,
) -> Iterator[Bound]:
    """The thresholds one by one, in the order they were given."""
    if thresholds is None:
        return
    named = thresholds if isinstance(thresholds, dict) else {"all": thresholds}
    for bucket, given in named.items():
        metrics: dict[Metric, float] = given if isinstance(given, dict) else {"match_ratio": given}
        for metric, bound in metrics.items():
            yield Bound(bucket=bucket, metric=metric, bound=bound)


def _metrics(bucket: object, given: Any) -> float | dict[Metric, float]:
    if not isinstance(given, dict):
        return _ratio((bucket,), given, or_else=", or metrics with theirs")
    if not given:
        raise BadThreshold((bucket,), given, "names no metric")
    found: dict[Metric, float] = {}
    for key, bound in given.items():
        if key not in METRICS:
            near = difflib.get_close_matches(str(key), METRICS, n=1)
            known = f"did you mean {near[0]}?" if near else f"the metrics are {', '.join(METRICS)}"
            raise BadThreshold((bucket, key), bound, f"unknown metric; {known}")
        found[key] = _ratio((bucket, key), bound)
    return found


def _ratio(where: tuple[object, ...], value: Any, *, or_else: str = "") -> float:
    if type(value) not in {int, float} or not 0 <= value <= 1:
        raise BadThreshold(where, value, f"expected a number from 0 to 1{or_else}")
    return float(value)
