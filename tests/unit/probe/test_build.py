import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from safetensors import safe_open

from mrcr_action.probe import build
from mrcr_action.probe.__main__ import main
from mrcr_action.probe.build import weights
from mrcr_action.probe.checkpoint import Dtype, stored
from mrcr_action.probe.variant import Sensitivity, Variant

VARIANTS = [
    replace(variant, sensitivity=sensitivity)
    for variant in (Variant(), Variant(head_size=64), Variant(architecture="qwen3"))
    for sensitivity in get_args(Sensitivity)
]


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_files_are_the_same_bytes_on_every_machine(tmp_path: Path) -> None:
    build(tmp_path)
    assert {name: digest(tmp_path / name) for name in ("model.safetensors", "tokenizer.json")} == {
        "model.safetensors": "a0c1e48cdc20b3f0227010a39be8463282150cb3115090038464b6275a4b25ac",
        "tokenizer.json": "ad3509cc372adb9917cc52870ad5b341c768f586ec749e27cae9870dd7acc39f",
    }


def test_command_writes_what_vllm_loads(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "probe"
    assert main([str(directory), "--dtype", "float16", "--max-len", "4096"]) == 0
    assert sorted(path.name for path in directory.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    config = json.loads((directory / "config.json").read_text())
    assert config["dtype"] == "float16"
    assert config["max_position_embeddings"] == 4096
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 2.0**80}
    assert json.loads((directory / "tokenizer_config.json").read_text())["model_max_length"] == 4096


def test_the_safetensors_library_reads_the_weights_back(tmp_path: Path) -> None:
    build(tmp_path, dtype="float16")
    expected = weights()
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        assert sorted(file.keys()) == sorted(expected)
        for name, matrix in expected.items():
            assert np.array_equal(file.get_tensor(name), matrix.astype(np.float16))


def test_a_qwen3_has_a_norm_for_queries_and_keys_in_every_layer(tmp_path: Path) -> None:
    build(tmp_path, variant=Variant(architecture="qwen3"), dtype="float16")
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["architectures"], config["model_type"]) == (["Qwen3ForCausalLM"], "qwen3")
    assert (config["head_dim"], config["attention_bias"]) == (128, False)
    assert "mlp_bias" not in config
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        for layer in range(config["num_hidden_layers"]):
            for name in ("q_norm", "k_norm"):
                gain = file.get_tensor(f"model.layers.{layer}.self_attn.{name}.weight")
                assert gain.shape == (128,)
                assert np.isfinite(gain).all()


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("float32", 1.5, "0000c03f"),
        ("float16", 1.5, "003e"),
        ("bfloat16", 1.5, "c03f"),
        ("bfloat16", -256.0, "80c3"),
        ("bfloat16", 1 + 2**-8, "803f"),
        ("bfloat16", 1 + 3 * 2**-8, "823f"),
        ("bfloat16", 1 + 2**-8 + 2**-20, "813f"),
    ],
)
def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(
    dtype: Dtype, number: float, expected: str
) -> None:
    assert stored(np.array([number]), dtype).hex() == expected


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_no_weight_overflows_float16(variant: Variant) -> None:
    made = weights(variant)
    assert max(float(np.abs(matrix).max()) for matrix in made.values()) < 65504


def test_heads_of_64_are_turned_in_part_and_have_their_own_keys(tmp_path: Path) -> None:
    build(tmp_path, variant=Variant(head_size=64))
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["head_dim"], config["num_key_value_heads"]) == (64, 2)
    assert int(64 * config["partial_rotary_factor"]) == 28
    assert config["rope_parameters"] == {
        "rope_type": "default",
        "rope_theta": 2.0**17.5,
        "partial_rotary_factor": config["partial_rotary_factor"],
    }
    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        shapes = {
            name: tuple(file.get_slice(f"model.layers.0.self_attn.{name}_proj.weight").get_shape())
            for name in "qkvo"
        }
    assert shapes == {"q": (128, 640), "k": (128, 640), "v": (128, 640), "o": (640, 128)}


def test_variants_have_folders_of_their_own_and_some_do_not_exist() -> None:
    assert len({tuple(variant.parts()) for variant in VARIANTS}) == len(VARIANTS)
    assert Variant().parts() == []
    with pytest.raises(ValueError, match="a qwen3 needs heads of 128"):
        Variant(architecture="qwen3", head_size=64)


@pytest.mark.parametrize("max_len", [0, 131073])
def test_a_context_longer_than_the_design_is_refused(tmp_path: Path, max_len: int) -> None:
    with pytest.raises(ValueError, match="max_len must be 1 to 131072"):
        build(tmp_path, max_len=max_len)
