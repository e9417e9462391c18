from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.unit.seen import SEEN

from mrcr_action.comparison.comparable import check_comparable, notes_on, refuse
from mrcr_action.config import RunConfig
from mrcr_action.errors import UsageError
from mrcr_action.result import DataInfo, Problem, Result, ServerInfo

MakeResult = Callable[..., Result]


@pytest.fixture
def make_seen(make_result: MakeResult) -> MakeResult:
    """Results of runs that saw their chat template."""

    def make(**changes: Any) -> Result:
        return make_result(**{"preflight": SEEN, **changes})

    return make


def other_config(**changes: Any) -> dict[str, Any]:
    return {"config": RunConfig(**{"model_name": "org/model", "num_samples": 3, **changes})}


def other_server(result: Result, **changes: Any) -> dict[str, Any]:
    return {"server": msgspec.structs.replace(result.server, **changes)}


def test_two_runs_of_one_plan_can_be_compared_without_a_note(make_seen: MakeResult) -> None:
    check_comparable(make_seen(), make_seen())
    assert notes_on(make_seen(), make_seen()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "openai"}, "protocol: vllm in A, openai in B"),
        ({"needles": (2, 4)}, "needles: [2, 4, 8] in A, [2, 4] in B"),
        ({"temperature": 0.7}, "temperature: 0.0 in A, 0.7 in B"),
        ({"max_tokens": 100}, "max_tokens: 2048 in A, 100 in B"),
        (
            {"merge_leading_user_turns": True},
            "merge_leading_user_turns: false in A, true in B",
        ),
        (
            {"extra_body": {}},
            'extra_body.chat_template_kwargs: {"enable_thinking": false} in A, none in B',
        ),
        (
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}, "top_p": None}},
            "extra_body.top_p: 1.0 in A, none in B",
        ),
    ],
)
def test_runs_that_asked_or_graded_differently_are_refused_with_both_values(
    make_seen: MakeResult, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_comparable(make_seen(), make_seen(**other_config(**changes)))
    assert str(caught.value) == f"A and B cannot be compared: {message}"
    assert "one plan" in caught.value.hint


def test_every_difference_is_named_on_a_line_of_its_own(make_seen: MakeResult) -> None:
    other = make_seen(
        **other_config(protocol="openai", max_tokens=5),
        preflight=msgspec.structs.replace(SEEN, fingerprint="b" * 64),
    )
    with pytest.raises(UsageError) as caught:
        check_comparable(make_seen(), other)
    assert str(caught.value) == "A and B cannot be compared: 3 things differ"
    assert caught.value.details.splitlines() == [
        "protocol: vllm in A, openai in B",
        "max_tokens: 2048 in A, 5 in B",
        "chat template and tokenizer: aaaaaaaaaaaa in A, bbbbbbbbbbbb in B",
    ]
    assert "tells the date" in caught.value.hint


def test_the_order_of_needle_counts_is_no_difference(make_seen: MakeResult) -> None:
    check_comparable(make_seen(), make_seen(**other_config(needles=(8, 4, 2))))


def test_the_default_extra_body_written_out_is_no_difference(make_seen: MakeResult) -> None:
    written = {"chat_template_kwargs": {"enable_thinking": False}}
    check_comparable(make_seen(), make_seen(**other_config(extra_body=written)))


HUB = DataInfo(dataset="openai/mrcr", revision="f4c69fae7cf8", kind="hub")
BUNDLE = DataInfo(dataset="here", origin="openai/mrcr", revision="f4c69fae7cf8", kind="bundle")
OTHER_REVISION = DataInfo(dataset="openai/mrcr", revision="0123456789ab", kind="hub")
FORK = DataInfo(dataset="fork/mrcr", revision="f4c69fae7cf8", kind="hub")
FOLDER = DataInfo(dataset="rows", kind="folder")


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (OTHER_REVISION, "openai/mrcr at 0123456789ab"),
        (FORK, "fork/mrcr at f4c69fae7cf8"),
        (FOLDER, "files of one's own"),
    ],
)
def test_another_dataset_or_revision_is_refused(
    make_seen: MakeResult, other: DataInfo, name: str
) -> None:
    with pytest.raises(UsageError, match=f"dataset: openai/mrcr at f4c69fae7cf8 in A, {name} in B"):
        check_comparable(make_seen(data=HUB), make_seen(data=other))


