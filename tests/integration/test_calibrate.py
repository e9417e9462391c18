"""``mrcr calibrate`` against stand-ins: what it writes, what a run makes of it, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StandIn, StartStandIn

NOISE = "noise=0.2"

Config = Callable[..., "Path"]


@pytest.fixture
def noisy(start_standin: StartStandIn) -> StandIn:
    """A healthy server: its answers are imperfect now and then, never the same ones."""
    return start_standin("--fault", NOISE)


@pytest.fixture
def config(mrcr: Mrcr, dataset: Path) -> Config:
    """Writes the configuration of 27 samples of one server."""

    def write(server: StandIn, **keys: Any) -> Path:
        values: dict[str, Any] = {
            "protocol": "openai",
            "dataset": str(dataset),
            "num_samples": 27,
            # In one order, so that the same answers are imperfect whenever a test is run.
            "concurrency": 1,
            "base_url": server.url,
        }
        return mrcr.config("model", **(values | keys))

    return write


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def test_the_written_file_runs_as_it_is_and_passes(
    mrcr: Mrcr, config: Config, noisy: StandIn
) -> None:
    path = config(noisy, passes=["cold", "warm"], needles=[2, 4, 8])
    made = mrcr("calibrate", path, "--repeats", "3")
    assert made.code == 0, made.said
    written = path.with_name("model-calibrated.yaml")
    assert f"Wrote {written}" in made.stdout
    found = read(written)
    assert set(found["thresholds"]) == {"all", "n2", "n4", "n8"}
    assert all(0 < threshold < 1 for threshold in found["thresholds"].values())
    assert found["calibration"] | {"date": "", "n": {}} == {
        "model": "stand-in",
        "vllm_version": None,
        "hardware": None,
        "dataset": found["dataset"],
        "revision": None,
        "protocol": "openai",
        "seed": 42,
        "n": {},
        "passes": ["cold", "warm"],
        "repeats": 3,
        "false_alarm": 0.01,
        "date": "",
    }
    assert found["calibration"]["n"] == {"all": 27, "n2": 9, "n4": 9, "n8": 9}
    ended = mrcr("run", written)
    assert ended.code == 0, ended.said
    assert not any("calibrate" in note or "One sample" in note for note in ended.result.notes)


def test_only_whole_samples_are_measured_whatever_the_plan_adds_to_them(
    mrcr: Mrcr, config: Config, noisy: StandIn
) -> None:
    path = config(noisy, plan="smoke", num_samples=12)
    made = mrcr("calibrate", path, "--repeats", "2", "--buckets", "all")
    assert made.code == 0, made.said
    assert {change.kind for change in made.result.rounds} == {"cold", "warm"}
    assert read(path.with_name("model-calibrated.yaml"))["plan"] == "smoke"


def test_a_broken_server_fails_the_written_file(
    mrcr: Mrcr, config: Config, noisy: StandIn, start_standin: StartStandIn
) -> None:
    path = config(noisy)
    assert mrcr("calibrate", path).code == 0
    broken = start_standin("--fault", "wrong-needle")
    ended = mrcr("run", path.with_name("model-calibrated.yaml"), "--base-url", broken.url)
    assert ended.code == 1, ended.said


def test_a_run_of_other_samples_says_so(mrcr: Mrcr, config: Config, noisy: StandIn) -> None:
    path = config(noisy)
    assert mrcr("calibrate", path, "--buckets", "all").code == 0
    ended = mrcr("run", path.with_name("model-calibrated.yaml"), "--num-samples", "18")
    (note,) = [note for note in ended.result.notes if "calibrated" in note]
    assert "all has 18 samples, not 27" in note


def test_only_the_buckets_that_are_wanted_get_thresholds(
    mrcr: Mrcr, config: Config, noisy: StandIn, tmp_path: Path
) -> None:
    to = tmp_path / "new" / "mine.yaml"
    made = mrcr("calibrate", config(noisy), "--repeats", "2", "--buckets", "needles", "--to", to)
    assert made.code == 0, made.said
    assert set(read(to)["thresholds"]) == {"n2", "n4", "n8"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--repeats", "1"), "--repeats 1: at least 2 are needed to see what varies"),
        (("--false-alarm", "0"), "--false-alarm 0: expected 0.001 to 0.2"),
        (("--false-alarm", "nan"), "--false-alarm nan: expected 0.001 to 0.2"),
        (
            ("--buckets", "all,some"),
            "--buckets all,some: expected one or more of all, needles, cells",
        ),
        (("--to", "model.yaml", "--force"), "--to model.yaml: is the configuration itself"),
        (("--to", "."), "--to .: is a folder"),
    ],
)
def test_what_is_impossible_is_said_before_anything_is_asked(
    mrcr: Mrcr, config: Config, noisy: StandIn, arguments: tuple[str, ...], expected: str
) -> None:
    ended = mrcr("calibrate", config(noisy), *arguments)
    assert ended.code == 2
    assert f"mrcr: error: {expected}" in ended.stderr
    assert not ended.folder.exists()


def test_a_file_that_is_there_is_replaced_only_by_force(
    mrcr: Mrcr, config: Config, noisy: StandIn
) -> None:
    path = config(noisy)
    there = path.with_name("model-calibrated.yaml")
    there.write_text("mine")
    refused = mrcr("calibrate", path, "--repeats", "2")
    assert refused.code == 2
    assert "exists already" in refused.stderr
    assert there.read_text() == "mine"
    assert mrcr("calibrate", path, "--repeats", "2", "--force").code == 0
    assert "thresholds" in read(there)


def nothing_written(ended: Ended, path: Path) -> bool:
    return ended.code == 3 and sorted(f.name for f in path.parent.glob("*.yaml*")) == [path.name]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("status=400@4", "calibrate: 1 of 54 requests were lost"),
        ("drop-nonce", "calibrate: every answer scored 0"),
    ],
)
def test_a_broken_server_gets_no_thresholds(
    mrcr: Mrcr, config: Config, start_standin: StartStandIn, fault: str, expected: str
) -> None:
    path = config(start_standin("--fault", fault))
    ended = mrcr("calibrate", path, "--repeats", "2")
    assert expected in ended.stderr
    assert nothing_written(ended, path)


def test_too_few_samples_get_no_thresholds(mrcr: Mrcr, config: Config, noisy: StandIn) -> None:
    path = config(noisy, num_samples=6)
    ended = mrcr("calibrate", path, "--repeats", "2")
    assert "6 samples are too few" in ended.stderr
    assert nothing_written(ended, path)


def test_no_secret_is_written(mrcr: Mrcr, config: Config, noisy: StandIn) -> None:
    path = config(noisy, env={"HF_TOKEN": "hf_secret-word", "PLAIN": "seen"})
    made = mrcr("calibrate", path, "--repeats", "2", "--api-key", "sk-secret-word")
    assert made.code == 0, made.said
    text = path.with_name("model-calibrated.yaml").read_text()
    assert "secret-word" not in text + made.said
    assert "PLAIN: seen" in text
    assert "# Left out of env, since it may be secret: HF_TOKEN." in text


def test_the_thresholds_that_were_there_do_not_matter(
    mrcr: Mrcr, config: Config, noisy: StandIn
) -> None:
    path = config(noisy, match_ratio_threshold={"2": 1.0, "8": 1.0}, tolerance=0, baseline="gone")
    made = mrcr("calibrate", path, "--repeats", "2")
    assert made.code == 0, made.said
    found = read(path.with_name("model-calibrated.yaml"))
    assert "match_ratio_threshold" not in found
    assert found["baseline"] == "gone"
    assert made.result.invocation == ("mrcr", "calibrate", str(path), "--repeats=2")
