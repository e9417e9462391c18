"""The result document: everything that a run found, enough to render every report again.

``result.json`` is `Result` in JSON, ``samples.jsonl`` one `Record` a line. Both are versioned by
`SCHEMA_VERSION`; a field may be added within a version, never renamed or removed.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from mrcr_action.auc import Area
from mrcr_action.bins import Bin, bin_of
from mrcr_action.comparison.document import Against, RoundChange
from mrcr_action.config import RunConfig
from mrcr_action.config.thresholds import Metric
from mrcr_action.coverage import Coverage
from mrcr_action.diagnosis.evidence import Diagnosis, Piece
from mrcr_action.grade import Grade, Outcome
from mrcr_action.intervals import Interval
from mrcr_action.plan import Ask, Plan
from mrcr_action.rounds import FIRST
from mrcr_action.telemetry.document import Telemetry
from mrcr_action.template import Preflight

SCHEMA_VERSION = 1

Conclusion = Literal["pass", "fail", "inconclusive", "measured"]
"""``measured``: of one part of a plan, which is judged with the others; see `mrcr_action.parts`."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished ask; a line of the journal ``samples.jsonl``."""

    ask: int
    pass_name: str
    shard: str
    row: int
    sha256: str
    n_needles: int
    outcome: Outcome
    o200k_tokens: int
    """Prompt and answer in o200k tokens."""
    grade: Grade | None = None
    diagnosis: Diagnosis | None = None
    """What kind of fault it shows, if any; None in documents of before there was one."""
    reason: str = ""
    """Why it was rejected or failed, in the server's or the network's words."""
    finish_reason: str | None = None
    attempts: int = 1
    reasoning_chars: int = 0
    prompt_tokens: int | None = None
    """As the server counted them; before an answer, as planned."""
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt, those that the prefix cache supplied; None where the server does not tell."""
    digest: str | None = None
    """Short hash of the response: two that differ are different texts. None without one."""
    logit_margin: float | None = None
    """Nats by which each token of the response led the best other one, at least; None where the
    server was not asked, or tells no log-probabilities."""
    seconds_to_first_token: float | None = None
    inter_token_seconds: float | None = None
    """Mean from one token to the next; None with fewer than two."""
    seconds: float = 0.0
    nonce: str | None = None
    answer: str | None = None
    """What was wanted; only in the journal."""
    response: str | None = None
    """What came back; only in the journal."""
    outline: tuple[Piece, ...] | None = None
    """The row's conversation without its words; only in the journal, and None where the row was
    never read."""

    def without_text(self) -> Record:
        """The record as ``result.json`` holds it."""
        return msgspec.structs.replace(self, nonce=None, answer=None, response=None, outline=None)


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that one threshold speaks of: all of them, one needle count, or one cell."""

    name: str
    """``all``, ``n8`` or ``n8/64K-128K``."""
    n_needles: int | None
    """None for all samples."""
    wanted: int
    """Samples that the configuration asks for; by cell, those that the plan found for it."""
    asked: int
    scored: int
    truncated: int
    rejected: int
    failed: int
    match_ratio_openai: float | None
    """Mean over the graded samples; None without any."""
    match_ratio_vllm: float | None
    prefix_hit_rate: float | None
    """Share of graded responses that start with the nonce."""
    exact_rate: float | None
    """Share of graded responses equal to the answer."""
    low: int | None = None
    """Edges of the bin of a cell, in o200k tokens of prompt and answer; None for the others."""
    high: int | None = None
    interval: Interval | None = None
    """95 % interval of the gated match ratio; None for too few graded samples."""
    unasked: int = 0
    """Samples that were not asked to the end, since the run was stopped; they count as failed."""
    round: str | None = None
    """The round that it is of, such as ``warm``; None for the first one."""
    skipped: int = 0
    """Samples that were not asked, since the verdict was certain without them (``stop_when``)."""
    interval_reach: Interval | None = None
    """Least and most that an end of the interval could still become with the skipped samples; None
    where that does not matter."""
    base: str | None = None
    """Name of the bucket of the first round that it repeats, whose thresholds it is held to; None
    where it is itself of the first round, or is held to none."""

    @property
    def bin(self) -> Bin | None:
        """The range of lengths of a cell; None for the others."""
        return None if self.low is None or self.high is None else Bin(self.low, self.high)

    def holds(self, of: Record | Ask) -> bool:
        """Whether a record, or an ask, is of one of its samples."""
        return (
            of.pass_name == (self.round or FIRST)
            and self.n_needles in {None, of.n_needles}
            and (self.low is None or self.bin == bin_of(of.o200k_tokens))
        )

    @property
    def planned(self) -> int:
        """Samples of it that the whole run asks."""
        return self.asked + self.skipped

    @property
    def graded(self) -> int:
        """Samples that the means are taken over."""
        return self.scored + self.truncated

    @property
    def lost(self) -> int:
        """Samples asked for that gave no evidence: rejected and failed."""
        return self.rejected + self.failed

    def match_ratio(self, protocol: str) -> float | None:
        """The mean that a protocol gates on."""
        return self.match_ratio_openai if protocol == "openai" else self.match_ratio_vllm

    @property
    def truncation_rate(self) -> float | None:
        """Share of graded responses that were cut; None without any."""
        return self.truncated / self.graded if self.graded else None

    @property
    def failure_rate(self) -> float | None:
        """Share of the samples asked for that were lost; None without any."""
        return self.lost / self.asked if self.asked else None

    @property
    def step(self) -> float | None:
        """What one sample can change of a mean or a share; None without any."""
        return 1 / self.graded if self.graded else None

    def measured(self, metric: Metric, protocol: str) -> float | None:
        """What a threshold is compared with; None without samples."""
        rates = {
            "nonce_rate": self.prefix_hit_rate,
            "exact_rate": self.exact_rate,
            "truncation_rate": self.truncation_rate,
            "failure_rate": self.failure_rate,
        }
        return self.match_ratio(protocol) if metric == "match_ratio" else rates[metric]


