"""Counts of o200k tokens, the unit of the dataset's length bins, without any network.

quicktok counts, three to four times as fast as tiktoken, wherever it is known that the two agree.
tiktoken itself counts the other texts, and everything where quicktok is not installed (it has no
wheels for Python 3.14) or is not the one that was compared.

tiktoken would fetch its vocabulary on first use and keep it in a cache folder; here the encoding is
built from the same file as the package ``bpe-openai`` installs it, so that nothing is fetched and
nothing is written anywhere. quicktok brings its own, whose hash is checked too.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import threading
import zlib
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mrcr_action.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tiktoken import Encoding

    from mrcr_action.sample import Sample

_Built = TypeVar("_Built")

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

QUICKTOK_SHA256 = {
    "o200k.vocab": "6b17521f79788c7ace48fc75f6edde125637a90b0018427e68f28d051b2ac1fe",
    "uniclass_o200k.bin": "8dd93d0b36e25eecc2ac43f4bc99f56fbd360fb01bb144778152fa75a6518d6d",
}
"""Hashes of the vocabulary and the table of letters with which quicktok was compared."""

# The letters and marks of Unicode 17, which quicktok and regex know and tiktoken does not yet:
# first and last code points. A test compares all code points.
_NEWER = (
    (0x88F, 0x88F), (0xC5C, 0xC5C), (0xCDC, 0xCDC), (0x1ACF, 0x1ADD), (0x1AE0, 0x1AEB),
    (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7F1, 0xA7F1), (0x10940, 0x10959),
    (0x10EC5, 0x10EC7), (0x10EFA, 0x10EFB), (0x11B60, 0x11B67), (0x11DB0, 0x11DDB),
    (0x11DE0, 0x11DE9), (0x16EA0, 0x16EB8), (0x16EBB, 0x16ED3), (0x16FF2, 0x16FF6),
    (0x187F8, 0x187FF), (0x18D09, 0x18D1E), (0x18D80, 0x18DF2), (0x1E6C0, 0x1E6DE),
    (0x1E6E0, 0x1E6F5), (0x1E6FE, 0x1E6FF), (0x2B73A, 0x2B73F), (0x2CEA2, 0x2CEAD),
    (0x323B0, 0x33479),
)  # fmt: skip
# Where these and the rest of the doubtful lie, in few ranges, because few are searched fast.
_NEAR_DOUBTFUL = re.compile(
    "[\u017f\u088f\u0c5c\u0cdc\u1acf-\u1aeb\ua7ce-\ua7f1\ud800-\udfff"
    "\U00010940-\U0001e6ff\U0002b73a-\U00033479]"
)
_ASCII = bytes(range(128))


def count(text: str) -> int:
    """The number of o200k tokens of a text, equal to tiktoken's.

    Special tokens spelled out in the text count as the ordinary text they are. A lone surrogate
    counts as U+FFFD, as tiktoken has it. Any length and any content are counted exactly.

    Any number of threads may count at once, and they run in parallel: both libraries release the
    interpreter's lock while they count.

    Raises:
        DataError: the vocabulary is missing or not the one expected.
    """
    quicktok = _QUICKTOK.get()
    if quicktok is not None and quicktok.agrees(text):
        return quicktok.count(text)
    return _count_as_tiktoken(text)


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


def _count_as_tiktoken(text: str) -> int:
    if any(_GIANT_BLANK.match(text, at) for at in range(0, len(text), _STRIDE)):
        return _count_piecewise(text)
    return len(_ENCODING.get().encode_ordinary(text))


def _count_piecewise(text: str) -> int:
    """Count as tiktoken does, splitting by an engine that has no stack to overflow.

    Some eight times slower, so it is kept for texts that hold a giant run of white space.
    """
    # A dependency of tiktoken, which splits with it in its own reference code.
    import regex

    # A pair of surrogates becomes one character, a lone one U+FFFD.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    encode = _WHOLE.get().encode_ordinary
    # Split where the letters that tiktoken does not know are what they are to it: no letters.
    split = text.translate(dict.fromkeys(_code_points(_NEWER), "\u0378"))
    return sum(len(encode(text[slice(*m.span())])) for m in regex.finditer(_PATTERN, split))


def _code_points(ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    return chain.from_iterable(range(first, last + 1) for first, last in ranges)


class _Quicktok:
    """quicktok's counts, and for which texts they are those of tiktoken."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count
        # Besides the newer letters: surrogates, which it refuses, and the long s, which is an
        # s to tiktoken where it follows an apostrophe.
        doubtful = chain(_code_points(_NEWER), range(0xD800, 0xE000), [0x17F])
        self._doubtful = frozenset(map(chr, doubtful))

    def agrees(self, text: str) -> bool:
        if text.isascii():
            return True
        # Most characters of most texts are ASCII; removing them first makes this cheap.
        encoded = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
        rest = encoded.decode("utf-8", "surrogatepass")
        return self._doubtful.isdisjoint(_NEAR_DOUBTFUL.findall(rest))


class _Lazy(Generic[_Built]):
    """Something that is built on first use, once, whatever thread asks first."""

    def __init__(self, build: Callable[[], _Built]) -> None:
        self._build = build
        # As a tuple, because what is built may be None.
        self._built: tuple[_Built] | None = None
        self._lock = threading.Lock()

    def get(self) -> _Built:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = (self._build(),)
        return self._built[0]


def _build(pattern: str) -> Encoding:
    import tiktoken

    options: dict[str, Any] = {
        "pat_str": pattern,
        "mergeable_ranks": read_vocabulary(vocabulary_path()),
        "special_tokens": _SPECIAL_TOKENS,
    }
    return tiktoken.Encoding("o200k_base", **options)


def _find_quicktok() -> _Quicktok | None:
    """quicktok, unless it is missing or its tables are others than those it was compared with."""
    try:
        import quicktok
    except ImportError:
        return None
    data = Path(quicktok.__file__).parent / "data"
    for name, expected in QUICKTOK_SHA256.items():
        try:
            found = hashlib.sha256((data / name).read_bytes()).hexdigest()
        except OSError:
            return None
        if found != expected:
            return None
    # Not by get_encoding(), which would look into the user's cache folder as well.
    return _Quicktok(quicktok.Tokenizer("o200k_base", str(data)).count)


_QUICKTOK = _Lazy(_find_quicktok)
_ENCODING = _Lazy(lambda: _build(_PATTERN))
# Takes all it is given for one piece: the merges of o200k without its splitting.
_WHOLE = _Lazy(lambda: _build(r"(?s:.+)"))