def test_a_bundle_is_the_dataset_it_was_taken_from(make_seen: MakeResult) -> None:
    check_comparable(make_seen(data=HUB), make_seen(data=BUNDLE))


def test_local_files_may_lie_elsewhere(make_seen: MakeResult) -> None:
    moved = DataInfo(dataset="elsewhere/rows", kind="folder")
    check_comparable(make_seen(data=FOLDER), make_seen(data=moved))


def test_a_template_that_one_server_did_not_show_is_noted_and_not_refused(
    make_seen: MakeResult,
) -> None:
    unseen = make_seen(preflight=None)
    check_comparable(make_seen(), unseen)
    (note,) = notes_on(make_seen(), unseen)
    assert "not known of B" in note


def test_what_is_compared_may_differ_and_is_said_with_both_values(make_seen: MakeResult) -> None:
    a = make_seen()
    b = make_seen(
        **other_config(seed=7, concurrency=1, server_args=("--kv-cache-dtype", "fp8")),
        model="org/model-fp8",
        tool_version="0.2.0",
        server=ServerInfo(
            route="container",
            base_url="http://127.0.0.1:9",
            image="vllm:nightly",
            root="/models/x",
            max_model_len=65_536,
            version="0.34.0",
        ),
    )
    check_comparable(a, b)
    assert notes_on(a, b) == [
        "Model: org/model in A, org/model-fp8 in B.",
        "Model's source: none in A, /models/x in B.",
        "Server version: 0.33.0 in A, 0.34.0 in B.",
        "Server image: none in A, vllm:nightly in B.",
        "Server arguments: none in A, --kv-cache-dtype fp8 in B.",
        "Server's window: 32768 in A, 65536 in B.",
        "Concurrency: 8 in A, 1 in B.",
        "Seed: 42 in A, 7 in B.",
        "mrcr version: 0.1.0 in A, 0.2.0 in B.",
    ]


def test_a_setting_written_elsewhere_is_no_difference(make_seen: MakeResult) -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 100, "top_p": 1}
    check_comparable(
        make_seen(**other_config(max_tokens=100)), make_seen(**other_config(extra_body=extra))
    )


@pytest.mark.parametrize(
    "config", [RunConfig(temperature=0.7), RunConfig(extra_body={"temperature": 0.7})]
)
def test_a_temperature_is_noted_wherever_it_is_set(
    make_seen: MakeResult, config: RunConfig
) -> None:
    (note,) = notes_on(make_seen(config=config), make_seen(config=config))
    assert note.startswith("The temperature is 0.7")


def test_a_temperature_that_the_extra_body_takes_back_is_not_noted(make_seen: MakeResult) -> None:
    config = RunConfig(temperature=0.7, extra_body={"temperature": 0})
    assert notes_on(make_seen(config=config), make_seen(config=config)) == []


def test_a_temperature_left_to_the_server_is_noted(make_seen: MakeResult) -> None:
    config = RunConfig(extra_body={"temperature": None})
    (note,) = notes_on(make_seen(config=config), make_seen(config=config))
    assert note.startswith("The temperature is left to the server: ")


def test_a_run_that_was_stopped_is_named_with_the_reason(make_seen: MakeResult) -> None:
    stopped = make_seen(problem=Problem(kind="ServerError", message="it\ndied"))
    assert notes_on(make_seen(), stopped) == ["B was stopped: it died."]


@pytest.mark.parametrize("hostile", ["a\nb", "\x1b[31m\u2028::error::x", "x" * 5_000])
def test_values_of_a_result_stay_on_their_line(make_seen: MakeResult, hostile: str) -> None:
    config = RunConfig(extra_body={hostile: hostile, "b": 1})
    with pytest.raises(UsageError) as caught:
        check_comparable(make_seen(), make_seen(config=config))
    # The default's own field, and the two.
    assert len(caught.value.details.splitlines()) == 3
    assert max(map(len, caught.value.details.splitlines())) < 300
    (note,) = notes_on(make_seen(), make_seen(model=hostile))
    assert len(note.splitlines()) == 1
    assert "\x1b" not in note


def test_no_reason_is_no_refusal() -> None:
    refuse([])
