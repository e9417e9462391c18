import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mrcr_action.config import RunConfig
from mrcr_action.result import (
    SCHEMA_VERSION,
    Measured,
    Problem,
    Record,
    Result,
    decode_result,
    encode_line,
    encode_result,
)
from mrcr_action.telemetry.document import (
    Counted,
    Gpu,
    Latency,
    Peaks,
    Quantiles,
    ServerTelemetry,
    Telemetry,
)

MakeResult = Callable[..., Result]

TELEMETRY = Telemetry(
    answers=1,
    prompt_tokens=8_000,
    output_tokens=100,
    latency=(Latency(round="cold", answers=1, first_token=Quantiles(p50=1, p95=1.5, max=2)),),
    servers=(
        ServerTelemetry(
            counted=Counted(prompt_tokens=8_000, finished={"stop": 1}),
            peaks=Peaks(samples=2, kv_cache_usage=0.5),
        ),
        ServerTelemetry(of="small pool", gap="restarted"),
    ),
    gpus=(Gpu(index=0, name="NVIDIA H200", samples=2, power_mean=412.5),),
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"config": RunConfig(match_ratio_threshold={2: 0.9, 8: 0.5}, extra_body={"a": [1, None]})},
        {"records": []},
        {"problem": Problem(kind="ServerError", message="died", hint="look", details="a\nb")},
        {"name": "naïve 😀", "notes": ("a", "b\n\u2028")},
        {"telemetry": TELEMETRY},
    ],
)
def test_a_result_is_read_back_as_it_was_written(
    make_result: MakeResult, changes: dict[str, Any]
) -> None:
    result = make_result(**changes)
    assert decode_result(encode_result(result)) == result


def test_a_result_of_before_there_was_telemetry_is_read(make_result: MakeResult) -> None:
    document = json.loads(encode_result(make_result(telemetry=TELEMETRY)))
    del document["telemetry"]
    assert decode_result(json.dumps(document).encode()) == make_result()


def test_a_result_is_indented_utf8_with_a_final_newline(make_result: MakeResult) -> None:
    data = encode_result(make_result(name="é"))
    assert data.startswith(b'{\n  "')
    assert data.endswith(b"}\n")
    assert '"name": "é"'.encode() in data


def test_a_result_begins_with_the_fields_of_vllms_own_script(make_result: MakeResult) -> None:
    assert Measured.__struct_fields__ == (
        *("model", "match_ratio", "prefix_hit_rate", "per_needle", "num_samples", "latency"),
        *("total_output_tokens", "tokens_per_second", "max_tokens", "needles"),
        "max_prompt_tokens",
    )
    document = json.loads(encode_result(make_result()))
    assert list(document)[:11] == list(Measured.__struct_fields__)
    assert document["per_needle"] == {
        "match_ratio_n2": 0.9,
        "match_ratio_n4": 0.8,
        "match_ratio_n8": 0.7,
    }


def test_a_document_of_another_version_is_refused(make_result: MakeResult) -> None:
    data = encode_result(make_result(schema_version=SCHEMA_VERSION + 1))
    with pytest.raises(ValueError, match="schema version 2, not 1"):
        decode_result(data)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"not json"])
def test_something_else_is_no_result(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_result(data)


def test_a_field_of_a_later_program_is_passed_over(make_result: MakeResult) -> None:
    result = make_result()
    document = json.loads(encode_result(result)) | {"new": 1}
    assert decode_result(json.dumps(document).encode()) == result


def test_a_result_with_half_a_surrogate_pair_is_written_all_the_same(
    make_result: MakeResult, make_record: Callable[..., Record]
) -> None:
    result = make_result(records=[make_record(0, None, reason="cut \ud83d off")], model="m\udc80")
    read = decode_result(encode_result(result))
    assert read.model == "m?"
    assert read.records[0].reason == "cut ? off"
    assert read == msgspec.structs.replace(
        result,
        model="m?",
        records=(msgspec.structs.replace(result.records[0], reason="cut ? off"),),
    )


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "\n\ud800\u2028"])
def test_a_line_stays_one_line_of_utf8(text: str) -> None:
    line = encode_line({"a": text, "b": {2: "é"}})
    assert line.count(b"\n") == 0
    assert json.loads(line)["b"] == {"2": "é"}


def test_texts_are_for_the_journal_only(make_record: Callable[..., Record]) -> None:
    record = make_record(nonce="n", answer="a", response="r")
    assert record.without_text() == make_record()


def test_a_bucket_knows_what_was_graded_and_what_was_lost(make_bucket: Callable[..., Any]) -> None:
    bucket = make_bucket(scored=3, truncated=2, rejected=4, failed=5)
    assert (bucket.graded, bucket.lost) == (5, 9)
