"""Texts that can be stored: read in one way from JSON, forms and queries."""

NO_TEXT = "Must not contain NUL or unpaired surrogates."


def is_text(text: str) -> bool:
    """Whether a database keeps a text as it is, wherever that was read: without NUL and unpaired surrogates."""
    return "\x00" not in text and encodes(text)


def encodes(text: str) -> bool:
    """Whether a text is Unicode, without unpaired surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
