"""Ticket replies: the thread of a ticket, oldest first. Replies are never changed or deleted.

Each reply changes its ticket, even an internal one. A public reply by a contact opens a pending, resolved or closed
ticket. `status` and `assignee_id` of a reply are set on the ticket.
"""

from typing import Annotated

import msgspec

from retainer.errors import FALSE, part
from retainer.kernel.answers import WithMeta
from retainer.kernel.body import New
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema.crm import external_contacts
from retainer.schema.support import ticket_replies, tickets
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.support.tickets import Author, Status, Ticket, update_resolution
from retainer.values.exact import minutes_between
from retainer.values.kinds import Id, Text50000, UserId
from retainer.values.records import READ_ONLY, WRITE_ONLY, Record


class TicketReply(Record):
    """A reply to a ticket, or an internal note on it."""

    body: Annotated[Text50000, "Stored as sent: escape it before you show it as HTML."]
    ticket_id: Annotated[Id, "The ticket in the path."] = READ_ONLY
    author_type: Annotated[Author, "Author of the reply."] = "user"
    user_id: Annotated[Id | None, "The key's user if the author is a user, else null."] = READ_ONLY
    contact_id: Annotated[Id | None, "Only for replies by a contact. Default: the contact of the ticket."] = None
    is_internal: Annotated[bool, "A note for users, not an answer to the requester. False for replies by contacts."] = (
        False
    )
    status: Annotated[
        Status, "New status of the ticket. Default: `open` after a public reply by a contact, unless `on_hold`."
    ] = WRITE_ONLY
    assignee_id: Annotated[UserId | None, "New assignee of the ticket. Default: unchanged."] = WRITE_ONLY


class ReplyFilter(Filter):
    sorts = ("created_at",)
    is_internal: bool | None = None
    author_type: OneOf[Author] | None = None


class TicketChanged(msgspec.Struct):
    """What a reply has changed."""

    ticket: Annotated[Ticket, "The ticket after the reply."]


def build_reply(tx: Tx, reply: TicketReply, ticket: Ticket) -> TicketReply:
    """Return a reply with its ticket and author: the key's user, or the ticket's contact. Notes every error."""
    reply.ticket_id = ticket.id
    if reply.author_type == "user":
        reply.user_id = tx.actor.user_id
        if reply.contact_id is not None and tx.readable("author_type"):
            tx.error("contact_id", f"Is only for replies with the {part('author_type')} contact.")
        return reply
    contact = relations.load_row(tx, relations.Parent, external_contacts, reply.contact_id)
    reply.contact_id = ticket.contact_id if reply.contact_id is None else reply.contact_id
    if contact and ticket.client_id not in {None, contact.client_id}:
        message = f"Is a contact of client {contact.client_id}; the ticket belongs to client {ticket.client_id}."
        tx.error("contact_id", message)
    if reply.is_internal:
        tx.error("is_internal", f"Must be {FALSE} for replies by contacts.")
    return reply


def build_ticket_after(tx: Tx, reply: TicketReply, ticket: Ticket) -> Ticket:
    """Return the ticket after a reply: last reply, first response, status and assignee. Notes every error."""
    former_status = ticket.status
    if not reply.is_internal:
        ticket.last_reply_at, ticket.last_reply_by = tx.now, reply.author_type
        if reply.author_type == "user" and ticket.first_response_at is None:
            ticket.first_response_at = tx.now
            ticket.first_response_minutes = minutes_between(ticket.created_at, tx.now)
        elif reply.author_type == "contact" and ticket.status != "on_hold":
            ticket.status = "open"
    ticket.status = reply.status or ticket.status
    if reply.assignee_id:
        ticket.assignee_id = relations.read_user(tx, "assignee_id", reply.assignee_id, ticket.assignee_id)
    update_resolution(ticket, former_status, ticket.created_at, tx.now)
    return ticket


api = Resource("/tickets/{ticket_id}/replies", tag="Tickets", scope="tickets", table=ticket_replies, parent=tickets)
api.lists(TicketReply, ReplyFilter, "List the replies to a ticket, oldest first.")


@api.post()
def create_ticket_reply(tx: Tx, ticket_id: Id, body: New[TicketReply]) -> WithMeta[TicketReply, TicketChanged]:
    """Reply to a ticket as the key's user, or as its contact; `meta.ticket` is the changed ticket."""
    ticket = tx.get(tickets, ticket_id, Ticket)
    reply = build_reply(tx, body, ticket)
    ticket = build_ticket_after(tx, body, ticket)
    reply_id = changes.insert(tx, ticket_replies, reply)
    tx.update(tickets, ticket, "replies_count")
    if reply.is_internal:  # the ticket's own row may be unchanged
        tx.touch(tickets, ticket_id, "replies_count")
    return WithMeta(tx.get(ticket_replies, reply_id, TicketReply), TicketChanged(tx.get(tickets, ticket_id, Ticket)))
