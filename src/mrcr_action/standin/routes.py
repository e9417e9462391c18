"""Which request gets which answer, in the shapes of vLLM's server."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrcr_action.standin.body import BadRequest, ChatRequest, parse_chat, parse_json, parse_turns
from mrcr_action.standin.chat import Stamp, compose, stream_steps, whole_steps
from mrcr_action.standin.metrics import Metrics
from mrcr_action.standin.reader import asked_question
from mrcr_action.standin.refusals import error, refusal
from mrcr_action.standin.slips import Moment, slip
from mrcr_action.standin.steps import Data, Reset, Step, Wait, json_reply, whole
from mrcr_action.standin.template import rendered, rendered_ids, require_alternation
from mrcr_action.standin.tokens import text_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from mrcr_action.standin.faults import Effects, FaultPlan
    from mrcr_action.standin.prefix_cache import Hold, PrefixCache, Prompt

_LOOK_SECONDS = 0.005
"""How often a request looks whether the pool of blocks has room for it."""

_PROXY_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>"
    b"<body><h1>Sign in to reach this service</h1></body></html>\n"
)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, read to its end."""

    method: str
    path: str
    """Without the query."""
    authorization: str
    """The header of this name; empty when absent."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line says about the model and its address."""

    model: str
    served_names: tuple[str, ...]
    """The names a request may call the model; the first one is in the answers."""
    max_model_len: int
    """Prompt and answer together, in tokens."""
    api_key: str | None
    root_path: str
    """Where the routes start, such as ``/base``; empty for the root."""
    prompt_tokens_details: bool
    """Whether a usage tells how many tokens of the prompt came from the cache."""


