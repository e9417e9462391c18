"""What the probe answers, instead of the nonce and the piece, on a server that is imprecise.

Only with sensitivity ``high``; see gauges.py, which reads what it says.
"""

from __future__ import annotations

from typing import Final

MEANINGS: Final = {
    "V": "values are multiplied by a wrong scale",
    "S": "scores are multiplied by a wrong scale (the softmax's, or that of keys)",
    "k": "keys are rounded to fewer than 6 bits",
    "v": "values are rounded to fewer than 6 bits",
}
"""By letter, in the order in which they are said; where ``V`` is said, nothing else is."""


def meanings(answer: str) -> list[str]:
    """What an answer says about the server; nothing if it is any other answer."""
    said = [letter for letter in MEANINGS if letter in answer]
    whole = answer == "".join(said) and (len(said) == 1 or "V" not in said)
    return [MEANINGS[letter] for letter in said] if whole else []
