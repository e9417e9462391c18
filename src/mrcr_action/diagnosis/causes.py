"""What a form of response, or a round that alone goes wrong, may come from. Words only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrcr_action.diagnosis.evidence import Form
    from mrcr_action.rounds import Kind

WHAT: dict[Form, tuple[str, str]] = {
    "near copy": ("the wanted text with edits", "precision (a quantised KV cache or weights)?"),
    "wrong needle": ("the reply to another of the same requests", "counting, or positions?"),
    "distractor": (
        "another piece of the conversation",
        "attention to the wrong place, or KV blocks of another's?",
    ),
    "no nonce": (
        "the right text without the nonce",
        "the chat template, or instructions that are no longer followed?",
    ),
    "other nonce": (
        "the right text behind another nonce",
        "exact strings that are lost, by precision or by sampling?",
    ),
    "nonce not first": (
        "other text before the nonce",
        "thinking that is not switched off, or not parsed (--reasoning-parser)?",
    ),
    "truncated": ("cut at max_tokens", "too low a max_tokens, or thinking?"),
    "stopped early": (
        "right as far as they go, and end too early",
        "a limit of the server, or a stop string?",
    ),
    "ran on": ("the answer and more", "the end-of-turn token, or the chat template?"),
    "garbled": (
        "right at first, and unrelated from some character on",
        "KV blocks overwritten or mixed up?",
    ),
    "degenerate": (
        "one piece over and over, or no text",
        "numbers that overflow, broken weights, or positions that the model does not know?",
    ),
    "refusal": ("refusals", "a guard in front of the model, or a context that was cut off?"),
    "empty": ("empty", "thinking that takes all of max_tokens, or an end of turn at once?"),
    "cut": (
        "begun without the nonce, and cut here (cut_without_nonce)",
        "the chat template, or thinking?",
    ),
    "unrelated": ("text of no piece of the conversation", "a context that was not read?"),
}
"""What a form is and, where it is that of most wrong responses, what it may come from."""

ROUNDS: dict[Kind, str] = {
    "warm": "the prefix cache?",
    "block": "the end of a KV block?",
    "block warm": "the end of a KV block, or the prefix cache?",
    "chunk": "the end of a prefill chunk?",
    "straddle": "the end of a prefill chunk?",
    "sweep": "parts of a context that are not read?",
    "pool": "eviction from the KV cache?",
    "pool warm": "eviction from the KV cache?",
}
"""What a round of that kind differs from the first one in."""
