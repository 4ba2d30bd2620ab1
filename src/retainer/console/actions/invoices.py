"""Actions on an invoice: issue a draft, void an invoice that nothing was paid on, write off what stays unpaid."""

from typing import Literal

from retainer.billing.file_facts import load_warnings
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.issuing import CLIENT, TRANSITIONS
from retainer.billing.invoices.types import Invoice
from retainer.console.actions import effects
from retainer.console.actions.basis import ActionPage, Change, Consequences, check_state, errors_of, note, patch_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.words import money, short_day
from retainer.identity.audit import Action, Target
from retainer.kernel.resource import read_id
from retainer.schema.billing import invoices
from retainer.shared.numbering import preview_document_number
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, day_after


def invoice_of(tx: Tx, context: PageContext) -> Invoice:
    return load_invoice(tx, read_id(context.path_parameters["invoice"], invoices))


def obstacle_to_issue(invoice: Invoice) -> str:
    """Return why an invoice cannot be issued; empty if it can."""
    if invoice.status != "draft":
        return f"It was issued before and is {effects.status_name(invoice.status)}."
    if not invoice.lines:
        return "It has no lines. Edit it and add one first."
    if invoice.total < 0:
        return f"Its total is {money(invoice.total, invoice.currency)}. Credit an earlier invoice instead."
    return ""


def obstacle_to_void(invoice: Invoice) -> str:
    """Return why an invoice cannot be voided; empty if it can."""
    if "void" in TRANSITIONS[invoice.status]:
        return ""
    reasons = {
        "draft": "It is a draft, which has no number yet. Delete it instead.",
        "void": "It is void already.",
        "written_off": "It was written off. Credit it instead.",
    }
    return reasons.get(invoice.status, "Something was paid or credited on it. Credit the rest instead.")


def obstacle_to_write_off(invoice: Invoice) -> str:
    """Return why an invoice cannot be written off; empty if it can."""
    if "written_off" in TRANSITIONS[invoice.status]:
        return ""
    name = "a draft" if invoice.status == "draft" else effects.status_name(invoice.status)
    return f"It is {name}, so nothing is open on it."


def show_issue(tx: Tx, context: PageContext) -> Reply:
    """Show what issuing a draft fixes: number, dates, client and amounts."""
    invoice, sentences, changes = invoice_of(tx, context), list[str](), list[Change]()
    page = ActionPage("invoice", invoices, "Issue invoice", obstacle_to_issue(invoice))
    if not page.obstacle:
        issued = invoice.issue_date or tx.today
        terms = (tx.one(CLIENT, id=invoice.client_id) or (0,))[0]
        due = invoice.due_date or day_after(issued, terms)
        number = preview_document_number(tx, invoices, issued)
        client = effects.client_name(tx, invoice.client_id)
        total = money(invoice.total, invoice.currency)
        is_paid = invoice.total == 0
        sentences = [
            f"{client} is billed {total}, due on {short_day(due)}."
            if not is_paid
            else f"The total is {total}, so the invoice is paid at once.",
            "Lines, amounts and the client's address are then fixed. Only a credit note can correct them.",
            "Retainer sends no mail: download the PDF afterwards, and send it.",
        ]
        changes = [
            effects.status_change("draft", "paid" if is_paid else "sent"),
            Change("Number", "none", number),
            Change("Issue date", short_day(issued) if invoice.issue_date else "none", short_day(issued)),
            Change("Due date", short_day(invoice.due_date) if invoice.due_date else "none", short_day(due)),
            effects.owed_change(tx, invoice, invoice.total),
        ]
    warnings = [] if page.obstacle else [warning.message for warning in load_warnings(tx, invoice)]
    return page.render(invoice, Consequences(sentences, changes), title="Issue this invoice?", warnings=warnings)


def show_void(tx: Tx, context: PageContext) -> Reply:
    """Show what voiding an invoice undoes, and what stays."""
    invoice, sentences, changes = invoice_of(tx, context), list[str](), list[Change]()
    page = ActionPage("invoice", invoices, "Void invoice", obstacle_to_void(invoice), is_danger=True)
    if not page.obstacle:
        work = effects.freed_work(tx, invoice.lines)
        sentences = [
            "The invoice no longer counts in any report. This can't be undone.",
            f"Its number {invoice.number} stays used, so that the series has no gap.",
            f"It frees {work} to be billed again." if work else "No work was billed on it, so none becomes free.",
            *(["Its quote can become another invoice."] if invoice.quote_id else []),
        ]
        changes = [
            effects.status_change(invoice.status, "void"),
            Change(
                "Balance due",
                money(invoice.balance_due, invoice.currency),
                money(amount_of(0, invoice.currency), invoice.currency),
            ),
            effects.owed_change(tx, invoice, -invoice.balance_due),
        ]
    return page.render(invoice, Consequences(sentences, changes), title=f"Void {invoice.number or 'draft'}?")


def show_write_off(tx: Tx, context: PageContext) -> Reply:
    """Show what writing off the balance of an invoice changes."""
    invoice, sentences, changes = invoice_of(tx, context), list[str](), list[Change]()
    page = ActionPage("invoice", invoices, "Write off", obstacle_to_write_off(invoice), is_danger=True)
    if not page.obstacle:
        sentences = [
            f"{money(invoice.balance_due, invoice.currency)} is no longer expected, or counted as open or overdue.",
            "Revenue stays as it was invoiced. To take it back as well, credit the invoice instead.",
            "If the client pays after all, record the payment: the invoice is then open or paid again.",
        ]
        changes = [
            effects.status_change(invoice.status, "written_off"),
            effects.owed_change(tx, invoice, -invoice.balance_due),
        ]
    title = f"Write off {invoice.number or 'draft'}?"
    return page.render(invoice, Consequences(sentences, changes), title=title)


def issue(tx: Tx, context: PageContext) -> Reply:
    """Issue a draft. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    invoice = set_status(tx, context, "sent", "invoice issued")
    notice = f"{invoice.number} issued. Download its PDF to send it."
    return context.redirect(f"/records/invoices/{invoice.id}", notice)


def void(tx: Tx, context: PageContext) -> Reply:
    """Void an invoice. Raises like `issue`."""
    invoice = set_status(tx, context, "void", "invoice voided")
    return context.redirect(f"/records/invoices/{invoice.id}", f"{invoice.number} is void.", kind="warn")


def write_off(tx: Tx, context: PageContext) -> Reply:
    """Write off the balance of an invoice. Raises like `issue`."""
    invoice = set_status(tx, context, "written_off", "invoice written off")
    notice = f"{money(invoice.balance_due, invoice.currency)} of {invoice.number} written off."
    return context.redirect(f"/records/invoices/{invoice.id}", notice, kind="warn")


def patch_invoice(tx: Tx, context: PageContext, invoice: Invoice, fields: dict[str, object]) -> Invoice:
    """Change an invoice through the API's own handler; return it."""
    update = context.catalogue.operation("PATCH", "/invoices/{invoice_id}").handler
    changed: Invoice = update(tx, invoice.id, patch_of(tx, Invoice, fields)).data
    return changed


def set_status(tx: Tx, context: PageContext, status: Literal["sent", "void", "written_off"], action: Action) -> Invoice:
    """Set the status of an invoice through the function of the API; return the invoice."""
    before = invoice_of(tx, context)
    check_state(invoices, before, context.form)
    with errors_of(tx):
        after = patch_invoice(tx, context, before, {"status": status})
    target = Target("invoice", after.id, after.number or "")
    note(tx, action, target, {"status": before.status}, {"status": after.status})
    return after
