"""Taxed amounts: net and tax of invoices, credit notes, payments and expenses at each rate, read from their rows.

What a payment is for follows from all that was paid on its invoice: the sum is allocated to the net and the tax at
each rate, by largest remainder, and a payment counts what it adds to that. What is paid beyond the rest of an invoice
that was credited is for what was credited, and a surplus is for the whole invoice, until they are refunded. So the
payments of a paid invoice without a surplus are the invoice less its credits, to the last unit. A credit note can move
what was paid before between rates; that counts on its own day, so that no earlier day changes. An early-payment
discount takes from the invoice like a credit note, on the day of its payment.

What is written off is the part of the net and the tax at each rate that was not paid.
"""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, bindparam, literal, select, union

from retainer.documents.facts import Customer, Issuer, TaxShare
from retainer.documents.tax_categories import Category, category_of
from retainer.reports.common import Period, ReportQuery
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.billing import credit_notes, expenses, invoices, is_discount, is_issued, payments
from retainer.schema.identity import accounts
from retainer.store.engines.base import Row
from retainer.store.engines.sql import DAY, INSTANT, INTEGER, is_listed
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.exact import minor_units
from retainer.values.money import Share, allocate, tax_on

FIRST, LAST = bindparam("first", type_=DAY), bindparam("last", type_=DAY)
CREDIT, PAYMENT = 0, 1
"""The order of what changes an invoice on one day: first what takes from it, then what is paid of the rest."""
ZERO = Decimal(0)
SINCE, UNTIL = (bindparam(name, type_=INSTANT) for name in ("since", "until"))
PAYMENTS = select(*payments.c["invoice_id", "paid_date", "id", "amount", "tax_breakdown"])
CREDITS = select(
    *credit_notes.c["invoice_id", "issue_date", "id"], literal(0, INTEGER).label("paid"), credit_notes.c.tax_breakdown
)
SIDES = select(*invoices.c["id", "client_snapshot", "issuer_snapshot"]).where(is_listed(invoices.c.id, "ids"))
ISSUER = ("country", "vat_number", "is_small_business", "tax_outside_eu")
OWN = select(*accounts.c[ISSUER]).where(accounts.c.id == ACCOUNT)
"""What decides the tax of invoices that were issued before the issuer was stored with them."""
read_breakdown, read_customer, read_issuer = decoder(list[TaxShare]), decoder(Customer), decoder(Issuer)


class TaxedDocument(NamedTuple):
    """An invoice or a credit note: the invoice whose parties decide its tax, and its amounts at each rate."""

    invoice_id: int
    currency: str
    shares: list[Share]


class MoneyEvent(NamedTuple):
    """A payment, refund, discount or credit note; events of an invoice count in the order of their first members."""

    day: str
    kind: int
    id: int
    paid: int = 0
    credited: Iterable[Share] = ()


class TaxedSides(NamedTuple):
    issuer: Issuer
    customer: Customer


Counted = Iterator[tuple[TaxedDocument, Share, dict[str, int]]]
"""Figures of a document at one rate."""


def by_issue(tx: Tx, period: Period, query: ReportQuery) -> Sums:
    """Return what was invoiced, credited, discounted and written off in a period, by category, rate and currency."""
    return _summed(tx, chain(_of_documents(tx, period, query), _written_off(tx, period, query)))


def by_payment(tx: Tx, period: Period, query: ReportQuery) -> Sums:
    """Return what was paid and refunded in a period, by category, rate and currency."""
    return _summed(tx, _of_payments(tx, period, query))


def of_expenses(tx: Tx, period: Period, query: ReportQuery) -> Sums:
    """Return the net and the tax of the expenses of a period, by rate and currency."""
    found: Sums = {}
    for code, rate, is_gross, amount, net in _rows(tx, "expenses", period, query):
        if query.currency in {None, code}:
            tax = amount - net if is_gross else tax_on(net, Decimal(rate))
            _add(found, (Decimal(rate), code), {"expense_count": 1, "net": net, "tax": tax})
    return found


def _of_documents(tx: Tx, period: Period, query: ReportQuery) -> Counted:
    for taxed in _documents(tx, "issued", period, query):
        for share in taxed.shares:
            yield taxed, share, {"document_count": 1, "net": share.taxable, "tax": share.tax}
    for name in ("credited", "discounted"):
        for taxed in _documents(tx, name, period, query):
            for share in taxed.shares:
                figures = {"net": -share.taxable, "tax": -share.tax, **_taken_back(share.taxable, share.tax)}
                if name == "discounted":
                    figures |= {"discounts": share.taxable, "discounts_tax": share.tax}
                yield taxed, share, figures


