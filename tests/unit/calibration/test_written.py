from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mrcr_action.calibration.document import Calibration
from mrcr_action.calibration.written import Line, kept, merged, rates_of, table, text_of
from mrcr_action.config import RunConfig
from mrcr_action.config.resolve import resolve
from mrcr_action.config.yaml_file import read_yaml
from mrcr_action.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

MADE = Calibration(
    model="org/model",
    vllm_version="0.33.0",
    hardware="1 NVIDIA H200",
    dataset="openai/mrcr",
    revision="abc",
    protocol="openai",
    seed=42,
    n={"all": 20, "n8": 10},
    passes=("cold", "warm"),
    repeats=5,
    false_alarm=0.01,
    date="2026-01-02T03:04:05Z",
)
LINES = (
    Line(bucket="all", n=20, mean=0.9, sd=0.02, least=0.88, most=0.93, threshold=0.8),
    Line(bucket="n8", n=10, mean=0.85, sd=0.03, least=0.8, most=0.9, threshold=0.6543),
)


def keep(
    folder: Path, text: str, environ: dict[str, str] | None = None, **flags: Any
) -> tuple[dict[str, Any], list[str]]:
    path = folder / "model.yaml"
    path.write_text(text)
    return kept(read_yaml(path), resolve(path, environ or {}, flags))


def test_the_written_file_is_read_back_as_it_was_meant(tmp_path: Path) -> None:
    text = (
        "model_name: org/model\nprotocol: openai\nneedles: [4, 8]\nseed: 42\n"
        "thresholds: {all: 0.5, n4: {nonce_rate: 0.9}}\ntolerance: 0.2\ndecision: confident\n"
        "dataset: rows/mine\nserver_args: [--a, --a]\nenv: {A: 'on', B: 1}\n"
        'extra_body: {note: "# é\\n- x: 1", same: [1], again: [1]}\n'
    )
    values, _ = keep(tmp_path, text)
    before = resolve(tmp_path / "model.yaml", {}, {}).config
    path = tmp_path / "calibrated.yaml"
    path.write_text(text_of(values, merged(before, LINES), MADE, lines=LINES))
    after = resolve(path, {}, {}).config
    assert after.thresholds == {"all": 0.8, "n8": 0.6543, "n4": {"nonce_rate": 0.9}}
    assert (after.tolerance, after.decision, after.calibration) == (0, "point", MADE)
    same = ("model_name", "protocol", "needles", "seed", "dataset", "server_args", "env")
    for key in (*same, "extra_body"):
        assert getattr(after, key) == getattr(before, key)


def test_the_comment_in_front_says_what_the_thresholds_were_made_of() -> None:
    text = text_of({}, {"all": 0.8}, MADE, lines=LINES, remarks=["No threshold: n2 (3)."])
    front = text.partition("\n\n")[0]
    assert all(line.startswith("#") for line in front.splitlines())
    assert "2026-01-02T03:04:05Z" in front
    assert "at most 1.00%" in front
    assert "5 repetitions of: cold, warm" in front
    assert "# all     20  0.9000  0.0200  0.8800  0.9300     0.8000     2.0" in front
    assert front.endswith("# No threshold: n2 (3).")


def test_the_columns_stand_below_each_other() -> None:
    assert len({len(line) for line in table(LINES)}) == 1


def test_a_flag_that_decides_what_is_asked_is_written(tmp_path: Path) -> None:
    values, _ = keep(
        tmp_path,
        "protocol: vllm\nnum_samples: 20\n",
        protocol="openai",
        samples_per_cell="7",
        needles=["4"],
    )
    assert values == {"protocol": "openai", "samples_per_cell": 7, "needles": [4]}


def test_so_is_a_variable(tmp_path: Path) -> None:
    values, _ = keep(tmp_path, "protocol: openai\n", {"MRCR_PASSES": "cold,warm"})
    assert values["passes"] == ["cold", "warm"]


def test_where_the_server_is_and_where_reports_go_is_not_taken_from_flags(tmp_path: Path) -> None:
    values, _ = keep(
        tmp_path, "port: 8001\n", base_url="http://u:secret@h", output_dir="o", server_args="--a"
    )
    assert values == {"port": 8001}


def test_a_value_is_written_as_the_file_has_it(tmp_path: Path) -> None:
    values, _ = keep(tmp_path, "dataset: ~/rows\nneedles: [8, 2]\n")
    assert values == {"dataset": "~/rows", "needles": [8, 2]}


def test_a_secret_variable_is_left_out_and_named(tmp_path: Path) -> None:
    values, left_out = keep(tmp_path, "env: {HF_TOKEN: hf_abcdef, A: 1}\n")
    assert values == {"env": {"A": 1}}
    assert left_out == ["HF_TOKEN"]


@pytest.mark.parametrize(
    "line",
    [
        "server_args: --api-key sk-hidden",
        "extra_body: {api_key: sk-hidden}",
        "base_url: http://user:sk-hidden@host",
    ],
)
def test_a_secret_elsewhere_is_refused_and_not_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match="holds a secret") as caught:
        keep(tmp_path, f"seed: 1\n{line}\n")
    assert ":2: " in str(caught.value)
    assert "sk-hidden" not in f"{caught.value} {caught.value.hint}"


def test_bounds_of_rates_stay_beside_the_new_thresholds() -> None:
    config = RunConfig(thresholds={"n8": {"match_ratio": 0.1, "nonce_rate": 1.0}, "all": 0.2})
    assert rates_of(config) == {"n8": {"nonce_rate": 1.0}}
    assert merged(config, LINES) == {
        "all": 0.8,
        "n8": {"match_ratio": 0.6543, "nonce_rate": 1.0},
    }


def test_the_text_is_yaml_without_aliases() -> None:
    words = ["a", "b"]
    text = text_of({"server_args": words, "exclude": words}, {"all": 0.8}, MADE, lines=LINES)
    assert "&" not in text
    assert yaml.safe_load(text)["exclude"] == words
