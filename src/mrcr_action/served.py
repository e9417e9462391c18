"""The model that a server serves: which one is asked, and how long its prompts may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrcr_action.client import ApiError, Denied
from mrcr_action.errors import ServerError, UsageError
from mrcr_action.publish import without_password

if TYPE_CHECKING:
    from mrcr_action.client import Client, ModelEntry
    from mrcr_action.config import RunConfig


async def find_model(client: Client, wanted: str | None, *, ours: bool) -> ModelEntry:
    """The entry of /v1/models to ask.

    Args:
        client: the server.
        wanted: a served name, or the model that an entry was loaded from.
        ours: whether the server was started for this model.

    Raises:
        UsageError: the key is wrong, or the server serves other models only.
        ServerError: the server serves nothing, or does not answer, or cannot be the one that
            was started here.
    """
    address = without_password(client.base_url)
    try:
        entries = await client.models()
    except Denied as error:
        key = "Pass the server's key in MRCR_API_KEY or with --api-key."
        path = "Is the path of --base-url right? /v1 and what lies behind it are added to it."
        raise UsageError(
            f"{address}: {error}",
            hint=key if error.status in {401, 403} else path,
        ) from error
    except ApiError as error:
        raise ServerError(f"{address}: {error}") from error
    if not entries:
        raise ServerError(f"{address}: /v1/models lists no model")
    for entry in entries:
        if wanted is None or wanted in {entry.id, entry.root}:
            return entry
    served = ", ".join(entry.id for entry in entries[:10])
    if ours:
        raise ServerError(
            f"another server answers at {address}: it serves {served}, not {wanted}",
            hint="Leave --port out to have a free one chosen.",
        )
    raise UsageError(f"--model {wanted}: not served there; /v1/models lists {served}")


def prompt_limit(config: RunConfig, model: ModelEntry) -> int:
    """Longest prompt of the run, in the server's tokens.

    Raises:
        UsageError: neither the configuration nor the server tells; or an answer may fill it all.
    """
    check_window(config, model.max_model_len)
    limit = config.prompt_limit(model.max_model_len)
    if limit is None:
        raise UsageError(
            f"the server does not tell the context length of {model.id}",
            hint="Pass --max-prompt-tokens N: the context length less max_tokens and a margin.",
        )
    return limit


def check_window(config: RunConfig, window: int | None) -> None:
    """See that a window, in tokens, has room for more than an answer.

    Raises:
        UsageError: it has not.
    """
    if window is not None and config.max_tokens >= window:
        raise UsageError(
            f"max_tokens {config.max_tokens:,}: the server's window has {window:,} tokens for"
            " prompt and answer together",
            hint="Lower --max-tokens, or serve with a longer --max-model-len.",
        )
