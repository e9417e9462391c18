"""Several rounds of one run, against servers that are broken on one way through them only."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Ended, Mrcr, StandIn, StartStandIn

    from mrcr_action.result import Check

    FakeVllm = Callable[..., dict[str, str]]
    Run = Callable[..., Ended]

EXACT = ("--protocol", "openai", "--thresholds", "1", "--tolerance", "0")
WARM = ("--passes", "cold", "warm")
TWELVE = ("--num-samples", "12")


def check_of(ended: Ended, name: str) -> Check:
    """What was decided about a round against the first one."""
    return next(check for check in ended.result.verdict.checks if check.round == name)


@pytest.fixture
def attached(mrcr: Mrcr, start_standin: StartStandIn, dataset: Path) -> Callable[..., Ended]:
    """Runs against a stand-in with some faults and flags."""

    def run(*flags: str, fault: str | None = None, server: tuple[str, ...] = ()) -> Ended:
        faults = ("--fault", fault) if fault else ()
        standin: StandIn = start_standin(*server, *faults)
        return mrcr("run", "--base-url", standin.url, "--dataset", dataset, *EXACT, *flags)

    return run


def test_a_healthy_server_is_green_in_every_round(attached: Run) -> None:
    ended = attached(
        "--plan=standard", "--max-instability=0", server=("--enable-prompt-tokens-details",)
    )
    assert ended.code == 0, ended.said
    result = ended.result
    rounds = {change.name: change for change in result.rounds}
    assert list(rounds) == ["warm", "block", "block warm", "chunk", "straddle", "sweep"]
    assert {change.differing for change in rounds.values()} == {0}
    assert (rounds["warm"].asked, rounds["warm"].cached) == (12, rounds["warm"].cacheable)
    assert result.num_samples == 12
    assert len(result.records) == 12 * 2 + 3 * 4 + 12
    swept = [record for record in result.records if record.pass_name == "sweep"]
    assert all(record.grade is not None and record.grade.exact for record in swept)
    assert all(record.cached_tokens for record in swept)
    assert result.cache is not None
    assert result.cache.block_size == 16
    # Of a server that was not started here, there is no second one.
    assert any("small KV cache were left out" in note for note in result.notes)
    assert r"| warm | 12 | 0/12 | \+0.0000 |" in (ended.folder / "summary.md").read_text()


def test_a_fault_on_the_hit_path_is_green_cold_and_red_warm(attached: Run) -> None:
    # Their opening is the same text in all samples, and shorter than that.
    cold = attached(*TWELVE, fault="stale-hit=64")
    assert cold.code == 0, cold.said

    warm = attached(*TWELVE, *WARM, fault="stale-hit=64")

    assert warm.code == 1, warm.said
    states = {
        bucket.name: warm.result.verdict.state_of(bucket.name) for bucket in warm.result.buckets
    }
    assert (states["all"], states["all@warm"]) == ("pass", "fail")
    change = next(change for change in warm.result.rounds if change.name == "warm")
    assert change.differing == 12


def test_without_any_threshold_the_fall_from_cold_to_warm_is_red(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    standin = start_standin("--fault", "stale-hit")
    ended = mrcr("run", "--base-url", standin.url, "--dataset", dataset, *TWELVE, *WARM)
    assert ended.code == 1, ended.said
    assert check_of(ended, "warm").state == "fail"
    assert "MRCR failed: warm: the mean fell by" in ended.stdout
    suite = ET.parse(ended.folder / "junit.xml").getroot()[0]  # noqa: S314 - written here
    (failed,) = [case for case in suite if case.find("failure") is not None]
    assert failed.get("name") == "warm against the first pass"


@pytest.mark.parametrize("details", [True, False])
def test_a_warm_round_without_a_cache_tests_nothing_and_is_not_green(
    attached: Run, *, details: bool
) -> None:
    flags = ("--enable-prompt-tokens-details",) if details else ()
    ended = attached(*TWELVE, *WARM, server=("--no-enable-prefix-caching", *flags))
    if details:
        # Nothing was cached, so that no answer tells of it, as none would without the flag.
        assert ended.result.server.command == ()
    assert ended.code == 3, ended.said
    assert "so that it was not tested: is it switched off, or too small?" in ended.stdout


def test_a_fault_at_the_end_of_a_block_shows_only_in_prompts_that_end_there(
    attached: Run,
) -> None:
    plain = attached(*TWELVE, fault="block-edge=2048@13-")
    assert plain.code == 0, plain.said

    padded = attached(
        *("--num-samples=12", "--boundaries=2", "--max-instability=0"),
        fault="block-edge=2048@13-",
        server=("--max-model-len=30K",),
    )

    assert padded.code == 1, padded.said
    rounds = {change.name: change.differing for change in padded.result.rounds}
    assert rounds["chunk"] == 2
    assert rounds["straddle"] == 0
    # With max_instability the verdict says so; without it a note would.
    assert not any("fell far" in note for note in padded.result.notes)
    asks = [ask for ask in padded.result.plan.asks if ask.padding] if padded.result.plan else []
    assert Counter(ask.pass_name for ask in asks) == dict.fromkeys(
        ("block", "block warm", "chunk", "straddle"), 2
    )
    assert all(4 <= a.prompt_tokens % 2048 <= 24 for a in asks if a.pass_name == "chunk")


def test_answers_that_depend_on_company_are_reported_and_gated_if_asked(attached: Run) -> None:
    # Of six samples none can be so sure to have fallen that it fails by itself.
    flags = ("--num-samples=6", "--concurrency", "1", "8")
    server = ("--fault", "slow=2000")
    # A few characters of an answer differ, and the thresholds allow that.
    lenient = ("--tolerance", "0.5")

    reported = attached(*flags, *lenient, fault="batch=2", server=server)
    assert reported.code == 0, reported.said
    (change,) = reported.result.rounds
    assert change.name == "cold c8"
    assert change.differing > 0
    assert f"| cold c8 | 6 | {change.differing}/6 |" in (reported.folder / "summary.md").read_text()

    gated = attached(*flags, *lenient, "--max-instability=0", fault="batch=2", server=server)
    assert gated.code == 1, gated.said
    assert "answers differ from the first pass, at most 0.0% may" in gated.stdout


def test_a_blind_place_of_a_long_conversation_shows_in_a_sweep(attached: Run) -> None:
    flags = ("--num-samples=3", "--needles=8", "--sweep=8", "--max-instability=0")
    # The questions of the plan are answered right, and the sixth after them is not.
    ended = attached(*flags, fault="wrong-needle@9")
    assert ended.code == 1, ended.said
    assert check_of(ended, "sweep").message == (
        "sweep: 1 of 8 other turns were not read exactly, at most 0.0% may"
    )
    assert ended.result.verdict.state_of("all") == "pass"


def test_blocks_that_outlive_their_eviction_show_in_a_small_pool(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    keys = {
        "model_name": "m",
        "protocol": "openai",
        "dataset": str(dataset),
        "num_samples": 9,
        "max_tokens": 256,
        "thresholds": 1,
        "tolerance": 0,
        "small_pool": True,
        "max_instability": 0,
    }
    broken = fake_vllm("become_stand_in('--fault', 'evicted-hit')")

    ended = mrcr("run", mrcr.config("pool", **keys), env=broken)

    assert ended.code == 1, ended.said
    assert ended.result.verdict.state_of("all") == "pass"
    assert check_of(ended, "pool").state == "pass"
    assert check_of(ended, "pool warm").state == "fail"
    assert (ended.folder / "server.log").exists()
    assert (
        "num-gpu-blocks-override" in (ended.folder / "server-2.log").read_text()
        or (ended.folder / "server-2.log").stat().st_size
    )
    assert ended.stderr.count("Starting the server") == 2

    healthy = mrcr("run", mrcr.config("pool", **keys), env=fake_vllm())
    assert healthy.code == 0, healthy.said
    assert {c.asked for c in healthy.result.rounds} == {6}


def test_a_second_server_that_does_not_start_leaves_no_verdict_and_keeps_what_was_found(
    mrcr: Mrcr, fake_vllm: FakeVllm, dataset: Path
) -> None:
    only_once = "if '--num-gpu-blocks-override' in sys.argv: sys.exit('no such pool')"
    config = mrcr.config(
        "pool",
        model_name="m",
        protocol="openai",
        dataset=str(dataset),
        num_samples=9,
        max_tokens=256,
        small_pool=True,
    )

    ended = mrcr("run", config, env=fake_vllm(f"{only_once}\nbecome_stand_in()"))

    assert ended.code == 3, ended.said
    assert "the second server, with a small KV cache: the server ended by itself" in ended.stdout
    assert ended.result.num_samples == 9
    assert ended.result.match_ratio == 1.0


def test_repeats_show_a_server_that_is_of_two_minds(attached: Run) -> None:
    ended = attached("--num-samples=12", "--repeats=3", "--max-instability=0", fault="noise=0.5")
    assert ended.code == 1, ended.said
    assert [change.name for change in ended.result.rounds] == ["cold #2", "cold #3"]
    assert sum(change.differing for change in ended.result.rounds) > 0


def test_what_is_cached_for_others_is_not_taken_for_a_run_s_own(
    mrcr: Mrcr, start_standin: StartStandIn, dataset: Path
) -> None:
    standin = start_standin("--enable-prompt-tokens-details", "--fault", "stale-hit")
    once = ("run", "--base-url", standin.url, "--dataset", dataset, *EXACT, *TWELVE, *WARM)
    for ended in (mrcr(*once), mrcr(*once)):
        cold = [record for record in ended.records() if record.pass_name == "cold"]
        assert all(record.grade is not None and record.grade.exact for record in cold)


def test_without_salts_a_cold_round_is_none_and_a_note_says_so(attached: Run) -> None:
    flags = ("--num-samples=6", "--repeats=2", '--extra-body={"cache_salt": null}')
    ended = attached(*flags, server=("--enable-prompt-tokens-details",))
    assert ended.code == 0, ended.said
    (note,) = [note for note in ended.result.notes if "Not cold" in note]
    assert "cold #2 (6 of 6 answers)" in note


def test_a_plain_run_sends_no_salt_and_says_nothing_of_rounds(attached: Run) -> None:
    ended = attached("--num-samples=3")
    assert ended.code == 0, ended.said
    assert ended.result.rounds == ()
    assert "round" not in ended.stdout
