"""The pages of the console to measure: each list with each of its filters and orders, records and reports.

Filters and orders follow from their declarations, so a new one is measured without more code.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args, get_origin
from urllib.parse import urlencode

from retainer.api import RESOURCES
from retainer.console.catalogue import LISTS, Catalogue
from retainer.console.reports.declarations import REPORTS
from retainer.console.shapes import declared
from retainer.kernel.query import Parameter, parameters
from retainer.reports.common import ReportQuery

TODAY = datetime.now(UTC).date()
MONTH_AGO, YEAR_AGO = (str(TODAY - timedelta(days=days)) for days in (30, 365))
ABSENT = "no record has this"
SAMPLES = (
    *("e", ABSENT, "true", "false", "1", "none", MONTH_AGO, YEAR_AGO),
    *(f"{day}T00:00:00Z" for day in (MONTH_AGO, YEAR_AGO)),
    *("EUR", "USD", "DE", "US", "ana@agency.example"),
)
"""Texts, of which a filter without fixed values is measured with the first two that it accepts."""
LINKED = {
    "time-entries": (
        *({"billing_status": status, "date_to": f"{TODAY}"} for status in ("unbilled", "unpriced")),
        *({"billing_status": "unbilled", "date_to": f"{TODAY}", "project_id": project} for project in ("1", "none")),
        {"billing_status": "unbilled", "client_id": "1"},
        {"user_id": "1", "date_from": MONTH_AGO, "date_to": f"{TODAY}"},
    ),
    "invoices": ({"status": "overdue", "currency": "EUR", "client_id": "1"}, {"status": "open", "client_id": "1"}),
}
"""Filters that other pages link to together."""


def console_paths() -> list[str]:
    """Return the paths of all these pages, below `/console`."""
    return [*list_paths(), *report_paths()]


def list_paths() -> Iterator[str]:
    """Yield each list: its first, second and a late page, in each order, with each filter, and its first record."""
    kinds = Catalogue([operation for resource in RESOURCES for operation in resource.operations], "admin").kinds
    for name in LISTS:
        model = kinds[name].listing.query
        orders = [f"{sign}{field.lstrip('-')}" for field in model.sorts for sign in ("", "-")]
        filters = [{each: text} for each, found in parameters(model).items() for text in texts_of(found)]
        pages = ({}, {"page": "2"}, {"page": "500"}, {"page": "20000"}, {"per_page": "100"})
        queries = [*pages, *({"sort": order} for order in orders), *filters, *LINKED.get(name, ())]
        yield from (f"/records/{name}?{urlencode(query)}".rstrip("?") for query in queries)
        if kinds[name].reading and name != "tags":
            yield f"/records/{name}/1"


def report_paths() -> Iterator[str]:
    """Yield each report, of its usual period and of a year, and with each filter."""
    for name in REPORTS:
        filters = [{each: text} for each, found in parameters(ReportQuery).items() for text in texts_of(found)]
        yield from (f"/reports/{name}?{urlencode(query)}".rstrip("?") for query in ({}, *filters))


def texts_of(parameter: Parameter) -> list[str]:
    """Return the texts with which a filter is measured: each of its fixed values, or two that it accepts."""
    item = declared(parameter.hint).type
    if get_origin(item) is Literal:
        return list(get_args(item))
    return [text for text in SAMPLES if is_accepted(parameter, text)][:2]


def is_accepted(parameter: Parameter, text: str) -> bool:
    """Whether a text is a valid value of a filter."""
    try:
        parameter.read(text)
    except ValueError:
        return False
    return True
