"""The prefix cache: which blocks of which prompts are known, as in vLLM's pool of KV blocks."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from mrcr_action.standin.tokens import CHARACTERS_PER_TOKEN

DEFAULT_BLOCK_SIZE = 16
DEFAULT_BLOCKS = 2**17
"""Far more than a test fills: about two million tokens in blocks of 16."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, cut into blocks."""

    tokens: int
    keys: tuple[int, ...]
    """One for each full block: it stands for the block, for all before it, and for the salt."""
    blocks: int
    """How many it takes, the last one not always full."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The blocks that a request holds while it is answered, and what was found in the cache."""

    prompt: Prompt
    cached_tokens: int
    """The longest known beginning in whole blocks, short of the last token."""
    evicted: bool
    """Whether the whole prompt was known once and its end has been evicted since."""


@dataclass(slots=True)
class PrefixCache:
    """A pool of blocks.

    Blocks of requests that are over stay known until another needs their place: those unused for
    longest go first, and of one prompt the last ones, so that what is left is a beginning. What is
    generated takes no room here. Every key that was ever evicted is kept, to tell `Hold.evicted`.
    """

    block_size: int = DEFAULT_BLOCK_SIZE
    """In tokens."""
    blocks: int = DEFAULT_BLOCKS
    """As many as vLLM calls ``num_gpu_blocks``: one of them is never used."""
    enabled: bool = True
    """When not, requests still take room, and nothing stays known."""
    _held: dict[int, int] = field(default_factory=dict)
    """Blocks in use, with the number of requests that use them."""
    _idle: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Blocks that are known and not in use; the first one is the next to go."""
    _nameless: int = 0
    """Blocks in use that nobody can share."""
    _evicted: set[int] = field(default_factory=set)

    @property
    def capacity(self) -> int:
        """How many blocks can be used."""
        return self.blocks - 1

    @property
    def usage(self) -> float:
        """The share of blocks in use, from 0 to 1."""
        return (len(self._held) + self._nameless) / self.capacity if self.capacity else 0.0

    def cut(self, rendered: str, salt: str) -> Prompt:
        """Cut a prompt, rendered with four characters a token, into blocks."""
        tokens = len(rendered) // CHARACTERS_PER_TOKEN
        width = self.block_size * CHARACTERS_PER_TOKEN
        keys: list[int] = []
        if self.enabled:
            parent = hash(salt)
            for at in range(0, len(rendered) - width + 1, width):
                parent = hash((parent, rendered[at : at + width]))
                keys.append(parent)
        return Prompt(tokens, tuple(keys), -(-tokens // self.block_size))

    def take(self, prompt: Prompt) -> Hold | None:
        """Take the blocks of a prompt, to be given back; None while others leave no room."""
        own = prompt.blocks - len(prompt.keys)
        fresh = sum(key not in self._held for key in prompt.keys)
        if len(self._held) + fresh + self._nameless + own > self.capacity:
            return None
        hold = Hold(prompt, self._known(prompt) * self.block_size, self._lost(prompt))
        for key in prompt.keys:
            self._idle.pop(key, None)
            self._held[key] = self._held.get(key, 0) + 1
        self._nameless += own
        self._evicted.difference_update(prompt.keys)
        while len(self._held) + self._nameless + len(self._idle) > self.capacity:
            key, _ = self._idle.popitem(last=False)
            self._evicted.add(key)
        return hold

    def give_back(self, hold: Hold) -> None:
        """The request is over: its blocks stay known as long as nobody needs their place."""
        for key in reversed(hold.prompt.keys):
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
                self._idle[key] = None
        self._nameless -= hold.prompt.blocks - len(hold.prompt.keys)

    def _known(self, prompt: Prompt) -> int:
        # The last token is always computed, as its logits are wanted.
        most = (prompt.tokens - 1) // self.block_size
        for count, key in enumerate(prompt.keys[:most]):
            if key not in self._held and key not in self._idle:
                return count
        return min(most, len(prompt.keys))

    def _lost(self, prompt: Prompt) -> bool:
        return bool(prompt.keys) and prompt.keys[-1] in self._evicted
