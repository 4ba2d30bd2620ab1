"""Collation: sort keys of texts, and the form in which searches compare them.

Letters sort by their base letter: Äpfel sorts next to Apfel, not after Zoo. Case is ignored; accents only break ties.
Searches ignore case and accents.
Unicode guarantees that decompositions never change, so stored keys stay valid. Keys of a collation library would have
to be recomputed after each update of the library.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from retainer.values.texts import UNPRINTED

Fold = Callable[[str], str]
ALIKE = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ŧ": "t", "ŋ": "n", "ı": "i"}  # noqa: RUF001
)
"""Letters that Unicode does not decompose, with their base letters."""
DIGITS = re.compile("[0-9]+")
SPACES = re.compile(" {2,}")
HYPHEN = "\u2010"
SEPARATOR = "\x01"
"""Separates the base letters from the text itself; sorts before every letter."""


def sort_key(text: str) -> str:
    """Return the sort key of a text: its base letters, followed by the folded text where the two differ."""
    folded, base = text.casefold(), base_letters(text)
    return base if base == folded else base + SEPARATOR + folded


def base_letters(text: str) -> str:
    """Return the base letters of a text without case, as searches compare them; a text of accents alone keeps them."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    base = "".join(letter for letter in decomposed if not unicodedata.combining(letter)).translate(ALIKE)
    return unicodedata.normalize("NFC", base) or folded  # compose Hangul syllables again


def printed_form(text: str) -> str:
    """Return the form in which unique names and numbers are compared: what documents print of them, without case.

    `k3`, `K3`, a full-width `Ｋ３` and one with a zero-width space are equal; so are a hyphen and a minus, or one space
    and two. Spaces around it do not count.
    """  # noqa: RUF002
    folded = text.casefold()
    if not folded.isascii():
        seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
        folded = unicodedata.normalize("NFKC", UNPRINTED.sub("", seen)).casefold().replace(HYPHEN, "-")
    return SPACES.sub(" ", folded).strip()


def number_key(number: str) -> str:
    """Return the sort key of a number of a record: K2 sorts before K10, as each run of digits follows its length."""
    return DIGITS.sub(_with_length, printed_form(number))


def _with_length(run: re.Match[str]) -> str:
    digits = run[0].lstrip("0") or "0"
    return f"{len(digits):02}{digits}"


def folded_text(values: Mapping[str, str | None], names: Sequence[str], fold: Fold = str.casefold) -> str | None:
    """Return the non-empty values of these columns, joined by newlines and folded; None when all are empty."""
    texts = [text for name in names if (text := values.get(name))]
    return fold("\n".join(texts)) if texts else None
