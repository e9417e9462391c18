"""Draws that look random and come out the same each time, from a name."""

from __future__ import annotations

import hashlib
import re


def draw(name: str) -> float:
    """A number from 0 up to but without 1, evenly spread over names."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48  # 48 bits: a float holds them exactly


def parse_share(text: str) -> float:
    """Read a share above 0 and up to 1, such as ``.05`` or ``1``.

    Raises:
        ValueError: the text is no such number.
    """
    if not re.fullmatch(r"1|[01]?\.[0-9]+", text) or not 0 < float(text) <= 1:
        raise ValueError(f"{text!r} is not a share above 0 and up to 1")
    return float(text)
