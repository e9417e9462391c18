"""What of a configuration may be shown: secrets in it are masked before anything is written."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

import msgspec

from mrcr_action.config.faults import server_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mrcr_action.config import RunConfig

MASK = "***"

SHORTEST_SECRET = 4
"""Characters of a secret that is looked for in texts; a shorter one is part of many a word."""

_SECRET_WORDS = {"token", "key", "apikey", "secret", "password", "passwd", "passphrase"}
_SECRET_WORDS |= {"credential", "auth", "authorization", "cookie"}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of a name in any writing: api_key, --api-key, apiKey, APIKey."""

_OF_TEXT = {"id", "ids", "budget", "threshold", "count", "limit"}
"""What follows "token" in the names of settings that are about text: ``stop_token_ids``."""

_USER_INFO = re.compile(r"(?<=://)([^/?#]*)@")
_QUERY = re.compile(r"(?<=://)([^?#]*\?)([^#]*)")
_QUERY_VALUE = re.compile(r"([^=&]*)=([^&]+)")

_JSON_OBJECTS = re.compile(r"\s*(?:\[\s*)?\{(?![{%#])")
"""How an object or a list of them begins, but no template."""

_SCHEME = re.compile(r"^(?i:basic|bearer|token|apikey)\s+(?=\S+$)")
"""How a header names the kind of its secret."""

_NO_SECRETS = {"true", "false", "none", "null", "auto", "empty"}
"""What stands for a secret where there is none; to look for it would spoil any text."""

_ENVIRON_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "MRCR_API_KEY", "VLLM_API_KEY")
"""Variables of this process whose values may come back, from the hub or a server's log."""


def publishable(config: RunConfig) -> RunConfig:
    """A copy of a configuration that can stand in a report."""
    hider = _Hider()
    return msgspec.structs.replace(
        config,
        server_args=tuple(hider.arguments(server_arguments(config))),
        env=hider.variables(config.env),
        extra_body=hider.value(config.extra_body),
        base_url=hider.address(config.base_url) if config.base_url else None,
    )


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    """Arguments with the values of secret flags masked, ``--hf-token X`` and ``--hf-token=X``.

    A flag may take several values (``--api-key A B``), so all up to the next flag are masked.
    A value that is a JSON object, and an address, are masked in the parts that are secret.
    """
    return _Hider().arguments(arguments)


def without_password(text: str) -> str:
    """An address without its user, password and the values of its query; other text as it is."""
    return _Hider().address(text)


def is_secret(name: str) -> bool:
    """Whether a variable's, flag's or field's name says that its value is secret."""
    # Without its capitals too: KEYs and apiKEY have no seam where the pattern looks for one.
    return _speak_of_secret([word.lower() for word in _WORD.findall(name)]) or _speak_of_secret(
        re.findall("[a-z]+", name.lower())
    )


