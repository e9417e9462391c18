"""The client of an OpenAI-compatible server."""

from mrcr_action.client.api import Client, Health, ModelEntry, Tokenized
from mrcr_action.client.errors import ApiError, Broken, Denied, Rejected, TimedOut, Unavailable
from mrcr_action.client.stream import Completion

__all__ = [
    "ApiError",
    "Broken",
    "Client",
    "Completion",
    "Denied",
    "Health",
    "ModelEntry",
    "Rejected",
    "TimedOut",
    "Tokenized",
    "Unavailable",
]
