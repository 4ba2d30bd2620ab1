"""The pages of keys: list and details."""

import msgspec

from retainer.console import charts, forms, words
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.events import webhooks
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import Key, KeyFilter
from retainer.identity.people import users
from retainer.kernel.http import Response
from retainer.kernel.resource import read_id
from retainer.schema.identity import api_keys
from retainer.schema.requests import HOUR
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.counts import OperationCounts

DAYS = 30
RECENT, MAX_OPERATIONS = 10, 10


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


def first_call(tx: Tx, context: PageContext) -> Reply:
    """Return as JSON whether a key was used, for the page's script."""
    body = b"false" if key_of(tx, context).last_used_at is None else b"true"
    return Response(200, [("content-type", "application/json"), NO_STORE], b'{"has_arrived":%b}' % body)


def key_of(tx: Tx, context: PageContext) -> Key:
    return key_list.get_key(tx, read_id(context.path_parameters["key"], api_keys))


def hour_of(operation: OperationCounts) -> str:
    """Return the instant at which the last hour of an operation began."""
    return f"{operation.last_hour[:HOUR]}:00:00.000000Z"
