"""What goes into the log while an image is pulled: little, but never nothing for long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECONDS = 5.0
"""Time between two lines of progress."""

GB = 1e9


class PullLog:
    """Turns an engine's many events into a few lines."""

    def __init__(
        self, write: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._last = clock()
        self._layers: dict[str, tuple[int, int]] = {}

    def event(self, event: Mapping[str, Any]) -> None:
        """Take in one event: of a layer, if it has an ID, else of the whole image."""
        layer, status = str(event.get("id") or ""), str(event.get("status") or "")
        if not layer:
            if status:
                self._write(one_line(status))
            return
        detail = event.get("progressDetail") or {}
        current, total = detail.get("current"), detail.get("total")
        if status == "Downloading" and isinstance(current, int) and isinstance(total, int):
            self._layers[layer] = (current, total)
        elif status in {"Download complete", "Pull complete"} and layer in self._layers:
            total = self._layers[layer][1]
            self._layers[layer] = (total, total)
        if self._layers and self._clock() - self._last >= SECONDS:
            self._last = self._clock()
            done, all_of_it = (sum(part) / GB for part in zip(*self._layers.values(), strict=True))
            self._write(f"{done:.2f} of {all_of_it:.2f} GB of the known layers are here")
