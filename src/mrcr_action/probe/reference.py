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
class Server:
    """How a server's attention departs from the plain computation; by default in nothing."""

    keys: Cached = as_they_are
    """Applied to keys behind RoPE, in every layer."""
    values: Cached = as_they_are
    """Applied to values, in every layer."""
    scale: float = 1.0
    """Times 1/√128, by which scores are multiplied."""
    shares: Dtype = "float32"
    """What the keys' weights are rounded to ahead of the product with the values."""


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
) -> Trace:
    """As ``forward``, with weights that are ``prepared`` already."""
    stream = parameters["model.embed_tokens.weight"][list(ids)]
    residuals: list[Array] = []
    while (prefix := f"model.layers.{len(residuals)}.") + "mlp.up_proj.weight" in parameters:
        part = {
            name.removeprefix(prefix).removesuffix(".weight"): w
            for name, w in parameters.items()
            if name.startswith(prefix)
        }
        x = normed(stream, part["input_layernorm"], dtype)
        stream = rounded(stream + attended(x, part, dtype, server), dtype)
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


def normed(x: Array, gain: Array, dtype: Dtype) -> Array:
    """RMSNorm."""
    scale = 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(EPSILON))
    return rounded(rounded(x * scale, dtype) * gain, dtype)


def attended(x: Array, part: Mapping[str, Array], dtype: Dtype, server: Server = HEALTHY) -> Array:
    """What a layer's attention adds; ``part`` has its projections by name."""
    tokens = len(x)
    angles = np.outer(np.arange(tokens), at.TURN)
    cos = rounded(np.cos(angles).astype(np.float32), dtype)
    sin = rounded(np.sin(angles).astype(np.float32), dtype)

    def turned(y: Array) -> Array:
        a, b = np.split(y, 2, axis=1)
        return rounded(np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=1), dtype)

    def projected(name: str) -> Array:
        y = rounded(x @ part[f"self_attn.{name}_proj"].T, dtype)
        gain = part.get(f"self_attn.{name}_norm")
        if gain is None:
            return y
        heads = (normed(head, gain, dtype) for head in np.split(y, y.shape[1] // at.HEAD, axis=1))
        return np.concatenate([*heads], axis=1)

    key = rounded(server.keys(turned(projected("k"))), dtype)
    value = rounded(server.values(projected("v")), dtype)
    queries = projected("q")
    future = np.triu(np.ones((tokens, tokens), dtype=bool), 1)
    seen: list[Array] = []
    for query in np.split(queries, at.HEADS, axis=1):
        score = turned(query) @ key.T * np.float32(server.scale / np.sqrt(at.HEAD))
        score[future] = -np.inf
        share = np.exp(np.maximum(score - score.max(axis=1, keepdims=True), NOTHING))
        share[share <= np.exp(NOTHING)] = 0
        total = share.sum(axis=1, keepdims=True)
        seen.append(rounded(share, server.shares) @ value / total)
    return rounded(rounded(np.concatenate(seen, axis=1), dtype) @ part["self_attn.o_proj"].T, dtype)


def gated(x: Array, part: Mapping[str, Array], dtype: Dtype) -> Array:
    """What a layer's MLP adds; ``part`` has its projections by name."""
    gate = rounded(x @ part["mlp.gate_proj"].T, dtype)
    up = rounded(x @ part["mlp.up_proj"].T, dtype)
    silu = np.where(gate > NOTHING, gate / (1 + np.exp(-np.maximum(gate, NOTHING))), 0)
    return rounded(rounded(silu * up, dtype) @ part["mlp.down_proj"].T, dtype)
