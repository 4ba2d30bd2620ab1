"""Texts: the form in which they are compared and stored, and the characters that each kind may have."""

import re
import unicodedata
from typing import Final, NamedTuple

from retainer.errors import InvalidValue

NO_TEXT = "Must not contain NUL or unpaired surrogates."
TOO_MANY_MARKS = "Must not have more than 30 combining marks after one another. Leave them out."
MAX_MARKS = 30
"""The bound of the Stream-Safe Text Format (UAX #15); normalising takes the square of the time of longer runs."""
MANY_MARKS = re.compile(rb"[^\0]{%d}" % (MAX_MARKS + 1))
LATE_MARKS = dict.fromkeys(map(ord, "\u0f73\u0f75\u0f81\uff9e\uff9f"), "\u0301")
"""Characters that are no marks, and become some when they are decomposed."""
WITHOUT_MARKS = re.compile("[\x00-\u02ff]*")
"""Texts of characters below all marks, as most are."""

IGNORABLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode's Default_Ignorable_Code_Point, which has room for characters to come: the table of Python may be older."""
FORMATS = (
    rf"{IGNORABLE}\x00-\x1f\x7f-\x9f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\ud800-\udfff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f"
)
"""The categories Cc, Cf and Cs of Unicode 16, with what is ignorable."""
FORMATTING = re.compile(f"[{FORMATS}]")
BLANK, UNSEEN = re.compile(rf"[\s\u2800{IGNORABLE}]*"), re.compile(rf"[\s\u2800{FORMATS}]*")


class Characters(NamedTuple):
    """The characters that a kind of text may have: all but those of some categories of Unicode."""

    refused: frozenset[str]
    form: str
    """Completes "Must be ..." in the message of an error."""
    pattern: str | None = None
    """The regular expression of the OpenAPI document, which has no categories."""
    unprinted: re.Pattern[str] | None = None
    """The letters and marks that it refuses, too."""


CONTROL_FREE = r"^[^\u0000-\u001f\u007f-\u009f]*$"
UNPRINTED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols that print nothing, as Unicode's Default_Ignorable_Code_Point has them, and a blank."""
LINES: Final = Characters(frozenset(), "text")
"""Any characters, line breaks included."""
LINE: Final = Characters(frozenset({"Cc", "Zl", "Zp"}), "one line without control characters", CONTROL_FREE)
CODE: Final = Characters(
    frozenset({"Cc", "Cf", "Zl", "Zp"}), "one line without control and invisible characters", CONTROL_FREE, UNPRINTED
)
"""What people and programs compare by its letters, as a number: two that look alike must be equal."""
NAMES = {"\n": "a line break", "\r": "a line break", "\t": "a tab"}


def without_path(name: str) -> str:
    """Return the name of a file without the folders that stand before it; empty if it is one of a folder."""
    return name.replace("\\", "/").rpartition("/")[2]


def clean(text: str, characters: Characters = LINES) -> str:
    """Return a text trimmed and composed (NFC), as all texts from outside are read.

    Raises InvalidValue for a text that a database cannot store, and for a character that the kind of text refuses.
    """
    text = text.strip()
    if not text.isascii():
        if not encodes(text):
            raise InvalidValue(NO_TEXT)
        if has_many_marks(text):
            raise InvalidValue(TOO_MANY_MARKS)
        text = unicodedata.normalize("NFC", text)
    if "\x00" in text:
        raise InvalidValue(NO_TEXT)
    if characters.refused and not text.isprintable():  # one pass in C
        for position, character in enumerate(text, 1):
            if unicodedata.category(character) in characters.refused or is_noncharacter(ord(character)):
                raise refusal_of(characters, position, character)
    if characters.unprinted and (found := characters.unprinted.search(text)):
        raise refusal_of(characters, found.start() + 1, found[0])
    return text


def is_mark(character: str) -> bool:
    """Return whether a character is a combining mark, or becomes one when it is decomposed."""
    return unicodedata.combining(character) > 0 or ord(character) in LATE_MARKS


def has_many_marks(text: str) -> bool:
    """Return whether more than MAX_MARKS marks follow each other in any form of a text, invisible characters aside.

    Such a text must not be normalised, since its sort keys, say, would take minutes, while nothing else runs.
    """
    if len(text) <= MAX_MARKS or WITHOUT_MARKS.fullmatch(text):
        return False
    decomposed = FORMATTING.sub("", text).translate(LATE_MARKS)
    return MANY_MARKS.search(bytes(map(unicodedata.combining, decomposed))) is not None


def refusal_of(characters: Characters, position: int, character: str) -> InvalidValue:
    code = f"U+{ord(character):04X}"
    name = NAMES.get(character, unicodedata.name(character, "").lower())
    shown = f"{name} ({code})" if name else code
    return InvalidValue(f"Must be {characters.form}; character {position} is {shown}. Remove it.")


def is_blank(text: str) -> bool:
    """Return whether a text has spaces and invisible characters alone, or none."""
    return BLANK.fullmatch(text) is not None


def prints(text: str) -> bool:
    """Return whether a text shows anything; control characters do not."""
    return UNSEEN.fullmatch(text) is None


def is_noncharacter(code: int) -> bool:
    """Return whether Unicode keeps a code point for the inside of programs: XML and many readers refuse it."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
