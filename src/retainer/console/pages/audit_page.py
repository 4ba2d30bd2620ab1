"""The page of the audit log."""

import re
from functools import partial

from msgspec.structs import replace

from retainer.console import forms, words
from retainer.console.catalogue import Catalogue
from retainer.console.labels import field_label
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.request_pages import link_with
from retainer.console.words import hours
from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import ACTIONS, AuditEntry, AuditFilter
from retainer.identity.people import users
from retainer.store.tx import Tx

INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
PAGES = {"key": "/keys/{}", "user": "/people/{}", "webhook": "/webhooks/{}", "payment": "/records/invoices/{}"}
"""The page of an action's target, by its kind; that of a payment is the page of its invoice."""


def show_list(tx: Tx, context: PageContext) -> Reply:
    query = context.query
    filters = replace(forms.read_filters(AuditFilter, query), **forms.read_days(query, tx.actor.timezone))
    try:
        page = audit.list_entries(tx, filters, cursor=query.text("cursor") or None)
    except Refusal:
        page = audit.list_entries(tx, filters)
    people = users.list_users(tx)
    return context.render(
        "audit",
        page=page,
        actions=ACTIONS,
        users=people,
        is_filtered=filters != AuditFilter(),
        next_link=page.next_cursor and link_with(context, cursor=page.next_cursor),
        page_of=partial(page_of, record_pages(context.catalogue) | PAGES),
        changes_of=partial(changes_of, context, {user["id"]: user["name"] for user in people}),
    )


def record_pages(catalogue: Catalogue) -> dict[str, str]:
    """Return the pages of records by their nouns."""
    return {kind.noun: f"/records/{kind.name}/{{}}" for kind in catalogue.kinds.values() if kind.reading}


def page_of(pages: dict[str, str], entry: AuditEntry) -> str:
    """Return the path of an action's target; empty if it has no page, or was deleted."""
    is_payment, known = entry.target == "payment", entry.before or entry.after or {}
    path = "" if entry.action == "record deleted" else pages.get(entry.target, "")
    return path.format(known.get("invoice_id") if is_payment else entry.target_id)


def changes_of(context: PageContext, names: dict[int, str], entry: AuditEntry) -> list[tuple[str, object, object]]:
    """Return the fields of an action with their values before and after, in the words of the console."""
    before, after = (
        {name: in_words(context, names, name, value) for name, value in (each or {}).items()}
        for each in (entry.before, entry.after)
    )
    return [(field_label(name), before.get(name), after.get(name)) for name in {**before, **after}]


def in_words(context: PageContext, names: dict[int, str], name: str, value: object) -> object:
    if isinstance(value, list) and name == "scopes":
        return words.scopes_in_words(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            hours(value)
            if name.endswith("_minutes")
            else names.get(value, value)
            if name.endswith("user_id")
            else value
        )
    if isinstance(value, str) and INSTANT.match(value):
        return words.moment(value, context.person.timezone, context.now).text
    return value
