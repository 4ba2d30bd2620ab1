"""Issuing: the steps of an invoice, from the one that fixes it to those that end it."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from sqlalchemy import bindparam, select

from retainer.billing import allocations, balance
from retainer.rollups.changes import added, removed
from retainer.rollups.sources import INVOICE_LINES, INVOICES
from retainer.schema.billing import invoices
from retainer.schema.crm import clients
from retainer.schema.identity import accounts
from retainer.shared.numbering import next_number
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY, day_after
from retainer.values.kinds import Country, Text50, Text191


class ClientSnapshot(msgspec.Struct):
    """Whom an invoice was issued to, as the client was then."""

    name: Annotated[Text191, "What the client was called then."]
    address_line1: Annotated[Text191 | None, "First line of the postal address then."]
    address_line2: Annotated[Text191 | None, "Second line of the postal address then."]
    city: Annotated[Text191 | None, "Town of the postal address then."]
    region: Annotated[Text191 | None, "State, province or county of the postal address then."]
    postal_code: Annotated[Text191 | None, "Part of the postal address then."]
    country: Annotated[Country | None, "Country of the postal address then."]
    vat_number: Annotated[Text50 | None, "The client's then; null: none was known."]


CLIENT = select(*clients.c[("payment_terms_days", *ClientSnapshot.__struct_fields__)]).where(
    clients.c.id == bindparam("id")
)
TAKEN = select(invoices.c.id).where(invoices.c.number == bindparam("number"))
PATTERN = select(accounts.c.invoice_number_pattern).where(accounts.c.id == ACCOUNT)


def issue(tx: Tx, invoice: Any) -> None:
    """Fix a draft: its number is the next of the series of its year. One that comes to nothing is paid at once."""
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
    invoice.number = next_number(tx, "invoices", tx.value(PATTERN), TAKEN, invoice.issue_date)
    invoice.status, invoice.sent_at = "sent", tx.now
    if invoice.total == 0:
        invoice.status, invoice.paid_at = "paid", tx.now


def void(tx: Tx, invoice: Any) -> None:
    """Let an invoice count no more."""
    invoice.status, invoice.voided_at, invoice.balance_due = "void", tx.now, Decimal(0)


def write_off(tx: Tx, invoice: Any) -> None:
    """Expect no payment any more; what was not paid stays due."""
    invoice.status, invoice.written_off_at = "written_off", tx.now
    if invoice.record_payment:
        tx.error("record_payment", "Record the payment first, then write off the rest.")


STEPS: dict[str, Callable[[Tx, Any], None]] = {
    "sent": issue,
    "void": void,
    "written_off": write_off,
    "paid": lambda *_: None,  # the payment that is recorded makes it so
}


ENDS: dict[str, Callable[[Tx, Any], str]] = {
    "sent": lambda *_: LAST_DAY,
    "paid": lambda _, it: it.issue_date,  # it came to nothing; payments end it otherwise
    "void": lambda _, it: it.issue_date,
    "written_off": lambda tx, _: tx.today,
}
"""From the end of which day on nothing is outstanding of an invoice after a step."""


def count(tx: Tx, invoice: Any, former: str) -> None:
    """Count what was issued on its projects; a void invoice takes it back and frees its work."""
    if invoice.status != former and invoice.status in ENDS:
        balance.set_settled_date(tx, invoice.id, ENDS[invoice.status](tx, invoice))
    sign = 0 if invoice.status == former else 1 if former == "draft" else -1 if invoice.status == "void" else 0
    for source in (INVOICES, INVOICE_LINES):
        if sign == 1:
            added(tx, source, invoice.id)
        elif sign == -1:
            removed(tx, source, invoice.id)
    if sign == -1:
        allocations.release(tx, invoice.lines)
