"""Clients: what each owes, what is not billed yet or can be billed again, and how to reach it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from sqlalchemy import func, select

from retainer.billing import to_bill
from retainer.billing.invoices.types import Invoice
from retainer.console import words
from retainer.console.kinds.display import Display, RecordPage
from retainer.console.names import Link
from retainer.console.values import AnyBlock, Block, Column, Fact, Value, Values, money, table_of
from retainer.crm.clients import Client
from retainer.reports import money as reported
from retainer.reports.common import Period
from retainer.rollups.summaries import Figures
from retainer.schema.billing import OPEN_INVOICES, allocations, invoice_lines, invoices
from retainer.schema.columns import in_literals
from retainer.schema.work import time_entries
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of

SUMS = ("invoiced", "credited", "collected")
TITLES = {
    "outstanding": "Outstanding",
    "overdue": "Overdue",
    "refund_due": "To refund",
    "collected": "Collected",
    "revenue": "Revenue before tax",
    "to_bill": "To bill",
}
BILLING = (
    *("address_line1", "address_line2", "postal_code", "city", "region", "country", "vat_number"),
    *("registration_number", "invoice_email", "tax_rate", "hourly_rate", "payment_terms_days"),
    *("early_payment_discount_percent", "early_payment_discount_days", "language", "reminders"),
)
CONTACT = ("email", "phone", "website", "number", "currency", "tag_ids", "external_id")
OUTSTANDING = (
    select(invoices.c.client_id, invoices.c.currency, func.sum(invoices.c.balance_due))
    .where(is_listed(invoices.c.client_id, "ids"), in_literals(invoices.c.status, OPEN_INVOICES))
    .group_by(invoices.c.client_id, invoices.c.currency)
    .order_by(invoices.c.currency)
)

MONTHS = select(func.count()).where(invoice_lines.c.fee_is_live == 1, is_listed(invoice_lines.c.id, "lines"))
WORK = (
    select(
        func.count(allocations.c.time_entry_id),
        func.coalesce(func.sum(time_entries.c.duration_minutes), 0),
        func.count(allocations.c.expense_id),
        func.count(allocations.c.milestone_id),
        MONTHS.scalar_subquery(),
    )
    .select_from(allocations.outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id))
    .where(allocations.c.is_live == 1, is_listed(allocations.c.invoice_line_id, "lines"))
)


def outstanding(values: Values, clients: Sequence[Client]) -> dict[int, Value]:
    amounts = dict[int, list[Link]]()
    for client_id, currency, units in values.tx.all(OUTSTANDING, ids=json.dumps([each.id for each in clients])):
        if units:
            path = f"/records/invoices?client_id={client_id}&status=open"
            amounts.setdefault(client_id, []).append(Link(words.money(amount_of(units, currency), currency), path))
    return {client_id: Value("amounts", links=links) for client_id, links in amounts.items()}


def amounts_by_currency(page: RecordPage[Client]) -> dict[str, dict[str, Decimal]]:
    """Return what a client owes, is owed and has paid, and what is to bill, in its own currency first."""
    today, only = Period(None, page.tx.today, page.tx.actor.timezone), page.own.id
    found = {page.own.currency: Figures()}
    paid = reported.read(page.tx, today, ("currency",), SUMS, client_id=only)
    balances = reported.balances(page.tx, today, ("currency",), client_id=only)
    for part in (paid, balances, to_bill.read(page.tx, ("currency",), None, client_id=only)):
        for (currency,), figures in sorted(part.items()):
            found.setdefault(currency, Figures()).update(figures)
    page.memo["late"] = found[page.own.currency]["overdue_count"]
    return {code: {name: amount_of(figures[name], code) for name in TITLES} for code, figures in found.items()}


def facts(page: RecordPage[Client]) -> list[Fact]:
    amounts = page.memo["amounts"] = amounts_by_currency(page)
    (currency, own), *others = amounts.items()
    note = f"and {' and '.join(code for code, _ in others)}, see below" if others else ""
    late = words.count(page.memo["late"], "invoice") if page.memo["late"] else "Nothing is late"

    def fact(label: str, name: str, tone: str = "", note: str = "", **filters: str) -> Fact:
        path = page.path("invoices", client_id=f"{page.own.id}", **filters)
        return Fact(label, money(own[name], currency, tone), path, note)

    has_refund = any(each["refund_due"] for each in amounts.values())
    return [
        fact("Outstanding", "outstanding", note=note, status="open"),
        fact("Overdue", "overdue", "bad" if own["overdue"] else "", late, status="overdue"),
        *([fact("To refund", "refund_due", "bad", has_refund_due="true")] if has_refund else []),
        Fact("To bill", money(own["to_bill"], currency), f"{page.kind.path_of(page.own)}/bill"),
        fact("Revenue", "revenue", note="before tax, all time"),
    ]


def blocks(page: RecordPage[Client]) -> Iterator[AnyBlock]:
    amounts: dict[str, dict[str, Decimal]] = page.memo["amounts"]
    page.seen |= {"contacts_count", "projects_count", "sites_count"}
    if len(amounts) > 1:
        rows: list[list[Value | str]] = [
            [code, *(money(own[name], code) for name in TITLES)] for code, own in amounts.items()
        ]
        yield table_of("Amounts by currency", ("Currency", *TITLES.values()), rows, numbers=len(TITLES))
    yield Block("group", blocks=[page.fields("Contact", CONTACT), page.fields("Billing", BILLING)])


def work_in_words(work: Iterable[int]) -> str:
    """Return work as part of a sentence: `12:30 h of time, 2 expenses and 1 milestone`; empty without any."""
    entries, minutes, expenses, milestones, months = work
    found = [
        f"{words.hours(minutes)} h of time ({words.count(entries, 'entry', 'entries')})" if entries else "",
        words.count(expenses, "expense") if expenses else "",
        words.count(milestones, "milestone") if milestones else "",
        f"{words.count(months, 'month')} of a retainer" if months else "",
    ]
    return words.listed([text for text in found if text])


def load_effects(tx: Tx, record: object) -> tuple[str, tuple[int, ...]]:
    """Return what the client of an invoice owes, and its entries, minutes, expenses, milestones and months."""
    if not isinstance(record, Invoice):
        return "", (0, 0, 0, 0, 0)
    owed_by_client = tx.all(OUTSTANDING, ids=json.dumps([record.client_id]))
    units = next((units for _, currency, units in owed_by_client if currency == record.currency), 0)
    owed = words.money(amount_of(units, record.currency), record.currency)
    return owed, tx.one(WORK, lines=json.dumps([line.id for line in record.lines])) or (0, 0, 0, 0, 0)


DISPLAY = Display(
    columns=("name", "status", Column("outstanding", load=outstanding), "projects_count", "sites_count", "created_at"),
    filters=("status", "has_overdue", "tag_id"),
    facts=facts,
    blocks=blocks,
    is_offered=True,
    parts={
        "Address": ("address_line1", "address_line2", "postal_code", "city", "country"),
        "Billing": (
            *("invoice_email", "vat_number", "currency", "language", "hourly_rate", "tax_rate", "payment_terms_days"),
        ),
        "Internal": ("notes", "tag_ids"),
    },
    rare=(
        *("region", "registration_number", "early_payment_discount_percent", "early_payment_discount_days"),
        "reminders",
    ),
)
