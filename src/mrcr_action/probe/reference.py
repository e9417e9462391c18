"""What a correct server computes: the forward pass in numpy, for tests and for looking inside.

It rounds wherever vLLM does when it computes in the given dtype. To see what a layer wrote::

    trace = forward(encode(text), weights())
    trace.residuals[9][-1, layout.HASH]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrcr_action.probe import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mrcr_action.probe.checkpoint import Dtype

Array = NDArray[np.float32]
"""Activations, one row a token."""

EPSILON = 1e-6
"""What RMSNorm adds to the mean square."""
NOTHING = np.float32(-60)
"""An exponent below which e^x counts as 0; processors are slow with numbers that small."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything computed for one sequence of tokens."""

    residuals: tuple[Array, ...]
    """The residual stream after each layer, tokens × HIDDEN."""
    logits: Array
    """Tokens × vocabulary."""

    def greedy(self) -> list[int]:
        """The token predicted after each token."""
        return [int(token) for token in self.logits.argmax(axis=1)]


@dataclass(frozen=True, slots=True)
class Rounding:
    """Where an attention kernel rounds, beside its inputs and what it returns.

    All of these are met in kernels that are right.
    """

    scales_query: bool = False
    """Queries are divided by the root of the head's size before keys are compared with them, and
    rounded. Else scores are divided, in float32."""
    rounds_shares: bool = False
    """The exponentials are rounded before they weigh the values, not where they are summed up."""
    rounds_turns: bool = False
    """RoPE rounds its two products before it adds them."""
    drops_bits: bool = False
    """RoPE and attention drop the bits that do not fit instead of rounding to the nearest: vLLM's
    on CPUs with AVX-512 but without its instructions for bfloat16."""


def forward(
    ids: Sequence[int],
    weights: Mapping[str, at.Matrix],
    *,
    dtype: Dtype = "float32",
    rounding: Rounding = Rounding(),
) -> Trace:
    """Run the model over token ids, each seeing those before it.

    ``weights`` are build.weights(). Memory grows with the square of the length: for thousands of
    tokens, not more.
    """
    parameters = {name: rounded(w.astype(np.float32), dtype) for name, w in weights.items()}
    stream = parameters["model.embed_tokens.weight"][list(ids)]
    residuals: list[Array] = []
    while (prefix := f"model.layers.{len(residuals)}.") + "mlp.up_proj.weight" in parameters:
        part = {
            name.removeprefix(prefix).removesuffix(".weight"): w
            for name, w in parameters.items()
            if name.startswith(prefix)
        }
        x = normed(stream, part["input_layernorm"], dtype)
        stream = rounded(stream + attended(x, part, dtype, rounding), dtype)
        x = normed(stream, part["post_attention_layernorm"], dtype)
        stream = rounded(stream + gated(x, part, dtype), dtype)
        residuals.append(stream)
    last = normed(stream, parameters["model.norm.weight"], dtype)
    return Trace(tuple(residuals), rounded(last @ parameters["lm_head.weight"].T, dtype))


def rounded(x: Array, dtype: Dtype) -> Array:
    """Each number as near as the dtype holds, kept in float32."""
    if dtype == "float32":
        return x
    if dtype == "float16":
        return x.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(x).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def cut(x: Array, dtype: Dtype) -> Array:
    """Each number without the bits that bfloat16 does not hold; other dtypes are rounded."""
    if dtype != "bfloat16":
        return rounded(x, dtype)
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def normed(x: Array, gain: Array, dtype: Dtype) -> Array:
    """RMSNorm."""
    scale = 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(EPSILON))
    return rounded(rounded(x * scale, dtype) * gain, dtype)


def attended(x: Array, part: Mapping[str, Array], dtype: Dtype, rounding: Rounding) -> Array:
    """What a layer's attention adds; ``part`` has its projections by name."""
    tokens = len(x)
    angles = np.outer(np.arange(tokens), at.TURN)
    cos = rounded(np.cos(angles).astype(np.float32), dtype)
    sin = rounded(np.sin(angles).astype(np.float32), dtype)

    fitted = cut if rounding.drops_bits else rounded

    def turned(y: Array) -> Array:
        a, b = np.split(y, 2, axis=1)
        first = np.concatenate([a * cos, b * cos], axis=1)
        second = np.concatenate([-b * sin, a * sin], axis=1)
        if rounding.rounds_turns:
            first, second = fitted(first, dtype), fitted(second, dtype)
        return fitted(first + second, dtype)

    key = turned(rounded(x @ part["self_attn.k_proj"].T, dtype))
    value = rounded(x @ part["self_attn.v_proj"].T, dtype)
    queries = rounded(x @ part["self_attn.q_proj"].T, dtype)
    future = np.triu(np.ones((tokens, tokens), dtype=bool), 1)
    scale = np.float32(1 / np.sqrt(at.HEAD))
    seen: list[Array] = []
    for query in (turned(query) for query in np.split(queries, at.HEADS, axis=1)):
        if rounding.scales_query:
            score = fitted(query * scale, dtype) @ key.T
        else:
            score = query @ key.T * scale
        score[future] = -np.inf
        share = np.exp(np.maximum(score - score.max(axis=1, keepdims=True), NOTHING))
        share[share <= np.exp(NOTHING)] = 0
        total = share.sum(axis=1, keepdims=True)
        seen.append((fitted(share, dtype) if rounding.rounds_shares else share) @ value / total)
    return rounded(fitted(np.concatenate(seen, axis=1), dtype) @ part["self_attn.o_proj"].T, dtype)


def gated(x: Array, part: Mapping[str, Array], dtype: Dtype) -> Array:
    """What a layer's MLP adds; ``part`` has its projections by name."""
    gate = rounded(x @ part["mlp.gate_proj"].T, dtype)
    up = rounded(x @ part["mlp.up_proj"].T, dtype)
    silu = np.where(gate > NOTHING, gate / (1 + np.exp(-np.maximum(gate, NOTHING))), 0)
    return rounded(rounded(silu * up, dtype) @ part["mlp.down_proj"].T, dtype)
