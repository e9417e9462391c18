"""What can be made to go wrong, and when: ``NAME[=VALUE][@WHEN]``.

WHEN says which questions of MRCR a fault hits, counted from 1 in the order they arrive: ``3``,
``2-5``, ``3-`` (from the third on), ``%4`` (every fourth), ``~0.1`` (a tenth of them, the same
ones each time), or a list of these with commas. Without it, all chat requests. A request that asks
no question of MRCR has no number, so that the n-th is always the n-th sample.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mrcr_action.standin.draws import parse_share
from mrcr_action.standin.tokens import parse_token_count
from mrcr_action.standin.when import When, parse_when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def _takes(
    value: str,
    parse: Callable[[str], float] | None,
    help_text: str,
    *,
    timed: bool = True,
    unsaid: float | None = None,
) -> Mapping[str, Any]:
    """What is said of a fault; with ``unsaid``, its value may be left out and is that then."""
    return {"value": value, "parse": parse, "help": help_text, "timed": timed, "unsaid": unsaid}


def _tokens(text: str) -> int:
    return parse_token_count(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _size(text: str) -> int:
    tokens = parse_token_count(text)
    if tokens == 0:
        raise ValueError("there is no multiple of 0")
    return tokens


def _crowd(text: str) -> int:
    if _count(text) == 0:
        raise ValueError("at least 1 completion runs when one is answered")
    return int(text)


def parse_seconds(text: str) -> float:
    """Read a length of time in seconds, 0 or more.

    Raises:
        ValueError: the text is no such number.
    """
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", text):
        raise ValueError(f"{text!r} is not a number of seconds")
    return float(text)


def _rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", text) or float(text) == 0:
        raise ValueError(f"{text!r} is not a rate above 0")
    return float(text)


def _status(text: str) -> int:
    if not re.fullmatch(r"[2-5][0-9]{2}", text):
        raise ValueError(f"{text!r} is not a status from 200 to 599")
    return int(text)


def _exit_code(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > 255:  # noqa: PLR2004 - POSIX's limit
        raise ValueError(f"{text!r} is not an exit code from 0 to 255")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What goes wrong with one chat request; nothing does by default.

    A field is a fault, with ``_`` for the ``-`` of its name; None or False is "switched off".
    """

    window: int | None = field(
        default=None,
        metadata=_takes("TOKENS", _tokens, "see only so much before the question"),
    )
    drop_nonce: bool = field(default=False, metadata=_takes("", None, "leave the nonce out"))
    wrong_needle: bool = field(
        default=False, metadata=_takes("", None, "answer another of the identical requests")
    )
    distractor: bool = field(
        default=False, metadata=_takes("", None, "answer with the reply to another request")
    )
    wrong_nonce: bool = field(
        default=False, metadata=_takes("", None, "put another nonce in front")
    )
    derail: int | None = field(
        default=None,
        metadata=_takes("TOKENS", _tokens, "go on with something else after so many"),
    )
    loop: int | None = field(
        default=None,
        metadata=_takes("TOKENS", _tokens, "say one thing over and over after so many"),
    )
    run_on: bool = field(
        default=False, metadata=_takes("", None, "go on behind the end of the answer")
    )
    refuse: bool = field(default=False, metadata=_takes("", None, "say sorry instead of answering"))
    garble: bool = field(
        default=False, metadata=_takes("", None, "replace characters after the nonce")
    )
    truncate: int | None = field(
        default=None, metadata=_takes("TOKENS", _tokens, 'end with "length" after so many')
    )
    stop_early: int | None = field(
        default=None, metadata=_takes("TOKENS", _tokens, 'end with "stop" after so many')
    )
    status: int | None = field(
        default=None, metadata=_takes("CODE", _status, "refuse with this HTTP status")
    )
    retry_after: int | None = field(
        default=None, metadata=_takes("SECONDS", _count, "refuse with 429 and Retry-After")
    )
    stall: float | None = field(
        default=None, metadata=_takes("SECONDS", parse_seconds, "wait before the headers")
    )
    stall_mid: float | None = field(
        default=None, metadata=_takes("SECONDS", parse_seconds, "wait in the middle of the answer")
    )
    reset: bool = field(
        default=False, metadata=_takes("", None, "reset the connection before the answer")
    )
    reset_mid: bool = field(
        default=False, metadata=_takes("", None, "reset the connection in the middle")
    )
    cut: bool = field(
        default=False, metadata=_takes("", None, "end in the middle as if all were said")
    )
    no_done: bool = field(default=False, metadata=_takes("", None, "leave out data: [DONE]"))
    abort: bool = field(
        default=False, metadata=_takes("", None, 'end with "abort" after half of the text')
    )
    error_event: bool = field(
        default=False, metadata=_takes("", None, "send an error inside a stream of status 200")
    )
    empty: bool = field(default=False, metadata=_takes("", None, "200 with an empty body"))
    think: int | None = field(
        default=None, metadata=_takes("CHARACTERS", _count, "send so much reasoning first")
    )
    think_old: int | None = field(
        default=None, metadata=_takes("CHARACTERS", _count, "likewise, as reasoning_content")
    )
    think_aloud: int | None = field(
        default=None, metadata=_takes("CHARACTERS", _count, "likewise, as <think> in the content")
    )
    null_content: bool = field(
        default=False, metadata=_takes("", None, 'no content at all, and "length"')
    )
    keepalive: bool = field(
        default=False, metadata=_takes("", None, "put comment lines between the events")
    )
    crlf: bool = field(default=False, metadata=_takes("", None, "end lines of events in CRLF"))
    no_usage: bool = field(default=False, metadata=_takes("", None, "leave out the usage"))
    slow: float | None = field(
        default=None, metadata=_takes("TOKENS_PER_SECOND", _rate, "generate at this speed")
    )
    die: int | None = field(
        default=None, metadata=_takes("EXIT_CODE", _exit_code, "exit in the middle of the answer")
    )
    unhealthy: bool = field(
        default=False,
        metadata=_takes("", None, "/health is 503, for good once a request was hit"),
    )
    strict_roles: bool = field(
        default=False,
        metadata=_takes("", None, "refuse roles that do not alternate", timed=False),
    )
    no_tokenize: bool = field(
        default=False, metadata=_takes("", None, "/tokenize is 404", timed=False)
    )
    no_max_model_len: bool = field(
        default=False,
        metadata=_takes("", None, "/v1/models does not tell max_model_len", timed=False),
    )
    html: bool = field(default=False, metadata=_takes("", None, "200 with a proxy's page in HTML"))
    stale_hit: int | None = field(
        default=None,
        metadata=_takes(
            "TOKENS", _tokens, "wrong if more than TOKENS (0) came from the cache", unsaid=0
        ),
    )
    evicted_hit: bool = field(
        default=False,
        metadata=_takes("", None, "wrong if the prompt was cached and evicted before"),
    )
    block_edge: int | None = field(
        default=None,
        metadata=_takes("TOKENS", _size, "wrong if the prompt ends 1-24 past a multiple of it"),
    )
    batch: int | None = field(
        default=None,
        metadata=_takes("N", _crowd, "a few other characters if N completions run at once"),
    )
    lead: float | None = field(
        default=None,
        metadata=_takes("NATS", _rate, "tokens lead the second best by no more than that"),
    )
    no_logprobs: bool = field(
        default=False, metadata=_takes("", None, "refuse to give log-probabilities", timed=False)
    )
    noise: float | None = field(
        default=None,
        metadata=_takes("SHARE", parse_share, "so many completions, drawn anew, are imperfect"),
    )


