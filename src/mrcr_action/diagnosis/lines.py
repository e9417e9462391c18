"""A diagnosis in words. Nothing here is foreign but a server's own reason; it is not escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.diagnosis.breakdown import forms_of
from mrcr_action.diagnosis.edits import MOST_EDITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mrcr_action.diagnosis.evidence import Diagnosis, FirstWrong
    from mrcr_action.result import Record


def told(record: Record) -> str:
    """What happened to one ask; for a record without a diagnosis, what its grade says of it."""
    found = record.diagnosis
    if found is None:
        return _by_grade(record)
    if found.form in {"rejected", "failed"}:
        return record.reason
    words = _WORDS[found.form](found, record)
    if record.outcome == "truncated" and found.form not in {"truncated", "empty"}:
        words += "; cut at max_tokens"
    if found.nonce != "first" and found.form in _OF_TEXT:
        words += f"; {_NONCE[found.nonce]}"
    return words


def tally(records: Sequence[Record]) -> str:
    """How many responses are exact, and what the others are; empty without a diagnosis."""
    forms = forms_of(record for record in records if record.attempts)
    if not forms:
        return ""
    total = sum(forms.values())
    exact = forms.pop("exact", 0)
    others = ", ".join(f"{count} {form}" for form, count in forms.items())
    return f"{exact} of {total} exact" + (f"; {others}" if others else "")


def _by_grade(record: Record) -> str:
    """The words of documents of before there was a diagnosis."""
    if record.grade is None:
        return record.reason
    if record.outcome == "truncated":
        return _cut_at_max(record)
    if record.finish_reason == "cut" and record.digest is None:
        return "cut, since it could no longer start with the nonce"
    if not record.grade.nonce_hit:
        return "the answer does not start with the nonce"
    return "not the wanted text"


def _cut_at_max(record: Record) -> str:
    thought = f", after {record.reasoning_chars:,} characters of reasoning"
    return "cut at max_tokens" + (thought if record.reasoning_chars else "")


def _near_copy(found: Diagnosis, _: Record) -> str:
    return f"the wanted text with {_edits(found)}, the first {_where(found)}"


def _wrong_needle(found: Diagnosis, _: Record) -> str:
    source, wanted = found.source, found.wanted
    assert source is not None
    assert wanted is not None
    own = "" if found.ratio is None else f", the wanted one {found.ratio:.2f}"
    return (
        f"needle {source.ordinal} of {wanted.of} instead of {wanted.ordinal}"
        f" (turn {source.turn}, ratio {source.ratio:.2f}{own})"
    )


def _distractor(found: Diagnosis, _: Record) -> str:
    assert found.source is not None
    share = 1.0 if found.source.share is None else found.source.share
    return f"text of another turn: about {share:.0%} of it stands in turn {found.source.turn}"


def _no_nonce(found: Diagnosis, _: Record) -> str:
    before = f", {found.lead:,} other characters before it" if found.lead else ""
    return f"{_text(found)} without the nonce{before}"


def _other_nonce(found: Diagnosis, _: Record) -> str:
    return f"another nonce, and behind it {_text(found)}"


def _not_first(found: Diagnosis, _: Record) -> str:
    return f"{found.lead:,} characters before the nonce, and behind it {_text(found)}"


def _truncated(found: Diagnosis, record: Record) -> str:
    right = found.first_wrong.offset if found.first_wrong is not None else 0
    return f"{_cut_at_max(record)}; right up to character {right:,}"


def _stopped(found: Diagnosis, record: Record) -> str:
    after = f" after {record.completion_tokens:,} tokens" if record.completion_tokens else ""
    return f"ended by itself{after} within the wanted text: wrong or missing {_where(found)}"


def _ran_on(_: Diagnosis, __: Record) -> str:
    return "the whole answer, and more behind it"


def _garbled(found: Diagnosis, _: Record) -> str:
    words = f"wrong {_where(found)}, and unrelated from there on"
    if found.source is None:
        return words
    needle = f" (needle {found.source.ordinal})" if found.source.ordinal else ""
    return f"{words}: it goes on with turn {found.source.turn}{needle}"


def _degenerate(found: Diagnosis, _: Record) -> str:
    if found.repeat is None:
        return f"no text: {found.strange:.0%} of it are control or replacement characters"
    repeat = found.repeat
    return (
        f"from character {repeat.offset:,} on, {repeat.times:,} times the same"
        f" {repeat.period} characters"
    )


def _empty(_: Diagnosis, record: Record) -> str:
    thought = f" after {record.reasoning_chars:,} characters of reasoning"
    cut = ", cut at max_tokens" if record.outcome == "truncated" else ""
    return f"no text{thought if record.reasoning_chars else ''}{cut}"


def _unrelated(found: Diagnosis, _: Record) -> str:
    ratio = "" if found.ratio is None else f" (ratio {found.ratio:.2f} to the wanted text)"
    return f"text of no piece of the conversation{ratio}"


_WORDS: dict[str, Callable[[Diagnosis, Record], str]] = {
    "exact": lambda _, __: "exact",
    "near copy": _near_copy,
    "wrong needle": _wrong_needle,
    "distractor": _distractor,
    "no nonce": _no_nonce,
    "other nonce": _other_nonce,
    "nonce not first": _not_first,
    "truncated": _truncated,
    "stopped early": _stopped,
    "ran on": _ran_on,
    "garbled": _garbled,
    "degenerate": _degenerate,
    "refusal": lambda _, __: "a refusal",
    "empty": _empty,
    "cut": lambda _, __: "cut, since it could no longer start with the nonce",
    "unrelated": _unrelated,
}
_OF_TEXT = {"wrong needle", "distractor", "truncated", "stopped early", "garbled", "unrelated"}
"""Forms that say nothing of the nonce."""

_NONCE = {
    "absent": "no nonce",
    "other": "another nonce",
    "later": "the nonce not first",
}


def _text(found: Diagnosis) -> str:
    return "the right text" if found.edits == 0 else f"the wanted text with {_edits(found)}"


def _edits(found: Diagnosis) -> str:
    if found.edits is None:
        return f"more than {MOST_EDITS} edits"
    return f"{found.edits} {'edit' if found.edits == 1 else 'edits'}"


def _where(found: Diagnosis) -> str:
    return "somewhere" if found.first_wrong is None else f"at {_place(found.first_wrong)}"


def _place(first: FirstWrong) -> str:
    if first.place is None:
        return f"character {first.offset:,}"
    token = "" if first.place.token is None else f", about token {first.place.token:,}"
    return (
        f"character {first.offset:,} (in the prompt turn {first.place.turn}, character"
        f" {first.place.char:,}{token})"
    )
