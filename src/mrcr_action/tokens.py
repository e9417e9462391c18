"""Counts of o200k tokens, the unit of the dataset's length bins, without any network.

Stock tiktoken does the counting. It would fetch its vocabulary on first use and keep it in a
cache folder; here the encoding is built from the same file as the package ``bpe-openai``
installs it, so that nothing is fetched and nothing is written anywhere.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import threading
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tiktoken import Encoding

    from mrcr_action.sample import Sample

VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Hash tiktoken itself demands of its unpacked ``o200k_base.tiktoken``."""

# The pattern and the special tokens are those of tiktoken_ext.openai_public.o200k_base(), which
# cannot be called for them alone: it fetches the vocabulary first. A test compares the two.
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        + _CONTRACTION,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        + _CONTRACTION,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

# tiktoken's regular expressions overflow their stack on 300,000 to 400,000 characters of
# white space in a row. Looking every _STRIDE characters finds each run of 150,000, in one pass.
_STRIDE = 50_000
_GIANT_BLANK = re.compile(r"\s{100000}")


def count(text: str) -> int:
    """The number of o200k tokens of a text.

    Special tokens spelled out in the text count as the ordinary text they are. A lone surrogate
    counts as U+FFFD, as tiktoken has it. Any length and any content are counted exactly.

    Raises:
        DataError: the vocabulary is missing or not the one expected.
    """
    if any(_GIANT_BLANK.match(text, at) for at in range(0, len(text), _STRIDE)):
        return _count_piecewise(text)
    return len(_ENCODING.get().encode_ordinary(text))


def count_sample(sample: Sample) -> int:
    """The o200k tokens of a sample by the dataset card's binning rule.

    Each message's content is counted alone, without a chat template, and the answer is added.

    Raises:
        DataError: the vocabulary is missing or not the one expected.
    """
    return sum(count_sample_parts(sample))


def count_sample_parts(sample: Sample) -> tuple[int, int]:
    """The o200k tokens of a sample's prompt and of its answer: `count_sample`'s two addends.

    The prompt's are those of its messages' contents, each counted alone.

    Raises:
        DataError: the vocabulary is missing or not the one expected.
    """
    return sum(count(message.content) for message in sample.messages), count(sample.answer)


def read_vocabulary(path: Path) -> dict[bytes, int]:
    """The ranks of a gzipped ``.tiktoken`` file, whose unpacked bytes are checked first.

    Raises:
        DataError: the file cannot be read, or its hash is not `VOCABULARY_SHA256`.
    """
    hint = "install bpe-openai again; it brings this file"
    try:
        unpacked = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"the o200k vocabulary {path} cannot be read: expected a file of SHA-256 "
            f"{VOCABULARY_SHA256}, found {error}",
            hint=hint,
        ) from error
    found = hashlib.sha256(unpacked).hexdigest()
    if found != VOCABULARY_SHA256:
        raise DataError(
            f"the o200k vocabulary {path} is not the one expected: expected SHA-256 "
            f"{VOCABULARY_SHA256}, found {found}",
            hint=hint,
        )
    lines = (line.split() for line in unpacked.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def vocabulary_path() -> Path:
    """Where ``bpe-openai`` has installed the vocabulary.

    Raises:
        DataError: the package is not installed.
    """
    spec = find_spec("bpe_openai")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            "the o200k vocabulary bpe_openai/data/o200k_base.tiktoken.gz is missing: expected "
            "the package bpe-openai, found none",
            hint="pip install bpe-openai",
        )
    return Path(spec.submodule_search_locations[0], "data", "o200k_base.tiktoken.gz")


def _count_piecewise(text: str) -> int:
    """Count as `count` does, splitting by an engine that has no stack to overflow.

    Some eight times slower, so it is kept for texts that hold a giant run of white space.
    """
    # A dependency of tiktoken, which splits with it in its own reference code.
    import regex

    # A pair of surrogates becomes one character, a lone one U+FFFD.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    encode = _WHOLE.get().encode_ordinary
    return sum(len(encode(match[0])) for match in regex.finditer(_PATTERN, text))


class _Lazy:
    """An encoding that is built on first use, once, whatever thread asks first."""

    def __init__(self, build: Callable[[], Encoding]) -> None:
        self._build = build
        self._built: Encoding | None = None
        self._lock = threading.Lock()

    def get(self) -> Encoding:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = self._build()
        return self._built


def _build(pattern: str) -> Encoding:
    import tiktoken

    options: dict[str, Any] = {
        "pat_str": pattern,
        "mergeable_ranks": read_vocabulary(vocabulary_path()),
        "special_tokens": _SPECIAL_TOKENS,
    }
    return tiktoken.Encoding("o200k_base", **options)


_ENCODING = _Lazy(lambda: _build(_PATTERN))
# Takes all it is given for one piece: the merges of o200k without its splitting.
_WHOLE = _Lazy(lambda: _build(r"(?s:.+)"))
