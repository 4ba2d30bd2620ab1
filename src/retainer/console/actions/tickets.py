"""Actions on a ticket: reply to its requester, leave a note for colleagues, and set its status."""

from retainer.console.actions import effects
from retainer.console.actions.basis import (
    ActionPage,
    Consequences,
    check_state,
    errors_of,
    filled,
    new_of,
    note,
    options_of,
    patch_of,
)
from retainer.console.page_context import PageContext, Reply
from retainer.errors import invalid
from retainer.identity.audit import Target
from retainer.kernel.resource import WithMeta, read_id
from retainer.schema.support import tickets
from retainer.store.tx import Tx
from retainer.support.ticket_replies import TicketChanged, TicketReply
from retainer.support.tickets import UNRESOLVED, Status, Ticket

STATUSES = options_of(Status)


def ticket_of(tx: Tx, context: PageContext) -> Ticket:
    return tx.get(tickets, read_id(context.path_parameters["ticket"], tickets), Ticket)


def show_reply(tx: Tx, context: PageContext) -> Reply:
    """Show the form of a reply, and what a public one changes."""
    ticket = ticket_of(tx, context)
    page = ActionPage("ticket_reply", tickets, "Add reply", "")
    is_first = ticket.first_response_at is None
    sentences = [
        "A public reply is for the requester: the ticket then waits for them"
        + (", and the time of the first response is fixed." if is_first else "."),
        "An internal note is for colleagues, and the ticket still waits for the same side.",
        "Retainer sends no mail: the requester sees a reply where your integration shows it. Replies can't be changed.",
    ]
    title = f"Reply to ticket {ticket.number}"
    return page.render(ticket, Consequences(sentences, []), title=title, statuses=STATUSES)


def reply(tx: Tx, context: PageContext) -> Reply:
    """Add a reply. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    before, form = ticket_of(tx, context), context.form
    check_state(tickets, before, form)
    is_internal = form.text("visibility") == "internal"
    if form.text("visibility") not in {"public", "internal"}:
        raise invalid({"visibility": ["Select who can read it."]})
    if not form.text("body").strip():
        raise invalid({"body": ["Enter a text."]})
    fields = {"body": form.text("body"), "is_internal": is_internal, **filled(form, "status")}
    with errors_of(tx, {"body": "body", "status": "status"}):
        create = context.catalogue.operation("POST", "/tickets/{ticket_id}/replies").handler
        answered: WithMeta[TicketReply, TicketChanged] = create(tx, before.id, new_of(tx, TicketReply, fields))
    after = answered.meta.ticket
    note(
        tx,
        "ticket answered",
        target_of(after),
        {"status": before.status},
        {"status": after.status, "reply_id": answered.data.id, "is_internal": is_internal},
    )
    said = "Note added" if is_internal else "Reply added"
    changed = f", ticket {effects.status_name(after.status)}" if after.status != before.status else ""
    return context.redirect(f"/records/tickets/{after.id}", f"{said}{changed}.")


def show_status(tx: Tx, context: PageContext) -> Reply:
    """Show the statuses that a ticket can get, and what they mean."""
    ticket = ticket_of(tx, context)
    page = ActionPage("ticket_status", tickets, "Set status", "")
    sentences = [
        f"The ticket is {effects.status_name(ticket.status)} now. Resolved and closed stop the clock, and the ticket "
        "waits for nobody."
        if ticket.status in UNRESOLVED
        else f"The ticket is {effects.status_name(ticket.status)} now. Any other status than resolved or closed opens "
        "it again, and counts as reopened.",
        "A public reply of the requester opens a pending, resolved or closed ticket again.",
    ]
    title = f"Set the status of ticket {ticket.number}"
    return page.render(ticket, Consequences(sentences, []), title=title, statuses=STATUSES)


def set_status(tx: Tx, context: PageContext) -> Reply:
    """Set the status of a ticket. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    before, form = ticket_of(tx, context), context.form
    check_state(tickets, before, form)
    with errors_of(tx, {"status": "status"}):
        update = context.catalogue.operation("PATCH", "/tickets/{ticket_id}").handler
        after: Ticket = update(tx, before.id, patch_of(tx, Ticket, {"status": form.text("status")}))
    path = f"/records/tickets/{after.id}"
    name = effects.status_name(after.status)
    if after.status == before.status:
        return context.redirect(path, f"The ticket was {name} before, so nothing was changed.", kind="warn")
    note(tx, "ticket status set", target_of(after), {"status": before.status}, {"status": after.status})
    return context.redirect(path, f"Ticket {after.number} is {name}.")


def target_of(ticket: Ticket) -> Target:
    return Target("ticket", ticket.id, f"{ticket.number} · {ticket.subject}")
