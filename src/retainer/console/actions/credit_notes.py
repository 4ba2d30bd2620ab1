"""The action that credits an issued invoice: choose everything, lines or an amount, review the note, and issue it."""

from decimal import Decimal
from typing import NamedTuple

from retainer.billing.credit_notes import crediting
from retainer.billing.credit_notes.credit_notes import price_credit_note
from retainer.billing.credit_notes.types import CreditNote, Reason
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.console.actions import effects
from retainer.console.actions.basis import (
    ActionPage,
    Change,
    Consequences,
    check_state,
    errors_of,
    filled,
    new_of,
    note,
    options_of,
)
from retainer.console.actions.invoices import invoice_of
from retainer.console.forms import Form
from retainer.console.page_context import PageContext, Reply
from retainer.console.words import money, short_day
from retainer.errors import invalid
from retainer.identity.audit import Target
from retainer.schema.billing import ISSUED_INVOICES, invoices
from retainer.store.tx import Tx
from retainer.values.exact import decimal_text

FIELDS = ("amount", "issue_date", "reason", "description")
WHAT = {"everything": "Everything that is left", "lines": "Lines, or parts of them", "amount": "An amount"}


class CreditableLine(NamedTuple):
    """A line of the invoice with the quantity and the amount that are left to credit."""

    line: InvoiceLine
    field: str
    quantity: str
    amount: str


def obstacle_to_credit(invoice: Invoice) -> str:
    """Return why an invoice cannot be credited; empty if it can."""
    if invoice.status not in ISSUED_INVOICES:
        return "It is a draft. Change its lines instead." if invoice.status == "draft" else "It is void."
    return "" if invoice.total > invoice.amount_credited else "Nothing is left to credit."


def show(tx: Tx, context: PageContext) -> Reply:
    """Show what can be credited, with the form that chooses."""
    invoice = invoice_of(tx, context)
    page = ActionPage("credit", invoices, "Review credit note", obstacle_to_credit(invoice))
    left = money(invoice.total - invoice.amount_credited, invoice.currency)
    sentences = [
        f"{left} is left to credit. A credit note lowers what is due first; the rest is what you owe the client.",
        "The next page shows the credit note and everything it changes, before it is issued.",
    ]
    return page.render(
        invoice,
        Consequences(sentences, []),
        title=f"Credit {invoice.number or 'draft'}",
        what=WHAT,
        lines=creditable_lines(invoice),
        left=invoice.total - invoice.amount_credited,
        reasons=options_of(Reason),
        first_day=max(tx.today, invoice.issue_date or tx.today),
    )


def act(tx: Tx, context: PageContext) -> Reply:
    """Show the form again, review the credit note, or issue it. Raises like `issue` and `review`."""
    step = context.form.text("step")
    if step == "change":
        return show(tx, context)
    return issue(tx, context) if step == "issue" else review(tx, context)


def review(tx: Tx, context: PageContext) -> Reply:
    """Show the credit note that the form describes, and its consequences; nothing is written.

    Raises `not_found`, `precondition_failed`, and the errors of the API.
    """
    invoice, form = invoice_of(tx, context), context.form
    check_state(invoices, invoice, form)
    fields = read_fields(form, invoice)
    with errors_of(tx, names_of(form, invoice)):
        credited = price_credit_note(tx, new_of(tx, CreditNote, fields), invoice)
    work = effects.freed_work(tx, crediting.freed_lines(invoice, credited))
    applied = min(credited.total, invoice.balance_due)
    is_whole = credited.total == invoice.total - invoice.amount_credited
    refund, total = credited.total - applied, money(credited.total, credited.currency)
    sentences = [
        f"{money(applied, credited.currency)} lowers what is due"
        + (f", and {money(refund, credited.currency)} was paid already: refund it to the client." if refund else "."),
        f"It frees {work} to be billed again." if work else "The work on the invoice stays billed.",
        *(["Its quote can become another invoice."] if invoice.quote_id and is_whole else []),
        f"Reports count it on {short_day(credited.issue_date)}. A credit note is final: nothing can change it.",
    ]
    changes = [
        *effects.balance_changes(tx, invoice, invoice.amount_paid, invoice.amount_credited + credited.total),
        Change(
            "Credited",
            money(invoice.amount_credited, invoice.currency),
            money(invoice.amount_credited + credited.total, invoice.currency),
        ),
    ]
    page = ActionPage("credit_review", invoices, f"Issue credit note of {total}", "")
    return page.render(
        invoice,
        Consequences(sentences, changes),
        title=f"Credit {total} on {invoice.number}?",
        credited=credited,
        kept=[(name, text) for name in form.texts for text in [form.text(name)] if name not in {"step", "state"}],
    )


