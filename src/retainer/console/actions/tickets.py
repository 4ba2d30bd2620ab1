"""Actions on a ticket: reply to its requester or leave a note, and set its status, priority, assignee and due time."""

from collections.abc import Sequence
from typing import Any

from retainer.console.actions.action import Action, Seen
from retainer.console.actions.basis import new_of
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.labels import word_of
from retainer.console.page_context import PageContext
from retainer.errors import invalid
from retainer.schema.support import ticket_replies, tickets
from retainer.store.tx import Tx
from retainer.support.ticket_replies import TicketReply
from retainer.support.tickets import Ticket

REPLY = choose_fields(TicketReply, ticket_replies, "body", "is_internal", "status")
HANDLED = choose_fields(Ticket, tickets, "status", "priority", "assignee_id", "due_at", use="Update")


class Reply(Action[Ticket]):
    """Add a reply or an internal note."""

    path, label, title, button = "reply", "Reply", "Reply to ticket {name}", "Add reply"
    operation = ("POST", "/tickets/{ticket_id}/replies")
    audited = "ticket answered"
    is_inline = True

    def is_offered(self, record: Ticket) -> bool:  # noqa: ARG002
        return True

    def is_next(self, record: Ticket) -> bool:  # noqa: ARG002
        return True

    def fields(self, record: Ticket) -> Sequence[Field]:
        body, is_internal, status = REPLY
        hint = f"Only for colleagues. Otherwise it is a public reply to {record.requester_name or 'the requester'}."
        unchanged = ("", f"Unchanged: {word_of(record.status).lower()}")
        options = (unchanged, *status.options)
        return [
            body._replace(is_required=True),
            is_internal._replace(label="Internal note", hint=hint),
            status._replace(label="Status afterwards", hint="", is_required=True, options=options),
        ]

    def preset(self, tx: Tx, record: Ticket) -> dict[str, str]:  # noqa: ARG002
        return {}

    def build_body(self, record: Ticket, values: dict[str, object]) -> dict[str, object]:  # noqa: ARG002
        if not values.get("body"):
            raise invalid({"body": ["Enter a text."]})
        return values

    def run(self, tx: Tx, context: PageContext, record: Ticket, body: dict[str, object]) -> Any:
        create = context.catalogue.operation(*self.operation).handler
        return create(tx, record.id, new_of(tx, TicketReply, body))

    def advice(self, record: Ticket) -> Sequence[str]:
        first = ", and the time of the first response is fixed" if record.first_response_at is None else ""
        return [
            f"After a public reply, the ticket waits for the requester{first}. An internal note changes neither.",
            "Retainer sends no mail: your integration shows the reply. Replies can't be changed.",
        ]

    def notice(self, seen: Seen[Ticket]) -> str:
        said = "Note added" if seen.made.data.is_internal else "Reply added"
        changed = f", ticket {word_of(seen.after.status).lower()}" if seen.after.status != seen.before.status else ""
        return f"{said}{changed}."


class Handle(Action[Ticket]):
    """Set the status, the priority, the assignee and the due time."""

    path, label, title, button = "handle", "Status and assignee…", "Handle ticket {name}", "Save"
    operation = ("PATCH", "/tickets/{ticket_id}")

    def is_offered(self, record: Ticket) -> bool:  # noqa: ARG002
        return True

    def fields(self, record: Ticket) -> Sequence[Field]:  # noqa: ARG002
        return HANDLED

    def advice(self, record: Ticket) -> Sequence[str]:  # noqa: ARG002
        return [
            "Resolving or closing stops the response clock. Any other status opens the ticket again.",
            "A public reply of the requester opens a pending, resolved or closed ticket again.",
        ]

    def notice(self, seen: Seen[Ticket]) -> str:
        status = word_of(seen.after.status).lower()
        if seen.after.updated_at == seen.before.updated_at:
            return "Nothing was changed."
        return f"Ticket {seen.after.number} saved, {status}."
