"""What can be broken: the table of the zoo, each fault as a server's flags or the plugin's text.

A prompt has 0.3K to 8K tokens, a block of the KV cache 128 and a chunk of the prefill 2,048; the
faults' parameters are such that each can strike there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from mrcr_action.probe.vocabulary import CHAT_TEMPLATE

Group = Literal[
    "prefix-cache hit",
    "chunked prefill",
    "length",
    "positions",
    "precision",
    "concurrency",
    "sampler",
    "configuration",
]


@dataclass(frozen=True, kw_only=True)
class ZooFault:
    """One thing that is broken in an otherwise healthy server."""

    name: str
    group: Group
    what: str
    """What is broken, as the one who repairs it would say."""
    plugin: str = ""
    """What the plugin is told (`engine_faults.catalogue`)."""
    flags: tuple[str, ...] = ()
    """Further arguments of ``vllm serve``."""
    template: str = ""
    """The chat template, where it is what is broken."""
    needs_small_pool: bool = False
    """Whether it shows only where the KV cache is full."""
    beyond: str = ""
    """Why a cheap plan need not see it; empty where it has to."""

    is_harmless: bool = False
    """Whether nothing is really wrong, so that a red check is a false one."""

    @property
    def must_be_red(self) -> bool:
        """Whether a cheap plan has to see it."""
        return not self.beyond and not self.is_harmless

    @property
    def is_of_plugin(self) -> bool:
        """Whether it can be switched on while the server runs, and says what it struck."""
        return bool(self.plugin)


def _template(expression: str) -> str:
    """The probe's template with other messages."""
    assert "in messages %" in CHAT_TEMPLATE
    return CHAT_TEMPLATE.replace("in messages %", f"in {expression} %")


ROPE = {"rope_type": "default", "rope_theta": 2.0**80}
"""The probe's own."""

HEALTHY = ZooFault(name="healthy", group="configuration", what="nothing", is_harmless=True)

