"""Ticket replies: the thread of a ticket, oldest first. What was said stays said: replies are only added.

Each reply changes its ticket, internal ones too. A reply by the requester opens a ticket again that was pending,
resolved or closed. `status` and `assignee_id` of a reply are those that the ticket gets with it.
"""

from typing import Annotated

import msgspec
from sqlalchemy import bindparam, select

from retainer.kernel.body import New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource, WithMeta
from retainer.rollups import changes
from retainer.rollups.sources import REPLIES
from retainer.schema.crm import external_contacts
from retainer.schema.support import ticket_replies, tickets
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.support.tickets import Author, Status, Ticket, minutes_between, update_resolution
from retainer.values.kinds import Id, Text50000, UserId
from retainer.values.records import READ_ONLY, WRITE_ONLY, Record


class TicketReply(Record):
    """What somebody said about a ticket."""

    body: Annotated[Text50000, "Kept as it was sent: escape it before showing it as HTML."]
    ticket_id: Annotated[Id, "The ticket in the path."] = READ_ONLY
    author_type: Annotated[Author, "Whom it is from."] = "user"
    user_id: Annotated[Id | None, "The key's user if it is from a user, else null."] = READ_ONLY
    contact_id: Annotated[Id | None, "Only for replies by a contact: the ticket's when left out."] = None
    is_internal: Annotated[bool, "Seen by users alone, and no answer to the requester; contacts write none."] = False
    status: Annotated[Status, "What the ticket becomes with it; when left out, what its author makes of it."] = (
        WRITE_ONLY
    )
    assignee_id: Annotated[UserId | None, "Who handles the ticket from now on; when left out, who did before."] = (
        WRITE_ONLY
    )


class ReplyFilter(Filter):
    """Which replies of a ticket."""

    sorts = ("created_at",)
    is_internal: bool | None = None
    author_type: OneOf[Author] | None = None


class TicketChanged(msgspec.Struct):
    """What became of the ticket."""

    ticket: Annotated[Ticket, "The ticket as it is after the reply."]


CONTACT_CLIENT = select(external_contacts.c.client_id).where(external_contacts.c.id == bindparam("id"))


def prepare(tx: Tx, reply: TicketReply, ticket: Ticket) -> TicketReply:
    """Fill in who a reply is from: the key's user, or the ticket's contact; note an error of another's contact."""
    reply.ticket_id = ticket.id
    if reply.author_type == "user":
        reply.user_id = tx.actor.user_id
        if reply.contact_id is not None and tx.readable("author_type"):
            tx.error("contact_id", "Is only for replies with the author_type contact.")
        return reply
    client_id = tx.value(CONTACT_CLIENT, id=reply.contact_id) if reply.contact_id else None
    reply.contact_id = ticket.contact_id if reply.contact_id is None else reply.contact_id
    if client_id is not None and ticket.client_id is not None and client_id != ticket.client_id:
        tx.error("contact_id", f"Is a contact of client {client_id}; the ticket is client {ticket.client_id}'s.")
    if reply.is_internal:
        tx.error("is_internal", "Must be false: what contacts write is not internal.")
    return reply


def apply_to_ticket(tx: Tx, reply: TicketReply, ticket: Ticket) -> None:
    """Write to a ticket what a reply makes of it: the last reply, the first response, the status, the assignee."""
    former_status, former_assignee = ticket.status, ticket.assignee_id
    if not reply.is_internal:
        ticket.last_reply_at, ticket.last_reply_by = tx.now, reply.author_type
        if reply.author_type == "user" and ticket.first_response_at is None:
            ticket.first_response_at = tx.now
            ticket.first_response_minutes = minutes_between(ticket.created_at, tx.now)
        elif reply.author_type == "contact" and ticket.status != "on_hold":
            ticket.status = "open"
    ticket.status = reply.status or ticket.status
    if reply.assignee_id:
        ticket.assignee_id = reply.assignee_id
        relations.resolve_user(tx, ticket, "assignee_id", former_assignee)
    update_resolution(ticket, former_status, ticket.created_at, tx.now)


api = Resource("/tickets/{ticket_id}/replies", tag="Tickets", scope="tickets", table=ticket_replies, parent=tickets)


@api.get()
def list_ticket_replies(tx: Tx, ticket_id: Id, filters: ReplyFilter, page: Page) -> Paged[TicketReply]:
    """List the replies to a ticket, oldest first."""
    return listing(tx, ticket_replies, TicketReply, filters, page, ticket_id=ticket_id)


@api.post()
def create_ticket_reply(tx: Tx, ticket_id: Id, body: New[TicketReply]) -> WithMeta[TicketReply, TicketChanged]:
    """Reply to a ticket as the key's user, or as its contact; the ticket's new state is in meta.ticket."""
    ticket = tx.get(tickets, ticket_id, Ticket)
    reply = prepare(tx, body, ticket)
    apply_to_ticket(tx, reply, ticket)
    reply_id = changes.insert(tx, REPLIES, ticket_replies, reply)
    tx.update(tickets, ticket)
    if reply.is_internal:  # it may change nothing else of the ticket
        tx.touch(tickets, ticket_id)
    return WithMeta(tx.get(ticket_replies, reply_id, TicketReply), TicketChanged(tx.get(tickets, ticket_id, Ticket)))
