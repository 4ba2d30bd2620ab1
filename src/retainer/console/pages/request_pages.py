"""The pages of the request log: what keys have requested, how it was answered, and one request in full."""

from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from retainer.console import charts, forms
from retainer.console.charts import Chart
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.key_pages import day_label
from retainer.console.pages.overview_pages import hour_label
from retainer.errors import Refusal
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.plans import PLANS
from retainer.store.tx import Tx
from retainer.traffic import counts
from retainer.traffic import requests as traffic
from retainer.traffic.requests import Filter, LoggedRequest, Page
from retainer.values.exact import instant_after

PER_PAGE = 50
SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
HOURS = timedelta(hours=23)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STATUSES = {"2xx": "2xx, successful", "4xx": "4xx, client error", "5xx": "5xx, server error"}


class Share(NamedTuple):
    """How near a key has come to the rate_limit."""

    key_id: int
    name: str
    requests: int
    limited: int
    busiest_minute: int
    percent: int


def show_list(tx: Tx, context: PageContext) -> Reply:
    """The log, filtered, newest first, with a chart and the share of the rate_limit of each key."""
    query = context.query
    filters = forms.read_filters(Filter, query)
    page = read_page(tx, filters, query.text("after") or None)
    names = {key.id: key.name for key in key_list.list_keys(tx)}
    span = query.text("span") if query.text("span") in SPANS else "24h"
    rate_limit = PLANS[accounts.get_account(tx)["plan"]].requests_per_minute
    return context.render(
        "requests",
        page=page,
        filters=filters,
        is_filtered=filters != Filter(),
        keys=names,
        spans=SPANS,
        span=span,
        methods=METHODS,
        statuses=STATUSES,
        chart=chart_of(tx, span, filters.key_id),
        rate_limit=rate_limit,
        shares=shares_of(tx, span, names, rate_limit),
        next_link=page.next and link_with(context, after=page.next),
        days=context.request.settings.request_log_days,
        link_with=lambda **others: link_with(context, **others),
    )


def show(tx: Tx, context: PageContext) -> Reply:
    """One request. Raises `not_found`."""
    request = find_request(tx, context.path_parameters["position"])
    keys = [key for key in key_list.list_keys(tx) if key.id == request.key_id]
    return context.render("request", logged=request, key=keys[0] if keys else None)


def read_page(tx: Tx, filters: Filter, after: str | None) -> Page:
    """Return a page of the log; the first one where the position is none."""
    try:
        return traffic.list_requests(tx, filters, after=after, limit=PER_PAGE)
    except ValueError:
        return traffic.list_requests(tx, filters, limit=PER_PAGE)


def find_request(tx: Tx, position: str) -> LoggedRequest:
    """Return the request at a position of the log. Raises `not_found`."""
    try:
        found = traffic.request_at(tx, position)
    except ValueError:
        found = None
    if found is None:
        raise Refusal("not_found", "This request is not in the log. Older requests are deleted.")
    return found


def chart_of(tx: Tx, span: str, key_id: int | None) -> Chart:
    """Return the chart of a span: by hour for a day, else by day."""
    if span == "24h":
        by_hour = counts.by_hour(tx, instant_after(tx.now, -HOURS), tx.now, key_id)
        return charts.by_status({hour_label(hour, tx.actor.timezone): each for hour, each in by_hour.items()})
    by_day = counts.by_day(tx, int(span.removesuffix("d")), key_id)
    return charts.by_status({day_label(day): each for day, each in by_day.items()})


def shares_of(tx: Tx, span: str, names: dict[int, str], rate_limit: int) -> list[Share]:
    """Return how near each key came to the rate_limit in a span, the nearest first."""
    since = instant_after(tx.now, -HOURS if span == "24h" else -timedelta(days=int(span.removesuffix("d"))))
    shares = [
        Share(
            *(key_id, names.get(key_id, f"Key {key_id}"), each.requests, each.limited, each.busiest_minute),
            min(100, max(1, each.busiest_minute * 100 // rate_limit)),
        )
        for key_id, each in counts.by_key(tx, since).items()
    ]
    return sorted(shares, key=lambda share: (-share.busiest_minute, -share.requests, share.name))


def link_with(context: PageContext, **others: str | None) -> str:
    """Return the address of the page with other parameters in its query; None leaves one out."""
    kept = [
        (name, text) for name, texts in context.query.texts.items() for text in texts if name not in others and text
    ]
    pairs = [pair for pair in kept if pair[0] != "after"] + [(name, text) for name, text in others.items() if text]
    return f"{context.request.path}?{urlencode(pairs)}"
