"""Commands on documents and payments."""

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from sqlalchemy import Table

from retainer.billing import files, payments
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.quotes.quotes import load_quote
from retainer.cli.common import Json, acting_on, opened, say
from retainer.errors import Refusal
from retainer.identity.actors import operator_for
from retainer.schema import billing as schema
from retainer.schema.billing import credit_notes, invoices, quotes
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER

payment_cli = typer.Typer(help="Remove payments that were recorded by mistake.", no_args_is_help=True)

Payment = Annotated[int, typer.Argument(metavar="PAYMENT", min=1, max=MAX_INTEGER, help="The payment's id.")]


class DocumentType(StrEnum):
    """The types of documents."""

    INVOICE = "invoice"
    QUOTE = "quote"
    CREDIT_NOTE = "credit-note"


def load_credit_note(tx: Tx, credit_note_id: int) -> CreditNote:
    return tx.get(credit_notes, credit_note_id, CreditNote)


LOADERS: dict[DocumentType, tuple[Table, Callable[[Tx, int], files.Printable]]] = {
    DocumentType.INVOICE: (invoices, load_invoice),
    DocumentType.QUOTE: (quotes, load_quote),
    DocumentType.CREDIT_NOTE: (credit_notes, load_credit_note),
}
Record = Annotated[int, typer.Argument(metavar="ID", min=1, max=MAX_INTEGER, help="The id of the record.")]
OUTPUT = typer.Option(
    help="The file to write; - for standard output.", show_default="its number, like INV-2026-0001.pdf"
)


def pdf(
    document: Annotated[DocumentType, typer.Argument(help="What to write.")],
    record: Record,
    *,
    output: Annotated[Path | None, OUTPUT] = None,
    xml: Annotated[bool, typer.Option("--xml", help="Write the e-invoice (EN 16931) alone, as XML.")] = False,
    json: Json = False,
) -> None:
    """Write an invoice, quote or credit note as PDF; issued ones carry their e-invoice (Factur-X)."""
    table, load = LOADERS[document]
    store = opened()
    actor = operator_for(store, table, record)
    try:
        file = files.load_file(store, actor, "xml" if xml else "pdf", lambda tx: load(tx, record))
    except Refusal as refusal:
        raise Refusal(refusal.code, refusal.message) from None  # its field is the header Accept, which is no option
    if str(output) == "-":
        sys.stdout.buffer.write(file.content)
        return
    path = output or Path(file.name)
    path.write_bytes(file.content)
    say({"file": str(path), "bytes": len(file.content)}, json=json)


@payment_cli.command("remove")
def remove_payment(payment: Payment, *, json: Json = False) -> None:
    """Remove a payment, so that its amount is due again; the audit log keeps its details."""
    with acting_on(schema.payments, payment) as tx:
        removed = payments.remove(tx, payment)
    say(msgspec.structs.asdict(removed), json=json)
