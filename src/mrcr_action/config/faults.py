"""What is wrong with a configuration whose values are each right: contradictions and bad forms."""

from __future__ import annotations

import posixpath
import re
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mrcr_action.bins import Bin, known_bin
from mrcr_action.config.keys import DATASET
from mrcr_action.sample import NEEDLE_COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mrcr_action.config.keys import RunConfig
    from mrcr_action.config.thresholds import Place

HOST = r"(https?://)?[\w.:\[\]%-]+"
"""A host, perhaps with a scheme and a port, as vLLM's script takes it; no user, path or blank."""

REFUSED_EXTRAS = ("n", "stream", "stream_options", "messages")
"""Fields of a request that a configuration cannot change."""


SYSTEM_FOLDERS = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin"),
    *("/sys", "/usr", "/var/run"),
)
SHARED_FOLDERS = ("/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var")  # noqa: S108 - to refuse it
"""Folders in which one of one's own may lie, but that are none themselves."""


def faults(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Every fault, as the key to blame and a sentence; values that may be secret are not shown."""
    yield from _of_buckets(config)
    yield from _of_cells(config)
    yield from _of_thresholds(config)
    yield from _of_looks(config)
    yield from _of_addresses(config)
    yield from _of_passes(config)
    for name in REFUSED_EXTRAS:
        if name in (config.extra_body or {}):
            yield "extra_body", f"{name} cannot be changed: one streamed answer a sample is read"
    yield from _of_cutting(config)
    yield from _of_shards(config)
    if config.max_regression is not None and config.baseline is None:
        yield "max_regression", f"{config.max_regression:g}: no baseline is set to compare with"
    try:
        server_arguments(config)
    except ValueError as error:
        yield "server_args", str(error).lower()


def _of_buckets(config: RunConfig) -> Iterator[tuple[str, str]]:
    if len(set(config.needles)) < len(config.needles):
        yield "needles", f"{list(config.needles)}: a needle count is listed twice"
    odd = [n for n in config.needles if n not in NEEDLE_COUNTS]
    if odd and config.dataset == DATASET:
        yield (
            "needles",
            f"{odd[0]}: needle counts are 2, 4 and 8 (1 to 16 in synthetic samples)",
        )
    threshold = config.match_ratio_threshold
    if isinstance(threshold, dict):
        if not threshold:
            yield "match_ratio_threshold", "{}: names no needle count"
        tested = _tested(config)
        for n in threshold:
            if n not in tested:
                yield (
                    "match_ratio_threshold",
                    f"a threshold for {n} needles, but needles and num_samples test only {tested}",
                )


def _of_thresholds(config: RunConfig) -> Iterator[tuple[str, str]]:
    if config.match_ratio_threshold is not None and config.thresholds is not None:
        yield "thresholds", "match_ratio_threshold is set too; set one of them"
    if config.thresholds is not None:
        for bound in config.bounds:
            try:
                fault = _of_place(bound.place, config)
            except ValueError as error:  # of a configuration that was not read from a text
                fault = str(error)
            if fault:
                metric = "" if bound.metric == "match_ratio" else f"{bound.metric}: "
                yield "thresholds", f"{bound.bucket}: {metric}{bound.bound:g}: {fault}"
                return
    most = [_most_samples(bound.place, config) for bound in config.bounds]
    known = [n for n in most if n is not None]
    if known and (config.min_samples or 0) > min(known):
        yield "min_samples", f"{config.min_samples}: a bucket is asked for {min(known)} only"


def _of_cutting(config: RunConfig) -> Iterator[tuple[str, str]]:
    if not config.cut_without_nonce:
        return
    if any(bound.metric == "truncation_rate" for bound in config.bounds):
        yield (
            "cut_without_nonce",
            "thresholds name a truncation_rate, which nobody knows of a response that is cut",
        )
    if config.max_instability is not None:
        yield (
            "cut_without_nonce",
            "max_instability is set, and nobody knows whether a response that is cut differs",
        )


def _of_shards(config: RunConfig) -> Iterator[tuple[str, str]]:
    """What a part cannot do, since it takes a look at all samples."""
    if config.shard_of is None:
        return
    number, count = config.shard_of
    if number > count:
        yield "shard", f"{config.shard}: there are {count} parts, numbered from 1"
    if config.stop_when != "never":
        yield (
            "stop_when",
            f"{config.stop_when}: with shard, no part knows whether the verdict is certain",
        )
    if config.max_samples_per_cell is not None:
        yield (
            "max_samples_per_cell",
            f"{config.max_samples_per_cell}: with shard, no part knows what is undecided",
        )
    if config.small_pool:
        yield "small_pool", "with shard, a part has too few of the samples that fill a small cache"


def _of_passes(config: RunConfig) -> Iterator[tuple[str, str]]:
    if config.passes[0] != "cold" or len(set(config.passes)) < len(config.passes):
        yield "passes", f"{list(config.passes)}: expected [cold] or [cold, warm]"
    if len(set(config.concurrencies)) < len(config.concurrencies):
        yield "concurrency", f"{list(config.concurrencies)}: a number is listed twice"
    has_rounds = len(config.passes) * len(config.concurrencies) * config.repeats > 1
    if config.max_instability is not None and not (
        has_rounds or config.boundaries or config.sweep or config.small_pool
    ):
        yield (
            "max_instability",
            f"{config.max_instability:g}: every sample is asked once only; set passes or repeats",
        )


def _of_looks(config: RunConfig) -> Iterator[tuple[str, str]]:
    key, most = "max_samples_per_cell", config.max_samples_per_cell
    if most is None or config.protocol != "openai":
        return
    if config.per_cell is None:
        yield key, "num_samples is set too; set samples_per_cell, or leave both out"
    elif most <= config.per_cell:
        yield key, f"{most}: expected more than samples_per_cell, which is {config.per_cell}"
    if config.decision != "confident":
        yield key, "a mean is never undecided; set decision: confident"
    if config.stop_when != "never":
        yield key, f"stop_when is {config.stop_when}, which ends a look before its last sample"
    if not any(bound.metric == "match_ratio" for bound in config.bounds):
        yield key, "no threshold of a match ratio is set that more samples could decide"


def _tested(config: RunConfig) -> list[int]:
    return [n for n, quota in config.quotas().items() if quota]


def _of_place(place: Place, config: RunConfig) -> str:
    """Why a bucket that a threshold names is never tested; empty where it is."""
    tested = _tested(config)
    if place.n_needles is not None and place.n_needles not in tested:
        return f"needles and num_samples test only {tested}"
    if place.bin is None:
        return ""
    if config.protocol != "openai":
        return "only the openai protocol samples by cell; set protocol: openai"
    if config.bins is not None and place.bin not in map(_bin_or_none, config.bins):
        return f"bins does not name {place.bin}"
    for text in config.exclude:
        if not _fault_of(text, parse_excluded):
            n_needles, bin_ = parse_excluded(text)
            if bin_ == place.bin and n_needles in {None, place.n_needles}:
                return f"exclude leaves out {text}"
    return ""


def _bin_or_none(text: str) -> Bin | None:
    return None if _fault_of(text, known_bin) else known_bin(text)


def _most_samples(place: Place, config: RunConfig) -> int | None:
    """Samples that a bucket is asked for at most; None where that shows with the window."""
    if config.per_cell is not None:
        return None if place.bin is None else config.per_cell
    quotas = config.quotas()
    if place.n_needles is None:
        return sum(quotas.values())
    return quotas.get(place.n_needles, 0)


def _of_cells(config: RunConfig) -> Iterator[tuple[str, str]]:
    by_cell = ("samples_per_cell", "max_samples_per_cell", "bins", "exclude")
    for key in by_cell:
        if config.protocol != "openai" and getattr(config, key):
            yield key, "only the openai protocol samples by cell; set protocol: openai"
    if config.num_samples is not None and config.samples_per_cell is not None:
        yield "samples_per_cell", "num_samples is set too; set one of them"
    without = [n for n, quota in config.quotas().items() if not quota]
    if config.bins and without:
        lack = f"leaves no sample for {without[0]} needles, of which bins names cells"
        yield "num_samples", f"{config.num_samples}: {lack}"
    yield from _of_names(config)


def _of_names(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Bins and cells that are misspelt, listed twice, or of no needle count that is tested."""
    bins = config.bins or ()
    if repeated := next((b for b in bins if bins.count(b) > 1), None):
        yield "bins", f"{repeated}: is listed twice"
    for text in bins:
        if fault := _fault_of(text, known_bin):
            yield "bins", fault
    for text in config.exclude:
        if fault := _fault_of(text, parse_excluded):
            yield "exclude", fault
        elif parse_excluded(text)[0] not in {None, *config.needles}:
            yield "exclude", f"{text}: the needle counts are {list(config.needles)}"


def _fault_of(text: str, parse: Callable[[str], object]) -> str:
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def parse_excluded(text: str) -> tuple[int | None, Bin]:
    """A cell such as ``n8/64K-128K``, or a bin, whose needle count is then None.

    Raises:
        ValueError: it is neither.
    """
    match = re.fullmatch(r"n(\d{1,2})/(.*)", text.strip())
    if match:
        return int(match[1]), known_bin(match[2])
    try:
        return None, known_bin(text)
    except ValueError as error:
        raise ValueError(f"{error}, nor a cell such as n8/64K-128K") from error


def _of_addresses(config: RunConfig) -> Iterator[tuple[str, str]]:
    if config.host is not None and not re.fullmatch(HOST, config.host):
        yield "host", "expected a name or an address, such as 127.0.0.1 or http://127.0.0.1"
    if config.base_url is not None and not _is_address(config.base_url):
        yield "base_url", "expected an address such as http://127.0.0.1:8000"
    if len(set(gpus := config.gpus.split(","))) < len(gpus):
        yield "gpus", f"{config.gpus}: a GPU is listed twice"
    if config.cache_dir is not None and not config.cache_dir.startswith("/"):
        yield "cache_dir", f"{config.cache_dir}: expected an absolute path of the host"
    elif config.cache_dir is not None and _is_system(config.cache_dir):
        yield (
            "cache_dir",
            f"{config.cache_dir}: a folder of the system itself; name one of your own",
        )


def _is_system(path: str) -> bool:
    """Whether a folder holds what a machine consists of, or all that its users have."""
    folder = PurePosixPath("/" + posixpath.normpath(path).lstrip("/"))
    inside = any(folder.is_relative_to(system) for system in SYSTEM_FOLDERS)
    return inside or str(folder) in {"/", *SHARED_FOLDERS}


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        whole = parts.port != 0 and bool(parts.hostname)  # the port of a bad address raises
    except ValueError:
        return False
    return whole and parts.scheme in {"http", "https"} and not any(map(str.isspace, url))


def server_arguments(config: RunConfig) -> list[str]:
    """``server_args`` as a list of arguments.

    Raises:
        ValueError: a quotation in the string is not closed.
    """
    if isinstance(config.server_args, str):
        return shlex.split(config.server_args)
    return list(config.server_args)
