"""Quote lines: what a quote offers, one by one. They can be added and removed while the quote is a draft."""

from typing import Annotated

import msgspec

from retainer.billing import documents
from retainer.billing.documents import MOST_LINES, DocumentTotals
from retainer.billing.quotes import Quote, QuoteLine, load_quote
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


def load_draft(tx: Tx, quote: int) -> Quote:
    """The quote, whose lines can be changed. Raises `locked` for any but a draft."""
    it = load_quote(tx, quote)
    if it.status != "draft":
        frozen = it.converted_project_id or it.invoice_id
        rest = "It has become a project or an invoice." if frozen else "Set its status back to draft first."
        sentence = f"The lines of this quote are fixed: it is {it.status}. {rest}"
        raise Refusal("locked", sentence, errors={"quote": [sentence]})
    return it


def update_totals(tx: Tx, it: Quote) -> QuoteChanged:
    """Write what the quote comes to with its lines as they are now."""
    it.lines = documents.load_children(tx, quote_lines, QuoteLine, "quote_id", it.id)
    documents.compute_totals(it, it.lines)
    tx.update(quotes, it)
    tx.touch(quotes, it.id)
    return QuoteChanged(documents.totals_of(it))


api = Resource("/quotes/{quote}/lines", tag="Quotes", scope="invoices", table=quote_lines, parent=quotes)


@api.post()
def create_quote_line(tx: Tx, quote: Id, body: New[QuoteLine]) -> WithMeta[QuoteLine, QuoteChanged]:
    """Add a line to a draft; the last one, unless it has a position. The quote's new totals are in meta.quote."""
    it = load_draft(tx, quote)
    if len(it.lines) >= MOST_LINES:
        tx.error("quote", f"Has {MOST_LINES} lines, and no room for more.")
    body.quote_id = quote
    if body.position is None:
        body.position = relations.next_position(max((line.position for line in it.lines), default=0))
    documents.price_line(tx, quote_lines, body, it, documents.default_tax_rate(tx, it.client_id))
    line = tx.insert(quote_lines, body)
    return WithMeta(tx.get(quote_lines, line, QuoteLine), update_totals(tx, it))


@api.delete("/{line}")
def delete_quote_line(tx: Tx, quote: Id, line: Id) -> None:
    """Remove a line from a draft."""
    its = etag.unchanged(tx, tx.get(quote_lines, line, QuoteLine, quote_id=quote))
    it = load_draft(tx, quote)
    tx.delete(quote_lines, its.id)
    update_totals(tx, it)
