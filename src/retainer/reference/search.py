"""Search: the sections of all pages that contain every word of a query, or a synonym of it."""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

from retainer.kernel.routes import Routes
from retainer.reference.markdown import slug
from retainer.reference.pages import pages_of

SECTION = re.compile(r"^#{1,2} ", re.MULTILINE)
TABLE_HEAD = re.compile(r"^\|.*\n\|[ |-]+$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LAST = re.compile(r"`(PUT|PATCH|DELETE) ")
MARKS = re.compile(r"[`*|]|\]\([^)]*\)|\[|^[ |-]+$", re.MULTILINE)
MAX_WORDS, MAX_RESULTS, MAX_OF_PAGE = 8, 30, 3
BEFORE, MAX_EXCERPT = 60, 200  # characters of an excerpt: before the first word, and in all

SYNONYMS = {
    "pages": "pagination paginate paging cursor offset export",
    "sending the key": "authentication authenticate authorization auth token bearer",
    "oauth": "login",
    "scopes": "authorization permission permissions",
    "rotate": "rotation",
    "receive webhooks": "callback",
    "zapier or make": "integromat n8n ifttt",
    "time tracker": "toggl clockify harvest timer",
    "by email": "mail mails e-mail smtp",
    "cancel correct": "storno reverse undo rectify",
    "tax and rounding": "vat gst mwst",
    "money": "currency currencies",
    "list invoices": "overdue unpaid",
    "create or update": "upsert",
    "csv": "excel spreadsheet",
    "sdk": "library postman insomnia",
    "webhooks": "hmac notifications",
    "keep a copy in sync": (
        "notifications polling stream mirror replicate synchronize synchronization outbox deletions deleted"
    ),
    "waiting": "polling stream",
    "batch": "bulk import",
    "atomic": "transaction",
    "pdf": "export download print",
    "e-invoice": "xrechnung zugferd",
    "handle 429": "throttling quota",
    "limits": "quota rate",
    "concurrent changes": "locking optimistic",
    "sandbox": "staging",
    "time zone": "timezone timezones",
    "sorting": "ordering",
    "retries": "retry",
    "again": "retry",
}
"""Words of these pages, with those that other APIs use. A query for one of the latter finds both."""


class SearchSection(NamedTuple):
    """A section of a page, and what is searched in it: how often its title, page and text have each word."""

    address: str
    title: str
    page: str
    text: str
    words: tuple[Counter[str], Counter[str], Counter[str]]
    is_last: bool
    """Whether others say it better: changes repeat the creation, objects the operations, the changelog everything."""


@cache
def sections_of(routes: Routes) -> list[SearchSection]:
    found = []
    for page in pages_of(routes).values():
        for part in SECTION.split(FENCE.sub("", page.text))[1:]:
            heading, _, text = part.partition("\n")
            title = heading.replace("`", "")
            address = page.path if title == page.title else f"{page.path}#{slug(heading)}"
            plain = " ".join(MARKS.sub("", TABLE_HEAD.sub("", text)).split())
            is_last = page.group == "More" or page.parent != "" or LAST.match(text.lstrip()) is not None
            words = (words_of(title), words_of(page.title), words_of(plain))
            found.append(SearchSection(address, title, page.title, plain, words, is_last))
    return found


def words_of(text: str) -> Counter[str]:
    """Return how often a text has each word, which counts also without its plural's `s`, and in the parts of a name."""
    whole = re.findall(r"\w[\w-]*", text.casefold())
    return Counter(each for word in whole for each in {word, word.removesuffix("s"), *re.split(r"[_-]", word)})


def search(routes: Routes, query: str) -> list[SearchSection]:
    """Return the sections with all words of a query, up to eight, each with an excerpt around the first as its text.

    Matches in headings come first, whole words too. A page has at most three results: its operations are alike.
    """
    words = list(dict.fromkeys(query.casefold().split()))[:MAX_WORDS]
    ranked = [(rank(section, words), section) for section in sections_of(routes) if words]
    best, of_page = [], Counter[str]()
    for points, section in sorted(ranked, key=lambda pair: -pair[0]):
        of_page[section.page] += 1
        if points and of_page[section.page] <= MAX_OF_PAGE:
            best.append(section._replace(text=excerpt(section.text, words)))
    return best[:MAX_RESULTS]


def rank(section: SearchSection, words: list[str]) -> int:
    ranks = [max(rank_of_word(section, each) for each in meanings(word)) for word in words]
    is_page = section.title == section.page
    is_asked = is_page and " ".join(words) == section.title.casefold()
    return max(1, sum(ranks) + is_page + is_asked - 8 * section.is_last) if all(ranks) else 0


def meanings(word: str) -> list[str]:
    return [word, *(term for term, others in SYNONYMS.items() if word in others.split())]


def rank_of_word(section: SearchSection, wanted: str) -> int:
    each = wanted.split()
    for words, points in zip(section.words, (64, 8, 8), strict=True):
        if all(word in words for word in each):
            return points + 2 * min(words[each[0]], 3)
        if all(any(found.startswith(word) for found in words) for word in each):
            return points // 4
    return 0


def excerpt(text: str, words: list[str]) -> str:
    wanted = [each for word in words for each in meanings(word)]
    places = [place for word in wanted if (place := text.casefold().find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    part = text[start : start + MAX_EXCERPT]
    end = f"{part.rpartition(' ')[0]} …" if start + MAX_EXCERPT < len(text) else part
    return f"{'… ' if start else ''}{end}"
