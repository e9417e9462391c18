"""What a correct server computes: the forward pass in numpy, for tests and for looking inside.

It rounds wherever vLLM does when it computes in the given dtype. To see what a layer wrote::

    trace = forward(encode(text), weights())
    trace.residuals[9][-1, layout.HASH]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mrcr_action.probe import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mrcr_action.probe.checkpoint import Dtype

Array = NDArray[np.float32]
"""Activations, one row a token."""

EPSILON = 1e-6
"""What RMSNorm adds to the mean square."""
NOTHING = np.float32(-60)
"""An exponent below which e^x counts as 0; processors are slow with numbers that small."""


Cached: TypeAlias = "Callable[[Array], Array]"
"""What a layer's keys or values, tokens × HEAD, are read back from the cache as."""


def as_they_are(x: Array) -> Array:
    """Cached without loss."""
    return x


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How a server's attention departs from the plain computation; by default in nothing."""

    keys: Cached = as_they_are
    """Applied to keys behind RoPE, in every layer."""
    values: Cached = as_they_are
    """Applied to values, in every layer."""
    scale: float = 1.0
    """Times 1/√128 or 1/8, by which scores are multiplied."""
    scores: Dtype = "float32"
    """What scores are rounded to ahead of the softmax."""
    rounding: Rounding = Rounding()
    """Where its kernels round."""


HEALTHY = Server()


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


def forward(
    ids: Sequence[int],
    weights: Mapping[str, at.Matrix],
    *,
    dtype: Dtype = "float32",
    server: Server = HEALTHY,
) -> Trace:
    """Run the model over token ids, each seeing those before it.

    ``weights`` are build.weights(). Memory grows with the square of the length: for thousands of
    tokens, not more.
    """
    return computed(ids, prepared(weights, dtype), dtype=dtype, server=server)


def prepared(weights: Mapping[str, at.Matrix], dtype: Dtype) -> dict[str, Array]:
    """The weights as a server loads them, for as many runs as wanted."""
    return {name: rounded(w.astype(np.float32), dtype) for name, w in weights.items()}


def computed(
    ids: Sequence[int],
    parameters: Mapping[str, Array],
    *,
    dtype: Dtype,
    server: Server = HEALTHY,
    gap: int = 0,
) -> Trace:
    """As ``forward``, with weights that are ``prepared`` already.

    ``gap`` tokens are as if they were behind the first one, the ``<|bos|>``, and nobody looked at
    them: to see what a model does with positions that far out.
    """
    stream = parameters["model.embed_tokens.weight"][list(ids)]
    positions = np.arange(len(stream), dtype=np.int64)
    positions[1:] += gap
    residuals: list[Array] = []
    while (prefix := f"model.layers.{len(residuals)}.") + "mlp.up_proj.weight" in parameters:
        part = {
            name.removeprefix(prefix).removesuffix(".weight"): w
            for name, w in parameters.items()
            if name.startswith(prefix)
        }
        x = normed(stream, part["input_layernorm"], dtype)
        stream = rounded(stream + attended(x, part, positions, dtype=dtype, server=server), dtype)
        x = normed(stream, part["post_attention_layernorm"], dtype)
        stream = rounded(stream + gated(x, part, dtype), dtype)
        residuals.append(stream)
    last = normed(stream, parameters["model.norm.weight"], dtype)
    return Trace(tuple(residuals), rounded(product(last, parameters["lm_head.weight"]), dtype))


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


def product(x: Array, matrix: Array) -> Array:
    """A projection: ``x @ matrix.T``, without the rows and columns that are zero, as most are."""
    rows, columns = matrix.any(axis=1), matrix.any(axis=0)
    found = np.zeros((len(x), len(matrix)), np.float32)
    found[:, rows] = x[:, columns] @ matrix[np.ix_(rows, columns)].T
    return found


def normed(x: Array, gain: Array, dtype: Dtype) -> Array:
    """RMSNorm."""
    scale = 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(EPSILON))
    return rounded(rounded(x * scale, dtype) * gain, dtype)


def attended(
    x: Array,
    part: Mapping[str, Array],
    positions: NDArray[np.int64],
    *,
    dtype: Dtype,
    server: Server = HEALTHY,
) -> Array:
    """What a layer's attention adds; ``part`` has its projections by name."""
    tokens = len(x)
    head = len(part["self_attn.q_proj"]) // at.HEADS
    pairs = at.SHAPES[head].pairs
    angles = np.outer(positions, at.TURN[:pairs])
    cos = rounded(np.cos(angles).astype(np.float32), dtype)
    sin = rounded(np.sin(angles).astype(np.float32), dtype)

    rounding = server.rounding
    fitted = cut if rounding.drops_bits else rounded

    def turned(y: Array) -> Array:
        a, b, plain = np.split(y, [pairs, 2 * pairs], axis=1)
        first = np.concatenate([a * cos, b * cos], axis=1)
        second = np.concatenate([-b * sin, a * sin], axis=1)
        if rounding.rounds_turns:
            first, second = fitted(first, dtype), fitted(second, dtype)
        return np.concatenate([fitted(first + second, dtype), plain], axis=1)

    def projected(name: str) -> list[Array]:
        y = rounded(product(x, part[f"self_attn.{name}_proj"]), dtype)
        heads = np.split(y, y.shape[1] // head, axis=1)
        gain = part.get(f"self_attn.{name}_norm")
        return heads if gain is None else [normed(y, gain, dtype) for y in heads]

    keys = [rounded(server.keys(turned(key)), dtype) for key in projected("k")]
    values = [rounded(server.values(value), dtype) for value in projected("v")]
    future = np.triu(np.ones((tokens, tokens), dtype=bool), 1)
    seen: list[Array] = []
    for n, query in enumerate(projected("q")):
        # Query heads share one head of keys and values, or have their own.
        key, value = (found[n * len(found) // at.HEADS] for found in (keys, values))
        scale = np.float32(server.scale / np.sqrt(head))
        if rounding.scales_query:
            score = fitted(turned(query) * scale, dtype) @ key.T
        else:
            score = turned(query) @ key.T * scale
        score = rounded(score, server.scores)
        score[future] = -np.inf
        share = np.exp(np.maximum(score - score.max(axis=1, keepdims=True), NOTHING))
        share[share <= np.exp(NOTHING)] = 0
        total = share.sum(axis=1, keepdims=True)
        seen.append((fitted(share, dtype) if rounding.rounds_shares else share) @ value / total)
    both = fitted(np.concatenate(seen, axis=1), dtype)
    return rounded(product(both, part["self_attn.o_proj"]), dtype)


def gated(x: Array, part: Mapping[str, Array], dtype: Dtype) -> Array:
    """What a layer's MLP adds; ``part`` has its projections by name."""
    gate = rounded(product(x, part["mlp.gate_proj"]), dtype)
    up = rounded(product(x, part["mlp.up_proj"]), dtype)
    silu = np.where(gate > NOTHING, gate / (1 + np.exp(-np.maximum(gate, NOTHING))), 0)
    return rounded(product(rounded(silu * up, dtype), part["mlp.down_proj"]), dtype)
