from collections.abc import Sequence

import numpy as np
import pytest

from mrcr_action.probe import layout as at
from mrcr_action.probe.checkpoint import Dtype
from mrcr_action.probe.mlp import Mlp
from mrcr_action.probe.reference import Array, gated, rounded

A, B, OUT = at.PHRASE[0], at.SCRATCH[0], at.OUT[0]

pytestmark = pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])


def after(mlp: Mlp, values: Sequence[dict[int, float]], dtype: Dtype) -> Array:
    """The stream after an MLP, a row for each set of values by dimension."""
    stream = np.zeros((len(values), at.HIDDEN), np.float32)
    stream[:, at.ONE] = 1
    for row, by_dim in zip(stream, values, strict=True):
        for dim, value in by_dim.items():
            row[dim] = value
    stream = rounded(stream, dtype)
    weights = {"gate": mlp.gate, "up": mlp.up, "down": mlp.down}
    part = {f"mlp.{name}_proj": rounded(w.astype(np.float32), dtype) for name, w in weights.items()}
    return rounded(stream + gated(stream, part, dtype), dtype)


def test_multiply_is_exact_and_clears_its_factor(dtype: Dtype) -> None:
    mlp = Mlp()
    mlp.multiply((A,), (B,))
    pairs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    found = after(mlp, [{A: a, B: b} for a, b in pairs], dtype)
    assert found[:, A] == pytest.approx([1, -1, -1, 1], abs=1e-6)
    assert found[:, B] == pytest.approx([0, 0, 0, 0], abs=1e-6)


def test_detect_fires_for_the_whole_code_alone(dtype: Dtype) -> None:
    mlp = Mlp()
    code = np.where(np.arange(32) % 3 == 0, 1, -1)
    mlp.detect(dict(zip(at.PHRASE, code.tolist(), strict=True)), (OUT,))
    right = dict(zip(at.PHRASE, code.tolist(), strict=True))
    found = after(mlp, [right, {**right, A: -1}, {}], dtype)
    assert found[:, OUT] == pytest.approx([1, 0, 0], abs=1e-5)


def test_step_tells_neighbouring_counts_apart(dtype: Dtype) -> None:
    for n in range(1, 9):
        low, high = n / (n + 8), (n + 1) / (n + 9)
        mlp = Mlp()
        mlp.step(at.SHARE, low=low, high=high, out=OUT, height=2)
        found = after(mlp, [{at.SHARE: 1 / 9}, {at.SHARE: low}, {at.SHARE: high}], dtype)
        assert found[:, OUT] == pytest.approx([0, 0, 2], abs=0.1)


def test_step_refuses_a_gap_too_narrow_for_bfloat16(dtype: Dtype) -> None:
    with pytest.raises(ValueError, match="no exact ramp"):
        Mlp().step(at.SHARE, low=0.5, high=0.501, out=OUT)


def test_outside_tells_a_number_that_is_off_on_either_side(dtype: Dtype) -> None:
    mlp = Mlp()
    mlp.outside(A, centre=1, within=0.4, beyond=0.95, out=OUT)
    found = after(mlp, [{A: value} for value in (1, 0.75, 1.25, 0, 2, -40)], dtype)
    assert found[:, OUT] == pytest.approx([0, 0, 0, 1, 1, 1], abs=2e-3)


def test_snap_gives_signs_and_nothing_at_bos(dtype: Dtype) -> None:
    mlp = Mlp()
    mlp.snap((A,), (OUT,))
    values: list[dict[int, float]] = [{A: 0.9}, {A: -0.3}, {A: 0}, {A: 1, at.BOS: 1}]
    assert after(mlp, values, dtype)[:, OUT] == pytest.approx([1, -1, 0, 0], abs=0.07)


def test_sharpen_makes_signs_exact(dtype: Dtype) -> None:
    mlp = Mlp()
    mlp.sharpen((A,))
    values: list[dict[int, float]] = [{A: 0.94}, {A: -1.0625}, {A: 1.375}, {A: 0}, {at.BOS: 1}]
    expected = [1, -1, 1, 0, 0]
    precise = 1e-5 if dtype == "float32" else 1e-6
    assert after(mlp, values, dtype)[:, A] == pytest.approx(expected, abs=precise)


def test_move_chooses_between_two_sources(dtype: Dtype) -> None:
    mlp = Mlp()
    mlp.move(A, OUT, where={at.NONCE_TURN: 1})
    mlp.move(B, OUT, where={at.ONE: 1, at.NONCE_TURN: -1})
    values: list[dict[int, float]] = [{A: -1, B: 1, at.NONCE_TURN: 1}, {A: -1, B: 1}]
    assert after(mlp, values, dtype)[:, OUT] == pytest.approx([-1, 1], abs=1e-6)