@dataclass(slots=True)
class Routes:
    """All routes of one stand-in, with the state they share."""

    settings: Settings
    faults: FaultPlan
    cache: PrefixCache
    metrics: Metrics = field(default_factory=Metrics)
    questions: int = 0
    """How many chat requests have arrived that have a number: those that ask MRCR's question, and
    those that cannot be read."""
    completions: int = 0
    """How many completions were begun."""
    healthy: bool = True

    def respond(self, request: Request) -> Iterator[Step]:
        """The steps that answer a request; to be closed when they are not run to their end."""
        root = self.settings.root_path
        path = request.path.removeprefix(root)
        handlers: dict[str, tuple[str, Callable[[Request], Iterator[Step]]]] = {
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/v1/models": ("GET", self._models),
            "/v1/chat/completions": ("POST", self._chat),
        }
        if not self.faults.always.no_tokenize:
            handlers["/tokenize"] = ("POST", self._tokenize)
        if not request.path.startswith(root):
            return error(404, "Not Found")
        if path.startswith("/v1") and not self._authorized(request):
            return json_reply(401, {"error": "Unauthorized"})
        if path not in handlers:
            return error(404, "Not Found")
        method, handler = handlers[path]
        if request.method != method:
            return error(405, "Method Not Allowed", None, ("allow", method))
        try:
            return handler(request)
        except BadRequest as problem:
            return error(400, str(problem), problem.param)

    def _authorized(self, request: Request) -> bool:
        key = self.settings.api_key
        expected = f"Bearer {key}"
        return key is None or hmac.compare_digest(request.authorization.encode(), expected.encode())

    def _health(self, _: Request) -> Iterator[Step]:
        healthy = self.healthy and not self.faults.always.unhealthy
        return whole(200 if healthy else 503, b"", "text/plain; charset=utf-8")

    def _metrics(self, _: Request) -> Iterator[Step]:
        text = self.metrics.render(self.settings.served_names[0], self.cache)
        return whole(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _models(self, _: Request) -> Iterator[Step]:
        length = {"max_model_len": self.settings.max_model_len}
        if self.faults.always.no_max_model_len:
            length = {}
        cards = [
            {
                "id": name,
                "object": "model",
                "created": int(time.time()),
                "owned_by": "vllm",
                "root": self.settings.model,
                "parent": None,
                **length,
            }
            for name in self.settings.served_names
        ]
        return json_reply(200, {"object": "list", "data": cards})

    def _tokenize(self, request: Request) -> Iterator[Step]:
        body = parse_json(request.body)
        if not self._serves(body.get("model")):
            return self._unknown_model(body.get("model"))
        if "prompt" in body:
            ids = text_ids(str(body["prompt"]))
        else:
            turns = parse_turns(body)
            if self.faults.always.strict_roles:
                require_alternation(turns)
            ids = rendered_ids(turns, body.get("chat_template_kwargs"))
        answer = {
            "count": len(ids),
            "max_model_len": self.settings.max_model_len,
            "tokens": ids,
            "token_strs": None,
        }
        return json_reply(200, answer)

    def _chat(self, request: Request) -> Iterator[Step]:
        chat: ChatRequest | BadRequest
        try:
            chat = parse_chat(parse_json(request.body))
        except BadRequest as problem:
            chat = problem
        ordinal = None
        if isinstance(chat, BadRequest) or asked_question(chat.turns) is not None:
            self.questions += 1
            ordinal = self.questions
        effects = self.faults.at(ordinal)
        if effects.unhealthy:
            self.healthy = False
        return self._stalled(effects, lambda: self._answer(chat, effects))

    def _stalled(self, effects: Effects, answer: Callable[[], Iterator[Step]]) -> Iterator[Step]:
        """The answer after the faults that strike before the request is even looked at."""
        if effects.stall is not None:
            self.metrics.waiting += 1
            try:
                yield Wait(effects.stall)
            finally:
                self.metrics.waiting -= 1
        if effects.reset:
            yield Reset()
        elif effects.status is not None or effects.retry_after is not None:
            yield from refusal(effects)
        elif effects.html:
            yield from whole(200, _PROXY_PAGE, "text/html; charset=utf-8")
        elif effects.empty:
            yield from whole(200, b"", "application/json")
        else:
            try:
                yield from answer()
            except BadRequest as problem:
                yield from error(400, str(problem), problem.param)

    def _answer(self, chat: ChatRequest | BadRequest, effects: Effects) -> Iterator[Step]:
        if isinstance(chat, BadRequest):
            raise chat
        if not self._serves(chat.model):
            return self._unknown_model(chat.model)
        if chat.wants_logprobs and effects.no_logprobs:
            raise BadRequest(
                "Requested sample logprobs of 2, which is greater than max allowed: 0", "logprobs"
            )
        if effects.strict_roles:
            require_alternation(chat.turns)
        window = self.settings.max_model_len
        prompt = self.cache.cut(rendered(chat.turns, chat.template_kwargs), chat.cache_salt)
        if chat.max_tokens is not None and chat.max_tokens > window:
            raise BadRequest(
                f"max_tokens={chat.max_tokens} is larger than max_model_len={window}.",
                "max_tokens",
            )
        if prompt.tokens >= window:  # vLLM wants room for one token of the answer at least
            raise BadRequest(
                f"This model's maximum context length is {window} tokens. However, your request "
                f"has {prompt.tokens} input tokens. Please reduce the length of the input "
                "messages.",
                "input_tokens",
            )
        if effects.error_event and not chat.stream:
            return error(500)
        return self._complete(chat, effects, prompt)

    def _complete(self, chat: ChatRequest, effects: Effects, prompt: Prompt) -> Iterator[Step]:
        hold = yield from self._taken(prompt)
        self.completions += 1
        self.metrics.running += 1
        self.metrics.prompt_tokens += prompt.tokens
        reason = "abort"
        try:
            moment = Moment(
                completion=self.completions,
                question=chat.turns[-1].content,
                prompt_tokens=prompt.tokens,
                cached_tokens=hold.cached_tokens,
                evicted=hold.evicted,
                running=self.metrics.running,
            )
            completion = compose(
                chat,
                effects,
                slip(effects, moment),
                prompt_tokens=prompt.tokens,
                cached_tokens=hold.cached_tokens if self.settings.prompt_tokens_details else None,
                room=self.settings.max_model_len - prompt.tokens,
            )
            stamp = Stamp(
                id=f"chatcmpl-standin-{self.completions}",
                created=int(time.time()),
                model=chat.model or self.settings.served_names[0],
            )
            if chat.stream:
                steps = stream_steps(completion, stamp, effects, include_usage=chat.include_usage)
            else:
                steps = whole_steps(completion, stamp, effects)
            for step in steps:
                if isinstance(step, Data):
                    self.metrics.generation_tokens += step.tokens
                yield step
            reason = "error" if effects.error_event else completion.finish_reason
        finally:  # closed early: the client went away
            self.cache.give_back(hold)
            self.metrics.running -= 1
            self.metrics.finished[reason] += 1

    def _taken(self, prompt: Prompt) -> Generator[Wait, None, Hold]:
        """Wait until the pool has room for a prompt; whoever takes its blocks gives them back."""
        self.metrics.waiting += 1
        try:
            while (hold := self.cache.take(prompt)) is None:
                yield Wait(_LOOK_SECONDS)
        finally:
            self.metrics.waiting -= 1
        if self.cache.enabled:
            self.metrics.prefix_cache_queries += prompt.tokens
            self.metrics.prefix_cache_hits += hold.cached_tokens
        return hold

    def _serves(self, model: Any) -> bool:
        return model is None or model in self.settings.served_names

    def _unknown_model(self, model: Any) -> Iterator[Step]:
        return error(404, f"The model `{model}` does not exist.", "model")