def secrets_of(
    config: RunConfig, *, api_key: str | None, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Every secret that a run is given, longest first, to be kept out of foreign texts.

    What is only masked where it stands, such as a user name or most values of a query, is not
    among them: it may be an ordinary word. Nor is what has fewer than `SHORTEST_SECRET` characters.

    Args:
        config: its server arguments, variables, extra body and address are looked through.
        api_key: the server's key.
        environ: variables of this process.
    """
    hider = _Hider()
    hider.keep(api_key)
    hider.arguments(server_arguments(config))
    hider.variables(config.env)
    hider.value(config.extra_body)
    hider.address(config.base_url or "")
    for name in _ENVIRON_SECRETS:
        hider.keep(environ.get(name))
    found = {
        secret
        for secret in hider.hidden
        if len(secret) >= SHORTEST_SECRET and secret.lower() not in _NO_SECRETS
    }
    return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


def scrub(text: str, secrets: Sequence[str]) -> str:
    """Text with every secret masked, also where JSON, a quotation or an address escapes it."""
    pattern = _pattern_of(tuple(secrets))
    return pattern.sub(MASK, text) if pattern else text


class _Hider:
    """Masks secrets, and remembers those that it masked."""

    def __init__(self) -> None:
        self.hidden: list[str] = []

    def keep(self, secret: Any) -> None:
        """Remember the texts in a value that is secret as a whole."""
        if isinstance(secret, dict):
            for inner in secret.values():
                self.keep(inner)
        elif isinstance(secret, list):
            for inner in secret:
                self.keep(inner)
        elif isinstance(secret, str):
            secret = secret.strip()
            # A server may repeat "Bearer X" whole or X alone.
            self.hidden += [secret, _SCHEME.sub("", secret, count=1)]

    def arguments(self, arguments: Sequence[str]) -> list[str]:
        shown: list[str] = []
        first = hide = False
        for argument in arguments:
            name, equals, value = argument.partition("=")
            flag = name.startswith("-") and not first
            if hide and not flag:
                self.keep(argument)
                shown.append(MASK)
                first = False
                continue
            secret = flag and is_secret(name)
            if flag and equals:
                if secret:
                    self.keep(value)
                shown.append(f"{name}={MASK if secret else self.text(value)}")
            else:
                shown.append(self.text(argument))
            first = hide = secret and not equals
        return shown

    def variables(self, env: Mapping[str, Any]) -> dict[str, str]:
        shown: dict[str, str] = {}
        for name, value in env.items():
            # YAML reads a key of digits as a number; the server gets it as text all the same.
            if is_secret(name):
                self.keep(str(value))
            shown[name] = MASK if is_secret(name) else self.text(str(value))
        return shown

    def value(self, value: Any) -> Any:
        """A value of JSON; in an object everything under a secret name is masked, but no null."""
        if isinstance(value, dict):
            shown = {}
            for key, inner in value.items():
                secret = is_secret(str(key)) and inner is not None
                if secret:
                    self.keep(inner)
                shown[key] = MASK if secret else self.value(inner)
            return shown
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return self.address(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """Text that may be a JSON object, or a list of them, or an address."""
        if not _JSON_OBJECTS.match(text):
            return self.address(text)
        try:
            return json.dumps(self.value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            # Without its quotation marks, for one; then nobody knows where the secret ends.
            if not is_secret(text):
                return self.address(text)
            self.keep(text)
            return MASK

    def address(self, text: str) -> str:
        def user(match: re.Match[str]) -> str:
            name, _, password = match[1].partition(":")
            # Where no password follows, the name is a token.
            self._keep_escaped(password or name, unquote)
            return f"{MASK}@"

        def pair(match: re.Match[str]) -> str:
            if is_secret(unquote_plus(match[1])):
                self._keep_escaped(match[2], unquote_plus)
            return f"{match[1]}={MASK}"

        def query(match: re.Match[str]) -> str:
            return match[1] + _QUERY_VALUE.sub(pair, match[2])

        return _QUERY.sub(query, _USER_INFO.sub(user, text))

    def _keep_escaped(self, secret: str, unescape: Callable[[str], str]) -> None:
        self.keep(secret)
        self.keep(unescape(secret))


def _speak_of_secret(words: Sequence[str]) -> bool:
    for word, following in zip(words, [*words, ""][1:], strict=True):
        # Tokens are text's, as in max_tokens; of everything else several are as secret as one.
        of_text = word == "tokens" or (word == "token" and following in _OF_TEXT)
        if not of_text and (word in _SECRET_WORDS or word.removesuffix("s") in _SECRET_WORDS):
            return True
    return False


@lru_cache(maxsize=8)
def _pattern_of(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    # Longest first, since of several that begin alike the first listed is taken.
    longest_first = sorted(filter(None, secrets), key=len, reverse=True)
    alternatives = ["".join(_written(secret)) for secret in longest_first]
    return re.compile("|".join(alternatives)) if alternatives else None


def _written(secret: str) -> Iterator[str]:
    """For each character of a secret, a pattern of how it may be written."""
    for char in secret:
        if char.isascii() and char.isalnum():
            yield char
            continue
        # Backslashes double with every quotation within a quotation.
        ways = [r"\\{1,4}" if char == "\\" else r"\\{0,3}" + re.escape(char)]
        if char in "\b\f\n\r\t":
            ways.append(r"\\{1,4}" + json.dumps(char)[2])
        units = char.encode("utf-16-be", "surrogatepass").hex()
        ways.append("".join(rf"\\{{1,4}}u{units[at : at + 4]}" for at in range(0, len(units), 4)))
        ways.append("".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")))
        if char == " ":
            ways.append(r"\+")
        yield f"(?i:{'|'.join(ways)})"
