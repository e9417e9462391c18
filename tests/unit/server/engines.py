"""An engine that is all memory, for what has to be decided about containers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

from mrcr_action.server.engine import Container

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mrcr_action.server.engine import Engine, Plan

ID = "a1" * 32


def container(name: str, **fields: Any) -> Container:
    """A running container, but for what is said otherwise."""
    plain = Container(
        id=name,
        name=name,
        image="image:1",
        image_id="sha256:1",
        running=True,
        status="running",
        exit_code=0,
        out_of_memory=False,
        environment={},
        labels={},
        mounts=(),
    )
    return replace(plain, **fields)


@dataclass
class FakeEngine:
    """Remembers what it was asked for; containers end when they are told to."""

    known: dict[str, Container] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)
    fails: dict[str, Exception] = field(default_factory=dict)
    """What a call by that name raises."""
    blocks: dict[str, threading.Event] = field(default_factory=dict)
    """What a call by that name waits for."""
    events: tuple[Mapping[str, Any], ...] = ()
    """Of a pull."""
    said: bytes = b""
    exit_code: int = 0
    heeds: bool = True
    """Whether its containers end on SIGTERM."""
    created: str = ""
    calls: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.called: dict[str, threading.Event] = {}

    def as_engine(self) -> Engine:
        return cast("Engine", self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.called.setdefault(name, threading.Event()).set()
        if name in self.blocks:
            assert self.blocks[name].wait(20)
        if name in self.fails:
            raise self.fails[name]

    def wait_for(self, name: str) -> None:
        assert self.called.setdefault(name, threading.Event()).wait(20)

    def close(self) -> None:
        self._call("close")

    def container(self, name: str) -> Container | None:
        return self.known.get(name)

    def containers(self, *, label: str | None = None, image: str | None = None) -> list[Container]:
        key, _, value = (label or "").partition("=")
        return [
            one
            for one in self.known.values()
            if (not label or one.labels.get(key) == value) and (not image or one.image_id == image)
        ]

    def has_image(self, image: str) -> bool:
        return image in self.images

    def image_environment(self, image: str) -> dict[str, str]:
        return {"FROM": image}

    def pull(self, image: str) -> Iterator[Mapping[str, Any]]:
        self._call("pull")
        yield from self.events
        self.images.add(image)

    def create(self, plan: Plan) -> str:
        self._call("create")
        self.created = plan.name
        self.known[plan.name] = container(plan.name, running=False, status="created")
        return plan.name

    def output(self, name: str) -> Iterator[bytes]:
        self._call("output")
        return self._lines()

    def _lines(self) -> Iterator[bytes]:
        yield self.said
        self.ended.wait(20)

    def start(self, plan: Plan) -> None:
        self._call("start")
        self.known[plan.name] = container(plan.name)

    def wait(self, name: str) -> int | None:
        self._call("wait")
        assert self.ended.wait(20)
        return self.exit_code if name in self.known else None

    def terminate(self, name: str) -> None:
        self._call("terminate")
        if self.heeds:
            self.ended.set()

    def stop(self, name: str, seconds: int) -> None:
        self._call(f"stop {name}")

    def remove(self, name: str) -> bool:
        self._call("remove")
        if name == self.created:
            self.ended.set()
        return self.known.pop(name, None) is not None
