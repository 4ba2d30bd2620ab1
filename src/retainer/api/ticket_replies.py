"""Ticket replies: the thread of a ticket, oldest first. What was said stays said: replies are only added.

A reply by the requester opens a ticket again that was pending, resolved or closed. `status` and `assignee_id` of a
reply are those that the ticket gets with it.
"""

import msgspec
from sqlalchemy import Index, bindparam, select

from retainer.api.contacts import contacts
from retainer.api.tickets import Author, Status, Ticket, close, minutes_between, tickets
from retainer.domain import relations
from retainer.domain.values import Id, Text50000, UserId
from retainer.kernel.body import New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource, Told
from retainer.store.columns import flag, folded, ref, text
from retainer.store.records import Record, ro, wo
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

ticket_replies = tenant_table(
    "ticket_replies",
    *ref("ticket_id", "tickets", on_delete="cascade"),
    text("body"),
    text("author_type"),
    *ref("user_id", "users", optional=True),
    *ref("contact_id", "external_contacts", optional=True, on_delete="detach"),
    flag("is_internal"),
    folded("body", into="search"),
    Index(None, "account_id", "ticket_id", "created_at", "id"),
    Index(None, "account_id", "contact_id"),
)


class Reply(Record):
    """What somebody said about a ticket."""

    body: Text50000
    ticket_id: Id = ro
    author_type: Author = "user"
    user_id: Id | None = ro
    contact_id: Id | None = None
    is_internal: bool = False
    status: Status = wo
    assignee_id: UserId | None = wo


class ReplyFilter(Filter):
    """Which replies of a ticket."""

    sorts = ("created_at",)
    is_internal: bool | None = None
    author_type: OneOf[Author] | None = None


class TicketChanged(msgspec.Struct):
    """What became of the ticket."""

    ticket: Ticket


CONTACT = select(contacts.c.client_id).where(contacts.c.id == bindparam("id"))


def settle(tx: Tx, it: Reply, ticket: Ticket) -> Reply:
    """Who a reply is from: the key's user, or the ticket's contact."""
    it.ticket_id = ticket.id
    if it.author_type == "user":
        it.user_id = tx.actor.user_id
        if it.contact_id is not None and tx.knows("author_type"):
            tx.fault("contact_id", "Is only for replies with the author_type contact.")
        return it
    row = tx.one(CONTACT, id=it.contact_id) if it.contact_id else None
    it.contact_id = ticket.contact_id if it.contact_id is None else it.contact_id
    if row and ticket.client_id is not None and row[0] != ticket.client_id:
        tx.fault("contact_id", f"Is a contact of client {row[0]}; the ticket is client {ticket.client_id}'s.")
    if it.is_internal:
        tx.fault("is_internal", "Must be false: what contacts write is not internal.")
    return it


def answer(tx: Tx, it: Reply, ticket: Ticket) -> None:
    """What a reply makes of its ticket: whose turn it is, the first response, the status, the assignee."""
    former, assigned = ticket.status, ticket.assignee_id
    if not it.is_internal:
        ticket.last_reply_at, ticket.last_reply_by = tx.now, it.author_type
        if it.author_type == "user" and ticket.first_response_at is None:
            ticket.first_response_at = tx.now
            ticket.first_response_minutes = minutes_between(ticket.created_at, tx.now)
        elif it.author_type == "contact" and ticket.status != "on_hold":
            ticket.status = "open"
    ticket.status = it.status or ticket.status
    if it.assignee_id:
        ticket.assignee_id = it.assignee_id
        relations.user(tx, ticket, "assignee_id", assigned)
    close(ticket, former, ticket.created_at, tx.now)


api = Resource("/tickets/{ticket}/replies", tag="Tickets", scope="tickets", table=ticket_replies, parent=tickets)


@api.get()
def list_ticket_replies(tx: Tx, ticket: Id, only: ReplyFilter, page: Page) -> Paged[Reply]:
    """List the replies to a ticket, oldest first."""
    return listing(tx, ticket_replies, Reply, only, page, ticket_id=ticket)


@api.post()
def create_ticket_reply(tx: Tx, ticket: Id, body: New[Reply]) -> Told[Reply, TicketChanged]:
    """Reply to a ticket as the key's user, or as its contact; the ticket's new state is in meta.ticket."""
    its = tx.get(tickets, ticket, Ticket)
    it = settle(tx, body, its)
    answer(tx, it, its)
    reply = tx.insert(ticket_replies, it)
    tx.update(tickets, its)
    return Told(tx.get(ticket_replies, reply, Reply), TicketChanged(tx.get(tickets, ticket, Ticket)))
