"""Search: the sections of all pages that contain every word of a query, or a synonym of it."""

import re
from functools import cache
from typing import NamedTuple

from retainer.kernel.routes import Routes
from retainer.reference.markdown import slug
from retainer.reference.pages import pages_of

SECTION = re.compile(r"^#{1,2} ", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARKS = re.compile(r"[`*|]|\]\([^)]*\)|\[|^[ |-]+$", re.MULTILINE)
MAX_WORDS, MAX_RESULTS = 8, 30
BEFORE, MAX_EXCERPT = 60, 200  # characters of an excerpt: before the first word, and in all

SYNONYMS = {
    "pagination": ("pages",),
    "paginate": ("pages",),
    "paging": ("pages",),
    "cursor": ("pages",),
    "offset": ("pages",),
    "authentication": ("sending the key",),
    "authenticate": ("sending the key",),
    "authorization": ("sending the key", "scopes"),
    "auth": ("sending the key",),
    "token": ("sending the key",),
    "bearer": ("sending the key",),
    "login": ("oauth",),
    "permission": ("scopes",),
    "permissions": ("scopes",),
    "rotation": ("rotate",),
    "webhook": ("webhooks",),
    "callback": ("receive webhooks",),
    "hmac": ("webhooks",),
    "notifications": ("webhooks", "keep a copy in sync"),
    "polling": ("keep a copy in sync", "waiting"),
    "stream": ("keep a copy in sync", "waiting"),
    "mirror": ("keep a copy in sync",),
    "replicate": ("keep a copy in sync",),
    "synchronize": ("keep a copy in sync",),
    "synchronization": ("keep a copy in sync",),
    "outbox": ("keep a copy in sync",),
    "deletions": ("keep a copy in sync",),
    "deleted": ("keep a copy in sync",),
    "bulk": ("batch",),
    "import": ("batch",),
    "transaction": ("atomic",),
    "export": ("pdf", "pages"),
    "download": ("pdf",),
    "print": ("pdf",),
    "xrechnung": ("e-invoice",),
    "zugferd": ("e-invoice",),
    "throttling": ("handle 429",),
    "quota": ("handle 429", "limits"),
    "locking": ("concurrent changes",),
    "optimistic": ("concurrent changes",),
    "staging": ("sandbox",),
    "timezone": ("time zone",),
    "timezones": ("time zone",),
    "ordering": ("sorting",),
}
"""Words of other APIs, with the words of these pages. A query finds both."""


class Section(NamedTuple):
    """A section of a page, and what is searched in it: the same texts folded, and the words of the title."""

    address: str
    title: str
    page: str
    text: str
    folded: tuple[str, str, str]
    title_words: frozenset[str]


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
            plain = " ".join(MARKS.sub("", text).split())
            folded = (title.casefold(), page.title.casefold(), plain.casefold())
            found.append(Section(address, title, page.title, plain, folded, frozenset(folded[0].split())))
    return found


def search(routes: Routes, query: str) -> list[Result]:
    """Return the sections with all words of a query, up to eight; matches in headings come first."""
    words = list(dict.fromkeys(query.casefold().split()))[:MAX_WORDS]
    ranked = [(rank(section, words), section) for section in sections_of(routes)] if words else []
    best = sorted((pair for pair in ranked if pair[0] is not None), key=lambda pair: -(pair[0] or 0))[:MAX_RESULTS]
    return [Result(*section[:3], excerpt(section, words)) for _, section in best]


def rank(section: Section, words: list[str]) -> int | None:
    """Return how well a section matches the words; None if one is missing."""
    title, page, text = section.folded
    ranks = []
    for word in words:
        found = [
            16 * (each in title) + 4 * (each in section.title_words) + min(text.count(each), 3)
            for each in (word, *SYNONYMS.get(word, ()))
            if each in title or each in text or each in page
        ]
        if not found:
            return None
        ranks.append(max(found))
    return sum(ranks)


def excerpt(section: Section, words: list[str]) -> str:
    """Return the part of a section around the first match."""
    text = section.text
    wanted = [each for word in words for each in (word, *SYNONYMS.get(word, ()))]
    places = [place for word in wanted if (place := section.folded[2].find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    part = text[start : start + MAX_EXCERPT]
    return f"{'… ' if start else ''}{part}{' …' if start + MAX_EXCERPT < len(text) else ''}"
