"""Where the model is served; every route is an async context manager with one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.errors import ServerError


RouteName = Literal["process", "container", "external"]


class Server(Protocol):
    """A server for the time of a run.

    Entering starts or finds it without waiting for it; leaving stops what was started.
    """

    route: RouteName
    why: str
    """What decided the route, as a sentence's end; empty where the configuration says it."""
    image: str | None
    """Image of its container; None for the other routes."""
    base_url: str
    api_key: str | None
    command: tuple[str, ...]
    """How it was started; empty for a running server. Masked before it is shown."""

    @property
    def log(self) -> Path | None:
        """File with its output; None where it is not ours."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...

    async def ready(self, limit: float) -> None:
        """Wait until it is healthy, at most ``limit`` seconds.

        Raises:
            ServerError: it died, or it was not healthy in time.
        """

    async def died(self) -> ServerError:
        """Return once the server is known to be dead, with the cause; otherwise never."""
