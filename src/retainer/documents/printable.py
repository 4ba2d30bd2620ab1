"""Printable text: the fonts of documents, all from packages, and any text as they can show it."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from retainer.values.texts import FORMATTING

MAIN = "Source Sans 3"
PACKAGES = {
    MAIN: "fontpkg_source_sans_3",
    "Heebo": "fontpkg_heebo",
    "Noto Sans Arabic": "fontpkg_noto_sans_arabic",
    "Noto Sans Thai": "fontpkg_noto_sans_thai",
    "Noto Sans Devanagari": "fontpkg_noto_sans_devanagari",
    "Noto Sans CJK": "noto_cjk_sans_otc",
}
"""The package of each font; a character is printed with the first that has it."""
FILES = {
    name: sorted(path for path in Path(str(files(package))).rglob("*") if path.suffix in {".ttf", ".ttc"})
    for name, package in PACKAGES.items()
}
HAN = {"CN": "SC", "SG": "SC", "TW": "TC", "HK": "HK", "MO": "HK", "KR": "KR"}
"""The forms of Chinese characters by country; elsewhere the Japanese ones."""
REPLACEMENT = "□"
LONGEST_WORD, LONGEST_IN_PROSE = 24, 48
"""Longer words may break anywhere; otherwise, they would run over the next column, or over the edge of the page."""
BREAK = "\u200b"
RIGHT_TO_LEFT, END = "\u2067", "\u2069"
"""They enclose a line that is read from right to left (UAX #9), with its numbers and punctuation."""
LINE_BREAKS = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
BREAKING = re.compile(r"[ \n]+")
"""All spaces that `printable` leaves, but for U+00A0."""
MANY_LINES = re.compile(r"\n\s*\n\s*")
LIGATURE = re.compile("[\ufb00-\ufdef\ufe70-\ufefc]")
"""Ligatures and forms of letters that fonts use for the letters themselves."""
WORD = re.compile(r"\S+")


def font_names(country: str | None) -> list[str]:
    """Return the names of the fonts as typst knows them, in the order in which a document uses them."""
    *others, han = PACKAGES
    return [*others, f"{han} {HAN.get(country or '', 'JP')}"]


@cache
def glyphs(name: str) -> Mapping[int, str]:
    """Return the code points that a font of documents has in all its files, and the character that stands for each.

    A PDF knows one character for each glyph. Where several have the same, as "-" and U+2011 do, all are printed as one
    of them, so that a copied text does not depend on which came first in the document.
    """
    from fontTools.ttLib import TTFont  # noqa: PLC0415  # 20 ms, and only documents need it

    faces = []
    for path in FILES[name]:
        with TTFont(path, lazy=True, fontNumber=0) as face:
            faces.append(face.getBestCmap())
    shared = defaultdict[str, list[str]](list)
    for code in sorted(frozenset.intersection(*map(frozenset, faces))):
        shared[faces[0][code]].append(chr(code))
    return {ord(each): _usual(alike) for alike in shared.values() for each in alike}


def _usual(alike: Sequence[str]) -> str:
    """Return which of the characters with one glyph is printed: no compatibility form, and the one of the lowest code.

    Thus U+2011 and U+2010 become "-", and the micro sign the Greek letter.
    """
    return min({unicodedata.normalize("NFKC", each) for each in alike}.intersection(alike), default=alike[0])


def printable(text: str, longest: int = LONGEST_WORD) -> str:
    """Return a text without control and formatting characters; a square stands for what the fonts lack.

    Among the characters that are left out are those that turn the direction of text, which can make an amount read
    as another one. Empty lines are reduced to one. Words of more letters than the longest get places to break.
    """
    text = unicodedata.normalize("NFC", LINE_BREAKS.sub("\n", text))
    text = "".join(map(_character, text)).strip()
    text = WORD.sub(lambda word: _breakable(word[0], longest), MANY_LINES.sub("\n\n", text))
    lines = text.split("\n")
    return "\n".join(map(_directed, lines))


def printable_line(text: str) -> str:
    """Return a text as `printable` does, on one line, which breaks where the text could: not between `1,00` and `€`."""
    words = BREAKING.split(printable(text).translate({ord(RIGHT_TO_LEFT): None, ord(END): None}))
    return _directed(" ".join(words))


def unprintable_characters(text: str) -> str:
    """Return the characters of a text that documents print as squares, each once."""
    characters = dict.fromkeys(unicodedata.normalize("NFC", text))
    return "".join(each for each in characters if each != REPLACEMENT and _character(each) == REPLACEMENT)


@lru_cache(maxsize=4096)
def _character(character: str) -> str:
    if character == "\n":
        return character
    if character == "\t" or unicodedata.category(character)[0] == "Z":
        return character if character == "\u00a0" else " "
    if FORMATTING.match(character):
        return ""
    simpler = unicodedata.normalize("NFKC", character)
    for text in (simpler, character) if LIGATURE.match(character) else (character, simpler):
        shown = [_shown(each) for each in text]
        if None not in shown:
            return "".join(filter(None, shown))
    return REPLACEMENT


def _shown(character: str) -> str | None:
    """Return the character as the first font that has it prints it; None if no font has it."""
    return next((glyphs(name)[ord(character)] for name in FILES if ord(character) in glyphs(name)), None)


def _directed(line: str) -> str:
    """Return a line as it is read: from right to left if its first letter is Hebrew or Arabic."""
    first = next((way for way in map(unicodedata.bidirectional, line) if way in {"L", "R", "AL"}), "L")
    return line if first == "L" else f"{RIGHT_TO_LEFT}{line}{END}"


def _breakable(word: str, longest: int) -> str:
    """Return a word with places to break if it is long, never between a letter and its marks."""
    if len(word) <= longest:
        return word
    parts, length = list[str](), 0
    for character in word:
        if length >= longest // 2 and unicodedata.category(character)[0] != "M":
            parts.append(BREAK)
            length = 0
        parts.append(character)
        length += 1
    return "".join(parts)
