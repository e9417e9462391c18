"""A server that already runs and is not ours to stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from mrcr_action.client import Client
from mrcr_action.publish import without_password
from mrcr_action.server.health import wait_healthy

if TYPE_CHECKING:
    from pathlib import Path

    from mrcr_action.errors import ServerError
    from mrcr_action.server import RouteName

ANSWER_SECONDS = 30.0
"""Time for a server that is said to run, unless the configuration grants it a start-up."""

NO_SUCH_ROUTE = {401, 403, 404, 405}
"""What servers and gateways without a /health say of it."""


class ExternalServer:
    """A server at an address."""

    route: RouteName = "external"
    image: str | None = None
    log: Path | None = None
    command: tuple[str, ...] = ()

    def __init__(self, base_url: str, *, api_key: str | None = None, why: str = "") -> None:
        self.base_url = base_url
        self.why = why
        self.api_key = api_key

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    async def ready(self, limit: float) -> None:
        """Wait for /health, or for /v1/models where there is no /health."""
        async with Client(self.base_url, api_key=self.api_key) as client:

            async def look() -> str:
                health = await client.health()
                # A server without /health is judged by its models; one that says 503 is not well.
                if health.status in NO_SUCH_ROUTE and await client.speaks():
                    return ""
                return health.trouble

            await wait_healthy(
                look,
                address=without_password(client.base_url),
                limit=limit,
                hint="Is the address right, and does the server run? For one that is still"
                " starting, set startup_max_wait_seconds.",
            )

    async def died(self) -> ServerError:
        """Never returns: whether a foreign server died shows in its answers only."""
        await asyncio.Event().wait()
        raise AssertionError