def _taken_back(net: int, tax: int) -> dict[str, int]:
    return {"credited_count": 1, "credited": net, "credited_tax": tax}


def _written_off(tx: Tx, period: Period, query: ReportQuery) -> Counted:
    for taxed, events in _with_events(tx, "lost", period, query):
        for share in unpaid(taxed.shares, events):
            if any(share[1:]):
                yield taxed, share, {"written_off": share.taxable, "written_off_tax": share.tax}


def _with_events(
    tx: Tx, name: str, period: Period, query: ReportQuery
) -> Iterator[tuple[TaxedDocument, list[MoneyEvent]]]:
    """Yield invoices, and all that changed them up to the end of the period."""
    found = {taxed.invoice_id: taxed for taxed in _documents(tx, name, period, query)}
    events: dict[int, list[MoneyEvent]] = {invoice_id: [] for invoice_id in found}
    for kind in ("payments", "credits") if found else ():
        for invoice_id, day, id_, paid, breakdown in _rows(tx, f"{kind} of {name}", period, query):
            if invoice_id in found and breakdown is None:
                events[invoice_id].append(MoneyEvent(day, PAYMENT, id_, paid))
            elif invoice_id in found:
                credited = shares_of(breakdown, found[invoice_id].currency)
                events[invoice_id].append(MoneyEvent(day, CREDIT, id_, credited=credited))
    return ((taxed, events[invoice_id]) for invoice_id, taxed in found.items())


def _of_payments(tx: Tx, period: Period, query: ReportQuery) -> Counted:
    for taxed, events in _with_events(tx, "settled", period, query):
        for event, added in received(taxed.shares, events):
            for share in added if event.day >= period.first else ():
                if any(share[1:]):
                    figures = {"document_count": int(event.paid > 0), "net": share.taxable, "tax": share.tax}
                    figures |= _taken_back(-share.taxable, -share.tax) if event.paid < 0 else {}
                    yield taxed, share, figures


def received(shares: list[Share], events: Iterable[MoneyEvent]) -> Iterator[tuple[MoneyEvent, list[Share]]]:
    """Yield each event of an invoice, and what it adds to what was received at each rate, which begins with nothing."""
    rates = [share.tax_rate for share in shares]
    left = [units for share in shares for units in share[1:]]
    credited, before, paid = [0] * len(left), [0] * len(left), 0
    for event in sorted(events, key=lambda each: each[:3]):
        paid += event.paid
        for place, units in _places(event, rates):
            left[place] -= units
            credited[place] += units
        now = _received(paid, left, credited)
        units_added = [after - earlier for after, earlier in zip(now, before, strict=True)]
        yield event, [Share(*each) for each in zip(rates, units_added[::2], units_added[1::2], strict=True)]
        before = now


def unpaid(shares: list[Share], events: Iterable[MoneyEvent]) -> list[Share]:
    """Return what of an invoice was neither paid nor credited, by net and tax at each rate."""
    rates, found = [share.tax_rate for share in shares], list(events)
    left = [units for share in shares for units in share[1:]]
    for event in found:
        for place, units in _places(event, rates):
            left[place] -= units
    paid = sum(event.paid for event in found)
    if not 0 <= paid < sum(left):
        return []
    rest = [units - part for units, part in zip(left, allocate(paid, left), strict=True)]
    return [Share(*each) for each in zip(rates, rest[::2], rest[1::2], strict=True)]


def _places(event: MoneyEvent, rates: list[Decimal]) -> Iterator[tuple[int, int]]:
    """Yield what an event takes of the net and the tax at each rate, with its place among both."""
    for share in event.credited:
        yield from enumerate(share[1:], start=2 * rates.index(share.tax_rate))


def _received(paid: int, left: list[int], credited: list[int]) -> list[int]:
    """Return what was received by net and tax at each rate: of what is left, of what was credited, and of a surplus."""
    whole = [units + gone for units, gone in zip(left, credited, strict=True)]
    found, rest = [0] * len(left), paid
    for part in (left, credited):
        taken = min(rest, sum(part))
        shares = part if taken == sum(part) else allocate(taken, part)
        found, rest = [units + more for units, more in zip(found, shares, strict=True)], rest - taken
    return [units + more for units, more in zip(found, allocate(rest, whole), strict=True)] if rest else found


def shares_of(breakdown: str, currency: str) -> list[Share]:
    """Return the shares of a stored breakdown, in minor units."""
    return [
        Share(each.tax_rate, minor_units(each.taxable_amount, currency), minor_units(each.tax_amount, currency))
        for each in read_breakdown(breakdown)
    ]


