from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from mrcr_action import preflight as module
from mrcr_action.client import Client
from mrcr_action.client.retry import ATTEMPTS
from mrcr_action.config import RunConfig
from mrcr_action.errors import ExitCode, MrcrError, ServerError, TemplateError, UsageError
from mrcr_action.preflight import TINY, Preflight, merge_leading_user_turns, preflight
from mrcr_action.sample import Message

ROLES = "Conversation roles must alternate user/assistant/user/assistant/..."
Reply = httpx.Response | Exception
Handler = Callable[[dict[str, Any]], Reply]


def streamed(text: str = "OK", *, reasoning: str = "", finish: str = "stop") -> httpx.Response:
    delta = {"content": text, "reasoning": reasoning}
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return httpx.Response(
        200,
        text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n",
        headers={"content-type": "text/event-stream"},
    )


def refusal(words: str = ROLES, status: int = 400) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": words, "code": status}})


def alternates(body: dict[str, Any]) -> bool:
    roles = [message["role"] for message in body["messages"]]
    return roles == (["user", "assistant"] * len(roles))[: len(roles)]


class Server:
    """Renders as a template does that adds five tokens a message; a token is a character."""

    def __init__(
        self,
        *,
        chat: Handler | None = None,
        tokenize: Handler | None = None,
        strict: bool = False,
        prompt_end: str = "",
    ) -> None:
        self.chat, self.tokenize, self.strict = chat, tokenize, strict
        self.prompt_end = prompt_end
        self.asked: list[dict[str, Any]] = []
        """Bodies of the chat completions."""
        self.rendered: list[dict[str, Any]] = []
        """Bodies sent to /tokenize."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        reply = self._chat(body) if "chat" in request.url.path else self._tokenize(body)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _chat(self, body: dict[str, Any]) -> Reply:
        self.asked.append(body)
        if self.strict and not alternates(body):
            return refusal()
        return self.chat(body) if self.chat else streamed()

    def _tokenize(self, body: dict[str, Any]) -> Reply:
        self.rendered.append(body)
        if self.tokenize is not None:
            return self.tokenize(body)
        if "prompt" in body:
            text = body["prompt"]
        else:
            if self.strict and not alternates(body):
                return refusal()
            text = "".join(f"[{m['role'][0]}]{m['content']};\n" for m in body["messages"])
            text += self.prompt_end
        tokens = {"tokens": [ord(c) for c in text], "token_strs": list(text)}
        return httpx.Response(200, json={"count": len(text), **tokens})


def look(server: Server, *, merge: bool = False, **keys: Any) -> Preflight:
    async def body() -> Preflight:
        transport = httpx.MockTransport(server)
        async with Client("http://server", transport=transport, request_timeout=9) as client:
            return await preflight(client, config=RunConfig(**keys), model="m", merge=merge)

    return asyncio.run(body())


def problem(server: Server, *, merge: bool = False, **keys: Any) -> MrcrError:
    with pytest.raises(MrcrError) as caught:
        look(server, merge=merge, **keys)
    assert "\n" not in str(caught.value)
    return caught.value


def no_tokenize(_: dict[str, Any]) -> httpx.Response:
    return httpx.Response(404)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrcr_action.client.retry.FIRST_PAUSE", 0.0)


def test_a_lenient_template_gives_its_figures_and_no_notes() -> None:
    seen = look(Server())

    assert (seen.two_user_turns, seen.merged, seen.thinks) == (True, False, False)
    assert seen.overhead_tokens == 4 * 5
    assert seen.tokens_per_message == 5.0
    assert len(bytes.fromhex(seen.fingerprint)) == 32
    assert seen.notes == ()
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Preflight) == seen


def test_one_completion_is_asked_with_the_runs_own_fields_and_a_small_limit() -> None:
    server = Server()
    extra = {"top_k": None, "stop": ["x"], "max_completion_tokens": 9000, "min_tokens": 100}
    look(server, seed=3, extra_body=extra)

    (body,) = server.asked
    assert [m["role"] for m in body["messages"]] == ["user", "user", "assistant", "user"]
    assert (body["max_tokens"], body["seed"], body["stop"]) == (32, 3, ["x"])
    assert body.keys().isdisjoint({"top_k", "max_completion_tokens", "min_tokens"})
    look(server, max_tokens=7)
    assert server.asked[-1]["max_tokens"] == 7


def test_the_template_is_rendered_with_the_arguments_of_the_run() -> None:
    server = Server()
    look(server, extra_body={"chat_template_kwargs": {"thinking": False}})

    kwargs = [body["chat_template_kwargs"] for body in server.rendered if "messages" in body]
    assert kwargs
    assert all(given == {"thinking": False} for given in kwargs)


def test_the_fingerprint_changes_with_the_template_and_not_from_look_to_look() -> None:
    same, again = look(Server()).fingerprint, look(Server()).fingerprint

    assert same == again
    assert look(Server(prompt_end="<bot>")).fingerprint != same
    assert look(Server(), merge=True).fingerprint != same


@pytest.mark.parametrize("tokenize", [None, no_tokenize])
def test_a_strict_template_is_named_with_its_words_and_the_remedy(
    tokenize: Handler | None,
) -> None:
    error = problem(Server(strict=True, tokenize=tokenize))

    assert type(error) is TemplateError
    assert error.exit_code == ExitCode.CANNOT_JUDGE
    assert str(error) == (
        f"the chat template refuses two user turns in a row, as every row begins: HTTP 400: {ROLES}"
    )
    assert error.hint == (
        "Set merge_leading_user_turns: true (scores are then not comparable with others), or"
        " serve with another --chat-template."
    )


def test_a_strict_template_is_known_by_what_it_takes_and_not_by_its_words() -> None:
    def chat(body: dict[str, Any]) -> Reply:
        return streamed() if alternates(body) else refusal("Nein.", 422)

    error = problem(Server(chat=chat, tokenize=no_tokenize))

    assert type(error) is TemplateError
    assert str(error).endswith("HTTP 422: Nein.")


def test_a_strict_template_costs_no_generation_where_tokenize_shows_it() -> None:
    server = Server(strict=True)
    problem(server)

    assert len(server.asked) == 1


def roles_only(body: dict[str, Any]) -> httpx.Response:
    """A /tokenize that counts nothing and refuses roles that do not alternate."""
    return httpx.Response(200, json={"count": 1}) if alternates(body) else refusal()


@pytest.mark.parametrize("trouble", [httpx.Response(502), httpx.ReadTimeout("")])
def test_a_strict_template_is_seen_though_no_completion_comes(trouble: Reply) -> None:
    assert type(problem(Server(chat=lambda _: trouble, tokenize=roles_only))) is TemplateError


def test_a_completion_that_comes_counts_more_than_a_refusal_by_tokenize() -> None:
    assert look(Server(tokenize=roles_only)).two_user_turns is True


def test_merged_turns_pass_a_strict_template_and_are_said_not_to_be_comparable() -> None:
    server = Server(strict=True)
    seen = look(server, merge=True)

    assert (seen.two_user_turns, seen.merged) == (False, True)
    assert seen.overhead_tokens == 3 * 5
    assert seen.tokens_per_message == 5.0
    assert [m["role"] for m in server.asked[0]["messages"]] == ["user", "assistant", "user"]
    (note,) = seen.notes
    assert "not comparable" in note


def test_merging_without_need_is_noted() -> None:
    seen = look(Server(), merge=True)

    assert seen.two_user_turns is True
    assert any("is not needed" in note for note in seen.notes)


def test_without_tokenize_merging_hides_whether_it_was_needed() -> None:
    seen = look(Server(tokenize=no_tokenize), merge=True)

    assert seen.two_user_turns is None
    assert len(seen.notes) == 1


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("tokenize", [None, no_tokenize])
def test_a_refusal_of_both_forms_is_no_matter_of_roles(
    tokenize: Handler | None, *, merge: bool
) -> None:
    words = "top_k: Extra inputs are not permitted"
    error = problem(Server(chat=lambda _: refusal(words, 422), tokenize=tokenize), merge=merge)

    assert type(error) is ServerError
    assert str(error) == f"the server refuses even a tiny request: HTTP 422: {words}"
    assert "extra_body" in error.hint


def test_a_field_that_does_not_go_with_few_tokens_is_no_refusal_of_the_run() -> None:
    def chat(body: dict[str, Any]) -> Reply:
        return streamed() if body["max_tokens"] > body["budget"] else refusal("budget")

    server = Server(chat=chat)

    assert look(server, extra_body={"budget": 1000}).two_user_turns is True
    assert [body["max_tokens"] for body in server.asked] == [32, 2048]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_key_that_is_refused_ends_in_a_usage_error(status: int) -> None:
    error = problem(Server(chat=lambda _: httpx.Response(status)))

    assert type(error) is UsageError
    assert f"HTTP {status}" in str(error)
    assert "MRCR_API_KEY" in error.hint


TROUBLES: dict[str, tuple[Handler, str, int]] = {
    "500": (lambda _: refusal("secret words", 500), "(HTTP 500)", 1),
    "429": (lambda _: refusal("secret words", 429), "(HTTP 429)", ATTEMPTS),
    "reset": (lambda _: httpx.ReadError("secret words"), "(no connection)", ATTEMPTS),
    "page": (lambda _: httpx.Response(200, text="secret words"), "(it broke off)", 1),
    "late": (lambda _: httpx.ReadTimeout("secret words"), "(none in time)", 1),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_server_in_trouble_is_left_to_the_run_and_noted_without_its_words(trouble: str) -> None:
    chat, kind, times = TROUBLES[trouble]
    server = Server(chat=chat, tokenize=chat)
    seen = look(server)

    assert (seen.two_user_turns, seen.thinks, seen.overhead_tokens) == (None, None, None)
    assert seen.fingerprint == ""
    (note,) = seen.notes
    assert kind in note
    assert "secret" not in note
    assert len(server.asked) == times


def test_a_completion_in_trouble_leaves_what_tokenize_showed() -> None:
    seen = look(Server(chat=lambda _: httpx.Response(500)))

    assert (seen.two_user_turns, seen.overhead_tokens, seen.thinks) == (True, 20, None)


def test_a_refusal_whose_cause_cannot_be_found_is_noted() -> None:
    def chat(body: dict[str, Any]) -> Reply:
        return httpx.Response(500) if alternates(body) else refusal()

    seen = look(Server(chat=chat, tokenize=no_tokenize))

    assert seen.two_user_turns is None
    assert "refused (HTTP 400)" in seen.notes[0]
    assert "(HTTP 500)" in seen.notes[0]


def test_a_tiny_request_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHAT_SECONDS", 0.05)
    monkeypatch.setattr(module, "TOKENIZE_SECONDS", 0.05)

    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def body() -> Preflight:
        transport = httpx.MockTransport(silent)
        async with Client("http://server", transport=transport) as client:
            return await preflight(client, config=RunConfig(), model="m", merge=False)

    seen = asyncio.run(body())

    assert seen.two_user_turns is None
    assert "(none in time)" in seen.notes[0]


THOUGHTS = [
    streamed("", reasoning="Okay, the user", finish="length"),
    streamed("<think>\nOkay, the user", finish="length"),
    streamed("\n<thinking>Hm"),
]


@pytest.mark.parametrize("answer", THOUGHTS)
def test_a_model_that_thinks_all_the_same_is_noted(answer: httpx.Response) -> None:
    seen = look(Server(chat=lambda _: answer))

    assert seen.thinks is True
    (note,) = seen.notes
    assert "max_tokens" in note
    assert "extra_body" in note


@pytest.mark.parametrize("extra", [{}, {"chat_template_kwargs": {"enable_thinking": True}}])
def test_thinking_that_is_not_forbidden_is_no_matter(extra: dict[str, Any]) -> None:
    seen = look(Server(chat=lambda _: streamed("<think>")), extra_body=extra)

    assert (seen.thinks, seen.notes) == (None, ())


@pytest.mark.parametrize(
    ("prompt_end", "thinks"),
    [("[a]<think>\n", True), ("[a]<think>\n\n</think>\n\n", False), ("[a]", False)],
)
def test_a_prompt_that_ends_within_a_thought_shows_a_model_that_thinks(
    prompt_end: str, *, thinks: bool
) -> None:
    assert look(Server(prompt_end=prompt_end)).thinks is thinks


def test_an_answer_without_any_text_does_not_show_whether_the_model_thinks() -> None:
    assert look(Server(chat=lambda _: streamed("", finish="length"))).thinks is None


def test_a_template_that_leaves_text_out_is_noted() -> None:
    def tokenize(body: dict[str, Any]) -> httpx.Response:
        text = body.get("prompt") or body["messages"][-1]["content"]
        return httpx.Response(200, json={"count": len(text)})

    seen = look(Server(tokenize=tokenize))

    assert seen.overhead_tokens is not None
    assert seen.overhead_tokens < 0
    assert "leave" in seen.notes[0]
    assert seen.fingerprint == ""


def test_a_tokenize_for_conversations_alone_still_shows_the_roles() -> None:
    server = Server()
    plain = server._tokenize

    def tokenize(body: dict[str, Any]) -> Reply:
        return refusal("messages missing") if "prompt" in body else plain(body)

    server._tokenize = tokenize  # type: ignore[method-assign]
    seen = look(server)

    assert (seen.two_user_turns, seen.overhead_tokens) == (True, None)
    assert seen.fingerprint


def test_two_leading_user_turns_are_joined_by_a_blank_line() -> None:
    user, reply = Message("user", "a"), Message("assistant", "b")

    assert merge_leading_user_turns([user, user, reply, user]) == (
        Message("user", "a\n\na"),
        reply,
        user,
    )
    assert len(merge_leading_user_turns(TINY)) == len(TINY) - 1


@pytest.mark.parametrize("roles", [(), ("user",), ("user", "assistant"), ("system", "user")])
def test_other_beginnings_are_left_as_they_are(roles: tuple[Any, ...]) -> None:
    messages = [Message(role, "x") for role in roles]

    assert merge_leading_user_turns(messages) == tuple(messages)
