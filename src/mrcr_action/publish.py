"""What of a configuration may be shown: secrets in it are masked before anything is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from mrcr_action.config.resolve import server_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrcr_action.config import RunConfig

MASK = "***"
_SECRET_WORDS = {"token", "key", "apikey", "secret", "password", "passwd", "passphrase"}
_SECRET_WORDS |= {"credential", "credentials", "auth", "authorization", "cookie"}


def publishable(config: RunConfig) -> RunConfig:
    """A copy of a configuration that can stand in a report."""
    return msgspec.structs.replace(
        config,
        server_args=tuple(mask_arguments(server_arguments(config))),
        env={
            key: MASK if is_secret(key) else without_password(str(value))
            for key, value in config.env.items()
        },
        extra_body=_masked(config.extra_body),
        base_url=without_password(config.base_url) if config.base_url else None,
    )


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    """Arguments with the values of secret flags masked, ``--hf-token X`` and ``--hf-token=X``.

    A flag may take several values (``--api-key A B``), so all up to the next flag are masked.
    """
    shown: list[str] = []
    first = hide = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        flag = name.startswith("-") and not first
        if hide and not flag:
            shown.append(MASK)
            first = False
            continue
        secret = flag and is_secret(name)
        if flag and equals:
            shown.append(f"{name}={MASK if secret else without_password(value)}")
        else:
            shown.append(without_password(argument))
        first = hide = secret and not equals
    return shown


def is_secret(name: str) -> bool:
    """Whether a variable's, flag's or field's name says that its value is secret."""
    return not _SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def without_password(text: str) -> str:
    """An address without the user and password it may carry; other text as it is."""
    try:
        parts = urlsplit(text)
        if not parts.scheme or "@" not in parts.netloc:
            return text
        return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))
    except ValueError:
        return text


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if is_secret(str(key)) and isinstance(inner, str) else _masked(inner)
            for key, inner in value.items()
        }
    return [_masked(inner) for inner in value] if isinstance(value, list) else value
