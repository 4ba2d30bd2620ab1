"""The ticket page: the thread of messages, and whose turn it is."""

from collections.abc import Iterator

from retainer.console.actions.tickets import Handle, Reply
from retainer.console.records.blocks import Block, Fact, Message, ThreadBlock
from retainer.console.records.page import RecordPage
from retainer.console.records.values import NOTHING, Value, span
from retainer.kernel.paging import Page, listing
from retainer.schema.crm import external_contacts
from retainer.schema.identity import users
from retainer.schema.support import ticket_replies
from retainer.support.ticket_replies import ReplyFilter, TicketReply
from retainer.support.tickets import Ticket
from retainer.values.parameters import read_whole

MESSAGES = 50
"""Replies of a thread on one page; the newest are shown first."""
HIDDEN = frozenset(
    {
        *("subject", "description", "number", "status", "awaiting", "client_id", "assignee_id", "priority"),
        *("requester_name", "requester_email", "contact_id", "replies_count", "last_reply_at", "last_reply_by"),
    }
)


def facts(page: RecordPage) -> list[Fact]:
    """Return for whom the ticket waits, since when, and who is concerned."""
    ticket = page.record
    if not isinstance(ticket, Ticket):
        return []
    found = []
    if ticket.awaiting:
        since = span(ticket.last_reply_at or ticket.created_at, page.context.now)
        party = "Us" if ticket.awaiting == "us" else ticket.requester_name or "Client"
        tone = "warn" if ticket.awaiting == "us" else ""
        found.append(Fact("Waiting for", Value("text", party, tone=tone), note=f"for {since}"))
    found.append(Fact("Opened", Value("since", moment=page.context.moment(ticket.created_at))))
    assignee = page.value("assignee_id")
    found += page.facts("client_id", "priority")
    found.append(Fact("Assignee", Value("text", "Unassigned") if assignee == NOTHING else assignee))
    return found


def blocks(page: RecordPage) -> Iterator[Block]:
    """Yield the thread, which is the request itself and a page of the replies, and the forms to go on."""
    ticket = page.record
    if not isinstance(ticket, Ticket):
        return
    last = max(1, -(-ticket.replies_count // MESSAGES))
    number = min(read_whole(page.context.query.text("page")) or last, last)
    order = Page(number, MESSAGES, ReplyFilter.sorts[:1], "", "")
    replies = listing(page.tx, ticket_replies, TicketReply, ReplyFilter(), order, ticket_id=ticket.id).data
    messages = [request(page, ticket)] if number == 1 else []
    messages += [message(page, ticket, reply) for reply in replies]
    yield ThreadBlock(
        messages, f"?page={number - 1}" if number > 1 else "", f"?page={number + 1}" if number < last else ""
    )
    yield Reply(page.kind.name).block(page, ticket, "Reply")
    yield Handle(page.kind.name).block(page, ticket, "Assignment", "status")


def request(page: RecordPage, ticket: Ticket) -> Message:
    contact = page.value("contact_id")
    author = contact if contact != NOTHING else Value("text", ticket.requester_name or "Requester")
    text = ticket.description or ticket.subject
    return Message(author, "Client", page.context.moment(ticket.created_at), text, is_internal=False)


def message(page: RecordPage, ticket: Ticket, reply: TicketReply) -> Message:
    """Return a reply as a message; a contact who was deleted leaves the name of the requester."""
    if reply.user_id is not None:
        author = Value("link", link=page.names.refer(users, reply.user_id))
    elif reply.contact_id is not None:
        author = Value("link", link=page.names.refer(external_contacts, reply.contact_id))
    else:
        author = Value("text", ticket.requester_name or "Requester")
    role = "Agency" if reply.author_type == "user" else "Client"
    return Message(author, role, page.context.moment(reply.created_at), reply.body, reply.is_internal)
