"""The keys of a configuration: their types, limits, defaults and meaning, said once.

The YAML reader, the command line, the environment and the published JSON Schema are all made
from `RunConfig`. The keys of vLLM's own MRCR files mean here what they mean there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mrcr_action.calibration.document import Calibration
from mrcr_action.config.thresholds import Bound, Metric, bounds_in

DATASET = "openai/mrcr"
REVISION = "f4c69fae7cf81f7ca26b9fee34b392a50f6b8a1d"
"""The dataset after its fix of December 2025; earlier ones hold wrong rows."""

DEFAULT_EXTRA_BODY: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
"""vLLM's own default: reasoning models answer without thinking, others ignore it."""

PROMPT_SAFETY_BUFFER = 256
"""Tokens kept free for the chat template when ``max_prompt_tokens`` is derived."""

NUM_SAMPLES = 40
"""Samples in all where nothing else is said, as in vLLM's script."""

SAMPLES_PER_CELL = 10

Ratio = Annotated[float, Meta(ge=0, le=1)]
Needles = Annotated[int, Meta(ge=1, le=16)]
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Nats = Annotated[float, Meta(gt=0)]
Protocol = Literal["vllm", "openai"]
Decision = Literal["point", "confident"]
Pass = Literal["cold", "warm"]
Effort = Literal["smoke", "standard", "deep"]
Cases = Literal["buckets", "samples"]
StopWhen = Literal["never", "failed", "decided"]
Route = Literal["auto", "process", "container", "external"]
Gpus = Annotated[str, Meta(pattern=r"^(all|none|\d+(,\d+)*)$")]
Shard = Annotated[str, Meta(pattern=r"^[1-9]\d{0,2}/[1-9]\d{0,2}$")]
Memory = Annotated[str, Meta(pattern=r"^(host|[1-9]\d*[kmgKMG]?)$")]


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One configuration against one server. It may hold secrets: see `mrcr_action.publish`."""

    model_name: Annotated[
        str | None,
        Meta(
            description="Model to serve: a name on the hub or a folder. With a running server, the"
            " entry of /v1/models to ask (default there: the first one)."
        ),
    ] = None
    match_ratio_threshold: Annotated[
        Ratio | dict[Needles, Ratio] | None,
        Meta(
            description="Expected match ratio, 0 to 1: one number for the mean of all samples, or"
            " one per needle count, such as {2: 0.99, 4: 0.84, 8: 0.76}. Without it, the run"
            " measures and gates nothing."
        ),
    ] = None
    thresholds: Annotated[
        Ratio | dict[str, Ratio | dict[Metric, Ratio]] | None,
        Meta(
            description="Instead of match_ratio_threshold: one number for the mean of all samples,"
            " or by bucket (all, n8, a cell such as n8/64K-128K) a match ratio or metrics, such as"
            " {n8: 0.76, all: {match_ratio: 0.8, nonce_rate: 0.95}}. Least are match_ratio,"
            " nonce_rate and exact_rate, most are truncation_rate and failure_rate."
        ),
    ] = None
    tolerance: Annotated[
        Ratio,
        Meta(
            description="A bucket fails when its match ratio is below threshold - tolerance. The"
            " rates have none."
        ),
    ] = 0.05
    decision: Annotated[
        Decision,
        Meta(
            description="When a match ratio is too low: 'point' when the mean is below threshold -"
            " tolerance, 'confident' when its whole 95 % interval is. Where the interval holds"
            " threshold - tolerance, 'confident' is inconclusive."
        ),
    ] = "point"
    protocol: Annotated[
        Protocol,
        Meta(
            description="How to sample and grade: 'vllm' as vLLM's own MRCR test does, 'openai' as"
            " the dataset card does. Scores of the two are not comparable."
        ),
    ] = "vllm"
    num_samples: Annotated[
        Count | None,
        Meta(
            description="Samples in all, shared out evenly over the needle counts (and, under the"
            " openai protocol, over the length bins of each). Default under the vllm protocol: 40;"
            " under openai, samples_per_cell decides."
        ),
    ] = None
    samples_per_cell: Annotated[
        Count | None,
        Meta(
            description="Samples of each cell, which is a needle count and a length bin; openai"
            " protocol only, instead of num_samples. Of a cell in which the window ends, those that"
            " fit are asked. A larger number, and a longer window, keep every sample of a smaller"
            " one. Default: 10."
        ),
    ] = None
    max_samples_per_cell: Annotated[
        Count | None,
        Meta(
            description="As long as a match ratio is undecided, ask for further samples of its"
            " cells, up to so many of each; openai protocol and decision: confident only. The"
            " intervals are wider then, since the run looks more than once. Default: none are"
            " added."
        ),
    ] = None
    needles: Annotated[
        tuple[Needles, ...],
        Meta(
            min_length=1,
            description="Needle counts to test: any of 2, 4 and 8; synthetic samples may have 1 to"
            " 16.",
        ),
    ] = (2, 4, 8)
    bins: Annotated[
        Annotated[tuple[str, ...], Meta(min_length=1)] | None,
        Meta(
            description="Length bins to test, such as [4K-8K, 64K-128K], in o200k tokens of prompt"
            " and answer; openai protocol only. A cell of a bin named here without a row that fits"
            " makes the verdict inconclusive. Default: every bin that the window reaches into.",
        ),
    ] = None
    exclude: Annotated[
        tuple[str, ...],
        Meta(
            description="Cells that are not to be tested, such as [n8/64K-128K], or bins, such as"
            " [512K-1M]; openai protocol only."
        ),
    ] = ()
    max_prompt_tokens: Annotated[
        Count | None,
        Meta(
            description="Longest prompt, in the server's tokens with its chat template. Default:"
            " max(512, the server's window - max_tokens - 256)."
        ),
    ] = None
    max_tokens: Annotated[Count, Meta(description="Longest answer, in the server's tokens.")] = 2048
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.")] = 0.0
    seed: Annotated[
        int, Meta(ge=0, description="Seed of the choice of samples and of every request.")
    ] = 42
    concurrency: Annotated[
        Count | Annotated[tuple[Count, ...], Meta(min_length=1)],
        Meta(
            description="Requests in flight at a time. Of several numbers, such as [8, 1], every"
            " sample is asked anew with each, and the first is what thresholds without a further"
            " word mean."
        ),
    ] = 8
    passes: Annotated[
        tuple[Pass, ...],
        Meta(
            min_length=1,
            description="How often each sample is asked: [cold], or [cold, warm], which asks it"
            " again at once, so that the answer comes from the prefix cache. Bugs of that cache"
            " show nowhere else.",
        ),
    ] = ("cold",)
    repeats: Annotated[
        Count,
        Meta(
            description="How many times all passes are made, each time from a cold cache: shows"
            " what changes from one run to the next."
        ),
    ] = 1
    boundaries: Annotated[
        int,
        Meta(
            ge=0,
            description="Samples that are also asked alone with a padded first turn, so that the"
            " prompt ends just past a block of the KV cache, just past a chunk of the prefill, and"
            " so that the wanted needle lies across the end of a chunk: four requests each.",
        ),
    ] = 0
    sweep: Annotated[
        int,
        Meta(
            ge=0,
            description="Other turns of the longest sample's conversation that are asked for,"
            " spread over all of it: cheap, since it is in the cache by then.",
        ),
    ] = 0
    small_pool: Annotated[
        bool,
        Meta(
            description="Serve once more with a KV cache smaller than what is asked, and ask some"
            " samples twice: shows blocks that outlive their eviction. Only for a server that is"
            " started here; costs a second start."
        ),
    ] = False
    plan: Annotated[
        Effort | None,
        Meta(
            description="How much to ask, where nothing else is said: smoke, standard (at most 60"
            " requests) or deep. Sets num_samples, passes, concurrency, boundaries, sweep, repeats"
            " and small_pool; docs/detection.md has what each one finds."
        ),
    ] = None
    shard: Annotated[
        Shard | None,
        Meta(
            description="Ask only one part of the plan, such as 2/4: the second of four. Every part"
            " holds as much of each cell; a part measures and judges nothing, which `mrcr merge`"
            " does with all of them. Default: the whole plan."
        ),
    ] = None
    extra_body: Annotated[
        dict[str, Any] | None,
        Meta(
            description="JSON object merged into every request, over everything but the seed; null"
            " as a value drops that field. Replaces the default, which asks reasoning models not"
            " to think; {} sends nothing extra."
        ),
    ] = None
    merge_leading_user_turns: Annotated[
        bool,
        Meta(
            description="Send the first two turns of every row, both the user's, as one: for chat"
            " templates that refuse two in a row. The scores are not comparable with others."
        ),
    ] = False
    dataset: Annotated[
        str,
        Meta(
            min_length=1,
            description="Where the samples come from: a dataset on the hub, a folder of parquet"
            " files with the same layout, or a bundle of `mrcr data fetch`.",
        ),
    ] = DATASET
    revision: Annotated[
        str, Meta(min_length=1, description="Revision of the dataset on the hub.")
    ] = REVISION
    allow_unverified: Annotated[
        bool,
        Meta(
            description="Take files of the hub whose SHA-256 is not the known one: for forks of the"
            " dataset and other revisions."
        ),
    ] = False
    server: Annotated[
        Route,
        Meta(
            description="Where the model is served: 'process' starts `vllm serve` here, 'container'"
            " starts it in a container of its own, 'external' attaches to a running server; 'auto'"
            " chooses by what is given and what is there, and says why."
        ),
    ] = "auto"
    image: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Image of the server's container, with vLLM in it. Default: the image that"
            " this program itself runs in."
        ),
    ] = None
    gpus: Annotated[
        Gpus,
        Meta(
            description="GPUs of the server's container: 'all', 'none', or their numbers, such as"
            " 0,1."
        ),
    ] = "all"
    cache_dir: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Folder of the host in which the server's container keeps models and"
            " compiled kernels from one run to the next; absolute. Default: nothing is kept."
        ),
    ] = None
    shm_size: Annotated[
        Memory,
        Meta(
            description="Shared memory of the server's container, such as 16g, or 'host' for all of"
            " the host's (--ipc=host)."
        ),
    ] = "16g"
    base_url: Annotated[
        str | None,
        Meta(description="Address of a running server, such as https://host/base (or .../v1)."),
    ] = None
    host: Annotated[
        str | None,
        Meta(description="Host of the server; with --port alone, 127.0.0.1."),
    ] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None,
        Meta(description="Port of the server. Default for a server started here: a free one."),
    ] = None
    server_args: Annotated[
        str | tuple[str, ...],
        Meta(
            description="Further arguments of `vllm serve`: one string, split as a shell would"
            " without running one, or a list."
        ),
    ] = ""
    env: Annotated[
        dict[str, str | int | float],
        Meta(description="Environment variables of the server that is started."),
    ] = {}
    trust_remote_code: Annotated[
        bool,
        Meta(
            description="Pass --trust-remote-code to `vllm serve`, which lets a model's repository"
            " run its own code on this machine."
        ),
    ] = False
    startup_max_wait_seconds: Annotated[
        Seconds, Meta(description="Longest wait for the server to be healthy, in seconds.")
    ] = 600.0
    request_timeout_seconds: Annotated[
        Seconds, Meta(description="Longest time one request may take, in seconds.")
    ] = 1800.0
    time_limit_seconds: Annotated[
        Seconds | None,
        Meta(
            description="Longest time the whole run may take, in seconds, from before the server's"
            " start; then it is stopped, and the verdict is inconclusive. Default: no limit."
        ),
    ] = None
    max_failures: Annotated[
        int,
        Meta(
            ge=0,
            description="Requests of a bucket that may fail or be refused before its verdict is"
            " inconclusive. Such a request never counts as a zero. A failure_rate in thresholds"
            " takes its place in that bucket.",
        ),
    ] = 0
    min_samples: Annotated[
        Count | None,
        Meta(
            description="Graded samples that a bucket with a threshold needs for a verdict."
            " Default: all that were asked for, less max_failures."
        ),
    ] = None
    stop_when: Annotated[
        StopWhen,
        Meta(
            description="When to ask no more: 'never' before every sample was asked, 'failed' as"
            " soon as a bucket with a threshold can no longer pass, whatever the other answers"
            " were, 'decided' also when none of them can fail any more. The verdict is the same"
            " either way; what was measured is of fewer samples."
        ),
    ] = "never"
    cut_without_nonce: Annotated[
        bool,
        Meta(
            description="End a response as soon as it can no longer start with the nonce: it scores"
            " 0 whatever follows. Not with a truncation_rate or max_instability, which need whole"
            " responses."
        ),
    ] = False
    baseline: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Result of an earlier run of this configuration, a result.json or the"
            " folder with it: the run fails where it is worse, sample by sample, whatever the"
            " thresholds say, and is inconclusive where that cannot be told."
        ),
    ] = None
    max_regression: Annotated[
        Ratio | None,
        Meta(
            description="By how much the mean of a bucket may fall against the baseline. Default:"
            " by nothing that is no chance."
        ),
    ] = None
    max_instability: Annotated[
        Ratio | None,
        Meta(
            description="Share of the samples whose answer may differ, in any character, between"
            " the first pass and another: 0 for a server that must not depend on its cache or its"
            " batches. Default: it may, as long as the scores do not fall by more than chance."
        ),
    ] = None
    min_logit_margin: Annotated[
        Nats | None,
        Meta(
            description="Nats by which the best token has to lead the second, at every token of"
            " every answer; asks for logprobs. For a model whose lead is known, such as the"
            " probe's: arithmetic that is off shrinks it before an answer changes."
        ),
    ] = None
    calibration: Annotated[
        Calibration | None,
        Meta(
            description="What the thresholds were made of, written by `mrcr calibrate`: a run of"
            " another model, vLLM, seed or number of samples gets a note."
        ),
    ] = None
    output_dir: Annotated[
        str, Meta(min_length=1, description="Folder for the reports and the server's log.")
    ] = "mrcr-results"
    save_results: Annotated[
        str | None,
        Meta(description="Also write a JSON file with the fields of vLLM's own script."),
    ] = None

    junit: Annotated[
        Cases,
        Meta(
            description="What junit.xml has a case for: 'buckets', or 'samples' for every request"
            " as well. A sample is red only where it is enough to miss its bucket's threshold, or"
            " is lost and leaves the bucket without a verdict: the file is never redder than the"
            " run."
        ),
    ] = "buckets"

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Every threshold, whichever of the two keys named it."""
        threshold = self.match_ratio_threshold
        if isinstance(threshold, dict):
            return tuple(bounds_in({f"n{n}": ratio for n, ratio in threshold.items()}))
        return tuple(bounds_in(self.thresholds if threshold is None else threshold))

    @property
    def concurrencies(self) -> tuple[int, ...]:
        """Every number of requests in flight, the first one first."""
        return self.concurrency if isinstance(self.concurrency, tuple) else (self.concurrency,)

    @property
    def request_extras(self) -> dict[str, Any]:
        """What is merged into every request: ``extra_body``, or the default without one."""
        return DEFAULT_EXTRA_BODY if self.extra_body is None else self.extra_body

    @property
    def per_cell(self) -> int | None:
        """Samples of each cell; None where a number in all is shared out instead."""
        if self.protocol != "openai" or self.num_samples is not None:
            return None
        return self.samples_per_cell or SAMPLES_PER_CELL

    def quotas(self) -> dict[int, int]:
        """Samples per needle count: even shares, the remainder to those listed first.

        Where samples are counted by cell, those of one cell: what there will be at least.
        """
        if self.per_cell is not None:
            return dict.fromkeys(self.needles, self.per_cell)
        share, rest = divmod(self.num_samples or NUM_SAMPLES, len(self.needles))
        return {n: share + (i < rest) for i, n in enumerate(self.needles)}

    @property
    def shard_of(self) -> tuple[int, int] | None:
        """Which part of how many is asked, both from 1; None for the whole plan."""
        if self.shard is None:
            return None
        number, _, count = self.shard.partition("/")
        return int(number), int(count)

    def prompt_limit(self, window: int | None) -> int | None:
        """Longest prompt in the server's tokens, or None when neither key nor window tells."""
        if self.max_prompt_tokens is not None:
            return self.max_prompt_tokens
        if window is None:
            return None
        return max(512, window - self.max_tokens - PROMPT_SAFETY_BUFFER)
