"""Ports of this machine's 127.0.0.1."""

from __future__ import annotations

import socket

from mrcr_action.errors import UsageError


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_port_free(port: int) -> None:
    """Fail now rather than after the server has spent half a minute on loading.

    Raises:
        UsageError: something listens there, or the port may not be bound.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(
                f"--port {port}: {error.strerror}",
                hint="Leave --port out to have a free one chosen, or pass --base-url to attach to"
                " the server that listens there.",
            ) from error
