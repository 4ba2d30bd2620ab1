"""The pages of the business reports, and their CSV files.

The console is for admins, and admins may read everything that the scope `reports:read` opens: reports have no
restriction of their own.
"""

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from retainer.console import charts
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.reports import overview, profitability, revenue_by_client, revenue_by_month, utilisation
from retainer.console.reports.controls import Controls, last_year, read_controls
from retainer.console.reports.tables import Report
from retainer.errors import Refusal, invalid
from retainer.reports import periods
from retainer.store.tx import Tx
from retainer.web.csv_files import csv_response

MAX_CLIENTS = 500
"""Clients that a form offers for choice; with more, it asks for the id."""


class Kind(NamedTuple):
    """A report: its title, what builds it, and the first day of its period unless one is chosen."""

    title: str
    build: Callable[[Tx, Controls], Report]
    default_start: Callable[[date], date]
    has_all_currencies: bool = False
    """Whether it has figures that a currency would limit, such as hours."""

    def controls(self, tx: Tx, context: PageContext) -> Controls:
        return read_controls(tx, context, self.default_start, has_all_currencies=self.has_all_currencies)


REPORTS = {
    "overview": Kind("Overview", overview.build, periods.month_begins, has_all_currencies=True),
    "revenue-by-month": Kind("Revenue by month", revenue_by_month.build, last_year),
    "revenue-by-client": Kind("Revenue by client", revenue_by_client.build, periods.year_begins),
    "utilisation": Kind("Utilisation", utilisation.build, last_year, has_all_currencies=True),
    "profitability": Kind("Profitability", profitability.build, periods.year_begins),
}
"""The reports by their names in paths."""


def show(tx: Tx, context: PageContext) -> Reply:
    name, kind = find(context)
    controls = kind.controls(tx, context)
    return context.render(
        "report",
        name=name,
        kind=kind,
        kinds=REPORTS,
        controls=controls,
        report=kind.build(tx, controls),
        charts=charts,
        max_clients=MAX_CLIENTS,
    )


def download(tx: Tx, context: PageContext) -> Reply:
    """Return a table of a report as a CSV file. Raises `not_found`, and `validation_failed` for invalid controls."""
    name, kind = find(context)
    controls = kind.controls(tx, context)
    if context.query.errors:
        raise invalid(context.query.errors)
    wanted = context.path_parameters["table"]
    for table in kind.build(tx, controls).tables:
        if table.name == wanted:
            file = f"{table.name}-{controls.period.first}-to-{controls.period.to}"
            return csv_response(file, table.header(controls.currency), table.cells(), NO_STORE)
    raise Refusal("not_found", f"The report {name} has no such table.")


def find(context: PageContext) -> tuple[str, Kind]:
    name = context.path_parameters["report"]
    if name not in REPORTS:
        raise Refusal("not_found", "This report does not exist.")
    return name, REPORTS[name]
