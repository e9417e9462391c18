from __future__ import annotations

from typing import Any

from mrcr_action.server.pull import PullLog


def layer(name: str, status: str, current: int | None = None) -> dict[str, Any]:
    detail = {} if current is None else {"current": current, "total": 2_000_000_000}
    return {"id": name, "status": status, "progressDetail": detail}


def test_a_pull_is_told_in_a_line_every_few_seconds() -> None:
    said: list[str] = []
    now = [0.0]
    pull = PullLog(said.append, clock=lambda: now[0])

    pull.event({"status": "Pulling from org/image", "id": ""})
    for second in range(13):
        now[0] = float(second)
        pull.event(layer("a", "Downloading", second * 100_000_000))
        pull.event(layer("b", "Pulling fs layer"))
    pull.event(layer("a", "Download complete"))
    now[0] = 20.0
    pull.event(layer("b", "Downloading", 500_000_000))
    pull.event({"status": "Status: Downloaded\nnewer::image"})

    assert said == [
        "Pulling from org/image",
        "0.50 of 2.00 GB of the known layers are here",
        "1.00 of 2.00 GB of the known layers are here",
        "2.50 of 4.00 GB of the known layers are here",
        "Status: Downloaded newer::image",
    ]


def test_events_without_what_they_should_hold_are_borne() -> None:
    said: list[str] = []
    pull = PullLog(said.append, clock=lambda: 100.0)

    events: list[dict[str, Any]] = [
        {},
        {"id": "a"},
        {"id": "a", "status": "Downloading", "progressDetail": None},
        {"id": "a", "status": "Downloading", "progressDetail": {"current": 1}},
        {"id": "a", "status": "Pull complete"},
    ]
    for event in events:
        pull.event(event)

    assert said == []