def issue(tx: Tx, context: PageContext) -> Reply:
    """Issue the credit note. Raises like `review`."""
    invoice, form = invoice_of(tx, context), context.form
    check_state(invoices, invoice, form)
    fields = read_fields(form, invoice)
    with errors_of(tx, names_of(form, invoice)):
        create = context.catalogue.operation("POST", "/invoices/{invoice_id}/credit-notes").handler
        credited: CreditNote = create(tx, invoice.id, new_of(tx, CreditNote, fields))
    names = ("total", "applied_amount", "refundable_amount")
    amounts = {name: f"{getattr(credited, name)} {credited.currency}" for name in names}
    target = Target("credit note", credited.id, credited.number)
    note(tx, "credit note issued", target, {}, {"invoice_id": invoice.id, "reason": credited.reason, **amounts})
    refund = credited.refundable_amount
    owed = f" Refund {money(refund, credited.currency)} to the client." if refund else ""
    notice = f"{credited.number} issued: {money(credited.total, credited.currency)} credited.{owed}"
    return context.redirect(f"/records/invoices/{invoice.id}", notice)


def creditable_lines(invoice: Invoice) -> list[CreditableLine]:
    found = []
    former = [part for credit_note in invoice.credit_notes for part in credit_note.lines]
    for line in invoice.lines:
        parts = [part for part in former if part.invoice_line_id == line.id]
        quantity = line.quantity - sum((part.quantity for part in parts), Decimal(0))
        if quantity:
            amount = line.amount - sum((part.amount for part in parts), Decimal(0))
            text = decimal_text(quantity)
            found.append(CreditableLine(line, field_of(line), text, money(amount, line.currency)))
    return found


def field_of(line: InvoiceLine) -> str:
    return f"line_{line.id}"


def chosen_lines(form: Form, invoice: Invoice) -> list[InvoiceLine]:
    return [line for line in invoice.lines if form.text(field_of(line))]


def read_fields(form: Form, invoice: Invoice) -> dict[str, object]:
    """Return the body of the credit note that a form describes. Raises `validation_failed` for an incomplete choice."""
    what = form.text("what")
    fields = filled(form, "issue_date", "reason", "description")
    if what == "amount":
        return {**fields, "amount": required(form, "amount")}
    if what == "lines":
        lines = chosen_lines(form, invoice)
        if not lines:
            raise invalid({"what": ["Enter a quantity for at least one line."]})
        parts = [{"invoice_line_id": line.id, "quantity": form.text(field_of(line))} for line in lines]
        return {**fields, "lines": parts}
    if what != "everything":
        raise invalid({"what": ["Select what to credit."]})
    return fields


def required(form: Form, name: str) -> str:
    """Return the text of a field. Raises `validation_failed` if it is blank."""
    if not form.text(name):
        raise invalid({name: ["Is required."]})
    return form.text(name)


def names_of(form: Form, invoice: Invoice) -> dict[str, str]:
    """Return the fields of the form by the names that the API's errors have."""
    lines = {f"lines.{place}.quantity": field_of(line) for place, line in enumerate(chosen_lines(form, invoice))}
    return {**{name: name for name in FIELDS}, **lines, "lines": "what"}
