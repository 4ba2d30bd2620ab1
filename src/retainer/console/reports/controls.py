"""The controls of a report: period, currency and client, from the query of its page."""

from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from retainer.console.editing.filters import Filters
from retainer.console.names import load_names
from retainer.console.page_context import PageContext
from retainer.errors import Refusal
from retainer.reports import common
from retainer.reports.common import DefaultDay, Period, ReportQuery
from retainer.schema.crm import clients
from retainer.store.tx import Tx

Q = TypeVar("Q", bound=ReportQuery)
MONTHS_OF_QUARTER, MONTHS_OF_YEAR = 3, 12


class Controls(NamedTuple):
    period: Period
    before: Period
    """The same days a year before."""
    currency: str
    """The currency of all amounts that are shown: the chosen one, or the account's."""
    asked: ReportQuery
    sort: str
    """The figure by which the subjects are sorted, after a minus if the largest is first; empty by default."""
    filters: Filters[ReportQuery]
    presets: list[tuple[str, str, bool]]
    """Periods: name, query of the report about it, and whether it is chosen."""

    def query_of(self, model: type[Q], period: Period) -> Q:
        return model(from_=period.from_, to=period.to, **self.asked.only())


def last_year(day: date) -> date:
    """Return the first day of the twelve months that end with the month of a day."""
    if day.month == MONTHS_OF_YEAR:
        return day.replace(month=1, day=1)
    return date(day.year - 1, day.month + 1, 1)


def read_controls(
    tx: Tx, context: PageContext, default_start: DefaultDay, default_end: DefaultDay | None = None
) -> Controls:
    """Return the controls of a report; a field with an error gets its default, and the form shows the error."""
    form, own = context.query, tx.actor.currency
    empty = {"currency": {"empty": f"{own} (account)"}, "client_id": {"empty": "All clients"}}
    filters = Filters(tx, context, ReportQuery).change(empty)
    asked = filters.read()
    try:
        period = common.begin(tx, asked, default_start, default_end)
    except Refusal as refusal:
        form.errors |= refusal.members["errors"]
        tx.errors.clear()
        period = common.begin(tx, ReportQuery(), default_start, default_end)
    if asked.client_id is not None and not load_names(tx, clients, [asked.client_id]):
        form.errors["client_id"] = ["This client does not exist. Choose another."]
        asked.client_id = None
    for name, day in (("from", period.first), ("to", period.to)):
        filters.form.texts[name] = [form.text(name, day)]
    for name in form.errors:
        form.texts.pop(name)
    before, currency, offered = a_year_before(period), asked.currency or own, presets(tx, context, period)
    return Controls(period, before, currency, asked, form.text("sort"), filters, offered)


def a_year_before(period: Period) -> Period:
    """Return the same days a year before; a period to the end of a month has all days of that month then too.

    Of the longest periods, it leaves out the first day if there was one more leap day.
    """
    first, last = date.fromisoformat(period.first), date.fromisoformat(period.to)
    length = monthrange(last.year - 1, last.month)[1]
    is_end = last.day == monthrange(last.year, last.month)[1]
    begins = date(first.year - 1, first.month, min(first.day, monthrange(first.year - 1, first.month)[1]))
    ends = date(last.year - 1, last.month, length if is_end else min(last.day, length))
    begins = max(begins, ends - timedelta(days=common.MAX_DAYS - 1))
    return msgspec.structs.replace(period, from_=begins.isoformat(), to=ends.isoformat())


def first_of_quarter(day: date) -> date:
    return day.replace(month=(day.month - 1) // MONTHS_OF_QUARTER * MONTHS_OF_QUARTER + 1, day=1)


def presets(tx: Tx, context: PageContext, chosen: Period) -> list[tuple[str, str, bool]]:
    day = date.fromisoformat(tx.today)
    month, year = day.replace(day=1), day.replace(month=1, day=1)
    yesterday = timedelta(days=1)
    quarter = first_of_quarter(day)
    offered = {
        "This month": (month, day),
        "Last month": ((month - yesterday).replace(day=1), month - yesterday),
        "This quarter": (quarter, day),
        "Last quarter": (first_of_quarter(quarter - yesterday), quarter - yesterday),
        "This year": (year, day),
        "Last year": ((year - yesterday).replace(month=1, day=1), year - yesterday),
        "Last 12 months": (last_year(day), day),
    }
    return [
        (name, context.link(**{"from": first, "to": last}), (f"{first}", f"{last}") == (chosen.first, chosen.to))
        for name, (first, last) in offered.items()
    ]
