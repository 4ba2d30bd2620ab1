"""Hosts: the names of servers as people read them, with their letters instead of `xn--`."""

import re

from retainer.values.collation import base_letters

ENCODED = re.compile(r"xn--[a-z0-9-]+")


def unicode_host(host: str) -> str:
    """Return a host in Unicode; what is no valid international name stays as it is."""
    return ENCODED.sub(_decode, host)


def letters_of_hosts(text: str) -> str:
    """Return the base letters of a text, in which each international name is found in both spellings."""
    shown = unicode_host(text)
    return base_letters(text if shown == text else f"{text}\n{shown}")


def _decode(label: re.Match[str]) -> str:
    import idna  # noqa: PLC0415  # 6 ms, and rarely needed

    try:
        return idna.decode(label[0])
    except idna.IDNAError:
        return label[0]
