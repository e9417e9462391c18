"""``mrcr demo``: the whole pipeline without a GPU, a model or a network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Ended, Mrcr

STAND_IN = "A stand-in answered, not a model"


@pytest.fixture(scope="module")
def healthy(shared_mrcr: Mrcr) -> Ended:
    return shared_mrcr("demo", "--output-dir", "mrcr-results")


def test_the_demo_passes(healthy: Ended) -> None:
    assert healthy.code == 0, healthy.said
    assert healthy.result.buckets[0].match_ratio_openai == 1.0
    assert "MRCR passed" in healthy.stdout


def test_it_says_everywhere_that_a_stand_in_answered(healthy: Ended) -> None:
    assert healthy.stdout.startswith(STAND_IN)
    assert f"note: {STAND_IN}" in healthy.stdout
    assert STAND_IN in (healthy.folder / "summary.md").read_text()
    assert STAND_IN in healthy.result.notes[0]


def test_every_report_is_there_and_can_be_read(healthy: Ended) -> None:
    suites = ET.parse(healthy.folder / "junit.xml").getroot()  # noqa: S314 - written here
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("14", "0", "0")
    assert len(healthy.records()) == len(healthy.result.records) == 18
    assert "| 2 needles | ✓ pass |" in (healthy.folder / "summary.md").read_text()
    assert "Application startup complete" in (healthy.folder / "server.log").read_text()
    schema = json.loads((healthy.folder / "result.json").read_bytes())["schema_version"]
    assert schema == 1


def test_a_broken_server_fails_and_the_fault_is_named(mrcr: Mrcr) -> None:
    ended = mrcr("demo", "--break", "window", "--output-dir", "mrcr-results")

    assert ended.code == 1
    assert "Its fault: window=3000." in ended.stdout
    assert "MRCR thresholds failed" in ended.stdout
    assert ended.result.name == "demo --break window"
    failures = ET.parse(ended.folder / "junit.xml").getroot().get("failures")  # noqa: S314
    assert failures == "3"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("nonsense", "--break 'nonsense': there is no fault 'nonsense'"),
        ("status", "--break 'status': it needs a value, write status=CODE[@WHEN]"),
    ],
)
def test_an_unknown_fault_exits_2_and_the_known_ones_are_listed(
    mrcr: Mrcr, fault: str, message: str
) -> None:
    ended = mrcr("demo", "--break", fault)

    assert ended.code == 2
    assert ended.stderr.startswith(f"mrcr: error: {message}\n")
    assert "wrong-needle" in ended.stderr
    assert "Traceback" not in ended.said
