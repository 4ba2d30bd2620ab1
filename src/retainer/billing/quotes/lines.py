"""Quote lines: what a quote offers, one by one. They can be added and removed while the quote is a draft."""

from typing import Annotated

import msgspec

from retainer.billing import documents
from retainer.billing.document_types import MAX_LINES, DocumentTotals
from retainer.billing.quotes.quotes import load_quote
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New
from retainer.kernel.resource import Resource, WithMeta
from retainer.schema.billing import quote_lines, quotes
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.kinds import Id


class QuoteChanged(msgspec.Struct):
    """What became of the quote."""

    quote: Annotated[DocumentTotals, "What the quote comes to with the line."]


def load_draft(tx: Tx, quote_id: int) -> Quote:
    """Return the quote, whose lines can be changed. Raises `locked` for any but a draft."""
    quote = load_quote(tx, quote_id)
    if quote.status != "draft":
        is_converted = quote.converted_project_id or quote.invoice_id
        rest = "It has become a project or an invoice." if is_converted else "Set its status back to draft first."
        message = f"The lines of this quote are fixed: it is {quote.status}. {rest}"
        raise Refusal("locked", message, errors={"quote": [message]})
    return quote


def update_totals(tx: Tx, quote: Quote) -> QuoteChanged:
    """Write the totals of the quote with its lines as they are now; return them."""
    documents.compute_totals(quote, documents.load_children(tx, quote_lines, QuoteLine, "quote_id", quote.id))
    tx.update(quotes, quote)
    tx.touch(quotes, quote.id)
    return QuoteChanged(documents.totals_of(quote))


api = Resource("/quotes/{quote_id}/lines", tag="Quotes", scope="invoices", table=quote_lines, parent=quotes)


@api.post()
def create_quote_line(tx: Tx, quote_id: Id, body: New[QuoteLine]) -> WithMeta[QuoteLine, QuoteChanged]:
    """Add a line to a draft; the last one, unless it has a position. The quote's new totals are in meta.quote."""
    quote = load_draft(tx, quote_id)
    if len(quote.lines) >= MAX_LINES:
        tx.error("quote", f"Has {MAX_LINES} lines, and no room for more.")
    body.quote_id = quote_id
    if body.position is None:
        body.position = relations.next_position(max((line.position for line in quote.lines), default=0))
    documents.price_line(tx, quote_lines, body, quote, documents.default_tax_rate(tx, quote.client_id))
    line_id = tx.insert(quote_lines, body)
    return WithMeta(tx.get(quote_lines, line_id, QuoteLine), update_totals(tx, quote))


@api.delete("/{line_id}")
def delete_quote_line(tx: Tx, quote_id: Id, line_id: Id) -> None:
    """Remove a line from a draft."""
    etag.check_unchanged(tx, quote_lines, tx.get(quote_lines, line_id, QuoteLine, quote_id=quote_id))
    quote = load_draft(tx, quote_id)
    tx.delete(quote_lines, line_id)
    update_totals(tx, quote)
