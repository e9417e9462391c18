from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.rounds import Round
from mrcr_action.telemetry.cost import telemetry_of
from mrcr_action.telemetry.document import Counted, ServerTelemetry, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from mrcr_action.result import Record

    MakeRecord = Callable[..., Record]


def test_tokens_are_those_of_the_answers(make_record: MakeRecord) -> None:
    records = [
        make_record(0, prompt_tokens=1_000, completion_tokens=10, cached_tokens=512),
        make_record(1, prompt_tokens=2_000, completion_tokens=None),
        make_record(2, None, prompt_tokens=4_000),
    ]
    found = telemetry_of(records, [Round()], servers=(), gpus=())
    assert found is not None
    assert (found.answers, found.prompt_tokens, found.output_tokens) == (2, 3_000, 10)
    assert found.cached_tokens == 512
    assert found.hit_share == 512 / 3_000


def test_where_nothing_was_asked_there_is_nothing_to_tell() -> None:
    assert telemetry_of([], [], servers=(), gpus=()) is None


def test_the_share_of_hits_is_the_servers_where_answers_do_not_tell_it() -> None:
    counted = Counted(prefix_cache_queries=100, prefix_cache_hits=25, preemptions=1)
    servers = (ServerTelemetry(counted=counted), ServerTelemetry(of="small pool", gap="no metrics"))
    found = Telemetry(answers=1, prompt_tokens=9, output_tokens=1, servers=servers)
    assert found.hit_share == 0.25
    # Of the second server it is not known.
    assert found.preemptions is None
    alone = Telemetry(answers=1, prompt_tokens=9, output_tokens=1, servers=servers[:1])
    assert alone.preemptions == 1
