"""The search over records, people and keys: its page, and its results while a person types."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

from retainer.console import words
from retainer.console.displays import display_of
from retainer.console.names import Link, load_labels, load_names
from retainer.console.page_context import PageContext, Reply
from retainer.console.values import badges_of
from retainer.errors import Refusal
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.people import users
from retainer.kernel.paging import ListPage
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.traffic import request_log
from retainer.values.collation import base_letters
from retainer.values.records import Record
from retainer.web.direction import isolated

KINDS = ("clients", "external-contacts", "projects", "tasks", "invoices", "quotes", "credit-notes", "tickets", "sites")
SHOWN, SUGGESTED = 8, 4
"""Results of each kind on the page, and while a person types."""
MAX_LENGTH = 191


class SearchGroup(NamedTuple):
    title: str
    total: int
    results: list[Link]
    path: str


def show(tx: Tx, context: PageContext) -> Reply:
    """Show the results for a text; a request id redirects to its request."""
    text = context.query.text("q")
    if position := find_request(tx, context, text):
        return context.redirect(f"/requests/{position}")
    groups = find_groups(tx, context, text, SHOWN)
    return context.render(
        "search", text=text, named=isolated(text), groups=groups, total=sum(group.total for group in groups)
    )


def suggest(tx: Tx, context: PageContext) -> Reply:
    text = context.query.text("q")
    groups = find_groups(tx, context, text, SUGGESTED)
    if position := find_request(tx, context, text):
        groups.insert(0, SearchGroup("Requests", 1, [Link(text, f"/requests/{position}")], ""))
    total = sum(group.total for group in groups)
    return context.render(
        "search_results", text=isolated(text), groups=groups, total=total, query=urlencode({"q": text})
    )


def find_request(tx: Tx, context: PageContext, text: str) -> str | None:
    """Return the position of the request with an id; None if there is none, or the role sees no requests."""
    if not text or not context.may("requests"):
        return None
    logged = request_log.list_requests(tx, request_log.LogFilter(request_id=text), limit=1).requests
    return logged[0].position if logged else None


def find_groups(tx: Tx, context: PageContext, text: str, shown: int) -> list[SearchGroup]:
    """Return the results for a text by kind, without empty kinds; none for a text that is blank or too long."""
    if not text or len(text) > MAX_LENGTH:
        return []
    found = list(find_records(tx, context, text, shown))
    if context.may("records"):
        found.append(find_people(tx, context, text, shown))
    if context.may("keys"):
        keys = key_list.list_keys(tx, KeyFilter(q=text))
        results = [Link(key.name, f"/keys/{key.id}", f"{key.prefix}…{key.last_four}") for key in keys[:shown]]
        found.append(SearchGroup("Keys", len(keys), results, f"/keys?{urlencode({'q': text})}"))
    return [group for group in found if group.total]


def find_records(tx: Tx, context: PageContext, text: str, shown: int) -> Iterator[SearchGroup]:
    found: dict[str, ListPage[Record]] = {}
    for name in KINDS:
        with suppress(ValueError, Refusal):
            found[name] = context.catalogue.find(name).page(tx, {"q": text}, size=shown, sort=display_of(name).sort)
    ids = {getattr(record, "client_id", None) for listed in found.values() for record in listed.data}
    names = load_names(tx, clients, [client_id for client_id in ids if client_id is not None])
    for name, listed in found.items():
        path, title = f"/records/{name}", context.catalogue.kinds[name].title
        labels = load_labels(tx, context.catalogue.kinds[name].table, listed.data)
        results = [Link(labels[record.id], f"{path}/{record.id}", note_of(record, names)) for record in listed.data]
        yield SearchGroup(title, listed.meta.total, results, f"{path}?{urlencode({'q': text})}")


def note_of(record: Record, names: dict[int, str]) -> str:
    badges, total, due = badges_of(record), getattr(record, "total", None), getattr(record, "due_date", None)
    client = names.get(getattr(record, "client_id", None) or 0, "")
    amount = "" if total is None else words.money(total, getattr(record, "currency", ""))
    parts = (client, badges[0].text if badges else "", amount, f"due {words.short_day(due)}" if due else "")
    return " · ".join(part for part in parts if part)


def find_people(tx: Tx, context: PageContext, text: str, shown: int) -> SearchGroup:
    """Return the people whose name contains a text, or, for admins, their email."""
    wanted, found = base_letters(text), list[Link]()
    for user in users.list_users(tx):
        email = user["email"] if context.may("people") else ""
        if wanted in base_letters(f"{user['name']}\n{email}"):
            found.append(Link(user["name"], f"/people/{user['id']}", email))
    return SearchGroup("People", len(found), found[:shown], "/people")