_KNOWN = {known.name.replace("_", "-"): known for known in fields(Effects)}


@dataclass(frozen=True, slots=True)
class Fault:
    """One ``--fault``."""

    name: str
    value: float | bool
    """True for a fault that takes no value."""
    when: When | None
    """None: all requests, and what is asked outside them."""

    def hits(self, ordinal: int) -> bool:
        """Whether this fault hits the chat request of this number, from 1."""
        return self.when is None or any(part.hits(ordinal, self.name) for part in self.when)


@dataclass(frozen=True)
class FaultPlan:
    """All faults that are switched on; of two that say different things, the later one counts."""

    faults: tuple[Fault, ...] = ()

    def at(self, ordinal: int | None) -> Effects:
        """What goes wrong with the chat request of this number, from 1; None: it has none."""
        if ordinal is None:
            return self.always
        return _effects(fault for fault in self.faults if fault.hits(ordinal))

    @cached_property
    def always(self) -> Effects:
        """What is wrong without regard to a number: the faults without a WHEN."""
        return _effects(fault for fault in self.faults if fault.when is None)


def parse_fault(text: str) -> Fault:
    """Read ``NAME[=VALUE][@WHEN]``.

    Raises:
        ValueError: unknown name, missing or bad value, or bad WHEN; the text lists what is valid.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise ValueError(f"fault {text!r}: {error}\nthe faults are:\n{describe_faults()}") from None


def describe_faults() -> str:
    """All faults, a line each, for the help and for error messages."""
    return "\n".join(
        f"  {_usage(name):<32}{known.metadata['help']}" for name, known in _KNOWN.items()
    )


def _parse(text: str) -> Fault:
    head, at, when = text.partition("@")
    name, equals, value = head.partition("=")
    known = _KNOWN.get(name)
    if known is None:
        raise ValueError(f"there is no fault {name!r}")
    parse: Callable[[str], float] | None = known.metadata["parse"]
    if parse is None and equals:
        raise ValueError(f"it takes no value, write {_usage(name)}")
    unsaid = known.metadata["unsaid"]
    if parse is not None and not value and (equals or unsaid is None):
        raise ValueError(f"it needs a value, write {_usage(name)}")
    if at and not known.metadata["timed"]:
        raise ValueError("it takes no @WHEN, as no chat request is hit by it")
    parsed = True if parse is None else parse(value) if equals else unsaid
    return Fault(name, parsed, parse_when(when) if at else None)


def _usage(name: str) -> str:
    metadata = _KNOWN[name].metadata
    value = f"={metadata['value']}" if metadata["value"] else ""
    if metadata["unsaid"] is not None:
        value = f"[{value}]"
    return f"{name}{value}" + ("[@WHEN]" if metadata["timed"] else "")


def _effects(faults: Iterable[Fault]) -> Effects:
    values: dict[str, Any] = {fault.name.replace("-", "_"): fault.value for fault in faults}
    return Effects(**values)
