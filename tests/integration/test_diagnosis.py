"""Each kind of wrong answer, made by a fault of the stand-in, is named in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StartStandIn

FORMS = {
    "garble": "near copy",
    "noise=1": None,
    "wrong-needle": "wrong needle",
    "distractor": "distractor",
    "drop-nonce": "no nonce",
    "wrong-nonce": "other nonce",
    "think-aloud=300": "nonce not first",
    "truncate=20": "truncated",
    "stop-early=20": "stopped early",
    "run-on": "ran on",
    "derail=12": "garbled",
    "loop=12": "degenerate",
    "refuse": "refusal",
    "stop-early=0": "empty",
    "null-content": "empty",
    "window=10": "unrelated",
    "status=400@1-": "rejected",
    "status=500": "failed",
}
"""By fault: the form of each of the answers; None for several."""

WORDS = {
    "garble": "the wanted text with more than 64 edits",
    "wrong-needle": "instead of",
    "distractor": "text of another turn: about",
    "drop-nonce": "the right text without the nonce",
    "wrong-nonce": "another nonce, and behind it the right text",
    "think-aloud=300": "characters before the nonce, and behind it the right text",
    "truncate=20": "cut at max_tokens; right up to character 80",
    "stop-early=20": "ended by itself after 20 tokens within the wanted text",
    "run-on": "the whole answer, and more behind it",
    "derail=12": "and unrelated from there on",
    "loop=12": "times the same 10 characters",
    "refuse": "a refusal",
    "stop-early=0": "no text",
    "null-content": "no text, cut at max_tokens",
    "window=10": "text of no piece of the conversation",
}
"""By fault: what the summary says of its worst samples."""

LOOKS = {
    "wrong-needle": "the reply to another of the same requests",
    "drop-nonce": "the right text without the nonce",
    "stop-early=20": "end too early (all at 20 tokens): a limit of the server",
    "derail=12": "KV blocks overwritten or mixed up?",
}
"""By fault: what the console suspects."""


def name_of(fault: str) -> str:
    return fault.replace("=", "_").replace("@", "_at_")


@pytest.fixture(scope="module")
def ended(shared_mrcr: Mrcr, start_shared_standin: StartStandIn, dataset: Path) -> Ended:
    """One command over a configuration for each fault."""
    configs = [
        shared_mrcr.config(
            name_of(fault),
            base_url=start_shared_standin("--fault", fault).url,
            dataset=str(dataset),
            protocol="openai",
            num_samples=6,
            thresholds={"all": {"exact_rate": 1.0}},
        )
        for fault in FORMS
    ]
    return shared_mrcr("run", shared_mrcr.list_of(*configs))


@pytest.mark.parametrize("fault", [fault for fault, form in FORMS.items() if form])
def test_a_fault_is_diagnosed_in_the_result_and_the_journal(ended: Ended, fault: str) -> None:
    records = ended.result_of(name_of(fault)).records

    assert [r.diagnosis.form if r.diagnosis else None for r in records] == [FORMS[fault]] * 6
    journal = ended.records(name_of(fault))
    assert [record.diagnosis for record in journal] == [record.diagnosis for record in records]
    for record in records:
        assert record.diagnosis is not None
        assert record.diagnosis.wanted is not None
        assert record.diagnosis.wanted.of == record.n_needles


@pytest.mark.parametrize("fault", WORDS)
def test_the_summary_says_what_came_back(ended: Ended, fault: str) -> None:
    summary = (ended.folder / "summary.md").read_text()
    section = next(
        part for part in summary.split("\n## ") if part.splitlines()[0].endswith(escaped(fault))
    )

    assert "### What this looks like" in section
    assert "<details><summary>Where it breaks</summary>" in section
    assert WORDS[fault].replace("_", "\\_") in section
    assert "not the wanted text" not in section


def escaped(fault: str) -> str:
    return ": " + name_of(fault).replace("_", "\\_")


@pytest.mark.parametrize("fault", LOOKS)
def test_the_console_says_what_it_looks_like(ended: Ended, fault: str) -> None:
    assert LOOKS[fault] in ended.stdout


def test_a_wrong_needle_is_the_next_one_around(ended: Ended) -> None:
    for record in ended.result_of("wrong-needle").records:
        found = record.diagnosis
        assert found is not None
        assert found.source is not None
        assert found.wanted is not None
        assert found.source.ordinal == found.wanted.ordinal % found.wanted.of + 1
        assert found.source.ratio == 1.0
        assert len(found.siblings) == found.wanted.of - 1


def test_the_first_wrong_character_is_where_the_answer_derails(ended: Ended) -> None:
    for record in ended.records("derail_12"):
        assert record.diagnosis is not None
        first = record.diagnosis.first_wrong
        assert first is not None
        assert first.offset in range(58, 62)
        assert first.place is not None
        assert first.place.char == first.offset - 10
        assert first.place.token is not None
        assert 0 < first.place.token < (record.prompt_tokens or 0)


def test_noise_is_of_several_kinds_and_its_edits_are_counted(ended: Ended) -> None:
    found = [record.diagnosis for record in ended.result_of("noise_1").records]

    near = [one for one in found if one is not None and one.form == "near copy"]
    assert near
    assert all(one.edits in range(1, 9) for one in near)


def test_the_junit_file_names_what_came_back(ended: Ended) -> None:
    text = (ended.folder / "junit.xml").read_text()

    assert "0 of 6 exact; 6 wrong needle" in text
    assert "Looks like: 6 of 6 wrong answers of 6 are the reply to another" in text


def test_a_short_window_is_told_by_its_edge(
    mrcr: Mrcr, start_standin: Callable[..., object], dataset: Path
) -> None:
    server = start_standin("--fault", "window=900")
    ended = mrcr(
        *("run", "--base-url", server.url, "--dataset", dataset),  # type: ignore[attr-defined]
        *("--protocol", "openai", "--samples-per-cell", "3", "--threshold", "1"),
    )

    assert ended.code == 1
    assert "to questions whose needle begins more than about" in ended.stdout
    assert "an attention window, or a beginning that was cut off?" in ended.stdout
