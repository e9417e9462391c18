"""The form of one response: the first that fits, from the surest to the vaguest.

Cheap beside a grade: a response is compared with the needles only, by their first 8,192 characters;
the other messages are searched for pieces of it, and only where no needle fits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mrcr_action.diagnosis.attribution import (
    MATCHED,
    Needle,
    likenesses,
    needles_of,
    place_of,
    sibling_of,
    source_of,
    wanted_of,
)
from mrcr_action.diagnosis.edits import alike, common, edits
from mrcr_action.diagnosis.evidence import (
    Diagnosis,
    Excerpt,
    FirstWrong,
    Form,
    Likeness,
    Nonce,
    Repeat,
    Source,
)
from mrcr_action.diagnosis.floor import floor_of
from mrcr_action.diagnosis.repeats import STRANGE, repeat_at_end, strange_share

if TYPE_CHECKING:
    from mrcr_action.sample import Message, Sample

RIGHT_BEGINNING = 24
"""Characters of the wanted text that no other reply begins with by chance."""

UNRELATED = 0.45
"""Below this ratio, what follows a right beginning has nothing to do with the wanted text."""

LEAST_REST = 40
"""Characters of which that can be said."""

LONGEST_NONCE = 20
"""Characters in front of the text that may be meant as a nonce."""

BEFORE, AFTER = 40, 120
"""Characters that an excerpt shows before and after the first wrong one."""

REFUSAL = re.compile(
    r"\b(?:I(?:['’]m| am) (?:sorry|unable|not able)|I (?:can ?not|can['’]t|could not|couldn['’]t)"
    r"|I (?:do not|don['’]t) have|I (?:must|have to) decline|I apologi[sz]e"
    r"|unable to (?:comply|help)|as an AI\b)",
    re.IGNORECASE,
)
"""How a model declines; looked for at the beginning only."""

REFUSED_WITHIN = 200
"""Characters in which a refusal says so."""

_WRONG_BEGINNING: dict[Nonce, Form] = {
    "absent": "no nonce",
    "other": "other nonce",
    "later": "nonce not first",
}


def diagnose(
    response: str,
    sample: Sample,
    *,
    truncated: bool = False,
    cut: bool = False,
    prompt_tokens: int | None = None,
) -> Diagnosis:
    """What a response is.

    Args:
        response: the content that came.
        sample: the row as it was asked.
        truncated: whether it was cut at max_tokens.
        cut: whether it was cut here, since it could no longer start with the nonce.
        prompt_tokens: length of the prompt in the server's tokens; None where nobody counted it.
    """
    wanted = msgspec.structs.replace(wanted_of(sample, prompt_tokens), floor=floor_of(sample))
    if response == sample.answer:
        return Diagnosis(form="exact", wanted=wanted)
    begun = _beginning(response, sample)
    seen = msgspec.structs.replace(
        Diagnosis(form="unrelated", nonce=begun.nonce, lead=begun.lead, wanted=wanted),
        first_wrong=_first_wrong(response, sample, prompt_tokens),
        excerpt=_excerpt(response, sample.answer),
    )
    if not response.strip():
        return msgspec.structs.replace(seen, form="empty")
    if cut:
        return msgspec.structs.replace(seen, form="cut")
    skipped = len(response) - len(begun.text)
    case = _case(begun, sample, skipped=skipped, truncated=truncated)
    return _whole(case, seen) or _begun(case, seen) or _no_text(case, seen) or _compared(case, seen)


def lost(form: Form, sample: Sample | None, prompt_tokens: int | None = None) -> Diagnosis:
    """What there is to say of a request without a response, ``rejected`` or ``failed``."""
    wanted = None if sample is None else wanted_of(sample, prompt_tokens)
    return Diagnosis(form=form, wanted=wanted)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """A response taken apart at its nonce."""

    nonce: Nonce
    lead: int
    text: str
    """What stands behind the nonce, or all of it."""


def _beginning(response: str, sample: Sample) -> _Beginning:
    nonce, answer = sample.nonce, sample.answer
    if response.startswith(nonce) or answer.startswith(response):
        return _Beginning("first", 0, response[len(nonce) :])
    at = response.rfind(nonce)  # reasoning may mention it, too
    if at > 0:
        return _Beginning("later", at, response[at + len(nonce) :])
    for needle in needles_of(sample):
        head = needle.text[:RIGHT_BEGINNING]
        at = response.find(head, 0, REFUSED_WITHIN) if head else -1
        if at > 0:
            lead = response[:at].strip()
            other = len(lead) <= LONGEST_NONCE and lead.isalnum() and lead.isascii()
            return _Beginning("other" if other else "absent", at, response[at:])
    return _Beginning("absent", 0, response)


def _first_wrong(response: str, sample: Sample, prompt_tokens: int | None) -> FirstWrong:
    offset, nonce = common(response, sample.answer), len(sample.nonce)
    if offset == len(sample.answer):
        return FirstWrong(offset=offset)
    turn, char = sample.desired_msg_index + 1, offset - nonce
    if char < 0:
        # The nonce is copied from the question.
        turn = len(sample.messages) - 1
        char = max(0, sample.messages[turn].content.find(sample.nonce)) + offset
    return FirstWrong(offset=offset, place=place_of(sample.messages, turn, char, prompt_tokens))


def _excerpt(response: str, answer: str) -> Excerpt:
    offset = common(response, answer)
    begin, end = max(0, offset - BEFORE), offset + AFTER
    return Excerpt(offset=begin, wanted=answer[begin:end], returned=response[begin:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """The text behind the nonce, and what it is judged by."""

    text: str
    skipped: int
    """Characters of the response before it."""
    nonce: Nonce
    truncated: bool
    messages: tuple[Message, ...]
    needles: tuple[Needle, ...]
    wanted: Needle

    @property
    def others(self) -> tuple[Needle, ...]:
        """The needles that were not asked for."""
        return tuple(needle for needle in self.needles if needle != self.wanted)

    @property
    def repeat(self) -> Repeat | None:
        """What the response says over and over."""
        found = repeat_at_end(self.text)
        if found is None:
            return None
        return msgspec.structs.replace(found, offset=found.offset + self.skipped)

    @property
    def ended(self) -> Form:
        """What ended a text that should have gone on."""
        return "truncated" if self.truncated else "stopped early"


def _case(begun: _Beginning, sample: Sample, *, skipped: int, truncated: bool) -> _Case:
    needles = needles_of(sample)
    (wanted,) = [needle for needle in needles if needle.turn == sample.desired_msg_index + 1]
    return _Case(
        text=begun.text,
        skipped=skipped,
        nonce=begun.nonce,
        truncated=truncated,
        messages=sample.messages,
        needles=needles,
        wanted=wanted,
    )


def _whole(case: _Case, seen: Diagnosis) -> Diagnosis | None:
    """The wanted text, all of it, with or without something behind it."""
    if case.text == case.wanted.text:
        return _copy(case, seen, edited=0)
    if not case.wanted.text or not case.text.startswith(case.wanted.text):
        return None
    form = _WRONG_BEGINNING.get(case.nonce, "ran on")
    return msgspec.structs.replace(seen, form=form, repeat=case.repeat)


def _begun(case: _Case, seen: Diagnosis) -> Diagnosis | None:
    """The beginning of the wanted text."""
    sure = case.nonce == "first" or len(case.text) >= RIGHT_BEGINNING
    if not sure or not case.wanted.text.startswith(case.text):
        return None
    return msgspec.structs.replace(seen, form=case.ended)


def _no_text(case: _Case, seen: Diagnosis) -> Diagnosis | None:
    """One piece over and over, or characters that are none."""
    repeat = case.repeat
    if repeat is not None and case.text[-LEAST_REST:] in case.wanted.text:
        repeat = None  # a refrain of its own
    strange = strange_share(case.text)
    if repeat is None and strange < max(STRANGE, 2 * strange_share(case.wanted.text)):
        return None
    return msgspec.structs.replace(
        seen, form="degenerate", repeat=repeat, strange=round(strange, 4)
    )


def _compared(case: _Case, seen: Diagnosis) -> Diagnosis:
    """A copy of something, what only begins like one, or what came from nowhere."""
    ratio = likenesses(case.text, (case.wanted,))[0].ratio
    ratios = likenesses(case.text, case.others)
    seen = msgspec.structs.replace(seen, ratio=ratio, siblings=ratios)
    other = sibling_of(case.text, case.others, ratios)
    return (
        _crossed(case, seen, other)
        or _nearly(case, seen, ratios)
        or (other and _another(seen, *other))
        or _from_elsewhere(case, seen)
        or _from_nowhere(case, seen)
    )


def _crossed(case: _Case, seen: Diagnosis, other: tuple[Needle, float] | None) -> Diagnosis | None:
    """Right up to some character, and unrelated from there on."""
    kept = common(case.text, case.wanted.text)
    own = kept - (common(case.text, other[0].text) if other else 0)
    rest, expected = case.text[kept:], case.wanted.text[kept:]
    if own < RIGHT_BEGINNING or len(rest) < LEAST_REST:
        return None
    if max(alike(rest, expected), alike(rest, expected[: len(rest)])) >= UNRELATED:
        return None
    source = source_of(rest, case.messages, case.needles)
    if source is not None and source.turn == case.wanted.turn:
        return None  # a part was left out, or came twice
    return msgspec.structs.replace(seen, form="garbled", source=source)


def _nearly(case: _Case, seen: Diagnosis, ratios: tuple[Likeness, ...]) -> Diagnosis | None:
    """The wanted text with edits, or its beginning with edits."""
    ratio, text, wanted = seen.ratio or 0.0, case.text, case.wanted.text
    if ratio < max([MATCHED, *(likeness.ratio for likeness in ratios)]):
        is_begun = RIGHT_BEGINNING <= len(text) < len(wanted)
        if is_begun and alike(text, wanted[: len(text)]) >= MATCHED:
            return msgspec.structs.replace(seen, form=case.ended)
        return None
    if case.truncated and len(text) < len(wanted):
        return msgspec.structs.replace(seen, form="truncated")
    return _copy(case, seen, edited=edits(text, wanted))


def _another(seen: Diagnosis, needle: Needle, ratio: float) -> Diagnosis:
    source = Source(turn=needle.turn, ordinal=needle.ordinal, ratio=ratio)
    return msgspec.structs.replace(seen, form="wrong needle", source=source)


def _from_elsewhere(case: _Case, seen: Diagnosis) -> Diagnosis | None:
    """A piece of some message."""
    source = source_of(case.text, case.messages, case.needles)
    if source is None:
        return None
    if source.turn == case.wanted.turn:
        return _copy(case, seen, edited=edits(case.text, case.wanted.text))
    form: Form = "distractor" if source.ordinal is None else "wrong needle"
    return msgspec.structs.replace(seen, form=form, source=source)


def _from_nowhere(case: _Case, seen: Diagnosis) -> Diagnosis:
    """What the model says of its own."""
    if REFUSAL.search(case.text[:REFUSED_WITHIN]):
        return msgspec.structs.replace(seen, form="refusal")
    return msgspec.structs.replace(seen, form="truncated" if case.truncated else "unrelated")


def _copy(case: _Case, seen: Diagnosis, *, edited: int | None) -> Diagnosis:
    form = _WRONG_BEGINNING.get(case.nonce, "near copy")
    return msgspec.structs.replace(seen, form=form, edits=edited)
