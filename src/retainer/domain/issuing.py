"""Issuing: the steps of an invoice, from the one that fixes it to those that end it."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import msgspec
from sqlalchemy import Select, bindparam, select

from retainer.domain import billing, lines, settlement, sources, summaries, work
from retainer.domain.accounts import accounts
from retainer.domain.numbering import next_number
from retainer.domain.values import Country, Text50, Text191
from retainer.exact import day_after
from retainer.store.tables import ACCOUNT, metadata
from retainer.store.tx import Tx


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


PATTERN = select(accounts.c.invoice_number_pattern).where(accounts.c.id == ACCOUNT)


def issue(tx: Tx, it: Any) -> None:
    """Fix a draft: its number is the next of the series of its year. One that comes to nothing is paid at once."""
    if not it.lines and tx.knows("lines"):
        tx.fault("status", "An invoice without lines cannot be sent. Add a line first.")
    elif it.total < 0 and tx.knows("lines"):
        tx.fault("status", f"An invoice of {it.total} {it.currency} cannot be sent. Credit an earlier one instead.")
    terms, *client = tx.one(_client(), id=it.client_id) or (0, "", *[None] * 7)
    it.client_snapshot = ClientSnapshot(*client)
    it.issue_date = it.issue_date or tx.today
    it.due_date = it.due_date or day_after(it.issue_date, terms)
    it.number = next_number(tx, "invoices", tx.value(PATTERN), _taken(), it.issue_date)
    it.status, it.sent_at = "sent", tx.now
    if it.total == 0:
        it.status, it.paid_at = "paid", tx.now


def void(tx: Tx, it: Any) -> None:
    """Let an invoice count no more."""
    it.status, it.voided_at, it.balance_due = "void", tx.now, Decimal(0)


def write_off(tx: Tx, it: Any) -> None:
    """Expect no payment any more; what was not paid stays due."""
    it.status, it.written_off_at = "written_off", tx.now
    if it.record_payment:
        tx.fault("record_payment", "Record the payment first, then write off the rest.")


STEPS: dict[str, Callable[[Tx, Any], None]] = {
    "sent": issue,
    "void": void,
    "written_off": write_off,
    "paid": lambda *_: None,  # the payment that is recorded makes it so
}


ENDS: dict[str, Callable[[Tx, Any], str]] = {
    "sent": lambda *_: settlement.FOREVER,
    "paid": lambda _, it: it.issue_date,  # it came to nothing; payments end it otherwise
    "void": lambda _, it: it.issue_date,
    "written_off": lambda tx, _: tx.today,
}
"""From the end of which day on nothing is outstanding of an invoice after a step."""


def count(tx: Tx, it: Any, former: str) -> None:
    """Count what was issued on its projects; a void invoice takes it back and frees its work."""
    if it.status != former and it.status in ENDS:
        settlement.end(tx, it.id, ENDS[it.status](tx, it))
    sign = 0 if it.status == former else 1 if former == "draft" else -1 if it.status == "void" else 0
    for project, units in lines.by_project(it).items() if sign else ():
        if project is not None:
            work.invoice(tx, project, sign * units, it.currency)
    for source in (sources.INVOICES, sources.LINES) if sign else ():
        summaries.add(tx, source, it.id, sign)
    if sign == -1:
        billing.free(tx, it.lines)


@cache
def _client() -> Select[Any]:
    clients = metadata.tables["clients"]
    wanted = clients.c[("payment_terms_days", *ClientSnapshot.__struct_fields__)]
    return select(*wanted).where(clients.c.id == bindparam("id"))


@cache
def _taken() -> Select[Any]:
    invoices = metadata.tables["invoices"]
    return select(invoices.c.id).where(invoices.c.number == bindparam("number"))
