"""How to talk to the hub: its address and a client, set as the hub library's own settings say."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING

import httpx

from mrcr_action import __version__
from mrcr_action.config.keys import DATASET
from mrcr_action.errors import DataError
from mrcr_action.hub.download import CONTACT_SECONDS
from mrcr_action.hub.errors import OFFLINE_HINT, Unreachable
from mrcr_action.proxies import is_loopback, proxy_for
from mrcr_action.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_REVISION = re.compile(r"(?!.*\.\.)\w[\w.+/-]*", re.ASCII)


@contextlib.contextmanager
def hub_client(name: str, url: str) -> Iterator[httpx.Client]:
    """A client for a file of the hub, with the library's settings.

    Args:
        name: what messages call the file.
        url: its address.

    Raises:
        Unreachable: the environment forbids to use the network.
        DataError: the token or a proxy of the environment cannot be used.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or _is_set("HF_DATASETS_OFFLINE"):
        raise Unreachable(
            f"{name}: not in the hub library's cache, and HF_HUB_OFFLINE forbids to fetch it",
            hint=f"Unset HF_HUB_OFFLINE. {OFFLINE_HINT}",
        )
    headers = {"user-agent": f"mrcr-action/{__version__}", "accept-encoding": "identity"}
    if token := _token():
        headers["authorization"] = f"Bearer {token}"
    make = partial(
        httpx.Client,
        headers=headers,
        timeout=httpx.Timeout(constants.HF_HUB_DOWNLOAD_TIMEOUT, connect=2 * CONTACT_SECONDS),
    )
    try:
        try:
            client = make(trust_env=not is_loopback(url))
        except (ValueError, httpx.InvalidURL):
            client = make(trust_env=False, proxy=proxy_for(url), verify=httpx.create_ssl_context())
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        raise DataError(
            "a proxy of the environment cannot be used",
            hint="Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.",
        ) from error
    with client:
        yield client


def _token() -> str | None:
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    try:
        with _quietly():
            token = get_token()
    except Exception as error:  # from files, other services or the library's own login
        raise DataError(
            f"the hub's token cannot be read: {type(error).__name__}",
            hint="Set HF_TOKEN, or HF_HUB_DISABLE_IMPLICIT_TOKEN=1 to go without.",
        ) from error
    if token and not (token.isascii() and token.isprintable()):
        raise DataError(
            "the hub's token holds characters that no token has",
            hint="Check HF_TOKEN, or set HF_HUB_DISABLE_IMPLICIT_TOKEN=1 to go without.",
        )
    return token


def hub_url(endpoint: str, dataset: str, revision: str, shard: str) -> str:
    """The address of a dataset's file.

    Raises:
        DataError: a part of it is nothing that the hub could have.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import HFValidationError

    if not _REVISION.fullmatch(revision):
        raise DataError(
            f"{dataset}: {one_line(revision, 80)} is not a revision",
            hint="Pass a commit, a tag or a branch of the dataset with --revision.",
        )
    try:
        url = hf_hub_url(dataset, shard, repo_type="dataset", revision=revision, endpoint=endpoint)
        return str(httpx.URL(url))
    except HFValidationError as error:
        raise DataError(
            f"{one_line(dataset, 80)}: not the name of a dataset on the hub",
            hint=f"A name looks like {DATASET}; a folder is given with a slash, as ./folder.",
        ) from error
    except httpx.InvalidURL as error:
        raise DataError(
            "the hub's address is none",
            hint="Check HF_ENDPOINT: it is https://huggingface.co unless set.",
        ) from error


def load_library() -> None:
    """Import what is used of the hub library, which takes the environment apart meanwhile.

    Raises:
        DataError: it stumbles over that.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import huggingface_hub.file_download  # noqa: F401
        except (ValueError, OSError) as error:
            # What it says may quote a secret.
            raise DataError(
                f"the hub library cannot be loaded: {type(error).__name__}",
                hint="Check the variables whose names begin with HF_, HF_ENDPOINT above all.",
            ) from error


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep what the library says of the token out of this program's own output.

    For moments only: warnings are the whole process's, not a thread's.
    """
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}
