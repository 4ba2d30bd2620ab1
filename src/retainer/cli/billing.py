"""Commands on documents and payments."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from sqlalchemy import Table

from retainer.billing import files, payments
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.facts import Printable
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.quotes.quotes import load_quote
from retainer.cli import common as cli
from retainer.errors import Refusal
from retainer.identity.actors import operator_of
from retainer.kernel.representations import run_here
from retainer.schema import billing as schema
from retainer.store.tx import Tx

document_cli = typer.Typer()
payment_cli = cli.group("payment", "Remove payments that were recorded by mistake.")

Payment = Annotated[int, cli.id_argument("PAYMENT", "The payment's id.")]


LOADERS: dict[str, tuple[Table, Callable[[Tx, int], Printable]]] = {
    "invoice": (schema.invoices, load_invoice),
    "quote": (schema.quotes, load_quote),
    "credit-note": (schema.credit_notes, lambda tx, record: tx.get(schema.credit_notes, record, CreditNote)),
}
Record = Annotated[int, cli.id_argument("ID", "The id of the record.")]
OUTPUT = typer.Option(
    help="The file to write; - for standard output.", show_default="its number, like INV-2026-0001.pdf"
)


@cli.command(document_cli)
def pdf(
    document: Annotated[Literal["invoice", "quote", "credit-note"], typer.Argument(help="What to write.")],
    record: Record,
    *,
    output: Annotated[Path | None, OUTPUT] = None,
    xml: Annotated[bool, typer.Option("--xml", help="Write the e-invoice (EN 16931) alone, as XML.")] = False,
) -> dict[str, object] | None:
    """Write an invoice, quote or credit note as PDF; issued ones carry their e-invoice (Factur-X)."""
    table, load = LOADERS[document]
    store = cli.opened()
    actor = operator_of(store, record, table)
    try:
        with store.begin(actor, write=False) as tx:
            tx.snapshot()
            pending = files.prepare("xml" if xml else "pdf", tx, load(tx, record))
        file = pending.finish(actor.account_id, run_here)
    except Refusal as refusal:
        raise Refusal(refusal.code, refusal.message) from None  # its field is the header Accept, which is no option
    if str(output) == "-":
        sys.stdout.buffer.write(file.content)
        return None
    path = output or Path(file.name)
    path.write_bytes(file.content)
    return {"file": str(path), "bytes": len(file.content)}


@cli.command(payment_cli, "remove")
def remove_payment(payment: Payment) -> object:
    """Remove a payment, so that its amount is due again; the audit log keeps its details."""
    with cli.acting_on(schema.payments, payment) as tx:
        return payments.remove(tx, payment)
