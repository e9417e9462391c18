"""The tokenizer: one token a byte, so that any text can be copied, and five special tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mrcr_action.sample import Message

BOS, END, USER, ASSISTANT, SYSTEM = range(5)

MARK = "<|\ue000"
"""How the text of a special token begins, and no other text. The third character is for private
use: tokenizers turn the text of a special token into that token wherever it occurs, and pieces do
hold ``<|end|>``."""

SPECIALS = tuple(f"{MARK}{name}|>" for name in ("bos", "end", "user", "assistant", "system"))
"""Text of the special tokens; a token's id is its index."""

SIZE = len(SPECIALS) + 256
"""Number of tokens: byte ``b`` is token ``len(SPECIALS) + b``."""

CHAT_TEMPLATE = (
    "{{ '<|\\ue000bos|>' }}"
    "{% for message in messages %}"
    "{% if '<|\\ue000' in message['content'] %}"
    "{{ raise_exception('a message holds the text of a special token') }}"
    "{% endif %}"
    "{{ '<|\\ue000' + message['role'] + '|>' + message['content'] + '<|\\ue000end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|\\ue000assistant|>' }}{% endif %}"
)
"""Jinja; takes the roles in any order, because MRCR rows begin with two user turns. It refuses a
conversation that would be read as another one."""

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")


def encode(text: str) -> list[int]:
    """Token ids of a text; a special token's text becomes that token, as in the real tokenizer.

    Raises:
        UnicodeEncodeError: the text holds half a surrogate pair.
    """
    ids: list[int] = []
    for part in _SPECIAL.split(text):
        if part in SPECIALS:
            ids.append(SPECIALS.index(part))
        else:
            ids.extend(len(SPECIALS) + byte for byte in part.encode())
    return ids


def encode_chat(messages: Iterable[Message]) -> list[int]:
    """Token ids of a conversation that is to be continued, as the chat template renders it."""
    ids = [BOS]
    for message in messages:
        role = encode(f"{MARK}{message.role}|>")
        ids += [*role, *encode(message.content), END]
    return [*ids, ASSISTANT]


def decode(ids: list[int]) -> str:
    """Text of token ids, special tokens left out; U+FFFD stands for bytes that are no UTF-8."""
    return bytes(i - len(SPECIALS) for i in ids if i >= len(SPECIALS)).decode(errors="replace")


def byte_letters() -> list[str]:
    """The printable letter that stands for each byte in a byte-level ``tokenizer.json``.

    Printable Latin-1 bytes stand for themselves, the others for U+0100 onwards in order: the
    table of GPT-2's tokenizer, which the ``ByteLevel`` parts of the tokenizers library use.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def tokenizer_json() -> dict[str, Any]:
    """Contents of ``tokenizer.json``: byte-level BPE without any merge."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    vocab = {text: i for i, text in enumerate((*SPECIALS, *byte_letters()))}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i, text in enumerate(SPECIALS)
        ],
        "normalizer": None,
        # Splitting into words changes no token; it keeps the pieces that BPE caches short.
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [],
        },
    }


def tokenizer_config(max_len: int) -> dict[str, Any]:
    """Contents of ``tokenizer_config.json``; ``max_len`` in tokens."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIALS[BOS],
        "eos_token": SPECIALS[END],
        "pad_token": SPECIALS[BOS],
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_len,
        "chat_template": CHAT_TEMPLATE,
    }
