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

    from mrcr_action.config import RunConfig
    from mrcr_action.result import DataInfo, Result
    from mrcr_action.template import Preflight

Names = tuple[str, str]
"""What sentences call the two results."""

NAMES: Names = ("A", "B")

SHOWN = 120
"""Characters shown of a value."""

_ABSENT = "none"


def check_comparable(a: Result, b: Result, names: Names = NAMES) -> None:
    """See that two results asked and graded alike.

    Raises:
        UsageError: they did not; it names every setting that differs, with both values.
    """
    differing = differences(_settings(a.config, a.data), _settings(b.config, b.data))
    differing += _of_templates(a.preflight, b.preflight)
    refuse(_told(differing, names), names)


def check_settings(a: Result, config: RunConfig, data: DataInfo, names: Names = NAMES) -> None:
    """See that a run will ask and grade as a result did, as far as that shows before it.

    Args:
        a: the result.
        config: the run's, as it would stand in its result.
        data: the run's samples.
        names: what to call the two.

    Raises:
        UsageError: it will not; it names every setting that differs, with both values.
    """
    differing = differences(_settings(a.config, a.data), _settings(config, data))
    refuse(_told(differing, names), names)


def check_template(a: Result, seen: Preflight | None, names: Names = NAMES) -> None:
    """See that a chat template makes of a prompt what it made for a result, as far as both show.

    Raises:
        UsageError: it does not.
    """
    refuse(_told(_of_templates(a.preflight, seen), names), names)


def _of_templates(a: Preflight | None, b: Preflight | None) -> list[tuple[str, str, str]]:
    prints = _fingerprint(a), _fingerprint(b)
    if not all(prints) or prints[0] == prints[1]:
        return []
    return [("chat template and tokenizer", prints[0][:12], prints[1][:12])]


def _told(differing: Iterable[tuple[str, str, str]], names: Names) -> list[tuple[str, str]]:
    return [(what, f"{in_a} in {names[0]}, {in_b} in {names[1]}") for what, in_a, in_b in differing]


def refuse(reasons: Sequence[tuple[str, str]], names: Names = NAMES) -> None:
    """Say why two results are not compared, if there is a reason.

    Args:
        reasons: what differs, and both values.
        names: what to call the two.

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
        raise UsageError(f"{' and '.join(names)} cannot be compared: {what}: {values}", hint=hint)
    raise UsageError(
        f"{' and '.join(names)} cannot be compared: {len(reasons)} things differ",
        hint=hint,
        details="\n".join(f"{what}: {values}" for what, values in reasons),
    )


def notes_on(a: Result, b: Result, names: Names = NAMES) -> list[str]:
    """What a reader has to know of how two results came about, each a sentence."""
    notes = [
        f"{what}: {values}."
        for what, values in _told(differences(_circumstances(a), _circumstances(b)), names)
    ]
    sides = tuple(zip(names, (a, b), strict=True))
    unseen = [name for name, result in sides if not _fingerprint(result.preflight)]
    if unseen:
        notes.append(
            f"What the chat template made of a prompt is not known of {' and '.join(unseen)}, so"
            " that it could not be compared."
        )
    temperature = _request(b.config)["temperature"]
    if temperature != 0:
        told = "left to the server" if temperature is None else _shown(temperature)
        notes.append(
            f"The temperature is {told}: answers differ from run to run whatever the"
            " server does, and single samples say little."
        )
    for name, result in sides:
        if result.problem is not None:
            begin = f"{name[:1].upper()}{name[1:]} was stopped"
            notes.append(f"{begin}: {one_line(result.problem.message, SHOWN)}.")
        if result.stopped is not None:
            did = f"asked only {result.stopped.asked:,} of {result.stopped.planned:,} requests"
            notes.append(f"{name[:1].upper()}{name[1:]} {did}, since its verdict was certain then.")
    return notes


def _settings(config: RunConfig, data: DataInfo) -> dict[str, Any]:
    """What must be the same."""
    return {
        "protocol": config.protocol,
        "dataset": dataset_of(data),
        "needles": sorted(config.needles),
        "merge_leading_user_turns": config.merge_leading_user_turns,
        **_request(config),
    }


def _request(config: RunConfig) -> dict[str, Any]:
    """What is sent with every sample, whichever key of the configuration says so.

    Field by field, since a long object hides where it differs.
    """
    body = {"temperature": None, **request_body(config, "", ())}
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
        "Responses without the nonce": "cut" if config.cut_without_nonce else "read to their end",
        "mrcr version": result.tool_version,
    }


def dataset_of(data: DataInfo) -> str:
    """What the samples are of; a bundle is what it was taken from."""
    if data.revision is None:
        # Their paths say nothing on another machine; the hash of each sample says all.
        return "files of one's own"
    return f"{data.origin or data.dataset} at {data.revision}"


def _fingerprint(seen: Preflight | None) -> str:
    return seen.fingerprint if seen else ""


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name and both values, as texts, of everything that differs, in A's order, then B's."""
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
