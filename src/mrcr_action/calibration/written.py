"""The calibrated configuration as a text: thresholds, what is behind them, all else as it was.

Nothing secret is written: variables of the server whose name says so are left out, and a
configuration with a secret in another place is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from mrcr_action.config.faults import server_arguments
from mrcr_action.config.flags import GROUPS
from mrcr_action.config.values import THRESHOLD_KEYS, convert
from mrcr_action.errors import ConfigError
from mrcr_action.publish import publishable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.calibration.document import Calibration
    from mrcr_action.config import RunConfig
    from mrcr_action.config.resolve import Resolved
    from mrcr_action.config.thresholds import Metric
    from mrcr_action.config.yaml_file import YamlFile

REPLACED = (*THRESHOLD_KEYS, "tolerance", "decision", "calibration")
"""Keys that are written anew."""

ASKED = (
    "model_name",
    *GROUPS["the samples"].split(),
    *GROUPS["the passes"].split(),
    *(k for k in GROUPS["the requests"].split() if not k.endswith("_seconds")),
)
"""Keys for which thresholds hold, so that they are written where a flag or a variable set them."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """What a calibration found of one bucket; all but ``n`` and ``steps`` are match ratios."""

    bucket: str
    n: int
    mean: float
    sd: float
    """Standard deviation of the bucket's mean over the repetitions."""
    least: float
    most: float
    threshold: float

    @property
    def steps(self) -> float:
        """By how many whole answers the mean may fall."""
        return (self.mean - self.threshold) * self.n


def kept(file: YamlFile, resolved: Resolved) -> tuple[dict[str, Any], list[str]]:
    """The keys that are written as they were, and the variables that are left out as secret.

    Args:
        file: the configuration as it stands in its file.
        resolved: the same with flags and environment.

    Raises:
        ConfigError: a secret stands where it cannot be left out.
    """
    config, shown = resolved.config, publishable(resolved.config)
    values = {
        key: value
        for key, value in file.values.items()
        if key not in REPLACED and key in resolved.given
    }
    for key in ASKED:
        now = getattr(config, key)
        if key not in resolved.given:
            continue
        if key not in values or convert(key, values[key], origin=key) != now:
            values[key] = list(now) if isinstance(now, tuple) else now
    secret = {
        "server_args": tuple(server_arguments(config)) != tuple(shown.server_args),
        "extra_body": config.extra_body != shown.extra_body,
        "base_url": config.base_url != shown.base_url,
    }
    for key, is_secret in secret.items():
        if key in values and is_secret:
            raise ConfigError(
                f"{file.where(key)}: {key}: holds a secret, which no calibrated configuration may",
                hint="Give it by a variable, such as MRCR_API_KEY for the server's key.",
            )
    left_out = [name for name in config.env if str(config.env[name]) != shown.env[name]]
    if "env" in values and left_out:
        values["env"] = {k: v for k, v in values["env"].items() if k not in left_out}
    return values, left_out if "env" in file.values else []


def rates_of(config: RunConfig) -> dict[str, float | dict[Metric, float]]:
    """The thresholds that are of no match ratio."""
    found: dict[str, dict[Metric, float]] = {}
    for bound in config.bounds:
        if bound.metric != "match_ratio":
            found.setdefault(bound.bucket, {})[bound.metric] = bound.bound
    return {**found}


def merged(config: RunConfig, lines: Sequence[Line]) -> dict[str, Any]:
    """The thresholds that were found, and those that are of no match ratio."""
    found: dict[str, Any] = {line.bucket: line.threshold for line in lines}
    for bucket, rates in rates_of(config).items():
        assert isinstance(rates, dict)
        own = {"match_ratio": found[bucket]} if bucket in found else {}
        found[bucket] = own | rates
    return found


def text_of(
    values: Mapping[str, Any],
    thresholds: Mapping[str, Any],
    calibration: Calibration,
    *,
    lines: Sequence[Line],
    remarks: Sequence[str] = (),
) -> str:
    """The file.

    Args:
        values: keys as they were.
        thresholds: by bucket.
        calibration: what they were made of.
        lines: what was found, for the comment in front.
        remarks: further sentences for it.
    """
    document = {
        **values,
        "thresholds": dict(thresholds),
        "tolerance": 0,
        "calibration": msgspec.to_builtins(calibration),
    }
    body = yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    front = [*_introduction(calibration), "", *table(lines), *(["", *remarks] if remarks else [])]
    return "".join(f"# {line}".rstrip() + "\n" for line in front) + "\n" + body


def table(lines: Sequence[Line]) -> list[str]:
    """What was found, a line a bucket."""
    rows = [
        ("bucket", "n", "mean", "sd", "least", "most", "threshold", "margin"),
        *(
            (
                line.bucket,
                str(line.n),
                *(f"{v:.4f}" for v in (line.mean, line.sd, line.least, line.most, line.threshold)),
                f"{line.steps:.1f}",
            )
            for line in lines
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _introduction(made: Calibration) -> list[str]:
    return [
        f"Written by `mrcr calibrate` on {made.date}. Of the runs of a server that answers as",
        f"this one did then, at most {made.false_alarm:.2%} are below any threshold, in all",
        f"passes together. Made from {made.repeats} repetitions of: {', '.join(made.passes)}.",
        "Calibrate again when the model, vLLM, the samples or the passes are others.",
        "",
        "mean is over all repetitions; sd, least and most are of the means of single ones.",
        "margin: by how many whole answers that mean may fall.",
    ]


class _Dumper(yaml.SafeDumper):
    """Writes equal values out: the configuration's reader takes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's interface
        return True
