"""The part of the HTML report that says what the run took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from tests.unit.report.test_cost import TELEMETRY

from mrcr_action.report.html.cost import arguments_in, cost
from mrcr_action.result import CacheInfo, ServerInfo
from mrcr_action.telemetry.document import Gpu, ServerTelemetry

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.etree import ElementTree as ET

    from mrcr_action.result import Result

    MakeResult = Callable[..., Result]


def rows_of(part: ET.Element, caption: str) -> list[dict[str, str]]:
    """The rows of a table by the names of their columns; those of one name are joined."""
    (table,) = [t for t in part.iter("table") if (t.findtext("caption") or "").startswith(caption)]
    head, *body = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    found = []
    for row in body:
        cells: dict[str, str] = {}
        for name, text in zip(head, row, strict=True):
            cells[name] = f"{cells[name]} / {text}" if name in cells else text
        found.append(cells)
    return found


def facts_of(part: ET.Element) -> dict[str, str]:
    names = ["".join(e.itertext()) for e in part.iter("dt")]
    values = ["".join(e.itertext()) for e in part.iter("dd")]
    return dict(zip(names, values, strict=True))


def test_times_tokens_hits_and_preemptions_are_told(make_result: MakeResult) -> None:
    facts = facts_of(cost(make_result(telemetry=TELEMETRY)))
    told = {
        "wall clock": "60.0 s",
        "server start": "50.0 s",
        "choosing samples": "5.00 s",
        "asking": "4.00 s",
        "answers": "6",
        "prompt tokens": "24,003",
        "output tokens": "1,200",
        "output tokens/s": "300.0",
        "from the prefix cache": "50% of the prompt tokens",
        "preemptions": "1",
    }
    assert told == {name: facts[name] for name in told}


def test_each_pass_has_its_quantiles(make_result: MakeResult) -> None:
    rows = rows_of(cost(make_result(telemetry=TELEMETRY)), "Time to the first token")
    assert [row["pass"] for row in rows] == ["all", "cold", "warm"]
    assert rows[0] == {
        "pass": "all",
        "answers": "6",
        "first token p50": "1.50 s",
        "p95": "3.25 s / 30 ms",
        "max": "12.3 s / 250 ms",
        "token to token p50": "20.1 ms",
        "prompt tokens/s": "5,123",
    }
    assert rows[2]["first token p50"] == "80 ms"
    assert rows[2]["token to token p50"] == "–"


def test_what_the_server_counted_and_the_peaks_are_told(make_result: MakeResult) -> None:
    gone = ServerTelemetry(of="small pool", gap="restarted")
    found = msgspec.structs.replace(TELEMETRY, servers=(*TELEMETRY.servers, gone))
    first, second = rows_of(cost(make_result(telemetry=found)), "What the server counted")
    assert first == {
        "server": "run",
        "prompt tokens": "25,000",
        "output tokens": "1,300",
        "cache hits": "25%",
        "preemptions": "1",
        "most running": "8",
        "most waiting": "2",
        "fullest KV cache": "91%",
        "HTTP errors": "2",
        "requests ended by": "1 abort, 6 stop",
    }
    assert second["server"] == "small pool"
    assert second["preemptions"] == "–"
    assert second["requests ended by"].startswith("it was started anew")


def test_a_gpu_is_told_with_what_it_does_not_tell_left_open(make_result: MakeResult) -> None:
    slice_of_one = Gpu(index=1, name="NVIDIA H200 MIG 1g.18gb", samples=3)
    found = msgspec.structs.replace(TELEMETRY, gpus=(*TELEMETRY.gpus, slice_of_one))
    first, second = rows_of(cost(make_result(telemetry=found)), "GPUs")
    assert first == {
        "GPU": "0: NVIDIA H200",
        "driver": "580.95.05",
        "most memory in use": "120.0 GiB",
        "memory": "150.0 GiB",
        "mean power": "412 W",
        "most power": "690 W",
    }
    assert list(second.values()) == ["1: NVIDIA H200 MIG 1g.18gb", "–", "–", "–", "–", "–"]


def test_the_server_s_version_cache_and_arguments_are_told(make_result: MakeResult) -> None:
    server = ServerInfo(
        route="process",
        base_url="http://127.0.0.1:8000",
        version="0.33.0",
        max_model_len=32_768,
        command=("/opt/vllm", "serve", "org/model", "--kv-cache-dtype", "fp8", "--port", "8000"),
    )
    cache = CacheInfo(block_size=16, capacity=400_000, prefix_caching=True, prefill_chunk=2048)
    facts = facts_of(cost(make_result(server=server, cache=cache)))
    told = {
        "version": "0.33.0",
        "window": "32,768 tokens",
        "KV cache": "400,000 tokens",
        "block": "16 tokens",
        "prefill chunk": "2,048 tokens",
        "prefix caching": "on",
        "--kv-cache-dtype": "fp8",
    }
    assert told == {name: facts.get(name) for name in told}
    assert "--port" not in facts


def test_arguments_are_flags_with_their_values() -> None:
    line = "vllm serve m -tp 2 --a=b=c --x -1 --many 1 2 --enforce-eager --host ::1"
    command = line.split()
    assert arguments_in(command) == [
        ("-tp", "2"),
        ("--a", "b=c"),
        ("--x", "-1"),
        ("--many", "1 2"),
        ("--enforce-eager", ""),
    ]


def test_without_telemetry_there_is_what_is_known_all_the_same(make_result: MakeResult) -> None:
    part = cost(make_result())
    assert facts_of(part)["wall clock"] == "60.0 s"
    assert list(part.iter("table")) == []
