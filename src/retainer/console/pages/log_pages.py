"""The pages of the logs: requests with their chart, one request, and the audit log."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup
from sqlalchemy import Table

from retainer.billing.payment_types import Payment
from retainer.console import charts, words
from retainer.console.charts import RequestChart
from retainer.console.controls.plain import Choice
from retainer.console.editing.fields import LINE_FIELDS
from retainer.console.editing.filters import Filters
from retainer.console.labels import field_label
from retainer.console.page_context import PageContext, Reply
from retainer.console.shapes import shapes_of
from retainer.console.values import NOTHING, Model, Value, Values
from retainer.errors import STATUS, Refusal
from retainer.events.webhooks import Webhook
from retainer.identity import audit
from retainer.identity.accounts import AccountDetails
from retainer.identity.audit import AuditEntry, AuditFilter, Fields
from retainer.identity.keys import key_list
from retainer.identity.people.users import UserDetails
from retainer.reference.examples import ADVICE
from retainer.reference.markdown import html_of
from retainer.schema import billing
from retainer.schema import identity as schema
from retainer.schema.webhooks import webhooks
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.answered import MAX_NAMES
from retainer.traffic.counts import CountedHours
from retainer.traffic.request_log import LogFilter
from retainer.values.exact import day_after
from retainer.values.kinds import read_instant
from retainer.web.forms import Form

PER_PAGE = 50
SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
DAYS = {"7d": 7, "30d": 30}
MAX_DAYS, OLDEST = 92, 400
"""Days of a chart, and days from today to the oldest one: sums are deleted earlier."""
HOURLY_DAYS = 2
"""Up to this many chosen days, a chart has a bar for each hour."""
STATUSES = (("2xx", "2xx, successful"), ("4xx", "4xx, client error"), ("5xx", "5xx, server error"))
FIELDS: dict[str, Fields] = {
    "status": {"control": Choice(STATUSES)},
    "code": {"label": "Error code", "control": Choice(tuple((code, code) for code in STATUS))},
    "path": {"label": "Path starts with", "hint": "Like /clients."},
    "request_id": {"label": "Request ID"},
    "address": {"label": "IP address"},
    "record": {"label": "Changed record", "hint": "Like /clients/17."},
}
"""Hints of the filters, in addition to their types."""
PAGES = {"key": "/keys/{}", "user": "/people/{}", "webhook": "/webhooks/{}", "payment": "/records/invoices/{}"}
"""The page of an action's target, by its kind; that of a payment is the page of its invoice."""
EXACT = {"money", "number", "percent"}
UNKNOWN = (AuditEntry, schema.audit_entries)
MODELS: dict[str, tuple[Model, Table]] = {
    "account": (AccountDetails, schema.accounts),
    "user": (UserDetails, schema.users),
    "key": (key_list.Key, schema.api_keys),
    "webhook": (Webhook, webhooks),
    "payment": (Payment, billing.payments),
}
"""What declares the fields of targets that are no kind of record of the console."""


def show_requests(tx: Tx, context: PageContext) -> Reply:
    query = context.query
    filters = Filters(tx, context, LogFilter).change(FIELDS)
    asked = filters.read()
    try:
        page = request_log.list_requests(tx, asked, after=query.text("after") or None, limit=PER_PAGE)
    except ValueError:  # no position in the log
        page = request_log.list_requests(tx, asked, limit=PER_PAGE)
    names = {key.id: key.name for key in key_list.list_keys(tx)}
    span, label, period, chart = read_span(tx, query, asked.key_id)
    return context.render(
        "requests",
        page=page,
        asked=asked,
        filters=filters,
        is_filtered=asked != LogFilter(),
        keys=names,
        spans=SPANS,
        span=span,
        span_label=label,
        chart=chart,
        shares=sorted(counts.by_key(tx, *period).items(), key=lambda each: (-each[1].busiest_minute, each[0])),
    )


def show_request(tx: Tx, context: PageContext) -> Reply:
    """Show a request, and why it was refused: for want of a scope, the key can be given it."""
    try:
        request = request_log.request_at(tx, context.path_parameters["position"])
    except ValueError:
        request = None
    if request is None:
        raise Refusal("not_found", "This request is not in the log. Older requests are deleted.")
    key = next((key for key in key_list.list_keys(tx) if key.id == request.key_id), None)
    scope = request.names[0] if request.code == "missing_scope" and request.names else ""
    return context.render(
        "request",
        logged=request,
        key=key,
        advice=Markup(html_of(ADVICE.get(request.code or "", ""))),  # noqa: S704  # ours
        missing_scope=scope,
        can_add_scope=bool(scope) and key is not None and key.status == "active" and scope not in key.scopes,
        max_names=MAX_NAMES,
    )


