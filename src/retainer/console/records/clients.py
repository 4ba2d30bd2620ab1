"""The page of a client: what it owes, what is not billed yet, and how to reach it."""

from collections.abc import Iterator
from decimal import Decimal

from retainer.console import words
from retainer.console.records.blocks import Block, Column, Fact, GroupBlock, TableBlock
from retainer.console.records.page import RecordPage
from retainer.console.records.values import Value
from retainer.console.words import money
from retainer.reports import money as reported
from retainer.reports import profitability
from retainer.reports.periods import Period
from retainer.reports.profitability import ProfitabilityQuery
from retainer.rollups.summaries import Figures
from retainer.values.exact import amount_of

SUMS = ("invoiced", "credited", "collected")
BILLING = (
    *("address_line1", "address_line2", "postal_code", "city", "region", "country", "vat_number"),
    *("registration_number", "invoice_email", "tax_rate", "hourly_rate", "payment_terms_days"),
    *("early_payment_discount_percent", "early_payment_discount_days", "language"),
)
CONTACT = ("email", "phone", "website", "number", "currency", "tag_ids", "external_id")
HIDDEN = frozenset({*BILLING, *CONTACT, "name", "status", "contacts_count", "projects_count", "sites_count"})


def sums_by_currency(page: RecordPage) -> dict[str, Figures]:
    """Return the sums of a client up to today, with the client's own currency first."""
    today = Period(None, page.tx.today, page.tx.actor.timezone)
    found = reported.read(page.tx, today, ("currency",), SUMS, client_id=page.record.id)
    for key, balances in reported.balances(page.tx, today, ("currency",), client_id=page.record.id).items():
        found.setdefault(key, Figures()).update(balances)
    own = getattr(page.record, "currency", "")
    return {own: Figures(), **{currency: figures for (currency,), figures in sorted(found.items())}}


def unbilled_by_currency(page: RecordPage) -> dict[str, Decimal]:
    """Return the value of a client's time that is on no invoice, by currency."""
    query = ProfitabilityQuery(client_id=page.record.id)
    report = profitability.get_report_project_profitability(page.tx, query).data
    return {each.currency: each.unbilled_amount for each in report.totals if each.unbilled_amount}


def facts(page: RecordPage) -> list[Fact]:
    """Return what a client owes, is owed and has paid, in its own currency, and its unbilled time."""
    client = f"{page.record.id}"
    sums, unbilled = sums_by_currency(page), unbilled_by_currency(page)
    currency = next(iter(sums))
    figures, waiting = sums[currency], unbilled.get(currency, amount_of(0, currency))
    others = {code for code in (*sums, *unbilled) if code != currency}
    late = words.count(figures["overdue_count"], "invoice") if figures["overdue_count"] else "Nothing is late"
    note = f"and {' and '.join(sorted(others))}, see below" if others else ""
    revenue = figures["invoiced"] - figures["credited"]
    refunds = page.path("invoices", client_id=client, has_refund_due="true")
    owed = [Fact("To refund", amount(figures["refund_due"], currency)._replace(tone="bad"), refunds)]
    to_refund = owed if any(each["refund_due"] for each in sums.values()) else []
    return [
        Fact(
            "Outstanding",
            amount(figures["outstanding"], currency),
            page.path("invoices", client_id=client, status="open"),
            note,
        ),
        Fact(
            "Overdue",
            amount(figures["overdue"], currency)._replace(tone="bad" if figures["overdue"] else ""),
            page.path("invoices", client_id=client, status="overdue"),
            late,
        ),
        *to_refund,
        Fact(
            "Unbilled time",
            Value("number", money(waiting, currency)),
            page.path("time-entries", client_id=client, billing_status="unbilled"),
        ),
        Fact("Revenue", amount(revenue, currency), page.path("invoices", client_id=client), "before tax, all time"),
    ]


def blocks(page: RecordPage) -> Iterator[Block]:
    """Yield the amounts by currency, if there are several, and the address beside the ways to reach the client."""
    sums = sums_by_currency(page)
    if len(sums) > 1:
        yield amounts_by_currency(page, sums)
    yield GroupBlock([page.fields("Contact", CONTACT), page.fields("Billing", BILLING)])


def amounts_by_currency(page: RecordPage, sums: dict[str, Figures]) -> TableBlock:
    unbilled = unbilled_by_currency(page)
    titles = ("Outstanding", "Overdue", "To refund", "Collected", "Revenue before tax", "Unbilled time")
    rows = [
        [
            Value("text", currency),
            *(amount(figures[name], currency) for name in ("outstanding", "overdue", "refund_due", "collected")),
            amount(figures["invoiced"] - figures["credited"], currency),
            Value("number", money(unbilled.get(currency, amount_of(0, currency)), currency)),
        ]
        for currency, figures in sums.items()
    ]
    return TableBlock(
        "Amounts by currency", [Column("Currency"), *(Column(each, is_number=True) for each in titles)], rows
    )


def amount(units: int, currency: str) -> Value:
    return Value("number", money(amount_of(units, currency), currency))
