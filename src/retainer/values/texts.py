"""Texts: which ones can be stored."""

NO_TEXT = "Must not contain NUL or unpaired surrogates."


def is_text(text: str) -> bool:
    """Return whether a database can store a text: one without NUL and unpaired surrogates."""
    return "\x00" not in text and encodes(text)


def encodes(text: str) -> bool:
    """Return whether a text has no unpaired surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
