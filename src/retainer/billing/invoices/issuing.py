"""Issuing: the steps of an invoice, from the one that fixes it to those that end it."""

from collections.abc import Callable
from decimal import Decimal

from sqlalchemy import bindparam, select

from retainer.billing import allocations, balance
from retainer.billing.invoices.types import ClientSnapshot, Invoice
from retainer.rollups import changes
from retainer.rollups.sources import INVOICE_LINES, INVOICES
from retainer.schema.billing import invoices
from retainer.schema.crm import clients
from retainer.schema.identity import accounts
from retainer.shared.numbering import next_number
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY, day_after

CLIENT = select(*clients.c[("payment_terms_days", *ClientSnapshot.__struct_fields__)]).where(
    clients.c.id == bindparam("id")
)
PATTERN = select(accounts.c.invoice_number_pattern).where(accounts.c.id == ACCOUNT)


def issue(tx: Tx, invoice: Invoice) -> None:
    """Fix a draft: its number is the next of the series of its year. One that comes to nothing is paid at once.

    Notes an error when it has no lines or comes to less than nothing.
    """
    if not invoice.lines and tx.readable("lines"):
        tx.error("status", "An invoice without lines cannot be sent. Add a line first.")
    elif invoice.total < 0 and tx.readable("lines"):
        tx.error(
            "status", f"An invoice of {invoice.total} {invoice.currency} cannot be sent. Credit an earlier one instead."
        )
    terms, *client = tx.one(CLIENT, id=invoice.client_id) or (0, "", *[None] * 7)
    invoice.client_snapshot = ClientSnapshot(*client)
    invoice.issue_date = invoice.issue_date or tx.today
    invoice.due_date = invoice.due_date or day_after(invoice.issue_date, terms)
    invoice.number = next_number(tx, invoices, tx.value(PATTERN), invoice.issue_date)
    invoice.status, invoice.sent_at = "sent", tx.now
    if invoice.total == 0:
        invoice.status, invoice.paid_at = "paid", tx.now


def void(tx: Tx, invoice: Invoice) -> None:
    """Let an invoice count no more."""
    invoice.status, invoice.voided_at, invoice.balance_due = "void", tx.now, Decimal(0)


def write_off(tx: Tx, invoice: Invoice) -> None:
    """Expect no payment any more; what was not paid stays due. Notes an error when a payment is recorded with it."""
    invoice.status, invoice.written_off_at = "written_off", tx.now
    if invoice.record_payment:
        tx.error("record_payment", "Record the payment first, then write off the rest.")


STEPS: dict[str, Callable[[Tx, Invoice], None]] = {
    "sent": issue,
    "void": void,
    "written_off": write_off,
    "paid": lambda *_: None,  # the payment that is recorded makes it so
}


def _issue_date(_: Tx, invoice: Invoice) -> str:
    return invoice.issue_date or LAST_DAY  # only drafts have none


SETTLED_DATES: dict[str, Callable[[Tx, Invoice], str]] = {
    "sent": lambda *_: LAST_DAY,
    "paid": _issue_date,  # it came to nothing; payments settle it otherwise
    "void": _issue_date,
    "written_off": lambda tx, _: tx.today,
}
"""From the end of which day on nothing is outstanding of an invoice after a step."""


def apply_to_totals(tx: Tx, invoice: Invoice, former: str) -> None:
    """Add what was issued to the totals of its projects and reports; take it back, and free its work, when it is void.

    `former` is the status before the step; without one nothing changes.
    """
    if invoice.status != former and invoice.status in SETTLED_DATES:
        balance.set_settled_date(tx, invoice.id, SETTLED_DATES[invoice.status](tx, invoice))
    sign = 0 if invoice.status == former else 1 if former == "draft" else -1 if invoice.status == "void" else 0
    for source in (INVOICES, INVOICE_LINES):
        if sign == 1:
            changes.added(tx, source, invoice.id)
        elif sign == -1:
            changes.removed(tx, source, invoice.id)
    if sign == -1:
        allocations.release(tx, invoice.lines)
