"""The pages of the request log: the list with its chart, and one request."""

from datetime import date
from typing import NamedTuple

from markupsafe import Markup

from retainer.console import charts, words
from retainer.console.charts import RequestChart
from retainer.console.editing.fields import Filters
from retainer.console.forms import Form, read_filters
from retainer.console.page_context import PageContext, Reply
from retainer.errors import STATUS, Refusal
from retainer.identity import accounts
from retainer.identity.audit import Fields
from retainer.identity.keys import key_list
from retainer.reference.examples import ADVICE
from retainer.reference.markdown import html_of
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.answered import MAX_NAMES
from retainer.traffic.counts import Period
from retainer.traffic.request_log import LogFilter
from retainer.values.exact import day_after

PER_PAGE = 50
SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
DAYS = {"7d": 7, "30d": 30}
MAX_DAYS, OLDEST = 92, 400
"""Days of a chart, and days from today to the oldest one: sums are deleted earlier."""
HOURLY_DAYS = 2
"""Up to this many chosen days, a chart has a bar for each hour."""
STATUSES = (("2xx", "2xx, successful"), ("4xx", "4xx, client error"), ("5xx", "5xx, server error"))
FIELDS: dict[str, Fields] = {
    "status": {"options": STATUSES},
    "code": {"label": "Error code", "shape": "choice", "options": tuple((code, code) for code in STATUS)},
    "path": {"label": "Path starts with", "hint": "Like /clients."},
    "request_id": {"label": "Request ID"},
    "address": {"label": "IP address"},
    "record": {"label": "Changed record", "hint": "Like /clients/17."},
}
"""What the filters say beside their types."""


class Span(NamedTuple):
    """The hours that the figures of the page count: one of SPANS, or chosen days with an empty name."""

    name: str
    label: str
    period: Period
    chart: RequestChart


def show_list(tx: Tx, context: PageContext) -> Reply:
    query = context.query
    asked = read_filters(LogFilter, query, tx.actor.timezone)
    try:
        page = request_log.list_requests(tx, asked, after=query.text("after") or None, limit=PER_PAGE)
    except ValueError:  # no position in the log
        page = request_log.list_requests(tx, asked, limit=PER_PAGE)
    names = {key.id: key.name for key in key_list.list_keys(tx)}
    keys = {"shape": "choice", "options": tuple((f"{key_id}", name) for key_id, name in names.items())}
    span = read_span(tx, query, asked.key_id)
    rate_limit = accounts.get_plan(tx).requests_per_minute
    return context.render(
        "requests",
        page=page,
        asked=asked,
        filters=Filters(tx, context, LogFilter, {}, ()).change(FIELDS | {"key_id": keys}),
        is_filtered=asked != LogFilter(),
        keys=names,
        spans=SPANS,
        span=span,
        rate_limit=rate_limit,
        shares=sorted(counts.by_key(tx, *span.period).items(), key=lambda each: (-each[1].busiest_minute, each[0])),
        days=context.request.settings.request_log_days,
    )


def show(tx: Tx, context: PageContext) -> Reply:
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


def read_span(tx: Tx, query: Form, key_id: int | None) -> Span:
    """Return the hours to count, of the days `since` to `until` or of `span`, with the chart of a key or all.

    Up to two chosen days, the chart has a bar for each hour.
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
    return Span(name, label, period, chart)
