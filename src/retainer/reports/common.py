"""What the reports share: query parameters, field types, the period and the metadata of the answer."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Annotated, Any

import msgspec

from retainer.kernel.query import Query
from retainer.kernel.resource import WithMeta
from retainer.reports import periods
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio
from retainer.store.tx import Tx
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


def by_currency(rows: Iterable[tuple[str, Sequence[int]]]) -> dict[str, list[int]]:
    """Sum rows by currency, in the order of the currency codes."""
    sums: dict[str, list[int]] = {}
    for currency, figures in rows:
        sums[currency] = [sum(pair) for pair in zip(sums.get(currency, [0] * len(figures)), figures, strict=True)]
    return dict(sorted(sums.items()))
