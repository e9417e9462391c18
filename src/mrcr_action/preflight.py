"""The look at the chat template before a run: a tiny conversation of MRCR's shape, asked once.

What would make every sample of a run fail alike, or cost more than it must, is said once, with the
remedy, before anything long is sent. /tokenize renders the conversation where the server has it;
one short chat completion shows the rest and has the last word.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrcr_action.client import ApiError, Client, Denied, Rejected, TimedOut, Tokenized, Unavailable
from mrcr_action.client.retry import retried
from mrcr_action.errors import ServerError, TemplateError, UsageError
from mrcr_action.request import request_body, template_kwargs
from mrcr_action.sample import Message
from mrcr_action.template import Preflight, merge_leading_user_turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.client import Completion
    from mrcr_action.config import RunConfig

__all__ = ["Preflight", "merge_leading_user_turns", "preflight"]

CHAT_SECONDS = 60.0
"""Longest wait for the answer to the tiny conversation; the run itself may be more patient."""

TOKENIZE_SECONDS = 30.0
"""Longest wait for all questions to /tokenize together."""

ANSWER_TOKENS = 32
"""Long enough to see thinking begin."""

_ASK = Message("user", "Reply with the word OK.")
_REPLY = Message("assistant", "OK.")
# Scripts, digits, marks and an emoji, so that two tokenizers hardly split it alike.
_TEXTS = "A check: naïve Ελλάς 中文 עברית 🙂 **1234567**\n\tx += 0.5;"
TINY = (Message("user", _TEXTS), _ASK, _REPLY, _ASK)
"""A conversation as short as its shape allows: two user turns, a reply, a question."""

THOUGHTS = ("<think>", "<thinking>", "<seed:think>", "[THINK]", "◁think▷", "<|channel|>analysis")
"""How thoughts begin that a server hands out as if they were the answer."""

_MERGED = (
    "The first two messages of every row are sent as one user turn (merge_leading_user_turns): the"
    " scores are not comparable with those of other runs."
)
_NEEDLESS = (
    "The chat template takes two user turns in a row, so merge_leading_user_turns is not needed."
)
_THINKS = (
    "The model thinks although chat_template_kwargs ask it not to (enable_thinking: false): answers"
    " cost more tokens and may be cut at max_tokens. Set the model's own switch in extra_body, or a"
    " larger max_tokens."
)
_LEAVES_OUT = (
    "The chat template renders fewer tokens than the messages hold: it seems to leave some of them"
    " out."
)
_REMEDY = (
    "Set merge_leading_user_turns: true (scores are then not comparable with others), or serve with"
    " another --chat-template."
)


async def preflight(client: Client, *, config: RunConfig, model: str, merge: bool) -> Preflight:
    """Ask a tiny conversation as the run will ask its samples, and say what that shows.

    Args:
        client: the server.
        config: what is sent with every request.
        model: the served name.
        merge: whether the run merges the first two turns of every row.

    Returns:
        What was seen. A server in trouble (5xx, time-outs, resets) ends nothing here: what could
        not be seen is None, and the run itself will judge.

    Raises:
        TemplateError: the template refuses two user turns in a row and takes them merged.
        ServerError: the server refuses every request of this kind, merged or not.
        UsageError: the server refuses the key, the model or the route.
    """
    kwargs = template_kwargs(config)
    look = await _look(client, model, kwargs, merge=merge)
    notes = [_MERGED] if merge else []
    if merge and look.two_user_turns:
        notes.append(_NEEDLESS)
    if look.overhead_tokens is not None and look.overhead_tokens < 0:
        notes.append(_LEAVES_OUT)
    two_user_turns = look.two_user_turns
    completion: Completion | None = None
    try:
        completion = await _chat(client, config, model, _asked(merge=merge))
    except Rejected as refused:
        unclear = await _judge_refusal(client, config, model, look, refused, merge=merge)
        notes.append(f"{unclear}, so the chat template could not be checked.")
    except Denied as denied:
        raise UsageError(
            f"the server refuses the requests: {denied}",
            hint="Check the API key (MRCR_API_KEY) and the model name.",
        ) from denied
    except ApiError as trouble:
        if look.refusal is not None and not merge:
            raise _template_error(look.refusal) from look.refusal
        notes.append(
            f"The tiny request before the run got no answer ({_kind(trouble)}), so the chat"
            " template was not checked with one."
        )
    else:
        # The answer counts more than /tokenize, which may know another template.
        two_user_turns = two_user_turns if merge else True
    thinks = None
    if kwargs.get("enable_thinking") is False:
        thinks = _thinks(completion, look.opens_thought)
        if thinks:
            notes.append(_THINKS)
    return Preflight(
        two_user_turns=two_user_turns,
        merged=merge,
        thinks=thinks,
        overhead_tokens=look.overhead_tokens,
        tokens_per_message=look.tokens_per_message,
        fingerprint=look.fingerprint,
        notes=tuple(notes),
    )


@dataclass(slots=True)
class _Look:
    """What /tokenize showed, as far as it came."""

    two_user_turns: bool | None = None
    refusal: Rejected | None = None
    """Of two user turns, by a template that takes them merged."""
    overhead_tokens: int | None = None
    tokens_per_message: float | None = None
    fingerprint: str = ""
    opens_thought: bool = False
    """The prompt itself ends within a thought."""


async def _look(client: Client, model: str, kwargs: Mapping[str, Any], *, merge: bool) -> _Look:
    look = _Look()
    try:
        async with asyncio.timeout(TOKENIZE_SECONDS):
            await _fill(look, client, model, kwargs, merge=merge)
    except (ApiError, TimeoutError):
        pass  # without /tokenize, or with one in trouble: the chat completion shows what matters
    return look


async def _fill(
    look: _Look, client: Client, model: str, kwargs: Mapping[str, Any], *, merge: bool
) -> None:
    async def rendered(messages: Sequence[Message]) -> Tokenized:
        return await client.tokenize(model, messages, template_kwargs=kwargs)

    try:
        whole = await rendered(TINY)
        look.two_user_turns = True
    except Rejected as refused:
        whole = await rendered(merge_leading_user_turns(TINY))
        look.two_user_turns, look.refusal = False, refused
    else:
        if merge:
            whole = await rendered(merge_leading_user_turns(TINY))
    if look.refusal is not None and not merge:
        return
    if whole.ids is not None:
        look.fingerprint = hashlib.sha256(",".join(map(str, whole.ids)).encode()).hexdigest()
    look.opens_thought = whole.text.rfind("<think>") > whole.text.rfind("</think>")
    asked = _asked(merge=merge)
    sizes = {
        text: (await client.tokenize_text(model, text)).count
        for text in dict.fromkeys(message.content for message in asked)
    }
    look.overhead_tokens = whole.count - sum(sizes[message.content] for message in asked)
    longer = await rendered((*asked, _REPLY, _ASK))
    contents = sizes[_REPLY.content] + sizes[_ASK.content]
    look.tokens_per_message = (longer.count - whole.count - contents) / 2


def _asked(*, merge: bool) -> tuple[Message, ...]:
    return merge_leading_user_turns(TINY) if merge else TINY


async def _chat(
    client: Client, config: RunConfig, model: str, messages: Sequence[Message]
) -> Completion:
    """The answer to a conversation, within `CHAT_SECONDS`; asked with the run's own fields.

    Raises:
        ApiError: as `Client.chat` does; a `TimedOut` also for one that takes too long.
    """
    own = request_body(config, model, messages)
    small = own | {"max_tokens": min(ANSWER_TOKENS, config.max_tokens)}
    for other_limit in ("max_completion_tokens", "min_tokens"):
        small.pop(other_limit, None)
    try:
        async with asyncio.timeout(CHAT_SECONDS):
            try:
                return await retried(lambda: client.chat(small))
            except Rejected:
                if not config.request_extras.keys() - {"chat_template_kwargs"}:
                    raise
                # A field of extra_body may not go with so few tokens, and the run sends more.
                return await retried(lambda: client.chat(own))
    except TimeoutError as error:
        raise TimedOut(f"no complete answer within {CHAT_SECONDS:g} s") from error


async def _judge_refusal(
    client: Client,
    config: RunConfig,
    model: str,
    look: _Look,
    refused: Rejected,
    *,
    merge: bool,
) -> str:
    """What a refusal of the tiny conversation means.

    Returns:
        Why that cannot be told, as the beginning of a sentence.

    Raises:
        TemplateError, ServerError: as `preflight` does.
    """
    if not merge and look.refusal is not None:
        raise _template_error(look.refusal) from refused
    if not merge:
        try:
            await _chat(client, config, model, merge_leading_user_turns(TINY))
        except Rejected:
            pass
        except ApiError as trouble:
            return (
                f"The tiny request before the run was refused (HTTP {refused.status}), and its"
                f" other form got no answer ({_kind(trouble)})"
            )
        else:
            raise _template_error(refused) from refused
    raise ServerError(
        f"the server refuses even a tiny request: {refused}",
        hint="Every sample would be refused alike. A field that the server does not take is left"
        " out with null in extra_body.",
    ) from refused


def _template_error(refusal: Rejected) -> TemplateError:
    return TemplateError(
        f"the chat template refuses two user turns in a row, as every row begins: {refusal}",
        hint=_REMEDY,
    )


def _thinks(completion: Completion | None, opens_thought: bool) -> bool | None:  # noqa: FBT001
    """Whether thoughts came; None without an answer that shows it."""
    if opens_thought:
        return True
    if completion is None:
        return None
    if completion.reasoning_chars or completion.text.lstrip().startswith(THOUGHTS):
        return True
    # Nothing shown at all: a server may keep the thoughts to itself.
    return False if completion.text.strip() else None


def _kind(trouble: ApiError) -> str:
    """A trouble without the server's own words, which may hold what no report may show."""
    if trouble.status is not None:
        return f"HTTP {trouble.status}"
    if isinstance(trouble, TimedOut):
        return "none in time"
    return "no connection" if isinstance(trouble, Unavailable) else "it broke off"