def read_span(tx: Tx, query: Form, key_id: int | None) -> tuple[str, str, CountedHours, RequestChart]:
    """Return the hours to count: their name of SPANS or none for chosen days, their label, the period and the chart.

    Up to two chosen days, the chart has a bar for each hour. It is of a key or all.
    """
    since, until = ("" if name in query.errors else query.text(name) for name in ("since", "until"))
    if since or until:
        name, last = "", max(min(until or tx.today, tx.today), day_after(tx.today, -OLDEST))
        first = min(last, max(since or day_after(last, 1 - DAYS["30d"]), day_after(last, 1 - MAX_DAYS)))
        label, days = words.days(first, last), (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    else:
        name, last = query.text("span") if query.text("span") in SPANS else "24h", ""
        label, days = f"the last {SPANS[name]}", DAYS.get(name, 0)
    period = counts.last_days(tx, days, last) if days else counts.last_hours(tx)
    chart = (
        charts.daily_chart(tx, days, key_id, last) if days > HOURLY_DAYS else charts.hourly_chart(tx, key_id, period)
    )
    return name, label, period, chart


def show_audit(tx: Tx, context: PageContext) -> Reply:
    filters = Filters(tx, context, AuditFilter, without={"target", "target_id"})
    asked = filters.read()
    page = audit.list_entries(tx, asked, cursor=context.query.text("cursor") or None)
    kinds, values = [kind for kind in context.catalogue.kinds.values() if kind.reading], Values(tx, context)
    models = {kind.noun: (kind.record, kind.table) for kind in kinds} | MODELS
    changes = {entry.id: list(changes_of(values, entry, *models.get(entry.target, UNKNOWN))) for entry in page.entries}
    values.names.load()
    pages = {kind.noun: f"/records/{kind.name}/{{}}" for kind in kinds}
    return context.render(
        "audit",
        page=page,
        filters=filters,
        is_filtered=asked != AuditFilter(),
        page_of=partial(page_of, pages | PAGES),
        changes=changes,
    )


def page_of(pages: dict[str, str], entry: AuditEntry) -> str:
    """Return the path of an action's target; empty if it has no page, or was deleted."""
    is_payment, known = entry.target == "payment", entry.before or entry.after or {}
    path = "" if entry.action == "record deleted" else pages.get(entry.target, "")
    return path.format(known.get("invoice_id") if is_payment else entry.target_id)


def changes_of(values: Values, entry: AuditEntry, model: Model, table: Table) -> Iterator[tuple[str, Value, Value]]:
    """Yield the fields of an action that have a value: the label, and the values before and after it."""
    states = [entry.before or {}, entry.after or {}]
    own = values.tx.actor.currency if entry.target in {"account", "user"} else ""
    values.currency = next((state["currency"] for state in states if state.get("currency")), own)
    for name in {**states[0], **states[1]}:
        before, after = (noted(values, model, table, name, state.get(name)) for state in states)
        if [before, after] != [NOTHING, NOTHING]:
            yield field_label(name, table), before, after


def noted(values: Values, model: Model, table: Table, name: str, value: Any) -> Value:
    """Return a value as pages show the field; as a text, if the model does not declare it in this form."""
    if value in (None, "", [], {}):
        return NOTHING
    if name == "scopes":
        return Value("text", words.scopes_in_words(value))
    parts, shape = value if isinstance(value, list) else [value], shapes_of(model).get(name, "")
    if isinstance(parts[0], dict):
        return Value("long", "\n".join(" · ".join(said(part)) for part in parts))
    with suppress(ArithmeticError, TypeError, ValueError):  # an earlier version may have noted it in another form
        if shape:
            exact = Decimal(value) if shape in EXACT else value
            return values.field(SimpleNamespace(**{name: exact}), name, table, model)
        if name.endswith("_at"):
            return Value("moment", moment=values.context.moment(read_instant(value)))
    return Value("text", ", ".join(map(str, parts)))


def said(part: Fields) -> Iterator[str]:
    """Yield what a line of a document says, or a step like a payment: its fields in words, without ids."""
    of_line = [name for name in LINE_FIELDS if name in part and name != "project_id"]
    for name in of_line or [name for name in part if name.rpartition("_")[2] not in {"id", "ids"}]:
        value = part[name]
        if isinstance(value, dict):
            yield f"{field_label(name)}: {', '.join(said(value)) or 'all'}"
        elif value not in (None, "", []) and not isinstance(value, list):
            yield str(value) if name == "description" else f"{field_label(name)} {value}"
