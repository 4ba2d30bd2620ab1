"""Actions on a ticket: reply to its requester or leave a note, and set its status, priority, assignee and due time."""

from collections.abc import Sequence
from typing import Any

from retainer.console.actions.action import Action, Stage
from retainer.console.actions.basis import new_of
from retainer.console.editing.fields import Field, choose_fields
from retainer.console.labels import word_of
from retainer.errors import invalid
from retainer.schema.support import ticket_replies, tickets
from retainer.store.tx import Tx
from retainer.support.ticket_replies import TicketReply
from retainer.support.tickets import Ticket

BODY, IS_INTERNAL, STATUS = choose_fields(TicketReply, ticket_replies, "body", "is_internal", "status")


class Reply(Action, frozen=True, kw_only=True):
    """Add a reply or an internal note."""

    def fields_of(self, record: Ticket) -> Sequence[Field]:
        hint = f"Only for colleagues. Otherwise it is a public reply to {record.requester_name or 'the requester'}."
        unchanged = ("", f"Unchanged: {word_of(record.status).lower()}")
        return [
            BODY._replace(is_required=True),
            IS_INTERNAL._replace(label="Internal note", hint=hint),
            STATUS._replace(label="Status afterwards", hint="", is_required=True, options=(unchanged, *STATUS.options)),
        ]

    def preset(self, _tx: Tx, _record: Ticket) -> dict[str, str]:
        return {}

    def build_body(self, _: Ticket, values: dict[str, Any]) -> dict[str, Any]:
        if not values.get("body"):
            raise invalid({"body": ["Enter a text."]})
        return values

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        create = stage.context.catalogue.operation("POST", "/tickets/{ticket_id}/replies").handler
        return create(stage.tx, stage.record.id, new_of(stage.tx, TicketReply, body))


REPLY = Reply(
    path="reply",
    label="Reply",
    button="Add reply",
    when=lambda _: True,
    next_in=None,
    sentences=(
        "After a public reply, the ticket waits for the requester. An internal note does not change that.",
        "Retainer sends no mail: your integration shows the reply. Replies can't be changed.",
    ),
    notice=("Added to the ticket.", "It is {became} now."),
    audited="ticket answered",
    is_inline=True,
)
HANDLE = Action(
    path="handle",
    label="Status and assignee…",
    button="Save",
    when=lambda _: True,
    fields=tuple(choose_fields(Ticket, tickets, "status", "priority", "assignee_id", "due_at", use="Update")),
    sentences=(
        "Resolving or closing stops the response clock. Any other status opens the ticket again.",
        "A public reply of the requester opens a pending, resolved or closed ticket again.",
    ),
    notice=("Ticket {after.number} saved.", "It is {became} now."),
    unchanged="Nothing was changed.",
)
