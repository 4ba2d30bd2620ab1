"""Search: the sections of all pages that contain every word of a query."""

import re
from functools import cache
from typing import NamedTuple

from retainer.kernel.resource import Routes
from retainer.reference.markdown import slug
from retainer.reference.pages import pages_of

SECTION = re.compile(r"^#{1,2} ", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"[`*|]|\]\([^)]*\)|\[|^[ |-]+$", re.MULTILINE)
MAX_RESULTS = 30
BEFORE, MAX_EXCERPT = 60, 200  # characters of an excerpt: before the first word, and in all


class Section(NamedTuple):
    """A section of a page."""

    address: str
    title: str
    page: str
    text: str


class Result(NamedTuple):
    """A section that matches a query, with an excerpt around the first match."""

    address: str
    title: str
    page: str
    excerpt: str


@cache
def sections_of(routes: Routes) -> list[Section]:
    """Return the sections of all pages, without their blocks of code."""
    found = []
    for page in pages_of(routes).values():
        for part in SECTION.split(FENCE.sub("", page.text))[1:]:
            heading, _, text = part.partition("\n")
            title = heading.replace("`", "")
            address = page.path if title == page.title else f"{page.path}#{slug(heading)}"
            found.append(Section(address, title, page.title, " ".join(MARKS.sub("", text).split())))
    return found


def search(routes: Routes, query: str) -> list[Result]:
    """Return the sections with all words of a query; matches in headings come first."""
    words = query.casefold().split()
    ranked = [(rank(section, words), section) for section in sections_of(routes)] if words else []
    best = sorted((pair for pair in ranked if pair[0] is not None), key=lambda pair: -(pair[0] or 0))[:MAX_RESULTS]
    return [Result(*section[:3], excerpt(section.text, words)) for _, section in best]


def rank(section: Section, words: list[str]) -> int | None:
    """Return how well a section matches the words; None if one is missing."""
    title, page, text = (part.casefold() for part in section[1:])
    if any(word not in title and word not in text and word not in page for word in words):
        return None
    return sum(8 * (word in title) + 4 * (word in title.split()) + min(text.count(word), 3) for word in words)


def excerpt(text: str, words: list[str]) -> str:
    """Return the part of a text around the first match."""
    places = [place for word in words if (place := text.casefold().find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    part = text[start : start + MAX_EXCERPT]
    return f"{'… ' if start else ''}{part}{' …' if start + MAX_EXCERPT < len(text) else ''}"
