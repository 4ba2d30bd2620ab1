"""What all five reports have in common: what they can be asked for, and how they begin and end."""

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

ONLY = ("client_id", "project_id", "user_id", "currency")


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
    """What every report can be asked for."""

    from_: Annotated[
        Day | None, "First day, included; the operation says its default. A report spans at most 1096 days."
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Day | None, "Last day, included; today when left out."] = None
    currency: Annotated[Currency | None, "Only amounts in this currency."] = None
    client_id: Annotated[Id | None, "Only what belongs to this client."] = None

    def only(self) -> dict[str, Any]:
        """What limits the rows that are summed, beside the days."""
        return {name: its for name in ONLY if (its := getattr(self, name, None)) is not None}


class ReportMeta(msgspec.Struct):
    """The moment whose state of the database is told."""

    generated_at: Annotated[Instant, "The moment whose state of the data is told."]


def begin(tx: Tx, asked: ReportQuery, usual: Callable[[date], date] | None) -> Period:
    """The period of a report; all that is read from here on is of one state of the database."""
    tx.snapshot()
    return periods.resolve_period(tx, asked.from_, asked.to, usual)


def with_meta(tx: Tx, report: Any) -> WithMeta[Any, ReportMeta]:
    """A report with the moment of its making."""
    return WithMeta(report, ReportMeta(tx.now))


def default_currency(tx: Tx, asked: ReportQuery) -> str:
    """The currency of what has none: the one that is asked for, or the account's."""
    return asked.currency or tx.actor.currency


def by_currency(rows: Iterable[tuple[str, Sequence[int]]]) -> dict[str, list[int]]:
    """What rows sum up to in each currency, in the order of their codes."""
    found: dict[str, list[int]] = {}
    for currency, its in rows:
        found[currency] = [sum(pair) for pair in zip(found.get(currency, [0] * len(its)), its, strict=True)]
    return dict(sorted(found.items()))
