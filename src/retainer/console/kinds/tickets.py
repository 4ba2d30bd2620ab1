"""Tickets: the thread of messages, and whose turn it is."""

from collections.abc import Iterator

from retainer.console.kinds.display import Display, RecordPage
from retainer.console.values import NOTHING, AnyBlock, Block, Column, Fact, Value
from retainer.console.words import span
from retainer.kernel.paging import Page, listing
from retainer.schema.crm import external_contacts
from retainer.schema.identity import users
from retainer.schema.support import ticket_replies
from retainer.support.ticket_replies import ReplyFilter, TicketReply
from retainer.support.tickets import Ticket
from retainer.values.parameters import read_whole

MESSAGES = 50
"""Replies of a thread on one page; the newest are shown first."""


def facts(page: RecordPage[Ticket]) -> list[Fact]:
    ticket = page.record
    found = []
    if ticket.awaiting:
        since = span(ticket.last_reply_at or ticket.created_at, page.context.now)
        party = "Us" if ticket.awaiting == "us" else ticket.requester_name or "Client"
        tone = "warn" if ticket.awaiting == "us" else ""
        waiting = "since just now" if since == "a moment" else f"for {since}"
        found.append(Fact("Waiting for", Value("text", party, tone=tone), note=waiting))
    found.append(Fact("Opened", page.value("created_at")._replace(kind="since")))
    assignee = page.value("assignee_id")
    found += page.facts("client_id", "priority")
    found.append(Fact("Assignee", Value("text", "Unassigned") if assignee == NOTHING else assignee))
    return found


def blocks(page: RecordPage[Ticket]) -> Iterator[AnyBlock]:
    ticket = page.record
    page.seen |= {"description", "contact_id", "requester_email", "last_reply_at", "last_reply_by"}
    last = max(1, -(-ticket.replies_count // MESSAGES))
    number = min(read_whole(page.context.query.text("page")) or last, last)
    order = Page(number, MESSAGES, ReplyFilter.sorts[:1], "", "")
    replies = listing(page.tx, ticket_replies, TicketReply, ReplyFilter(), order, ticket_id=page.own.id).data
    messages = [request(page)] if number == 1 else []
    messages += [message(page, reply) for reply in replies]
    older, newer = f"?page={number - 1}" if number > 1 else "", f"?page={number + 1}" if number < last else ""
    yield Block("thread", messages=messages, older=older, newer=newer)


def request(page: RecordPage[Ticket]) -> Block:
    ticket = page.record
    contact = page.value("contact_id")
    author = contact if contact != NOTHING else Value("text", ticket.requester_name or "Requester")
    text = ticket.description or ticket.subject
    at = page.context.moment(ticket.created_at)
    return Block("message", author=author, role="Client", at=at, text=text, is_internal=False)


def message(page: RecordPage[Ticket], reply: TicketReply) -> Block:
    """Return a reply as a message; a contact who was deleted leaves the name of the requester."""
    if reply.user_id is not None:
        author = Value("link", link=page.names.refer(users, reply.user_id))
    elif reply.contact_id is not None:
        author = Value("link", link=page.names.refer(external_contacts, reply.contact_id))
    else:
        author = Value("text", page.record.requester_name or "Requester")
    role = "Agency" if reply.author_type == "user" else "Client"
    at, text = page.context.moment(reply.created_at), reply.body
    return Block("message", author=author, role=role, at=at, text=text, is_internal=reply.is_internal)


DISPLAY = Display(
    columns=(
        *(Column("subject", "number", sort="number"), "client_id"),
        *("awaiting", "priority", "assignee_id", "created_at", "status"),
    ),
    filters=("status", "awaiting", "priority", "client_id"),
    views=(
        ("All", ""),
        ("Waiting for us", "awaiting=us&sort=last_reply_at"),
        ("Mine", "status=unresolved&assignee_id=me"),
        ("Unresolved", "status=unresolved"),
        ("Overdue", "overdue=true&sort=due_at"),
    ),
    facts=facts,
    blocks=blocks,
    rare=("requester_name", "requester_email"),
    forms=(("reply", "Reply", ()), ("handle", "Assign and schedule", ("status",))),
)
