"""The client of an OpenAI-compatible server."""

from mrcr_action.client.api import Client, ModelEntry, as_json
from mrcr_action.client.errors import ApiError, Broken, Denied, Rejected, Unavailable
from mrcr_action.client.stream import Completion

__all__ = [
    "ApiError",
    "Broken",
    "Client",
    "Completion",
    "Denied",
    "ModelEntry",
    "Rejected",
    "Unavailable",
    "as_json",
]
