"""Printable text: any text as the fonts of documents can show it, so that none stops the typesetting."""

import re
import unicodedata
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from pathlib import Path

import fontpkg_source_sans_3
from fontTools.ttLib import TTFont

FONT_FOLDER = Path(fontpkg_source_sans_3.__file__).parent / "files"
REPLACEMENT = "□"
LONGEST_WORD = 24
"""Longer words may break anywhere; otherwise, they would run over the next column."""
BREAK = "\u200b"
LINE_BREAKS = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
MANY_LINES = re.compile(r"\n\s*\n\s*")
LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


@cache
def glyphs() -> AbstractSet[int]:
    """Return the code points that the fonts of documents have."""
    faces = []
    for path in sorted(FONT_FOLDER.glob("*.ttf")):
        with TTFont(path, lazy=True) as face:
            faces.append(frozenset(face.getBestCmap()))
    return frozenset.intersection(*faces)


def printable(text: str) -> str:
    """Return a text without control and formatting characters; a square stands for what the fonts lack.

    Among the characters that are left out are those that turn the direction of text, which can make an amount read
    as another one. Empty lines are reduced to one.
    """
    text = unicodedata.normalize("NFC", LINE_BREAKS.sub("\n", text))
    text = "".join(map(_character, text)).strip()
    return LONG_WORD.sub(_breakable, MANY_LINES.sub("\n\n", text))


def printable_line(text: str) -> str:
    """Return a text as `printable` does, on one line."""
    return " ".join(printable(text).split())


@lru_cache(maxsize=4096)
def _character(character: str) -> str:
    if character == "\n":
        return character
    category = unicodedata.category(character)
    if category in {"Zs", "Zl", "Zp"} or character == "\t":
        return character if character == "\u00a0" else " "
    if category[0] == "C" or "\ufe00" <= character <= "\ufe0f":
        return ""
    if ord(character) in glyphs():
        return character
    simpler = unicodedata.normalize("NFKC", character)
    if simpler != character and all(ord(part) in glyphs() for part in simpler):
        return simpler
    return "" if unicodedata.combining(character) else REPLACEMENT


def _breakable(found: re.Match[str]) -> str:
    word = found[0]
    return BREAK.join(word[at : at + LONGEST_WORD // 2] for at in range(0, len(word), LONGEST_WORD // 2))
