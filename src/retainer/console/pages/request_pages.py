"""The pages of the request log: the list with its chart, and one request."""

from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from retainer.console import forms, request_charts
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.store.tx import Tx
from retainer.traffic import counts, request_log
from retainer.traffic.request_log import LogFilter, LoggedRequest, LogPage
from retainer.values.exact import instant_after

PER_PAGE = 50
SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
DAYS = {"7d": 7, "30d": 30}
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


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the log, newest first, with a chart and each key's share of the rate limit."""
    query = context.query
    filters = forms.read_filters(LogFilter, query)
    page = read_page(tx, filters, query.text("after") or None)
    names = {key.id: key.name for key in key_list.list_keys(tx)}
    span = query.text("span") if query.text("span") in SPANS else "24h"
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
        chart=request_charts.daily_chart(tx, DAYS[span], filters.key_id)
        if span in DAYS
        else request_charts.hourly_chart(tx, filters.key_id),
        rate_limit=rate_limit,
        shares=shares_of(tx, span, names, rate_limit),
        next_link=page.next and link_with(context, after=page.next),
        days=context.request.settings.request_log_days,
        link_with=lambda **others: link_with(context, **others),
    )


def show(tx: Tx, context: PageContext) -> Reply:
    """Show one request. Raises `not_found`."""
    request = find_request(tx, context.path_parameters["position"])
    keys = [key for key in key_list.list_keys(tx) if key.id == request.key_id]
    return context.render("request", logged=request, key=keys[0] if keys else None)


def read_page(tx: Tx, filters: LogFilter, after: str | None) -> LogPage:
    """Return a page of the log; the first one for an invalid position."""
    try:
        return request_log.list_requests(tx, filters, after=after, limit=PER_PAGE)
    except ValueError:
        return request_log.list_requests(tx, filters, limit=PER_PAGE)


def find_request(tx: Tx, position: str) -> LoggedRequest:
    """Return the request at a position of the log. Raises `not_found`."""
    try:
        found = request_log.request_at(tx, position)
    except ValueError:
        found = None
    if found is None:
        raise Refusal("not_found", "This request is not in the log. Older requests are deleted.")
    return found


def shares_of(tx: Tx, span: str, names: dict[int, str], rate_limit: int) -> list[Share]:
    """Return each key's share of the rate limit in a span, the highest first."""
    since = instant_after(tx.now, -timedelta(days=DAYS[span]) if span in DAYS else -request_charts.HOURS)
    shares = [
        Share(
            key_id=key_id,
            name=names.get(key_id, f"Key {key_id}"),
            requests=each.requests,
            limited=each.limited,
            busiest_minute=each.busiest_minute,
            percent=min(100, max(1, each.busiest_minute * 100 // rate_limit)),
        )
        for key_id, each in counts.by_key(tx, since).items()
    ]
    return sorted(shares, key=lambda share: (-share.busiest_minute, -share.requests, share.name))


def link_with(context: PageContext, **others: str | None) -> str:
    """Return the URL of the page with changed query parameters; None drops one."""
    kept = [
        (name, text) for name, texts in context.query.texts.items() for text in texts if name not in others and text
    ]
    pairs = [pair for pair in kept if pair[0] != "after"] + [(name, text) for name, text in others.items() if text]
    return f"{context.request.path}?{urlencode(pairs)}"
