"""One request as an engine step sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request in one engine step; everything is counted in tokens."""

    id: str
    begin: int
    """Its tokens are begin … end of all that the step computes."""
    end: int
    context: int
    """In the KV cache before this step."""
    prompt: int
    """Length of its prompt."""
    hit: int
    """Of the prompt, what the prefix cache supplied when the request was admitted."""
    block: int
    """Tokens that a block of the KV cache holds."""

    @property
    def length(self) -> int:
        """In the KV cache after this step."""
        return self.context + self.end - self.begin

    @property
    def blocks(self) -> int:
        """Blocks that hold those."""
        return -(-self.length // self.block)

    @property
    def is_prefill(self) -> bool:
        """Whether a part of the prompt is computed."""
        return self.context < self.prompt

    @property
    def is_first_step(self) -> bool:
        """Whether nothing of it was computed before, apart from what was cached."""
        return self.context == self.hit
