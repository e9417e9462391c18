"""Foreign text made harmless: model output, server logs, names from files and servers."""

from __future__ import annotations

import re
import unicodedata

_MARKDOWN = re.compile(r"[\\`*_{}\[\]#|~]")
"""Characters that mean something inside a line of GitHub's Markdown."""

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
_ENTITIES |= {"@": "&#64;&#8203;", "://": "&#58;//", "www.": "www&#46;"}
"""HTML, mathematics, and addresses that GitHub would turn into links. It looks for mentions and
mail addresses when the entities are resolved already, so that only a break of no width helps."""

_BLOCK_START = re.compile(r"^(?=[-+=:])|^(\d+)(?=[.)](?:\s|$))")
"""What starts a list, a rule or a heading at the head of a line."""

_XML_10 = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even as references."""


def one_line(text: str, limit: int = 300, *, keep_blanks: bool = False) -> str:
    """Text on one line without control, direction-changing or unpaired characters.

    Workflow commands (``::name::`` at the start of a line, ``##[name]`` anywhere) are broken up,
    since a runner reads them from whatever is printed. Several blanks become one unless they are
    kept.
    """
    clean = "".join(" " if unprintable(c) else c for c in text)
    if not keep_blanks:
        clean = " ".join(clean.split())
    clean = clean.replace("##[", "# #[")
    if clean.lstrip().startswith("::"):
        clean = clean.replace("::", ": :", 1)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def lines(text: str, limit: int = 300) -> list[str]:
    """Every line of a text, each made harmless."""
    return [one_line(line, limit) for line in text.splitlines()]


def markdown(text: str, limit: int = 300) -> str:
    """Text as literal, one-line Markdown: no markup, HTML, link or mention, safe in a table."""
    clean = one_line(text, limit)
    for plain, entity in _ENTITIES.items():
        clean = clean.replace(plain, entity)
    clean = _MARKDOWN.sub(r"\\\g<0>", clean.replace("&#", "\0")).replace("\0", "&#")
    return _BLOCK_START.sub(r"\1\\", clean)


def code(text: str, limit: int = 300) -> str:
    """Text as inline code in Markdown, safe in a table cell."""
    clean = one_line(text, limit).replace("|", "¦")
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{fence}{pad}{clean or ' '}{pad}{fence}"


def xml_text(text: str) -> str:
    """Text with every character that XML 1.0 cannot hold replaced by U+FFFD."""
    return _XML_10.sub("\ufffd", text)


def unprintable(char: str) -> bool:
    """Whether a character controls something, is not seen, or is half of a pair."""
    # Cc control, Cf format (direction overrides, zero width), Cs surrogates, Zl/Zp separators.
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
