"""The weights by name, and the files that vLLM and transformers load."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mrcr_action.probe import checkpoint, vocabulary
from mrcr_action.probe import layout as at
from mrcr_action.probe.codes import tables
from mrcr_action.probe.layers import all_layers
from mrcr_action.probe.qk_norm import normed_key, normed_query
from mrcr_action.probe.variant import DEFAULT, Architecture, Variant

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.probe.attention import Attention
    from mrcr_action.probe.checkpoint import Dtype

DEFAULT_MAX_LEN: Final = 131072
"""Tokens up to which the distances' arithmetic was designed."""

GAIN: Final = 256.0
"""Weight of every RMSNorm. NORM holds (24, 8) · 256 and 24² + 8² = 640 = HIDDEN, so the root mean
square is 256, give or take 10^−5 from all other dimensions: a ±1 is again ±1 after the norm."""
LOGIT: Final = 4.0
"""Logits are this times the dot product with a token's code: 96 for the right token, at most 40
for any other."""


ARCHITECTURES: Final[dict[Architecture, str]] = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""The class that vLLM and transformers load each architecture with."""


def build(
    directory: Path,
    *,
    variant: Variant = DEFAULT,
    dtype: Dtype = "bfloat16",
    max_len: int = DEFAULT_MAX_LEN,
) -> None:
    """Write the model, its configuration and its tokenizer; the same bytes every time.

    ``max_len`` is the longest context in tokens. Files that are there already are replaced.

    Raises:
        ValueError: ``max_len`` is not positive, or longer than distances can be told.
        OSError: the directory cannot be written.
    """
    if not 0 < max_len <= DEFAULT_MAX_LEN:
        raise ValueError(f"max_len must be 1 to {DEFAULT_MAX_LEN}, not {max_len}")
    directory.mkdir(parents=True, exist_ok=True)
    checkpoint.write(directory / "model.safetensors", weights(variant), dtype)
    _write_json(directory / "tokenizer.json", vocabulary.tokenizer_json())
    _write_json(directory / "tokenizer_config.json", vocabulary.tokenizer_config(max_len))
    _write_json(directory / "generation_config.json", _generation_config())
    # Last, because a directory without it is no model yet.
    _write_json(directory / "config.json", _config(variant, dtype, max_len))


def weights(variant: Variant = DEFAULT) -> dict[str, at.Matrix]:
    """Every parameter by its name in a checkpoint, in float64."""
    norm = np.full(at.HIDDEN, GAIN)
    found = {
        "model.embed_tokens.weight": embeddings(),
        "model.norm.weight": norm,
        "lm_head.weight": unembeddings(),
    }
    for index, layer in enumerate(all_layers(variant)):
        parts = {
            "input_layernorm": norm,
            **_queries_and_keys(layer.attention, variant.architecture),
            "self_attn.v_proj": layer.attention.value,
            "self_attn.o_proj": layer.attention.output,
            "post_attention_layernorm": norm,
            "mlp.gate_proj": layer.mlp.gate,
            "mlp.up_proj": layer.mlp.up,
            "mlp.down_proj": layer.mlp.down,
        }
        found |= {f"model.layers.{index}.{part}.weight": w for part, w in parts.items()}
    return found


def _queries_and_keys(attention: Attention, architecture: Architecture) -> dict[str, at.Matrix]:
    if architecture == "llama":
        return {"self_attn.q_proj": attention.query, "self_attn.k_proj": attention.key}
    query, key = normed_query(attention.query), normed_key(attention.key)
    return {
        "self_attn.q_proj": query.projection,
        "self_attn.q_norm": query.gain,
        "self_attn.k_proj": key.projection,
        "self_attn.k_norm": key.gain,
    }


def embeddings() -> at.Matrix:
    """What each token starts with, by token id."""
    codes = tables()
    table = np.zeros((vocabulary.SIZE, at.HIDDEN))
    table[:, at.NORM] = 24 * GAIN, 8 * GAIN
    table[:, at.ONE] = 1
    table[:, at.TOKEN] = codes.token
    table[:, at.PHRASE] = codes.phrase
    table[:, at.HASH] = codes.hash
    table[:, at.COUNT] = codes.count[0]
    for k, digit in enumerate(vocabulary.encode("12345678")):
        table[digit, at.DIGIT[k]] = 1
    table[vocabulary.ASSISTANT, [at.ASSISTANT, at.IN_REPLY, at.OPENED[0]]] = 1
    # <|bos|> is what a head sees that is to see nothing: the neutral element of products.
    table[vocabulary.BOS, [at.BOS, *at.OPENED, *at.HASH, *at.COUNT]] = 1
    return table


def unembeddings() -> at.Matrix:
    """How much each token's logit takes of OUT, by token id."""
    table = np.zeros((vocabulary.SIZE, at.HIDDEN))
    table[:, at.OUT] = LOGIT * tables().token
    return table


def _config(variant: Variant, dtype: Dtype, max_len: int) -> dict[str, Any]:
    shape = variant.shape
    turned = {} if shape.turned == 1 else {"partial_rotary_factor": shape.turned}
    return {
        "architectures": [ARCHITECTURES[variant.architecture]],
        "model_type": variant.architecture,
        "dtype": dtype,
        "vocab_size": vocabulary.SIZE,
        "hidden_size": at.HIDDEN,
        "intermediate_size": at.INTERMEDIATE,
        "num_hidden_layers": len(all_layers(variant)),
        "num_attention_heads": at.HEADS,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "max_position_embeddings": max_len,
        "rms_norm_eps": 1e-6,
        # Transformers 5 reads the first spelling, transformers 4 the second.
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta, **turned},
        "rope_theta": shape.rope_theta,
        **turned,
        "attention_bias": False,
        **({"mlp_bias": False} if variant.architecture == "llama" else {}),
        "tie_word_embeddings": False,
        "use_cache": True,
        "bos_token_id": vocabulary.BOS,
        "eos_token_id": vocabulary.END,
        "pad_token_id": vocabulary.BOS,
    }


def _generation_config() -> dict[str, Any]:
    return {
        "bos_token_id": vocabulary.BOS,
        "eos_token_id": vocabulary.END,
        "pad_token_id": vocabulary.BOS,
        "do_sample": False,
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