FAULTS: tuple[ZooFault, ...] = (
    ZooFault(
        name="hit-stale-block",
        group="prefix-cache hit",
        what="one block of a hit holds what belongs into another block",
        plugin="HitStaleBlock",
    ),
    ZooFault(
        name="hit-tail",
        group="prefix-cache hit",
        what="off by one at the end of a hit: its last block counts as cached but is empty",
        plugin="HitTail",
    ),
    ZooFault(
        name="hit-head",
        group="prefix-cache hit",
        what="the first block of a hit is another request's, or empty",
        plugin="HitHead",
    ),
    ZooFault(
        name="hit-position",
        group="prefix-cache hit",
        what="positions of what is computed after a hit are one too high",
        plugin="HitPosition",
    ),
    ZooFault(
        name="hit-unwritten",
        group="prefix-cache hit",
        what="the first token that is computed after a hit is not stored",
        plugin="HitUnwritten",
    ),
    ZooFault(
        name="evicted-entry",
        group="prefix-cache hit",
        what="an evicted block stays in the hash table, and is hit with other text in it",
        plugin="EvictedEntry",
        needs_small_pool=True,
    ),
    ZooFault(
        name="chunk-miss-block",
        group="chunked prefill",
        what="a chunk after the first does not see the last block before it",
        plugin="ChunkMissBlock",
    ),
    ZooFault(
        name="chunk-drop-token",
        group="chunked prefill",
        what="the last token of every chunk but the final one is not stored",
        plugin="ChunkDropTokens tokens=1",
    ),
    ZooFault(
        name="chunk-position",
        group="chunked prefill",
        what="positions of every chunk after the first are one too high",
        plugin="ChunkPosition by=1",
    ),
    ZooFault(
        name="full-block",
        group="length",
        what="the decode step that fills a block does not read that block",
        plugin="FullBlock",
    ),
    ZooFault(
        name="window-over-2k",
        group="length",
        what="a sliding window of 1,024 for the whole batch once one context is past 2,048",
        plugin="Window size=1024 over=2048",
    ),
    ZooFault(
        name="alias-over-4k",
        group="length",
        what="the index into the block table wraps at 4,096 tokens",
        plugin="AliasBeyond over=4096",
    ),
    ZooFault(
        name="drop-middle",
        group="length",
        what="past 3,000 tokens, only the first and the last 1,024 are read",
        plugin="DropMiddle over=3000 head=1024 tail=1024",
    ),
    ZooFault(
        name="lost-split",
        group="length",
        what="past 3,000 tokens, decoding loses one of the 4 parts that the KV cache is split into",
        plugin="LostSplit over=3000 parts=4 lost=1",
    ),
    ZooFault(
        name="lost-eighth",
        group="length",
        what="past 3,000 tokens, decoding loses one of the 8 parts that the KV cache is split into",
        plugin="LostSplit over=3000 parts=8 lost=3",
    ),
    ZooFault(
        name="drop-block",
        group="length",
        what="past 3,000 tokens, the one block in the middle of the prompt reads as zeros",
        plugin="DropBlock over=3000 percent=50",
    ),
    ZooFault(
        name="position-clamp",
        group="positions",
        what="positions stop growing at 4,096: the table of angles is too short",
        plugin="PositionClamp most=4096",
    ),
    ZooFault(
        name="position-wrap",
        group="positions",
        what="positions begin again at 0 after 4,096",
        plugin="PositionWrap most=4096",
    ),
    ZooFault(
        name="position-decode",
        group="positions",
        what="every decode step is one position late",
        plugin="PositionDecode by=1",
    ),
    ZooFault(
        name="position-shift",
        group="positions",
        what="a control: all positions are one too high, and only their differences count",
        plugin="PositionShift by=1",
        is_harmless=True,
    ),
    ZooFault(
        name="cache-4-bit",
        group="precision",
        what="keys and values are rounded to 4 bits",
        plugin="RoundedCache bits=4",
    ),
    ZooFault(
        name="cache-8-bit",
        group="precision",
        what="keys and values are rounded to 8 bits, with a scale for each token",
        plugin="RoundedCache bits=8",
    ),
    ZooFault(
        name="cache-fp8",
        group="precision",
        what="the KV cache in fp8 with scales of 1, for a model with keys in the hundreds",
        flags=("--kv-cache-dtype", "fp8"),
        beyond="what the probe compares is plus or minus 1, which fp8 holds",
    ),
    ZooFault(
        name="key-scale",
        group="precision",
        what="keys are read back as 0.9 of what was stored",
        plugin="ScaledCache key=0.9",
    ),
    ZooFault(
        name="softmax-scale",
        group="precision",
        what="attention's scale is half of what it should be",
        plugin="SoftmaxScale factor=0.5",
    ),
    ZooFault(
        name="noisy-logits",
        group="precision",
        what="every logit has noise with a standard deviation of 1",
        plugin="NoisyLogits deviation=1.0",
        beyond="the probe is no meter of precision: its right token leads by 56",
    ),
    ZooFault(
        name="crossed-block",
        group="concurrency",
        what="1 time in 100, an entry of the block table is another request's for one step",
        plugin="CrossedBlock chance=0.01",
    ),
    ZooFault(
        name="crossed-row",
        group="concurrency",
        what="1 time in 200, the row of the block table is another request's for one step",
        plugin="CrossedRow chance=0.005",
    ),
    ZooFault(
        name="crossed-logits",
        group="concurrency",
        what="1 step in 100, each request gets the next one's logits",
        plugin="CrossedLogits chance=0.01",
    ),
    ZooFault(
        name="mixed-batch",
        group="concurrency",
        what="a request that decodes beside a prefill misses the block before its last one",
        plugin="MixedBatch",
    ),
    ZooFault(
        name="rounded-batch",
        group="concurrency",
        what="batches of two or more take a kernel that keeps 3 bits of a number",
        plugin="RoundedBatch least=2 bits=3",
    ),
    ZooFault(
        name="stop-early",
        group="sampler",
        what="1 token in 200 ends the answer",
        plugin="StopEarly chance=0.005",
    ),
    ZooFault(
        name="stop-at-48",
        group="sampler",
        what="answers end after 48 tokens where the prompt is past 2,048",
        plugin="StopAt at=48 over=2048",
    ),
    ZooFault(
        name="second-best",
        group="sampler",
        what="1 token in 200 is the second most likely one, at temperature 0",
        plugin="SecondBest chance=0.005",
    ),
    ZooFault(
        name="penalty",
        group="sampler",
        what="a repetition penalty of 2 that nobody asked for",
        plugin="Penalty factor=2.0",
        beyond="the right token leads by so much that half of its logit leads, too",
    ),
    ZooFault(
        name="window-flag",
        group="configuration",
        what="a configuration with a sliding window that the model does not have",
        flags=("--hf-overrides", json.dumps({"sliding_window": 512})),
    ),
    ZooFault(
        name="rope-base",
        group="configuration",
        what="the base of RoPE is the default instead of the model's",
        flags=("--hf-overrides", json.dumps({"rope_parameters": ROPE | {"rope_theta": 1e4}})),
    ),
    ZooFault(
        name="rope-scaling",
        group="configuration",
        what="positions are divided by 4 for a model that does not need it",
        flags=(
            "--hf-overrides",
            json.dumps({"rope_parameters": ROPE | {"rope_type": "linear", "factor": 4.0}}),
        ),
    ),
    ZooFault(
        name="answer-cap",
        group="configuration",
        what="the server cuts answers at 48 tokens, whatever a request asks for",
        flags=("--override-generation-config", json.dumps({"max_new_tokens": 48})),
    ),
    ZooFault(
        name="template-history",
        group="configuration",
        what="the chat template keeps the last 40 messages only",
        template=_template("messages[-40:]"),
    ),
    ZooFault(
        name="template-prompt",
        group="configuration",
        what="the chat template does not open the assistant's turn",
        template=CHAT_TEMPLATE.partition("{% if")[0],
    ),
    ZooFault(
        name="short-window",
        group="configuration",
        what="the server's window is 4,096 tokens instead of 16,384",
        flags=("--max-model-len", "4096"),
        beyond="what does not fit is left out and noted; it takes bins, or a cell's threshold",
    ),
)

ALL = (HEALTHY, *FAULTS)
