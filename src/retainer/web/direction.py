"""Direction: names that run from right to left, or change the direction, next to other text."""

import re

FIRST_STRONG, POP = "\u2068", "\u2069"
"""What begins and ends a text with a direction of its own (UAX #9)."""
ISOLATES = re.compile("[\u2066-\u2069]")
DIRECTED = re.compile("[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters from right to left, and marks of direction."""


def isolated(name: str) -> str:
    """Return a name so that its letters from right to left, or its marks of direction, do not turn what follows it."""
    return f"{FIRST_STRONG}{ISOLATES.sub('', name)}{POP}" if DIRECTED.search(name) else name


def plain(name: str) -> str:
    """Return a label without the marks of `isolated`, for programs."""
    return ISOLATES.sub("", name)
