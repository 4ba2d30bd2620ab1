"""The pages of keys: list, details, edit, rotate and revoke."""

from collections import Counter

import msgspec

from retainer.console import charts, forms, scope_matrix, words
from retainer.console.page_context import PageContext, Reply
from retainer.events import webhooks
from retainer.identity import accounts
from retainer.identity.keys import key_changes, key_list
from retainer.identity.keys.key_changes import KeyChanges, Rotation
from retainer.identity.keys.key_list import Key, KeyFilter
from retainer.identity.keys.keys import SCOPES
from retainer.identity.people import users
from retainer.kernel.resource import read_id
from retainer.schema.identity import api_keys
from retainer.schema.requests import HOUR
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.counts import OperationCounts
from retainer.values.exact import instant_after

DAYS = 30
RECENT, MAX_OPERATIONS = 10, 10
HOURS = {0: "Immediately", 1: "1 hour", 24: "24 hours", 72: "3 days", 168: "7 days"}
"""How long the former key remains valid after a rotation, by hours."""


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the keys, filtered and sorted; by default the active ones."""
    query = context.query
    asked = query.text("status", "active")
    every = key_list.list_keys(tx)
    filters = forms.read_filters(KeyFilter, query)
    filters = msgspec.structs.replace(filters, status=None if asked == "all" else filters.status or "active")
    if filters.sort.removeprefix("-") not in key_list.ORDERS or "sort" not in query:
        filters = msgspec.structs.replace(filters, sort="-created_at")
    usage = counts.usage(tx, DAYS)
    return context.render(
        "keys",
        keys=key_list.list_keys(tx, filters),
        has_any=bool(every),
        remarkable=[key for key in every if key.warnings],
        filters=filters,
        sums={status: sum(key.status == status for key in every) for status in ("active", "expired", "revoked")},
        sparklines={key.id: charts.sparkline(usage.get(key.id, [0] * DAYS)) for key in every},
        users=users.list_users(tx),
        api_enabled=accounts.get_account(tx)["api_enabled"],
        in_words=words.scopes_in_words,
    )


def show(tx: Tx, context: PageContext) -> Reply:
    key = key_of(tx, context)
    chart = charts.daily_chart(tx, DAYS, key.id)
    operations = counts.operations(tx, counts.last_days(tx, DAYS).since, key.id)
    return context.render(
        "key",
        key=key,
        chart=chart,
        operations=operations[:MAX_OPERATIONS],
        other_requests=chart.total.requests - sum(each.requests for each in operations[:MAX_OPERATIONS]),
        recent=request_log.list_requests(tx, request_log.LogFilter(key_id=key.id), limit=RECENT).requests,
        rate_limit=accounts.get_plan(tx).requests_per_minute,
        in_words=words.scopes_in_words,
        names={key.id: key.name},
        hour_of=hour_of,
        has_been_used=key.last_used_at is not None,
        api_enabled=accounts.get_account(tx)["api_enabled"],
        webhooks=webhooks.webhooks_of_key(tx, key.id),
    )


def show_edit(tx: Tx, context: PageContext) -> Reply:
    """Show the form that changes name and scopes. `add` is a scope to be added: it is selected, but not saved."""
    key = key_of(tx, context)
    added = context.query.text("add")
    if added not in SCOPES or added in key.scopes:
        added = ""
    return context.render(
        "key_edit",
        key=key,
        matrix=scope_matrix.matrix(),
        chosen=scope_matrix.chosen(context, [*key.scopes, added] if added else key.scopes),
        added=added,
        in_words=words.scopes_in_words,
    )


def edit(tx: Tx, context: PageContext) -> Reply:
    """Change name and scopes. Raises `not_found`, `locked`, `validation_failed`."""
    key = key_of(tx, context)
    changed = key_changes.change_key(tx, key.id, forms.read_changes(KeyChanges, context.form))
    return context.redirect(f"/keys/{key.id}", f"{changed.name} saved. Changes apply from the next request.")


def show_rotate(tx: Tx, context: PageContext) -> Reply:
    key = key_of(tx, context)
    return context.render(
        "key_rotate",
        key=key,
        last_hour=counts.last_hour(tx).get(key.id, 0),
        hours=HOURS,
        api_enabled=accounts.get_account(tx)["api_enabled"],
    )


def rotate(tx: Tx, context: PageContext) -> Reply:
    """Create the new key, and show it. Raises `not_found`, `locked`, `api_disabled`, `validation_failed`."""
    key = key_of(tx, context)
    new = key_changes.rotate_key(tx, key.id, forms.read_new(Rotation, context.form))
    return context.set_one_time_cookie("new-key", f"/keys/{new.id}/created", new.value)


def show_revoke(tx: Tx, context: PageContext) -> Reply:
    """Show what stops when a key is revoked."""
    key = key_of(tx, context)
    hour_ago = instant_after(tx.now, -key_list.RECENT)
    recent = request_log.list_requests(tx, request_log.LogFilter(key_id=key.id, since=hour_ago))
    frequent = Counter(request.operation or "other" for request in recent.requests).most_common(1)
    return context.render(
        "key_revoke",
        key=key,
        last_hour=counts.last_hour(tx).get(key.id, 0),
        is_recent=key.last_used_at is not None and key.last_used_at >= hour_ago,
        most_frequent=frequent[0][0] if frequent else None,
        webhooks=webhooks.webhooks_of_key(tx, key.id),
    )


def revoke(tx: Tx, context: PageContext) -> Reply:
    """Revoke a key, if its name was typed, and pause its webhooks on request.

    Raises `not_found` and `validation_failed`.
    """
    key = key_of(tx, context)
    forms.confirm(context.form, key.name)
    key_changes.revoke_key(tx, key.id)
    if context.form.text("pause_webhooks") == "yes":
        webhooks.pause_webhooks(tx, webhooks.webhooks_of_key(tx, key.id))
    return context.redirect(f"/keys/{key.id}", f"{key.name} revoked. It no longer works.", kind="warn")


def key_of(tx: Tx, context: PageContext) -> Key:
    return key_list.get_key(tx, read_id(context.path_parameters["key"], api_keys))


def hour_of(operation: OperationCounts) -> str:
    """Return the instant at which the last hour of an operation began."""
    return f"{operation.last_hour[:HOUR]}:00:00.000000Z"
