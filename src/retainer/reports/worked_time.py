"""Worked time: the sums of time entries in a period, and the fields of the utilisation report that follow from them."""

from typing import Annotated, Any

import msgspec
from sqlalchemy import case

from retainer import schema
from retainer.reports.common import sums_of, total
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio, ratio
from retainer.rollups import summaries
from retainer.rollups.sources import TIME
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.work import time_entries
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Money

KEYS = ("user_id", "currency")
SUMS = ("tracked_minutes", "billable_minutes", "billable_value", "billed_value", "unpriced_minutes")
WORKED = TIME.rows.add_columns(
    case((time_entries.c.invoice_line_id.is_not(None), time_entries.c.amount), else_=0).label("billed_value")
)


class OtherCurrency(msgspec.Struct):
    """The value of billable time in a currency."""

    currency: Annotated[Currency, "A currency other than that of the row."]
    billable_value: Annotated[Money, "Value of the billable time in this currency, billed or not, before tax."]


SharePercent = Annotated[Ratio, "`billable_minutes` in percent of `tracked_minutes`; null if that is 0."]
BillableValue = Annotated[Money, "Value of the billable time in `currency`, billed or not, before tax."]
OtherCurrencies = Annotated[list[OtherCurrency], "Value of billable time in other currencies, one entry for each."]


def worked(tx: Tx, period: Period, limits: dict[str, Any], by: tuple[str, ...] = KEYS) -> Sums:
    """Return SUMS of the time entries of a period by KEYS, or by month and KEYS.

    With a client or a project in the limits, it adds up time entries, because no summary has both keys.
    """
    if "client_id" in limits or "project_id" in limits:
        rows = tx.all(sums_of(WORKED, by, SUMS, tuple(limits)), **limits, first=period.first, last=period.to)
        return {tuple(row[: len(by)]): Figures(zip(SUMS, row[len(by) :], strict=True)) for row in rows}
    return summaries.read(tx, schema.rollups.user_sums, period.days, by, SUMS, **limits)


def shares(currency: str, figures: dict[str, Figures]) -> dict[str, Any]:
    """Return the minutes and values of a row, and their share, from the SUMS in each currency."""
    sums = total(figures.values())
    values = {code: amount_of(each["billable_value"], code) for code, each in sorted(figures.items())}
    return {
        "tracked_minutes": sums["tracked_minutes"],
        "billable_minutes": sums["billable_minutes"],
        "billable_share_percent": ratio(sums["billable_minutes"], sums["tracked_minutes"]),
        "currency": currency,
        "billable_value": values.get(currency, amount_of(0, currency)),
        "other_currencies": [
            OtherCurrency(code, value) for code, value in values.items() if value and code != currency
        ],
    }
