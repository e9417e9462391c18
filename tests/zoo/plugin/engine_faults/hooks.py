"""Where vLLM's code is entered: seven of its methods are wrapped, and none of its files changed.

All but the eviction acts in the process of the worker. The classes are those of the CPU backend
and of the first version of the model runner.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from engine_faults.active import Active
from engine_faults.fault import Neighbour
from engine_faults.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable


def register() -> None:
    """Called by vLLM in each of its processes; does nothing where no file of faults is named."""
    active = Active.from_environment()
    if active is None:
        return
    from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding
    from vllm.v1.attention.backends.cpu_attn import (
        CPUAttentionBackendImpl,
        CPUAttentionMetadataBuilder,
    )
    from vllm.v1.core.block_pool import BlockHashToBlockMap
    from vllm.v1.sample.sampler import Sampler
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner

    hooks = Hooks(active)
    for owner, name, hook in (
        (CPUModelRunner, "execute_model", hooks.execute_model),
        (CPUAttentionMetadataBuilder, "build", hooks.build),
        (RotaryEmbedding, "forward_cpu", hooks.rotate),
        (CPUAttentionBackendImpl, "do_kv_cache_update", hooks.store),
        (CPUAttentionBackendImpl, "forward", hooks.attend),
        (Sampler, "forward", hooks.sample),
        (BlockHashToBlockMap, "pop", hooks.evict),
    ):
        wrap(owner, name, hook)


def wrap(owner: type, name: str, hook: Callable[..., Any]) -> None:
    """Replace a method by a hook, which is given the original one and its arguments."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def replacement(*arguments: Any, **named: Any) -> Any:
        return hook(original, *arguments, **named)

    setattr(owner, name, replacement)


class Hooks:
    """One method for each of vLLM's; the first argument after the original is its ``self``."""

    def __init__(self, active: Active) -> None:
        self._active = active
        self._runner: Any = None

    def execute_model(self, original: Any, runner: Any, scheduled: Any, *rest: Any) -> Any:
        """A step begins."""
        active = self._active
        active.refresh()
        active.requests = ()
        self._runner = runner
        for new in scheduled.scheduled_new_reqs:
            active.hits[new.req_id] = new.num_computed_tokens
        for finished in scheduled.finished_req_ids:
            active.hits.pop(finished, None)
        return original(runner, scheduled, *rest)

    def build(
        self, original: Any, builder: Any, prefix: int, common: Any, *rest: Any, **named: Any
    ) -> Any:
        """Attention's view of the step is made: which request is where, and its block table."""
        active = self._active
        built = original(builder, prefix, common, *rest, **named)
        batch = self._runner and self._runner.input_batch
        if not batch or len(batch.req_ids) < common.num_reqs or not active.hits:
            active.requests = ()  # a warm-up
            return built
        edges, lengths = common.query_start_loc.tolist(), common.seq_lens.tolist()
        active.requests = tuple(
            Request(
                id=batch.req_ids[at],
                begin=edges[at],
                end=edges[at + 1],
                context=lengths[at] - (edges[at + 1] - edges[at]),
                prompt=int(batch.num_prompt_tokens[at]),
                hit=active.hits.get(batch.req_ids[at], 0),
                block=builder.block_size,
            )
            for at in range(common.num_reqs)
        )
        if active.fault.overrides("read_blocks"):
            right = built.block_table
            # A copy: what is read goes wrong, what is written (slot_mapping) does not.
            built.block_table = right.clone()
            every = [Neighbour(request, right[at]) for at, request in enumerate(active.requests)]
            for at, request in enumerate(active.requests):
                others = every[:at] + every[at + 1 :]
                active.fault.read_blocks(built.block_table[at], request, others)
        return built

    def rotate(self, original: Any, rotary: Any, positions: Any, *rest: Any, **named: Any) -> Any:
        """Queries and keys are rotated by their positions."""
        active = self._active
        if active.requests and active.fault.overrides("positions"):
            right, positions = positions, positions.clone()
            for request in active.requests:
                part = slice(request.begin, request.end)
                positions[part] = active.fault.positions(right[part], request)
        return original(rotary, positions, *rest, **named)

    def store(self, original: Any, *arguments: Any) -> Any:
        """Keys and values are written to the cache."""
        active = self._active
        if not active.requests:
            return original(*arguments)
        implementation, layer, key, value, cache, slots = arguments
        key, value, slots = active.fault.stored(key, value, slots, active.requests)
        return original(implementation, layer, key, value, cache, slots)

    def attend(self, original: Any, layer: Any, *arguments: Any, **named: Any) -> Any:
        """One layer attends; the result is in ``output``, its seventh argument."""
        active = self._active
        if not active.requests:
            return original(layer, *arguments, **named)
        wrong = active.fault.attention(layer.scale, active.requests)
        right = {name: getattr(layer, name) for name in wrong}
        vars(layer).update(wrong)
        try:
            found = original(layer, *arguments, **named)
        finally:
            vars(layer).update(right)
        active.fault.attended(
            named["output"] if "output" in named else arguments[6], active.requests
        )
        return found

    def sample(self, original: Any, sampler: Any, logits: Any, *rest: Any, **named: Any) -> Any:
        """The next token of each request is chosen."""
        active = self._active
        if active.fault.overrides("logits") and logits.shape[0] == len(active.requests):
            logits = logits.clone()
            active.fault.logits(logits, active.requests)
        return original(sampler, logits, *rest, **named)

    def evict(self, original: Any, table: Any, key: Any, block: int) -> Any:
        """A block is taken for something else: the prefix cache must forget it."""
        active = self._active
        active.refresh()
        if active.fault.forgets_to_evict():
            active.note(f"block {block}")
            return table.get_one_block(key)
        return original(table, key, block)
