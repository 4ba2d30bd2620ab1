"""Clients: what each owes, what is not billed yet, and how to reach it."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal

from sqlalchemy import func, select

from retainer.console import words
from retainer.console.kinds.display import Display
from retainer.console.names import Link
from retainer.console.records.blocks import Block, Fact, GroupBlock
from retainer.console.records.page import RecordPage
from retainer.console.values import Column, TableBlock, Value, Values, headings, money
from retainer.crm.clients import Client
from retainer.reports import money as reported
from retainer.reports import profitability
from retainer.reports.periods import Period
from retainer.reports.profitability import ProfitabilityQuery
from retainer.rollups.summaries import Figures
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.columns import in_literals
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.values.exact import amount_of

SUMS = ("invoiced", "credited", "collected")
BILLING = (
    *("address_line1", "address_line2", "postal_code", "city", "region", "country", "vat_number"),
    *("registration_number", "invoice_email", "tax_rate", "hourly_rate", "payment_terms_days"),
    *("early_payment_discount_percent", "early_payment_discount_days", "language"),
)
CONTACT = ("email", "phone", "website", "number", "currency", "tag_ids", "external_id")
OUTSTANDING = (
    select(invoices.c.client_id, invoices.c.currency, func.sum(invoices.c.balance_due))
    .where(
        is_listed(invoices.c.client_id, listed("ids", INTEGER).scalar_subquery()),
        in_literals(invoices.c.status, OPEN_INVOICES),
    )
    .group_by(invoices.c.client_id, invoices.c.currency)
    .order_by(invoices.c.currency)
)


def outstanding(values: Values, clients: Sequence[Client]) -> dict[int, Value]:
    """Return what is due on the open invoices of each client, with a link to them."""
    amounts = dict[int, list[Link]]()
    for client_id, currency, units in values.tx.all(OUTSTANDING, ids=json.dumps([each.id for each in clients])):
        if units:
            path = f"/records/invoices?client_id={client_id}&status=open"
            amounts.setdefault(client_id, []).append(Link(words.money(amount_of(units, currency), currency), path))
    return {client_id: Value("amounts", links=links) for client_id, links in amounts.items()}


def sums_by_currency(page: RecordPage[Client]) -> dict[str, Figures]:
    """Return the sums of a client up to today, with the client's own currency first."""
    today = Period(None, page.tx.today, page.tx.actor.timezone)
    found = reported.read(page.tx, today, ("currency",), SUMS, client_id=page.own.id)
    for key, balances in reported.balances(page.tx, today, ("currency",), client_id=page.own.id).items():
        found.setdefault(key, Figures()).update(balances)
    return {page.own.currency: Figures(), **{currency: figures for (currency,), figures in sorted(found.items())}}


def unbilled_by_currency(page: RecordPage[Client]) -> dict[str, Decimal]:
    """Return the value of a client's time that is on no invoice, by currency."""
    query = ProfitabilityQuery(client_id=page.own.id)
    report = profitability.get_report_project_profitability(page.tx, query).data
    return {each.currency: each.unbilled_amount for each in report.totals if each.unbilled_amount}


def facts(page: RecordPage[Client]) -> list[Fact]:
    """Return what a client owes, is owed and has paid, in its own currency, and its unbilled time."""
    client = f"{page.own.id}"
    sums, unbilled = sums_by_currency(page), unbilled_by_currency(page)
    currency = next(iter(sums))
    figures = sums[currency]
    others = sorted({code for code in (*sums, *unbilled) if code != currency})
    late = words.count(figures["overdue_count"], "invoice") if figures["overdue_count"] else "Nothing is late"

    def fact(label: str, units: int, path: str, note: str = "", tone: str = "") -> Fact:
        return Fact(label, money(amount_of(units, currency), currency, tone), path, note)

    def to(**filters: str) -> str:
        return page.path("invoices", client_id=client, **filters)

    owes_refund = any(each["refund_due"] for each in sums.values())
    return [
        fact(
            "Outstanding",
            figures["outstanding"],
            to(status="open"),
            f"and {' and '.join(others)}, see below" if others else "",
        ),
        fact("Overdue", figures["overdue"], to(status="overdue"), late, "bad" if figures["overdue"] else ""),
        *([fact("To refund", figures["refund_due"], to(has_refund_due="true"), tone="bad")] if owes_refund else []),
        Fact(
            "Unbilled time",
            money(unbilled.get(currency, amount_of(0, currency)), currency),
            page.path("time-entries", client_id=client, billing_status="unbilled"),
        ),
        fact("Revenue", figures["invoiced"] - figures["credited"], to(), "before tax, all time"),
    ]


def blocks(page: RecordPage[Client]) -> Iterator[Block]:
    """Yield the amounts by currency, if there are several, and the address beside the ways to reach the client."""
    sums = sums_by_currency(page)
    page.seen |= {"contacts_count", "projects_count", "sites_count"}
    if len(sums) > 1:
        yield amounts_by_currency(page, sums)
    yield GroupBlock([page.fields("Contact", CONTACT), page.fields("Billing", BILLING)])


def amounts_by_currency(page: RecordPage[Client], sums: dict[str, Figures]) -> TableBlock:
    unbilled = unbilled_by_currency(page)
    rows = []
    for currency, figures in sums.items():
        units = [figures[name] for name in ("outstanding", "overdue", "refund_due", "collected")]
        amounts = [amount_of(each, currency) for each in (*units, figures["invoiced"] - figures["credited"])]
        amounts.append(unbilled.get(currency, amount_of(0, currency)))
        rows.append([Value("text", currency), *(money(each, currency) for each in amounts)])
    titles = ("Outstanding", "Overdue", "To refund", "Collected", "Revenue before tax", "Unbilled time")
    return TableBlock("Amounts by currency", headings("Currency", *titles, numbers=len(titles)), rows)


DISPLAY = Display(
    columns=("name", "status", Column("outstanding", load=outstanding), "projects_count", "sites_count", "created_at"),
    filters=("status", "has_overdue", "tag_id"),
    facts=facts,
    blocks=blocks,
    related=(
        *("projects", "invoices", "tickets", "sites", "external-contacts", "quotes", "credit-notes"),
        *("time-entries", "expenses", "tasks"),
    ),
    is_offered=True,
)
