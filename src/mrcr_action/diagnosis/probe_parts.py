"""What the probe's wrong answers say of the part that broke. Pure.

The probe has no skill that could be lacking, and each of its layers one duty (docs/probe.md). So
the form of a wrong answer leads to the layer that was off, and this to what of a server serves it:
keys nearby or far away, an average over many of them, tokens written while decoding, the sampler.
With high sensitivity, the answer itself may be letters that say what was imprecise.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mrcr_action.diagnosis.breakdown import forms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.diagnosis.evidence import Form
    from mrcr_action.result import Record

MOST = 2
"""Forms that are told."""

MARKS = {
    "V": "values are multiplied by a wrong scale",
    "S": "scores are multiplied by a wrong scale (the softmax's, or that of keys)",
    "k": "keys are rounded to fewer than 6 bits",
    "v": "values are rounded to fewer than 6 bits",
}
"""What the letters mean that a probe of high sensitivity answers instead of a nonce, in the order
in which it says them; where ``V`` is said, nothing else is."""

_FAR = (
    "the right request, and not the right one of its kind: the count of equal requests, an"
    " average over keys far apart, or its hand-on through a reply (layers 11 to 13). Attention"
    " to far keys, or a wrong block among them?"
)
_OFFSET = (
    "begun right, and lost within the piece: the offset in it, told by phases of one far key"
    " (layers 15 to 19), or the byte at it (the last layer). Positions, single blocks of the KV"
    " cache, or keys that are written while decoding?"
)
_SAMPLER = (
    "right as far as they go: what attention reads is right, and the answer ends. The sampler,"
    " a stop condition, or a limit of tokens?"
)
_ALL = (
    "nothing of the wanted text: what tells requests and pieces apart is off from the start"
    " (layers 0 to 10, distances of 1 to 51 tokens), or all of attention is. The chat template,"
    " positions, scales, the end of a prompt that came from a cache, or keys of another request?"
)
_BYTES = (
    "the wanted piece with single bytes wrong: the places are right, and what is read there is"
    " not always. The sampler, logits of another request, or one step with a wrong block?"
)
_NONCE = (
    "the right piece behind a wrong nonce: the nearest key of a kind (layer 14), in the"
    " question and so near the end of the prompt. Keys of the last blocks of a prompt?"
)

PARTS: dict[Form, str] = {
    "near copy": _BYTES,
    "wrong needle": _FAR,
    "distractor": _ALL,
    "no nonce": _NONCE,
    "other nonce": _NONCE,
    "nonce not first": _NONCE,
    "truncated": _OFFSET,
    "stopped early": _SAMPLER,
    "ran on": _SAMPLER,
    "garbled": _OFFSET,
    "degenerate": _ALL,
    "refusal": _ALL,
    "empty": _ALL,
    "cut": _NONCE,
    "unrelated": _ALL,
}
"""What a form says, where it is that of the probe's answers."""


def parts_of(wrong: Sequence[Record]) -> list[str]:
    """What the probe's wrong answers say, the most frequent first; one is enough to say it.

    Args:
        wrong: the records whose response is not exact.
    """
    marked = Counter(mark for record in wrong if (mark := _mark(record)))
    lines = [f"{n} of {len(wrong)} wrong answers say that {said}." for said, n in marked.items()]
    others = [record for record in wrong if not _mark(record)]
    words: Counter[str] = Counter()
    for form, count in forms_of(others).items():
        words[PARTS.get(form, "")] += count
    lines += [
        f"{count} of {len(wrong)} wrong answers are {part}"
        for part, count in words.most_common(MOST)
        if part
    ]
    return lines[:MOST]


def meanings(answer: str) -> list[str]:
    """What an answer of letters says about the server; nothing if it is any other answer."""
    said = [letter for letter in MARKS if letter in answer]
    whole = answer == "".join(said) and (len(said) == 1 or "V" not in said)
    return [MARKS[letter] for letter in said] if whole else []


def _mark(record: Record) -> str:
    """What the record's answer says by letters; empty where it says nothing so."""
    excerpt = record.diagnosis.excerpt if record.diagnosis is not None else None
    if excerpt is None or excerpt.offset:
        return ""
    return ", and ".join(meanings(excerpt.returned))
