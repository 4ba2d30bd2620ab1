"""The action that credits an issued invoice: all that is left, selected lines, or an amount."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice
from retainer.console.actions.action import Action, Seen, Stage, Wording
from retainer.console.actions.basis import new_of
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.values import Values
from retainer.console.words import money
from retainer.documents.wording import unit_text
from retainer.errors import invalid
from retainer.schema.billing import credit_notes
from retainer.store.tx import Tx
from retainer.values.exact import decimal_text

AMOUNT, REASON, DAY, DESCRIPTION = choose_fields(
    CreditNote, credit_notes, "amount", "reason", "issue_date", "description"
)
LINE = "line_"
"""The prefix of the fields with quantities of lines."""


class Credit(Action, frozen=True, kw_only=True):
    """Issue a credit note."""

    def fields_of(self, record: Invoice) -> Sequence[Field]:
        lines = list(creditable_lines(record))
        what = {"everything": f"The full remaining amount, {left_of(record)}", "amount": "An amount"}
        options = [*what.items(), *([("lines", "Selected lines")] if lines else [])]
        return [
            Field("what", "What to credit", "choice", is_required=True, options=tuple(options)),
            *lines,
            AMOUNT._replace(label=f"Amount with tax, {record.currency}", hint=""),
            REASON,
            DAY._replace(label="Date", hint="Counts in reports on this date."),
            DESCRIPTION._replace(label="Explanation", hint="Printed on the credit note."),
        ]

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        day = max(tx.today, record.issue_date or tx.today)
        return {"what": "everything", "reason": "correction", "issue_date": day}

    def build_body(self, _: Invoice, values: dict[str, Any]) -> dict[str, Any]:
        what, amount = values.pop("what", ""), values.pop("amount", None)
        names = [name for name in values if name.startswith(LINE)]
        parts = [{"invoice_line_id": int(name.removeprefix(LINE)), "quantity": values.pop(name)} for name in names]
        if what == "amount" and amount is None:
            raise invalid({"amount": ["Is required."]})
        if what == "lines" and not parts:
            raise invalid({"what": ["Enter a quantity for at least one line."]})
        if what not in {"everything", "lines", "amount"}:
            raise invalid({"what": ["Select what to credit."]})
        return values | {"amount": {"amount": amount}, "lines": {"lines": parts}}.get(what, {})

    def field_of(self, path: str, body: dict[str, Any]) -> str:
        first, _, rest = path.partition(".")
        if first == "lines":
            return f"{LINE}{body['lines'][int(rest.partition('.')[0])]['invoice_line_id']}" if rest else "what"
        return path

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        create = stage.context.catalogue.operation("POST", "/invoices/{invoice_id}/credit-notes").handler
        return create(stage.tx, stage.record.id, new_of(stage.tx, CreditNote, body))

    def facts(self, stage: Stage, seen: Seen, values: Values) -> Wording:
        return Wording(super().facts(stage, seen, values) | {"left": left_of(stage.record)})


def left_of(invoice: Invoice) -> str:
    return money(invoice.total - invoice.amount_credited, invoice.currency)


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
