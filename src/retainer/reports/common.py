"""Shared parts of the reports: query parameters, field types, the period and the metadata."""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Annotated, Any

import msgspec

from retainer.kernel.query import Query
from retainer.kernel.resource import WithMeta
from retainer.reports import periods
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio
from retainer.rollups.summaries import Figures
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Day, Id, Instant, SignedMoney

FILTERS = ("client_id", "project_id", "user_id", "currency")


RowCurrency = Annotated[Currency, "That of all amounts beside it: amounts of different currencies are never added."]
InvoiceCount = Annotated[int, "Invoices issued in the period; void ones never count."]
Invoiced = Annotated[SignedMoney, "Net of the invoices issued in the period; void ones never count."]
Credited = Annotated[SignedMoney, "Net of the credit notes dated in the period."]
Revenue = Annotated[SignedMoney, "`invoiced` less `credited`."]
Tax = Annotated[SignedMoney, "Tax on the invoices less that on the credit notes."]
Collected = Annotated[SignedMoney, "Payments dated in the period, tax included."]
Outstanding = Annotated[SignedMoney, "What was still to be paid at the end of the last day, tax included."]
Overdue = Annotated[SignedMoney, "What of `outstanding` should have been paid by then."]
Expenses = Annotated[SignedMoney, "Net of the expenses dated in the period, billable or not."]
TrackedMinutes = Annotated[int, "Time entries dated in the period, billable or not."]
BillableMinutes = Annotated[int, "What of `tracked_minutes` is billable, billed or not."]
AvailableMinutes = Annotated[int, "Weekly capacity, spread evenly over the working days, for those in the period."]
UtilisationPercent = Annotated[Ratio, "`tracked_minutes` of `available_minutes`; null when none are available."]
BillableUtilisationPercent = Annotated[
    Ratio, "`billable_minutes` of `available_minutes`; null when none are available."
]


class ReportQuery(Query):
    """The query parameters of every report."""

    from_: Annotated[
        Day | None, "First day, included; the operation says its default. A report spans at most 1096 days."
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Day | None, "Last day, included; today when left out."] = None
    currency: Annotated[Currency | None, "Only amounts in this currency."] = None
    client_id: Annotated[Id | None, "Only what belongs to this client."] = None

    def only(self) -> dict[str, Any]:
        """Return the filters that were sent, by name: those of the rows to sum, without the days."""
        return {name: value for name in FILTERS if (value := getattr(self, name, None)) is not None}


class ReportMeta(msgspec.Struct):
    """The moment whose state of the database is told."""

    generated_at: Annotated[Instant, "The moment whose state of the data is told."]


def begin(tx: Tx, query: ReportQuery, default_start: Callable[[date], date] | None) -> Period:
    """Start a snapshot, so that a report reads one state of the database, and return its period.

    `default_start` returns the first day for a last day when no `from` was sent. Raises `validation_failed`.
    """
    tx.snapshot()
    return periods.resolve_period(tx, query.from_, query.to, default_start)


def with_meta(tx: Tx, report: Any) -> WithMeta[Any, ReportMeta]:
    """Return a report with the moment of its snapshot."""
    return WithMeta(report, ReportMeta(tx.now))


def default_currency(tx: Tx, query: ReportQuery) -> str:
    """Return the currency of rows without amounts: the requested one, or the account's."""
    return query.currency or tx.actor.currency


def total(rows: Iterable[Figures]) -> Figures:
    """Add up rows."""
    sums = Figures()
    for figures in rows:
        for name, figure in figures.items():
            sums[name] += figure
    return sums


def by_currency(rows: Iterable[tuple[str, Figures]]) -> dict[str, Figures]:
    """Add up rows by currency, in the order of the currency codes."""
    groups: dict[str, list[Figures]] = {}
    for currency, figures in rows:
        groups.setdefault(currency, []).append(figures)
    return {currency: total(groups[currency]) for currency in sorted(groups)}


def amounts(currency: str, **units: int) -> dict[str, Any]:
    """Return amounts of minor units by name."""
    return {name: amount_of(each, currency) for name, each in units.items()}


def earnings(sums: Figures) -> dict[str, int]:
    """Return the fields `invoiced` to `collected` of a report, in minor units."""
    return {
        "invoiced": sums["invoiced"],
        "credited": sums["credited"],
        "revenue": sums["invoiced"] - sums["credited"],
        "tax": sums["invoiced_tax"] - sums["credited_tax"],
        "collected": sums["collected"],
    }
