"""Collation: texts as they are compared: without case, and in the order in which people look for them.

Letters stand by their base, so that Äpfel is beside Apfel and not after Zoo; case counts for nothing, accents only
between texts that are otherwise the same. Unicode keeps decompositions stable for ever, so keys that are stored never
have to be made again, as those of a collation library must after its every update.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Fold = Callable[[str], str]
ALIKE = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ŧ": "t", "ŋ": "n", "ı": "i"}  # noqa: RUF001
)
"""Letters with a base that Unicode does not decompose."""
BEFORE_ALL = "\x01"


def sort_key(text: str) -> str:
    """A text by which texts are sorted as people look for them: its base letters, then, if it has others, itself."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    base = "".join(letter for letter in decomposed if not unicodedata.combining(letter)).translate(ALIKE)
    base = unicodedata.normalize("NFC", base)  # syllables of Hangul are whole again
    return base if base == folded else base + BEFORE_ALL + folded


def folded_text(values: Mapping[str, Any], names: Sequence[str], fold: Fold = str.casefold) -> str | None:
    """The texts of these names, folded together; null when there is nothing to fold."""
    texts = [values[name] for name in names if values.get(name)]
    return fold("\n".join(texts)) if texts else None
