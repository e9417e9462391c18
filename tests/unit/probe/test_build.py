import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from mrcr_action.probe import build
from mrcr_action.probe.__main__ import main
from mrcr_action.probe.build import weights
from mrcr_action.probe.checkpoint import Dtype, stored


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


def test_no_weight_overflows_float16() -> None:
    assert max(float(np.abs(matrix).max()) for matrix in weights().values()) < 65504


@pytest.mark.parametrize("max_len", [0, 131073])
def test_a_context_longer_than_the_design_is_refused(tmp_path: Path, max_len: int) -> None:
    with pytest.raises(ValueError, match="max_len must be 1 to 131072"):
        build(tmp_path, max_len=max_len)
