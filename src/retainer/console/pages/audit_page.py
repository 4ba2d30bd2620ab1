"""The page of the audit log."""

import re
from functools import partial
from typing import Any

from retainer.console import words
from retainer.console.editing.fields import Filters
from retainer.console.forms import read_filters
from retainer.console.page_context import PageContext, Reply
from retainer.identity import audit
from retainer.identity.audit import AuditEntry, AuditFilter
from retainer.identity.people import users
from retainer.schema import identity as schema
from retainer.store.tx import Tx

INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
PAGES = {"key": "/keys/{}", "user": "/people/{}", "webhook": "/webhooks/{}", "payment": "/records/invoices/{}"}
"""The page of an action's target, by its kind; that of a payment is the page of its invoice."""


def show_list(tx: Tx, context: PageContext) -> Reply:
    query = context.query
    asked = read_filters(AuditFilter, query, tx.actor.timezone)
    page = audit.list_entries(tx, asked, cursor=query.text("cursor") or None)
    people = {user["id"]: user["name"] for user in users.list_users(tx)}
    pages = {kind.noun: f"/records/{kind.name}/{{}}" for kind in context.catalogue.kinds.values() if kind.reading}
    return context.render(
        "audit",
        page=page,
        filters=Filters(tx, context, AuditFilter, {"user_id": schema.users}, {"users"}, {"target", "target_id"}),
        is_filtered=asked != AuditFilter(),
        page_of=partial(page_of, pages | PAGES),
        in_words=partial(in_words, context, people),
    )


def page_of(pages: dict[str, str], entry: AuditEntry) -> str:
    """Return the path of an action's target; empty if it has no page, or was deleted."""
    is_payment, known = entry.target == "payment", entry.before or entry.after or {}
    path = "" if entry.action == "record deleted" else pages.get(entry.target, "")
    return path.format(known.get("invoice_id") if is_payment else entry.target_id)


def in_words(context: PageContext, people: dict[int, str], name: str, value: Any) -> object:
    if name == "scopes" and value:
        return words.scopes_in_words(value)
    if name.endswith("_minutes") and value is not None:
        return words.hours(value)
    if name.endswith("user_id"):
        return people.get(value, value)
    return words.moment(value, context.person.timezone, context.now).text if INSTANT.match(str(value)) else value
