# ruff: noqa: INP001 - a script, not a package
"""How fast o200k tokens are counted, by tiktoken and by ``mrcr_action.tokens``, in MB/s.

Run with the interpreter that mrcr is installed for: ``.venv/bin/python benchmarks/tokens.py``.
The two take turns; a figure is the median of 7 runs, in CPU time, which other programs disturb
least. Every count is compared first. Exits 1 where two counts differ, or below the target of 3
times tiktoken's speed on the kinds of text that MRCR is made of.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pydoc_data.topics import topics
from typing import TYPE_CHECKING

from mrcr_action import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RUNS = 7
TARGET = 3.0
LENGTHS = (100, 300, 1000, 1500, 1800, 2200, 4000, 15_000)
"""Characters of the messages; most of MRCR's have 1,000 to 3,000."""

EMOJI = ("🌾", "✨", "👩\u200d🚀", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "👍🏽", "❤️", "😀")
SCRIPTS = (
    "оеаинтсрвлкмдпуя",
    "αεηιοπρστυκλμν",
    "ابتجدرسعفقلمنهوي",
    "कखगचजटतदनपबमरलवसहािीुेो",
    "あいうえおかきくけこさしすせそのはもをん",
    "的一是不了人我在有他这中大来上国",
    "가나다라마바사아자차하고는을이",
)


def prose(chars: int, dice: random.Random) -> str:
    """Real English with lists and code, which every CPython carries: its language reference."""
    parts = sorted(topics.values())
    dice.shuffle(parts)
    text = "\n\n".join(parts)
    return (text * (chars // len(text) + 1))[:chars]


def messages(chars: int, dice: random.Random) -> list[str]:
    """Prose cut to messages, every other one typeset as chat models do."""
    text, cut = prose(chars, dice), []
    while text:
        length = dice.choice(LENGTHS)
        cut.append(text[:length])
        text = text[length:]
    return [dress(text, dice) if number % 2 else text for number, text in enumerate(cut)]


def dress(text: str, dice: random.Random) -> str:
    """Curly quotes, dashes, and an emoji in front."""
    text = text.replace("'", "’").replace(' "', " “").replace('"', "”").replace(" - ", " — ")
    return f"## {dice.choice(EMOJI)} {text}"


def emoji_rich(chars: int, dice: random.Random) -> str:
    """An emoji after every word."""
    words = prose(chars, dice).split()
    return " ".join(f"{word} {dice.choice(EMOJI)}" for word in words)


def non_latin(chars: int, dice: random.Random) -> str:
    """Paragraphs of made-up words in seven scripts."""
    text: list[str] = []
    size = 0
    while size < chars:
        script = dice.choice(SCRIPTS)
        lines = (
            "".join(dice.choices(script, k=dice.randint(2, 9))) for _ in range(dice.randint(5, 60))
        )
        text.append(" ".join(lines))
        size += len(text[-1])
    return "\n\n".join(text)


def count_all(counter: Callable[[str], int], texts: list[str]) -> int:
    """The tokens of all of them."""
    return sum(map(counter, texts))


def speeds(texts: list[str], counters: Sequence[Callable[[str], int]]) -> list[float]:
    """MB of UTF-8 per second of CPU time by each counter, which take turns."""
    times: list[list[float]] = [[] for _ in counters]
    for _ in range(RUNS):
        for counter, row in zip(counters, times, strict=True):
            start = time.process_time()
            count_all(counter, texts)
            row.append(time.process_time() - start)
    size = sum(len(text.encode()) for text in texts) / 1e6
    return [size / statistics.median(row) for row in times]


def gain_of_two_threads(texts: list[str], counter: Callable[[str], int]) -> float:
    """How many times as fast by the clock on the wall two threads are as one."""
    ratios = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(RUNS):
            start = time.perf_counter()
            count_all(counter, texts)
            middle = time.perf_counter()
            list(pool.map(partial(count_all, counter), (texts[::2], texts[1::2])))
            ratios.append((middle - start) / (time.perf_counter() - middle))
    return statistics.median(ratios)


def main() -> int:
    """Measure, print a table in Markdown, and compare with the target."""
    stock = tokens._ENCODING  # noqa: SLF001 - tiktoken as this project builds it, offline
    clock = [time.process_time()]
    stock.get()
    clock.append(time.process_time())
    tokens.count("fields")
    clock.append(time.process_time())

    def by_tiktoken(text: str) -> int:
        return len(stock.get().encode_ordinary(text))

    dice = random.Random(1)  # noqa: S311 - repeatable
    several = messages(3_000_000, dice)
    # Kind, texts, and whether MRCR is made of it.
    kinds = [
        ("prose, messages of 100 to 15,000 characters", several, True),
        ("prose, one text of 1 MB", [dress(prose(1_000_000, dice), dice)], True),
        ("prose, one text of 5 MB", [dress(prose(5_000_000, dice), dice)], True),
        ("emoji-rich, one text of 1 MB", [emoji_rich(450_000, dice)], False),
        ("non-Latin, one text of 1 MB", [non_latin(420_000, dice)], False),
        (
            "prose with one letter newer than tiktoken",
            [prose(1_000_000, dice) + "\U000323b0"],
            False,
        ),
    ]
    print("| text | size, MB | tiktoken, MB/s | mrcr, MB/s | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    good = True
    for kind, texts, target in kinds:
        if any(by_tiktoken(text) != tokens.count(text) for text in texts):
            print(f"counts differ: {kind}")
            good = False
        size = sum(len(text.encode()) for text in texts) / 1e6
        theirs, ours = speeds(texts, (by_tiktoken, tokens.count))
        print(f"| {kind} | {size:.1f} | {theirs:.1f} | {ours:.1f} | {ours / theirs:.1f} |")
        good = good and (not target or ours / theirs >= TARGET)
    theirs, ours = (gain_of_two_threads(several, each) for each in (by_tiktoken, tokens.count))
    print(f"\ntwo threads against one: tiktoken {theirs:.1f} times, mrcr {ours:.1f} times as fast")
    loading = [after - before for before, after in pairwise(clock)]
    print(f"loading, once a process: tiktoken {loading[0]:.2f} s, quicktok {loading[1]:.2f} s")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
