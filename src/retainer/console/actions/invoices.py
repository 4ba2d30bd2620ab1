"""Actions on an invoice: issue a draft, void an invoice that nothing was paid on, write off what stays unpaid."""

from collections.abc import Iterator

from retainer.billing.invoices.invoices import TRANSITIONS
from retainer.billing.invoices.types import Invoice
from retainer.console.actions.action import Action, Seen
from retainer.console.words import money, short_day


class InvoiceAction(Action[Invoice]):
    """An action that changes an invoice."""

    operation = ("PATCH", "/invoices/{invoice_id}")

    def is_offered(self, record: Invoice) -> bool:
        return self.fixed["status"] in TRANSITIONS[record.status]


class Issue(InvoiceAction):
    """Give a draft its number, and make it final."""

    path, label, title, button = "issue", "Issue…", "Issue {name}?", "Issue invoice"
    fixed = {"status": "sent"}
    audited = "invoice issued"

    def is_next(self, record: Invoice) -> bool:  # noqa: ARG002
        return True

    def sentences(self, seen: Seen[Invoice]) -> Iterator[str]:
        total = money(seen.after.total, seen.after.currency)
        if seen.after.status == "paid":
            yield f"The total is {total}, so the invoice is paid at once."
        else:
            yield f"{seen.client} is billed {total}, due on {short_day(seen.after.due_date or '')}."
        yield "Lines, amounts and the client's address are then fixed. Only a credit note can correct them."
        yield "Retainer sends no mail: download the PDF afterwards, and send it."

    def notice(self, seen: Seen[Invoice]) -> str:
        return f"{seen.after.number} issued. Download its PDF to send it."


class WriteOff(InvoiceAction):
    """Stop expecting what is due."""

    path, label, title, button = "write-off", "Write off…", "Write off {name}?", "Write off"
    fixed = {"status": "written_off"}
    audited = "invoice written off"
    is_danger = True

    def sentences(self, seen: Seen[Invoice]) -> Iterator[str]:
        due = money(seen.before.balance_due, seen.before.currency)
        yield f"The {due} no longer count as open or overdue."
        yield "Revenue does not change. To reduce it too, issue a credit note."
        yield "If the client pays after all, record the payment: the invoice is then open or paid again."

    def notice(self, seen: Seen[Invoice]) -> str:
        return f"{money(seen.after.balance_due, seen.after.currency)} of {seen.after.number} written off."


class Void(InvoiceAction):
    """Cancel an invoice that nothing was paid on."""

    path, label, title, button = "void", "Void…", "Void {name}?", "Void invoice"
    fixed = {"status": "void"}
    instead = "Delete a draft, and credit what was paid or credited in part."
    audited = "invoice voided"
    is_danger = True

    def sentences(self, seen: Seen[Invoice]) -> Iterator[str]:
        yield "The invoice no longer counts in any report. This can't be undone."
        yield "The number is not reused."
        if seen.freed:
            yield f"Becomes billable again: {seen.freed}."
        if seen.before.quote_id:
            yield "Its quote can become another invoice."

    def notice(self, seen: Seen[Invoice]) -> str:
        return f"{seen.after.number} is void."