State = Literal["pass", "fail", "inconclusive", "measured"]
"""``measured``: no threshold speaks of it."""


WORST_FIRST: tuple[State, ...] = ("fail", "inconclusive", "pass", "measured")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one metric of one bucket.

    Every bucket has one about its match ratio, whether or not a threshold speaks of that.
    """

    bucket: str
    state: State
    message: str
    measured: float | None = None
    threshold: float | None = None
    """Least or, for the rates of truncation and failure, most; None where none was set."""
    tolerance: float | None = None
    """Of a match ratio; the rates have none."""
    metric: Metric = "match_ratio"
    samples: int = 0
    """How many it was measured over."""
    interval: Interval | None = None
    """95 % interval of what was measured; None for too few samples."""
    against: str | None = None
    """Path of the baseline, where that is what was checked; ``measured`` is then the change of the
    mean since, below 0 for the worse. None for a threshold."""
    round: str | None = None
    """The round that was compared with the first one, where that is what was checked; ``measured``
    is then the change of the mean. None for a threshold."""
    is_of_margin: bool = False
    """Whether the logit margin of all answers is what was checked; ``measured`` is then the least,
    in nats."""
    undecided: bool = False
    """Whether the run stopped while it could still have gone either way; always inconclusive."""

    @property
    def is_of_threshold(self) -> bool:
        """Whether a threshold of a bucket is what was checked."""
        return self.against is None and self.round is None and not self.is_of_margin


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the run says about the server."""

    conclusion: Conclusion
    summary: str
    """One line for a person."""
    checks: tuple[Check, ...] = ()

    def of(self, bucket: str) -> tuple[Check, ...]:
        """What was decided about one bucket, its match ratio first."""
        return tuple(check for check in self.checks if check.bucket == bucket)

    def state_of(self, bucket: str) -> State:
        """The worst that was decided about one bucket."""
        states = [check.state for check in self.of(bucket)]
        return min(states, key=WORST_FIRST.index, default="measured")


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The server that answered."""

    route: Literal["process", "container", "external"]
    base_url: str
    why: str = ""
    """What decided the route, where the configuration leaves it open."""
    image: str | None = None
    """Image of its container, as it was named, and its ID; None for the other routes."""
    model: str | None = None
    root: str | None = None
    max_model_len: int | None = None
    version: str | None = None
    command: tuple[str, ...] = ()
    """How it was started, without secrets; empty for a running server."""


class DataInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where the samples came from."""

    dataset: str
    """As the configuration names it."""
    origin: str | None = None
    """What a bundle was taken from; None for everything else."""
    revision: str | None = None
    """Of the dataset, also within a bundle; None for local files."""
    library: str = ""
    """Version of the ``datasets`` library; the vllm protocol's choice depends on it."""
    kind: Literal["hub", "folder", "bundle"] = "hub"
    verified: bool | None = None
    """Whether every file's SHA-256 is the one known for the dataset; None for files of one's own
    and where nothing was read."""


class CacheInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The server's KV cache, as /metrics tells of it; every field may be unknown."""

    block_size: int | None = None
    """Tokens of a block."""
    blocks: int | None = None
    capacity: int | None = None
    """Tokens that requests as long as the window may have in all. Fewer than the blocks have where
    each takes more of these than its tokens need, as with several kinds of attention."""
    prefix_caching: bool | None = None
    prefill_chunk: int | None = None
    """Most tokens of one step, from the server's arguments or its log."""
    queried_tokens: float | None = None
    """Tokens that were looked up in the prefix cache while this run asked."""
    hit_tokens: float | None = None
    """Of these, those that were there."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that each stage took."""

    start_up: float = 0.0
    plan: float = 0.0
    ask: float = 0.0
    total: float = 0.0


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What stopped a run before a verdict."""

    kind: str
    message: str
    hint: str = ""
    details: str = ""
    exit_code: int = 3


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """An end before every sample was asked, because the verdict was certain (``stop_when``)."""

    why: str
    """What made it certain."""
    asked: int
    """Requests that came to their end."""
    planned: int
    skipped: int
    """Requests that were not made, or were in flight and let go; no one of them counts as lost."""

    @property
    def after(self) -> str:
        """How far the run came."""
        return f"Stopped after {self.asked:,} of {self.planned:,} requests"

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        return f"{self.after}: {self.why}"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One of the parts that a plan was split into (``shard``)."""

    number: int
    """From 1."""
    count: int
    """Parts in all."""
    plan_sha256: str
    """Of the samples of the whole plan and how they are asked, in whatever order; the same in every
    part."""
    whole: Plan
    """The plan that was split."""
    notes: tuple[str, ...] = ()
    """Those of the result's notes that are not about the answers of this part."""

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The result fields of vLLM's own script, by its names."""

    model: str | None
    match_ratio: float | None
    """Mean of the gated protocol; None when nothing was graded."""
    prefix_hit_rate: float | None
    per_needle: dict[str, float]
    num_samples: int
    """Graded samples; a failed request is no zero here."""
    latency: float
    """Seconds from the first request to the last answer."""
    total_output_tokens: int
    tokens_per_second: float
    max_tokens: int
    needles: tuple[int, ...]
    max_prompt_tokens: int | None


class Result(Measured, frozen=True, kw_only=True):
    """Everything that one run found."""

    schema_version: int = SCHEMA_VERSION
    name: str
    tool_version: str
    config_path: str | None
    config: RunConfig
    invocation: tuple[str, ...] = ()
    """The command line that repeats the run, secrets masked; empty where there is none."""
    started: str
    """UTC, ISO 8601."""
    finished: str
    server: ServerInfo
    data: DataInfo
    cache: CacheInfo | None = None
    """The server's KV cache; None where the run did not come so far."""
    plan: Plan | None
    part: Part | None = None
    """Which part of a larger plan this one is; None for a whole run."""
    preflight: Preflight | None = None
    """What a tiny request showed of the chat template; None where the run did not come so far."""
    coverage: tuple[Coverage, ...] = ()
    """What of the dataset was tested, cell by cell."""
    auc: tuple[Area, ...] = ()
    """Means over lengths as Context Arena counts them, where every bin up to there was measured."""
    buckets: tuple[Bucket, ...]
    is_probe: bool = False
    """Whether the model was the one that reads perfectly, so that every wrong answer is the
    server's."""
    verdict: Verdict
    rounds: tuple[RoundChange, ...] = ()
    """What differs between the first round and each other one."""
    baseline: Against | None = None
    """What changed since the baseline; None where the configuration names none."""
    problem: Problem | None
    stopped: Stopped | None = None
    """Why not every sample was asked; None where every one was, or where that is a problem."""
    timeline: Timeline
    telemetry: Telemetry | None = None
    """What it cost and how the servers fared; None where nothing was asked, and in documents of
    before there was any."""
    notes: tuple[str, ...]
    records: tuple[Record, ...]
    """One a finished ask, in the order of the plan, without texts."""


def encode_result(result: Result) -> bytes:
    """The document as indented JSON with a final newline."""
    return encode_document(result)


def encode_document(content: Any) -> bytes:
    """Anything as indented JSON with a final newline."""
    return msgspec.json.format(encode_line(content), indent=2) + b"\n"


def encode_line(content: Any) -> bytes:
    """Anything as JSON on one line; half a surrogate pair, which UTF-8 cannot hold, becomes ?."""
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(content, str_keys=True)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def decode_result(data: bytes) -> Result:
    """Read a document back.

    Raises:
        ValueError: it is not a result, or of another schema version.
    """
    result = msgspec.json.decode(data, type=Result)
    if result.schema_version != SCHEMA_VERSION:
        raise ValueError(f"schema version {result.schema_version}, not {SCHEMA_VERSION}")
    return result


def result_schema() -> dict[str, Any]:
    """JSON Schema of ``result.json``."""
    return msgspec.json.schema(Result)
