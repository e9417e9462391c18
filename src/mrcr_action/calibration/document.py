"""What a calibrated configuration says of its thresholds: what they were made of, and when."""

from __future__ import annotations

import msgspec


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What thresholds hold for; the value of the key ``calibration``."""

    model: str
    """As the server names it."""
    vllm_version: str | None = None
    hardware: str | None = None
    """GPUs, in words; None for a server that was not started by the calibration."""
    dataset: str
    revision: str | None = None
    protocol: str
    seed: int
    n: dict[str, int]
    """Samples of each bucket with a threshold."""
    passes: tuple[str, ...]
    """The rounds that were looked at, such as ``cold`` and ``warm``."""
    repeats: int
    """How often each of them was asked."""
    false_alarm: float
    """The chance that a healthy server fails any of the thresholds."""
    date: str
    """UTC, ISO 8601."""
