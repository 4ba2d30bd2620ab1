"""Tax: what is owed to the tax office, by category and rate, and the input tax of expenses.

With `by=issue`, invoices, credit notes and early-payment discounts count on their dates: `net` and `tax` are the
`revenue` and `tax` of the other reports. With `by=payment`, for cash accounting, each payment counts on its day with
its share of the net and the tax at each rate of its invoice, and a refund takes back: together they are `collected`.
The payments of a paid invoice add up to the invoice, less its credit notes and discounts. The category is that of the
invoice as it was issued. Void invoices never count.
"""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from retainer.documents.tax_categories import Category
from retainer.kernel.answers import WithMeta
from retainer.kernel.resource import Resource
from retainer.reports import common, taxed
from retainer.rollups.summaries import Sums
from retainer.store.tx import Tx
from retainer.values.kinds import Percent, SignedMoney

By = Annotated[Literal["issue", "payment"], Meta(title="TaxPoint")]
TaxCategory = Annotated[Category, Meta(title="TaxCategory")]
CATEGORIES: tuple[Category, ...] = ("S", "AE", "G", "O", "E")
"""The order of the rows of a currency: taxed, then with tax that the client owes, then without tax."""


class TaxQuery(common.ReportQuery):
    """The documents to report on."""

    by: Annotated[
        By | None,
        "`issue`, the default, counts invoices, credit notes and discounts by their dates; `payment` counts payments "
        "and refunds.",
    ] = None


class TaxTotal(msgspec.Struct, kw_only=True):
    """Tax in a currency."""

    currency: common.RowCurrency
    net: Annotated[SignedMoney, "Net amount of the invoices less `credited`; by payment, of payments less refunds."]
    tax: Annotated[SignedMoney, "The tax on `net`."]
    credited: Annotated[
        SignedMoney, "Net amount of the credit notes and discounts, or of the refunds, which `net` is less by."
    ]
    credited_tax: Annotated[SignedMoney, "The tax on `credited`, which `tax` is less by."]
    discounts: Annotated[SignedMoney, "The part of `credited` that is early-payment discounts; 0 by payment."]
    discounts_tax: Annotated[SignedMoney, "What `credited_tax` has of them."]
    written_off: Annotated[
        SignedMoney, "Net amount that was written off in the period, which `net` is not less by; 0 by payment."
    ]
    written_off_tax: Annotated[SignedMoney, "The tax on `written_off`, which `tax` is not less by."]


class TaxByRate(TaxTotal):
    """Tax at a rate in a currency."""

    tax_category: Annotated[
        TaxCategory,
        "Code of UNTDID 5305: `S` taxed, `AE` reverse charge, `G` export, `O` not subject to tax, `E` exempt.",
    ]
    tax_rate: Annotated[Percent, "Tax rate in percent."]
    document_count: Annotated[int, "Invoices, or payments, with this rate. Those with several rates count in each."]
    credited_count: Annotated[int, "Credit notes and discounts, or refunds, with this rate; in each of several rates."]


class InputTaxTotal(msgspec.Struct, kw_only=True):
    """Input tax in a currency."""

    currency: common.RowCurrency
    expense_count: Annotated[int, "Expenses dated in the period, billable or not."]
    net: Annotated[SignedMoney, "Net amount of the expenses."]
    tax: Annotated[SignedMoney, "The tax on the expenses."]


class InputTaxByRate(InputTaxTotal):
    """Input tax at a rate in a currency."""

    tax_rate: Annotated[Percent, "Tax rate of the expenses in percent."]


class TaxReport(msgspec.Struct):
    """Net and tax at each rate, and the input tax."""

    period: Annotated[common.Period, "The days of the report."]
    rows: Annotated[list[TaxByRate], "One for each currency, category and rate, the highest rate first; not paginated."]
    totals: Annotated[list[TaxTotal], "The sums of the rows, one for each currency."]
    input_rows: Annotated[
        list[InputTaxByRate], "Expenses by the date of each, whatever `by` is: one for each currency and rate."
    ]
    input_totals: Annotated[list[InputTaxTotal], "The sums of the input rows, one for each currency."]


T = TypeVar("T", bound=msgspec.Struct)

api = Resource("/reports/tax", tag="Reports", scope="reports")


@api.get()
def get_report_tax(tx: Tx, query: TaxQuery) -> WithMeta[TaxReport, common.ReportMeta]:
    """Read the tax by category and rate, and the input tax of expenses. Default period: the last full month."""
    period = common.begin(tx, query, common.month_begins, common.end_of_last_month)
    return WithMeta(read_report(tx, query, period), common.ReportMeta(tx.now))


def read_report(tx: Tx, query: TaxQuery, period: common.Period) -> TaxReport:
    counted = (taxed.by_payment if query.by == "payment" else taxed.by_issue)(tx, period, query)
    spent = taxed.of_expenses(tx, period, query)
    rows = [
        common.make_row(TaxByRate, currency, sums, tax_category=category, tax_rate=rate)
        for (category, rate, currency), sums in counted.items()
        if any(sums.values())
    ]
    rows.sort(key=lambda row: (row.currency, CATEGORIES.index(row.tax_category), -row.tax_rate))
    input_rows = [
        common.make_row(InputTaxByRate, currency, sums, tax_rate=rate) for (rate, currency), sums in spent.items()
    ]
    input_rows.sort(key=lambda row: (row.currency, -row.tax_rate))
    return TaxReport(period, rows, totals_of(TaxTotal, counted), input_rows, totals_of(InputTaxTotal, spent))


def totals_of(total: type[T], sums: Sums) -> list[T]:
    return [common.make_row(total, currency, each) for currency, each in common.by_currency(sums).items()]
