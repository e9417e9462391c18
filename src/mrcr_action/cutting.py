"""What was saved by cutting responses that could no longer start with the nonce. Pure; no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.request import request_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig
    from mrcr_action.result import Record


CUT = "cut"
"""In the place of a finish reason: the stream was closed here, not ended by the server."""


def is_cut(record: Record) -> bool:
    """Whether a response was cut."""
    return record.finish_reason == CUT and record.grade is not None and record.digest is None


def cut_notes(records: Sequence[Record], config: RunConfig) -> list[str]:
    """A sentence about the responses that were cut, if any were.

    How long they would have been nobody knows, so that only the most can be told of what it saved.
    """
    cut = [record for record in records if is_cut(record)]
    if not cut:
        return []
    had = sum(record.completion_tokens or 0 for record in cut)
    most = request_body(config, "", ()).get("max_tokens")
    saved = ""
    if isinstance(most, int):
        saved = (
            f", which saved at most {max(0, most * len(cut) - had):,} tokens (max_tokens {most:,})"
        )
    graded = sum(record.grade is not None for record in records)
    sentence = (
        f"{len(cut)} of {graded} responses were cut, since they could no longer start with the"
        f" nonce, after about {had:,} tokens in all{saved}."
    )
    return [sentence]
