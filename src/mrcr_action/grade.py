"""Both grades of one response: the dataset card's and vLLM's. Pure; no I/O.

The two differ on purpose (docs/architecture.md, "Two protocols"): which side the nonce is taken
from, which text comes first, and whether difflib's junk heuristic is on. Both results are equal
to the standard library's to the last bit.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Literal

import difflib_fast
import msgspec

FAST_LIMIT = 8192
"""Longest response, in characters, that goes to difflib-fast: on degenerate text (one letter
over and over) its memory grows with the square of the second argument, 121 MB at this length."""


Outcome = Literal["scored", "truncated", "rejected", "failed"]
"""What became of a request. scored: a whole answer. truncated: cut at max_tokens, graded as it is.
rejected: the server refused it. failed: infrastructure. Only the first two are graded."""


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """What one response is worth; ratios lie in [0, 1]."""

    nonce_hit: bool
    """Whether the response starts with the nonce; without it both ratios are 0."""
    exact: bool
    """Whether the response is the answer, character for character."""
    match_ratio_openai: float
    match_ratio_vllm: float

    def match_ratio(self, protocol: str) -> float:
        """The ratio that a protocol gates on."""
        return self.match_ratio_openai if protocol == "openai" else self.match_ratio_vllm


def grade(response: str, answer: str, nonce: str) -> Grade:
    """Grade a response against ``answer`` (which begins with ``nonce``)."""
    return Grade(
        nonce_hit=response.startswith(nonce),
        exact=response == answer,
        match_ratio_openai=openai_ratio(response, answer, nonce),
        match_ratio_vllm=vllm_ratio(response, answer, nonce),
    )


def openai_ratio(response: str, answer: str, nonce: str) -> float:
    """The dataset card's grade: the nonce leaves both texts, junk heuristic on.

    Source: the ``grade`` function on https://huggingface.co/datasets/openai/mrcr.
    """
    if not response.startswith(nonce):
        return 0.0
    if response == answer:
        return 1.0
    stripped, wanted = response.removeprefix(nonce), answer.removeprefix(nonce)
    return float(SequenceMatcher(None, stripped, wanted).ratio())


def vllm_ratio(response: str, answer: str, nonce: str) -> float:
    """vLLM's grade: the nonce leaves the response only, junk heuristic off.

    A perfect response of L characters therefore scores 2L / (2L + 10), never 1.
    Source: ``score_mrcr`` in vLLM's tests/evals/mrcr/mrcr_eval.py.
    """
    if not response.startswith(nonce):
        return 0.0
    return exact_ratio(answer, response[len(nonce) :])


def exact_ratio(first: str, second: str) -> float:
    """``SequenceMatcher(None, first, second, autojunk=False).ratio()``, some 200 times faster.

    Long or surrogate-bearing text, which difflib-fast cannot take, goes to the standard library.
    """
    if len(second) <= FAST_LIMIT:
        try:
            return difflib_fast.ratio(first, second)
        except UnicodeEncodeError:
            pass
    return float(SequenceMatcher(None, first, second, autojunk=False).ratio())
