"""What two results must have in common to be compared, and what may differ but is said. Pure.

What decides which question a sample asks and how its answer is graded must be the same. The server
may differ in everything: that is what is compared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mrcr_action.errors import UsageError
from mrcr_action.report.text import one_line
from mrcr_action.request import request_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mrcr_action.result import Result

SHOWN = 120
"""Characters shown of a value."""

_ABSENT = "none"


def check_comparable(a: Result, b: Result) -> None:
    """See that two results asked and graded alike.

    Raises:
        UsageError: they did not; it names every setting that differs, with both values.
    """
    differing = _differences(_settings(a), _settings(b))
    template = _template(a), _template(b)
    if all(template) and template[0] != template[1]:
        differing.append(("chat template and tokenizer", template[0][:12], template[1][:12]))
    refuse([(what, f"{in_a} in A, {in_b} in B") for what, in_a, in_b in differing])


def refuse(reasons: Sequence[tuple[str, str]]) -> None:
    """Say why two results are not compared, if there is a reason.

    Args:
        reasons: what differs, and both values.

    Raises:
        UsageError: there is one.
    """
    if not reasons:
        return
    hint = "Compare two runs of one plan: the same configuration but for the server."
    if any(what.startswith("chat template") for what, _ in reasons):
        hint += (
            " A chat template that tells the date differs from day to day: fix the date with"
            " chat_template_kwargs in extra_body."
        )
    if len(reasons) == 1:
        what, values = reasons[0]
        raise UsageError(f"A and B cannot be compared: {what}: {values}", hint=hint)
    raise UsageError(
        f"A and B cannot be compared: {len(reasons)} things differ",
        hint=hint,
        details="\n".join(f"{what}: {values}" for what, values in reasons),
    )


def notes_on(a: Result, b: Result) -> list[str]:
    """What a reader has to know of how two results came about, each a sentence."""
    notes = [
        f"{what}: {in_a} in A, {in_b} in B."
        for what, in_a, in_b in _differences(_circumstances(a), _circumstances(b))
    ]
    unseen = [name for name, result in (("A", a), ("B", b)) if not _template(result)]
    if unseen:
        notes.append(
            f"What the chat template made of a prompt is not known of {' and '.join(unseen)}, so"
            " that it could not be compared."
        )
    temperature = _request(b)["temperature"]
    if temperature != 0:
        told = "left to the server" if temperature is None else _shown(temperature)
        notes.append(
            f"The temperature is {told}: answers differ from run to run whatever the"
            " server does, and single samples say little."
        )
    for name, result in (("A", a), ("B", b)):
        if result.problem is not None:
            notes.append(f"{name} was stopped: {one_line(result.problem.message, SHOWN)}.")
    return notes


def _settings(result: Result) -> dict[str, Any]:
    """What must be the same."""
    config = result.config
    return {
        "protocol": config.protocol,
        "dataset": _dataset(result),
        "needles": sorted(config.needles),
        "merge_leading_user_turns": config.merge_leading_user_turns,
        **_request(result),
    }


def _request(result: Result) -> dict[str, Any]:
    """What is sent with every sample, whichever key of the configuration says so.

    Field by field, since a long object hides where it differs.
    """
    body = {"temperature": None, **request_body(result.config, "", ())}
    for other in ("model", "messages", "seed"):
        body.pop(other, None)
    own = ("temperature", "max_tokens")
    return {name if name in own else f"extra_body.{name}": body[name] for name in body}


def _circumstances(result: Result) -> dict[str, Any]:
    """What may differ, and is often what the comparison is about."""
    config, server = result.config, result.server
    return {
        "Model": result.model,
        "Model's source": server.root,
        "Server version": server.version,
        "Server image": server.image,
        "Server arguments": config.server_args,
        "Server environment": config.env,
        "Server's window": server.max_model_len,
        "Concurrency": config.concurrency,
        "Seed": config.seed,
        "mrcr version": result.tool_version,
    }


def _dataset(result: Result) -> str:
    """What the samples are of; a bundle is what it was taken from."""
    data = result.data
    if data.revision is None:
        # Their paths say nothing on another machine; the hash of each sample says all.
        return "files of one's own"
    return f"{data.origin or data.dataset} at {data.revision}"


def _template(result: Result) -> str:
    return result.preflight.fingerprint if result.preflight else ""


def _differences(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name and both values of everything that differs, in A's order, then B's."""
    absent: Any = object()
    return [
        (one_line(name, SHOWN), _of(a, name), _of(b, name))
        for name in dict.fromkeys((*a, *b))
        if a.get(name, absent) != b.get(name, absent)
    ]


def _of(values: dict[str, Any], name: str) -> str:
    return _shown(values[name]) if name in values else _ABSENT


def _shown(value: Any) -> str:
    if value is None or value in ((), {}, ""):
        return _ABSENT
    if isinstance(value, str):
        return one_line(value, SHOWN)
    if isinstance(value, tuple):
        return one_line(_joined(value), SHOWN)
    return one_line(json.dumps(value, ensure_ascii=False), SHOWN)


def _joined(words: Iterable[Any]) -> str:
    return " ".join(map(str, words))