def _summed(tx: Tx, counted: Counted) -> Sums:
    """Return the sums of figures by category, rate and currency. Only a rate of 0 has more than one category."""
    figures, found = list(counted), Sums()
    categories = _categories_of_zero(tx, {taxed.invoice_id for taxed, share, _ in figures if not share.tax_rate})
    for taxed, share, each in figures:
        category = "S" if share.tax_rate else categories[taxed.invoice_id]
        _add(found, (category, share.tax_rate, taxed.currency), each)
    return found


def _add(sums: Sums, key: tuple[Any, ...], figures: dict[str, int]) -> None:
    found = sums.setdefault(key, Figures())
    for name, units in figures.items():
        found[name] += units


def _categories_of_zero(tx: Tx, ids: set[int]) -> dict[int, Category]:
    """Return the category that the rate 0 has on each invoice, by what its parties were when it was issued."""
    rows = tx.all(SIDES, ids=json.dumps(sorted(ids))) if ids else []
    own = _own_tax(tx) if any(issuer is None for *_, issuer in rows) else Issuer(name="")
    return {
        id_: category_of(TaxedSides(read_issuer(issuer) if issuer else own, read_customer(customer)), ZERO)
        for id_, customer, issuer in rows
    }


def _own_tax(tx: Tx) -> Issuer:
    country, vat_number, is_small_business, tax_outside_eu = tx.one(OWN) or ()
    return Issuer(
        name="",
        country=country,
        vat_number=vat_number,
        is_small_business=bool(is_small_business),
        tax_outside_eu=tax_outside_eu,
    )


def _documents(tx: Tx, name: str, period: Period, query: ReportQuery) -> Iterator[TaxedDocument]:
    for invoice_id, currency, breakdown in _rows(tx, name, period, query):
        if query.currency in {None, currency}:  # or SQLite might follow an index by currency
            yield TaxedDocument(invoice_id, currency, shares_of(breakdown, currency))


def _rows(tx: Tx, name: str, period: Period, query: ReportQuery) -> list[Row]:
    limits = {} if query.client_id is None else {"client_id": query.client_id}
    moments = period.moments()
    return tx.all(_statements(is_limited=bool(limits))[name], first=period.first, last=period.to, **moments, **limits)


@cache
def _statements(*, is_limited: bool) -> dict[str, Select[Any]]:
    """Return what selects documents, payments and expenses of a period, of one client if it is limited."""

    def of_client(table: Table) -> list[ColumnElement[bool]]:
        return [table.c.client_id == bindparam("client_id")] if is_limited else []

    paid_on, credited_on, spent_on = payments.c.paid_date, credit_notes.c.issue_date, expenses.c.date
    settled = union(
        select(payments.c.invoice_id).where(paid_on.between(FIRST, LAST), *of_client(payments)),
        select(credit_notes.c.invoice_id).where(credited_on.between(FIRST, LAST), *of_client(credit_notes)),
    )
    invoice = invoices.c
    lost = (
        *(invoice.status == "written_off", invoice.written_off_at >= SINCE, invoice.written_off_at < UNTIL),
        *(invoice.issue_date <= LAST, *of_client(invoices)),
    )
    invoiced = select(*invoice["id", "currency", "tax_breakdown"])
    events = {
        f"{kind} of {name}": statement.where(statement.selected_columns.invoice_id.in_(ids))
        for name, ids in (("settled", settled), ("lost", select(invoice.id).where(*lost)))
        for kind, statement in (
            ("payments", PAYMENTS.where(paid_on <= LAST)),
            ("credits", CREDITS.where(credited_on <= LAST)),
        )
    }
    return {
        **events,
        "issued": invoiced.where(invoices.c.issue_date.between(FIRST, LAST), is_issued(invoices), *of_client(invoices)),
        "credited": select(*credit_notes.c["invoice_id", "currency", "tax_breakdown"]).where(
            credited_on.between(FIRST, LAST), *of_client(credit_notes)
        ),
        "discounted": select(*payments.c["invoice_id", "currency", "tax_breakdown"]).where(
            paid_on.between(FIRST, LAST), is_discount(payments), *of_client(payments)
        ),
        "settled": invoiced.where(invoice.id.in_(settled)),
        "lost": invoiced.where(*lost),
        "expenses": select(*expenses.c["currency", "tax_rate", "amount_includes_tax", "amount", "net_amount"]).where(
            spent_on.between(FIRST, LAST), *of_client(expenses)
        ),
    }
