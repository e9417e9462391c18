"""``mrcr data``: bundles for machines without a network, and what is in a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.choice import named_window, window_of
from mrcr_action.config.resolve import ENV_PREFIX, resolve
from mrcr_action.data.bundle import check_bundle, read_bundle
from mrcr_action.data.fetch import write_bundle
from mrcr_action.data.inventory import inventory_of, inventory_table, shards_in
from mrcr_action.data.selection import bundle_key, selection_of
from mrcr_action.data.shards import Shards
from mrcr_action.data.source import kind_of
from mrcr_action.errors import ConfigError, DataError, ExitCode, UsageError
from mrcr_action.report.console import print_progress, print_table
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrcr_action.config.resolve import Resolved
    from mrcr_action.data.selection import Selection
    from mrcr_action.data.source import Kind

FAULTS_SHOWN = 20


def fetch_command(
    config: str | None,
    flags: Mapping[str, Any],
    *,
    to: Path,
    window: str | None,
    environ: Mapping[str, str],
) -> int:
    """Write a bundle."""
    resolved, selection = _selected(config, flags, window, environ)
    shards = _shards(resolved)
    shards.check(selection.shards())
    bundle = write_bundle(shards, to, selection, seed=resolved.config.seed, report=print_progress)
    texts = sum(shard.texts for shard in bundle.shards)
    size = sum(shard.rows_bytes for shard in bundle.shards)
    print(one_line(f"{texts:,} rows, {size / 2**20:,.1f} MiB, in {to}; key {bundle.key}"))
    print(one_line(f"Use it with: mrcr run … --dataset {to}"))
    return ExitCode.PASS


def key_command(
    config: str | None, flags: Mapping[str, Any], *, window: str | None, environ: Mapping[str, str]
) -> int:
    """Print the name under which a cache can keep the bundle of a configuration."""
    resolved, selection = _selected(config, flags, window, environ)
    shards = _shards(resolved)
    print(bundle_key(shards.dataset, shards.revision, selection))
    return ExitCode.PASS


def check_command(dataset: str) -> int:
    """Read all of a bundle or of local parquet and say whether it is as it should be."""
    kind, folder = _local(dataset)
    if kind == "bundle":
        faults, bundle = check_bundle(folder), read_bundle(folder)
        rows = sum(shard.texts for shard in bundle.shards)
        what = f"{rows:,} rows of {bundle.dataset}"
    else:
        inventory = inventory_of(Shards(dataset, ""), shards_in(folder), report=print_progress)
        faults = [f"{row.where}: {row.fault}" for row in inventory if row.fault]
        what = f"{len(inventory):,} rows"
    for fault in faults[:FAULTS_SHOWN]:
        print(one_line(fault, 1_000))
    if faults:
        more = f" ({len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise DataError(
            f"{dataset}: {len(faults)} faults{more}",
            hint="Fetch it again, or leave these rows out.",
        )
    print(one_line(f"{dataset}: {what}, all as they should be"))
    return ExitCode.PASS


def stats_command(dataset: str) -> int:
    """Print how many rows of which length there are."""
    kind, folder = _local(dataset)
    if kind == "bundle":
        names = [shard.path for shard in read_bundle(folder).shards]
    else:
        names = shards_in(folder)
    inventory = inventory_of(Shards(dataset, ""), names, report=print_progress)
    print_table(inventory_table(inventory))
    return ExitCode.PASS


def _local(dataset: str) -> tuple[Kind, Path]:
    """What a folder of samples is."""
    if any("\ud800" <= char <= "\udfff" for char in dataset):
        raise UsageError(f"{dataset!a}: not text in UTF-8", hint="Rename the folder.")
    kind, folder = kind_of(dataset)
    if folder is None or not folder.is_dir():
        raise UsageError(f"{dataset}: no such folder", hint="Name a bundle, or a local dataset.")
    return kind, folder


def _selected(
    config: str | None, flags: Mapping[str, Any], window: str | None, environ: Mapping[str, str]
) -> tuple[Resolved, Selection]:
    given = dict(flags)
    if config is None and f"{ENV_PREFIX}PROTOCOL" not in environ:
        # Without a configuration, all that there is of use; vLLM's way reads one shard in two.
        given.setdefault("protocol", "openai")
    resolved = resolve(None if config is None else Path(config), environ, given)
    tokens = named_window(window) or window_of(resolved.config)
    return resolved, selection_of(resolved.config, tokens)


def _shards(resolved: Resolved) -> Shards:
    config = resolved.config
    shards = Shards(
        config.dataset,
        config.revision,
        allow_unverified=config.allow_unverified,
        report=print_progress,
    )
    if shards.kind == "bundle":
        raise ConfigError(
            f"dataset: {config.dataset}: is a bundle already",
            hint="Name the dataset that it shall be taken from.",
        )
    return shards
