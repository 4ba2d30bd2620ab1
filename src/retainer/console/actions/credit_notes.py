"""The action that credits an issued invoice: all that is left, selected lines, or an amount."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice
from retainer.console.actions.action import Seen
from retainer.console.actions.basis import new_of
from retainer.console.actions.invoices import InvoiceAction
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.page_context import PageContext
from retainer.console.words import money
from retainer.documents.wording import unit_text
from retainer.errors import invalid
from retainer.schema.billing import ISSUED_INVOICES, credit_notes
from retainer.store.tx import Tx
from retainer.values.exact import decimal_text

FIELDS = choose_fields(CreditNote, credit_notes, "amount", "reason", "issue_date", "description")
LINE = "line_"
"""The prefix of the fields with quantities of lines."""


class Credit(InvoiceAction):
    """Issue a credit note."""

    path, label, title, button = "credit", "Credit…", "Credit {name}", "Issue credit note"
    operation = ("POST", "/invoices/{invoice_id}/credit-notes")
    audited = "credit note issued"
    is_reviewed = True

    def is_offered(self, record: Invoice) -> bool:
        return record.status in ISSUED_INVOICES and record.total > record.amount_credited

    def fields(self, record: Invoice) -> Sequence[Field]:
        amount, reason, day, description = FIELDS
        lines = list(creditable_lines(record))
        left = money(record.total - record.amount_credited, record.currency)
        what = {"everything": f"The full remaining amount, {left}", "lines": "Selected lines", "amount": "An amount"}
        options = tuple((value, text) for value, text in what.items() if value != "lines" or lines)
        return [
            Field("what", "What to credit", "choice", is_required=True, options=options),
            *lines,
            amount._replace(label=f"Amount with tax, {record.currency}", hint=""),
            reason,
            day._replace(label="Date", hint="Counts in reports on this date."),
            description._replace(label="Explanation", hint="Printed on the credit note."),
        ]

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        day = max(tx.today, record.issue_date or tx.today)
        return {"what": "everything", "reason": "correction", "issue_date": day}

    def build_body(self, record: Invoice, values: dict[str, object]) -> dict[str, object]:  # noqa: ARG002
        what, amount = values.pop("what", ""), values.pop("amount", None)
        names = [name for name in values if name.startswith(LINE)]
        parts = [{"invoice_line_id": int(name.removeprefix(LINE)), "quantity": values.pop(name)} for name in names]
        if what == "amount":
            if amount is None:
                raise invalid({"amount": ["Is required."]})
            return values | {"amount": amount}
        if what == "lines":
            if not parts:
                raise invalid({"what": ["Enter a quantity for at least one line."]})
            return values | {"lines": parts}
        if what != "everything":
            raise invalid({"what": ["Select what to credit."]})
        return values

    def field_of(self, path: str, body: dict[str, Any]) -> str:
        first, _, rest = path.partition(".")
        if first == "lines":
            return f"{LINE}{body['lines'][int(rest.partition('.')[0])]['invoice_line_id']}" if rest else "what"
        return path

    def run(self, tx: Tx, context: PageContext, record: Invoice, body: dict[str, object]) -> CreditNote:
        create = context.catalogue.operation(*self.operation).handler
        credited: CreditNote = create(tx, record.id, new_of(tx, CreditNote, body))
        return credited

    def sentences(self, seen: Seen[Invoice]) -> Iterator[str]:
        note, refund = seen.made, seen.made.refundable_amount
        owed = f", and {money(refund, note.currency)} was paid already: refund it to the client" if refund else ""
        yield f"{money(note.applied_amount, note.currency)} reduces the amount due{owed}."
        if seen.freed:
            yield f"Becomes billable again: {seen.freed}."
        if seen.before.quote_id and seen.after.total == seen.after.amount_credited:
            yield "Its quote can become another invoice."
        yield "A credit note is final: nothing can change it."

    def advice(self, record: Invoice) -> Sequence[str]:
        left = money(record.total - record.amount_credited, record.currency)
        return [f"You can credit up to {left}. It first reduces the amount due; anything beyond is a refund."]

    def document(self, seen: Seen[Invoice]) -> CreditNote:
        credited: CreditNote = seen.made
        return credited

    def notice(self, seen: Seen[Invoice]) -> str:
        note, refund = seen.made, seen.made.refundable_amount
        owed = f" Refund {money(refund, note.currency)} to the client." if refund else ""
        return f"{note.number} issued: {money(note.total, note.currency)} credited.{owed}"


def creditable_lines(invoice: Invoice) -> Iterator[Field]:
    """Yield a field for the quantity of each line that is not credited in full."""
    former = [part for credit_note in invoice.credit_notes for part in credit_note.lines]
    for line in invoice.lines:
        parts = [part for part in former if part.invoice_line_id == line.id]
        quantity = line.quantity - sum((part.quantity for part in parts), Decimal(0))
        if quantity:
            amount = line.amount - sum((part.amount for part in parts), Decimal(0))
            unit = f" {unit_text(line.unit, quantity, 'en')}" if line.unit else ""
            hint = f"Quantity, of {decimal_text(quantity)}{unit} left ({money(amount, line.currency)} before tax)."
            yield Field(f"{LINE}{line.id}", line.description, "number", hint=hint)
