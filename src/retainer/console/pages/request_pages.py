"""The pages of the request log: the list with its chart, and one request."""

from datetime import date
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec.structs import replace

from retainer.console import charts, forms, words
from retainer.console.charts import RequestChart
from retainer.console.forms import Form
from retainer.console.page_context import PageContext, Reply
from retainer.errors import STATUS, Refusal
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import Key
from retainer.reference.examples import ADVICE
from retainer.reference.markdown import html_of
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.answered import MAX_NAMES
from retainer.traffic.counts import Period
from retainer.traffic.request_log import LogFilter, LoggedRequest, LogPage
from retainer.values.exact import day_after

PER_PAGE = 50
SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
DAYS = {"7d": 7, "30d": 30}
MAX_DAYS, OLDEST = 92, 400
"""Days of a chart, and days from today to the oldest one: sums are deleted earlier."""
HOURLY_DAYS = 2
"""Up to this many chosen days, a chart has a bar for each hour."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STATUSES = {"2xx": "2xx, successful", "4xx": "4xx, client error", "5xx": "5xx, server error"}


class Share(NamedTuple):
    """A key's share of the rate limit in its busiest minute."""

    key_id: int
    name: str
    requests: int
    limited: int
    busiest_minute: int
    percent: int


class Span(NamedTuple):
    """The hours that the figures of the page count: one of SPANS, or chosen days with an empty name."""

    name: str
    label: str
    period: Period
    days: int
    last: str

    @property
    def is_hourly(self) -> bool:
        """Return whether the chart has a bar for each hour."""
        return self.days <= HOURLY_DAYS and self.name not in DAYS

    def chart(self, tx: Tx, key_id: int | None) -> RequestChart:
        """Return the chart of these hours, of one key or all."""
        if self.is_hourly:
            return charts.hourly_chart(tx, key_id, self.period)
        return charts.daily_chart(tx, self.days, key_id, self.last)


def show_list(tx: Tx, context: PageContext) -> Reply:
    query = context.query
    filters = replace(forms.read_filters(LogFilter, query), **forms.read_days(query, tx.actor.timezone))
    page = read_page(tx, filters, query.text("after") or None)
    names = {key.id: key.name for key in key_list.list_keys(tx)}
    span = read_span(tx, query)
    rate_limit = accounts.get_plan(tx).requests_per_minute
    return context.render(
        "requests",
        page=page,
        filters=filters,
        is_filtered=filters != LogFilter(),
        keys=names,
        spans=SPANS,
        span=span,
        methods=METHODS,
        statuses=STATUSES,
        codes=list(STATUS),
        chart=span.chart(tx, filters.key_id),
        rate_limit=rate_limit,
        shares=shares_of(tx, span.period, names, rate_limit),
        next_link=page.next and link_with(context, after=page.next),
        days=context.request.settings.request_log_days,
        link_with=lambda **others: link_with(context, **others),
    )


def show(tx: Tx, context: PageContext) -> Reply:
    request = find_request(tx, context.path_parameters["position"])
    key = next((key for key in key_list.list_keys(tx) if key.id == request.key_id), None)
    return context.render(
        "request",
        logged=request,
        key=key,
        advice=Markup(html_of(ADVICE.get(request.code or "", ""))),  # noqa: S704  # ours
        missing_scope=missing_scope(request),
        can_add_scope=key is not None and can_add_scope(key, missing_scope(request)),
        max_names=MAX_NAMES,
    )


def missing_scope(request: LoggedRequest) -> str:
    """Return the scope that the key of a refused request did not have; empty if that was not the reason."""
    return request.names[0] if request.code == "missing_scope" and request.names else ""


def can_add_scope(key: Key, scope: str) -> bool:
    return bool(scope) and key.status == "active" and scope not in key.scopes


def read_span(tx: Tx, query: Form) -> Span:
    """Return the hours to count: those of the days `from` and `to`, or those of `span`."""
    since, until = forms.read_day(query, "from"), forms.read_day(query, "to")
    if not since and not until:
        name = query.text("span") if query.text("span") in SPANS else "24h"
        period = counts.last_days(tx, DAYS[name]) if name in DAYS else counts.last_hours(tx)
        return Span(name, f"the last {SPANS[name]}", period, DAYS.get(name, 1), tx.today)
    last = max(min(until or tx.today, tx.today), day_after(tx.today, -OLDEST))
    first = min(last, max(since or day_after(last, 1 - DAYS["30d"]), day_after(last, 1 - MAX_DAYS)))
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    return Span("", words.days(first, last), counts.last_days(tx, days, last), days, last)


def read_page(tx: Tx, filters: LogFilter, after: str | None) -> LogPage:
    """Return a page of the log; the first one for an invalid position."""
    try:
        return request_log.list_requests(tx, filters, after=after, limit=PER_PAGE)
    except ValueError:
        return request_log.list_requests(tx, filters, limit=PER_PAGE)


def find_request(tx: Tx, position: str) -> LoggedRequest:
    try:
        found = request_log.request_at(tx, position)
    except ValueError:
        found = None
    if found is None:
        raise Refusal("not_found", "This request is not in the log. Older requests are deleted.")
    return found


def shares_of(tx: Tx, period: Period, names: dict[int, str], rate_limit: int) -> list[Share]:
    """Return each key's share of the rate limit in a period, the highest first."""
    shares = [
        Share(
            key_id=key_id,
            name=names.get(key_id, f"Key {key_id}"),
            requests=each.requests,
            limited=each.limited,
            busiest_minute=each.busiest_minute,
            percent=min(100, max(1, each.busiest_minute * 100 // rate_limit)),
        )
        for key_id, each in counts.by_key(tx, *period).items()
    ]
    return sorted(shares, key=lambda share: (-share.busiest_minute, -share.requests, share.name))


def link_with(context: PageContext, **others: str | None) -> str:
    """Return the URL of the page with changed query parameters; None drops one."""
    kept = [
        (name, text) for name, texts in context.query.texts.items() for text in texts if name not in others and text
    ]
    pairs = [pair for pair in kept if pair[0] != "after"] + [(name, text) for name, text in others.items() if text]
    return f"{context.request.path}?{urlencode(pairs)}"
