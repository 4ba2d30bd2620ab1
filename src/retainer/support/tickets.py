"""Tickets: requests of clients, and when they were answered and resolved.

The client follows from the contact, the site or the project; the contact from the client and the requester's address. A
resolved or closed ticket that becomes open again is reopened. `awaiting` is `us` until a user replies in public, then
`requester`, and null once the ticket is resolved. `first_response_minutes` and `resolution_minutes` count from the
creation. Descriptions and replies are stored as sent; escape them before you show them as HTML.
"""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, Text, and_, bindparam, case, cast, literal, or_, select

from retainer.crm.tags import TagFilter, TagIds, insert_tagged, update_tagged
from retainer.errors import LEAVE_OUT, part
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema.columns import in_literals
from retainer.schema.crm import external_contacts
from retainer.schema.filters import Where, one_of_folded, searched, truth
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.shared.numbering import next_ticket_number
from retainer.store.row_mapper import Derived
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Minutes, Priority
from retainer.values.exact import minutes_between
from retainer.values.kinds import Code191, Email, FullName, Id, Instant, Searched, Text255, Text50000, UserId
from retainer.values.records import READ_ONLY, MustMatch, Record

UNRESOLVED = ("open", "pending", "on_hold")

Status = Annotated[
    Literal["open", "pending", "on_hold", "resolved", "closed"],
    Meta(title="TicketStatus"),
    "Every change is possible. A public reply by a contact opens a `pending`, `resolved` or `closed` ticket.",
]
StatusFilter = Annotated[
    Literal["open", "pending", "on_hold", "resolved", "closed", "unresolved"], Meta(title="TicketStatusFilter")
]
Type = Annotated[
    Literal["question", "incident", "problem", "change_request", "task"],
    Meta(title="TicketType"),
    "Kind of request. It has no other effect.",
]
Author = Annotated[
    Literal["user", "contact"], Meta(title="ReplyAuthor"), "A `user` of the agency, or a `contact` at the client."
]
Awaiting = Annotated[
    Literal["us", "requester"],
    Meta(title="TicketAwaiting"),
    "Who has to answer: `requester` after a public reply by a user, else `us`; null once resolved or closed.",
]


def is_unresolved(table: Table) -> ColumnElement[bool]:
    return in_literals(table.c.status, UNRESOLVED)


def awaiting_party(table: Table) -> ColumnElement[str | None]:
    """Return which party has to answer, as an expression; null once a ticket is resolved or closed."""
    return case(
        (and_(is_unresolved(table), table.c.last_reply_by == "user"), "requester"), (is_unresolved(table), "us")
    )


def is_unanswered(table: Table) -> ColumnElement[bool]:
    return and_(is_unresolved(table), table.c.first_response_at.is_(None))


def is_overdue(table: Table) -> ColumnElement[bool]:
    return and_(is_unresolved(table), table.c.due_at < NOW)


def has_status(table: Table, statuses: list[BindParameter[str]]) -> ColumnElement[bool]:
    return or_(table.c.status.in_(statuses), and_(literal("unresolved").in_(statuses), is_unresolved(table)))


def contains_text(table: Table, text: BindParameter[str]) -> ColumnElement[bool]:
    return or_(table.c.search.contains(text, escape="/"), cast(table.c.number, Text).contains(text, escape="/"))


NUMBERED = MustMatch(f"Retainer assigns the number. {LEAVE_OUT}; use {part('external_id')} for a number of your own.")


class Ticket(Record):
    """A request of a client."""

    subject: Annotated[Text255, "The topic, in one line."]
    description: Annotated[Text50000 | None, "The request, stored as sent: escape it before you show it as HTML."] = (
        None
    )
    number: Annotated[int, NUMBERED, "Number for people, from 1001 in each account; `id` is for programs."] = READ_ONLY
    client_id: Annotated[Id | None, "Follows from contact, site or project, and must match them."] = None
    contact_id: Annotated[Id | None, "Contact who opened the ticket. Becomes null when the contact is deleted."] = None
    site_id: Annotated[Id | None, "Site that the ticket is about. Becomes null when it is deleted."] = None
    project_id: Annotated[Id | None, "Project that the ticket belongs to. Becomes null when it is deleted."] = None
    requester_name: Annotated[
        FullName | None, "Name of the requester. Default: the contact's. Kept when the contact is deleted."
    ] = None
    requester_email: Annotated[
        Email | None,
        "Address of the requester. Default: the contact's. The address of a client's contact sets `contact_id`. "
        "Requesters get no mail.",
    ] = None
    status: Status = "open"
    priority: Priority = "normal"
    type: Type = "question"
    assignee_id: Annotated[UserId | None, "Active user who handles the ticket; null: unassigned."] = None
    due_at: Annotated[
        Instant | None, "When the ticket should be resolved. After it, an unresolved ticket is overdue."
    ] = None
    first_response_at: Annotated[Instant | None, "When a user first replied in public; null before."] = READ_ONLY
    first_response_minutes: Annotated[
        Minutes | None, "From creation to the first public reply by a user, rounded half up."
    ] = READ_ONLY
    resolved_at: Annotated[Instant | None, "When the ticket was resolved or closed; null while it is open."] = READ_ONLY
    closed_at: Annotated[Instant | None, "When the ticket became `closed`, else null."] = READ_ONLY
    resolution_minutes: Annotated[
        Minutes | None, "From creation to `resolved_at`, rounded half up; null while the ticket is open."
    ] = READ_ONLY
    reopened_count: Annotated[int, "Number of times that the ticket was reopened."] = READ_ONLY
    last_reply_at: Annotated[Instant | None, "Time of the last public reply; null without one."] = READ_ONLY
    last_reply_by: Annotated[Author | None, "Author of the last public reply."] = READ_ONLY
    awaiting: Annotated[Awaiting | None, Derived(awaiting_party)] = READ_ONLY
    replies_count: Annotated[int, "Number of replies, public and internal."] = READ_ONLY
    tracked_minutes: Annotated[Minutes, "Time on the ticket, billable or not."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []


class TicketFilter(Filter):
    sorts = ("-created_at", "updated_at", "last_reply_at", "priority", "due_at", "number")
    q: Annotated[
        Searched | None,
        Where(contains_text, searched),
        "Tickets whose number, subject or description contains this text, ignoring case.",
    ] = None
    status: Annotated[
        OneOf[StatusFilter] | None,
        Where(has_status),
        "Records with one of these `status` values; `unresolved` stands for `open`, `pending` and `on_hold`.",
    ] = None
    priority: OneOf[Priority] | None = None
    type: OneOf[Type] | None = None
    client_id: OneOf[Id | None] | None = None
    contact_id: OneOf[Id] | None = None
    requester_email: Annotated[OneOf[Email] | None, one_of_folded("requester_email", is_small=True)] = None
    site_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    assignee_id: OneOf[UserId | None] | None = None
    awaiting: Annotated[
        OneOf[Awaiting] | None,
        Where(lambda table, parties: awaiting_party(table).in_(parties)),
        "Unresolved tickets that one of these has to answer.",
    ] = None
    unanswered: Annotated[bool | None, truth(is_unanswered, "unresolved tickets that no user has answered")] = None
    overdue: Annotated[bool | None, truth(is_overdue, "unresolved tickets whose `due_at` has passed")] = None
    number: OneOf[Id] | None = None
    external_id: OneOf[Code191] | None = None
    tag_id: TagFilter = None


class Requester(NamedTuple):
    id: int
    client_id: int
    name: str
    email: str | None


CONTACT_BY_EMAIL = select(*external_contacts.c[Requester._fields]).where(
    external_contacts.c.client_id == bindparam("client"), external_contacts.c.email_folded == bindparam("email")
)
RELATIONS = ("client_id", "project_id", "site_id", "contact_id")


def build_ticket(tx: Tx, ticket: Ticket, before: Ticket | None, sent: relations.SentFields) -> Ticket:
    if relations.sets_any(before, sent, *RELATIONS):
        derive_client(tx, ticket, before, sent)
    derive_contact(tx, ticket, before, sent)
    former_id = before.assignee_id if before else None
    ticket.assignee_id = relations.read_user(tx, "assignee_id", ticket.assignee_id, former_id)
    update_resolution(ticket, before.status if before else "open", before.created_at if before else tx.now, tx.now)
    field = relations.first_sent(ticket, sent, *RELATIONS)
    relations.validate_client_open(tx, field, ticket, before)
    return ticket


def derive_client(tx: Tx, ticket: Ticket, before: Ticket | None, sent: relations.SentFields) -> None:
    """Derive the client from project, site and contact, and the requester from a new contact."""
    project = relations.load_row(tx, relations.Parent, projects, ticket.project_id)
    if project:
        relations.inherit(tx, ticket, sent, "project_id", "client_id", project.client_id)
    site = relations.load_row(tx, relations.Parent, sites, ticket.site_id)
    if site and site.client_id is not None:
        relations.inherit(tx, ticket, sent, "site_id", "client_id", site.client_id)
    contact = relations.load_row(tx, Requester, external_contacts, ticket.contact_id)
    if contact:
        relations.inherit(tx, ticket, sent, "contact_id", "client_id", contact.client_id)
        if before is None or ticket.contact_id != before.contact_id:
            derive_requester(ticket, contact, sent)


def derive_requester(ticket: Ticket, contact: Requester, sent: relations.SentFields) -> None:
    ticket.requester_name = ticket.requester_name if "requester_name" in sent else contact.name
    ticket.requester_email = ticket.requester_email if "requester_email" in sent else contact.email


def derive_contact(tx: Tx, ticket: Ticket, before: Ticket | None, sent: relations.SentFields) -> None:
    """Derive the contact from a new address of the requester, unless a contact was sent."""
    email = ticket.requester_email
    is_new = before is None or email != before.requester_email
    if email is None or ticket.client_id is None or "contact_id" in sent or "requester_email" not in sent or not is_new:
        return
    row = tx.one(CONTACT_BY_EMAIL, client=ticket.client_id, email=email.casefold())
    if row and tx.readable("contact_id", "requester_name"):
        contact = Requester(*row)
        ticket.contact_id = contact.id
        derive_requester(ticket, contact, sent)


def update_resolution(ticket: Ticket, former_status: str, created_at: str, now: str) -> None:
    """Fill in when a ticket was resolved and closed, and after how many minutes; count a reopening."""
    if ticket.status in UNRESOLVED:
        ticket.reopened_count += former_status not in UNRESOLVED
        ticket.resolved_at = ticket.closed_at = ticket.resolution_minutes = None
        return
    ticket.closed_at = (ticket.closed_at or now) if ticket.status == "closed" else None
    if ticket.resolved_at is None:
        ticket.resolved_at, ticket.resolution_minutes = now, minutes_between(created_at, now)


api = Resource("/tickets", tag="Tickets", scope="tickets", table=tickets)
api.lists(Ticket, TicketFilter, "List tickets, newest first.")


@api.post()
def create_ticket(tx: Tx, body: New[Ticket]) -> Ticket:
    """Create a ticket. The client follows from contact, site or project, the requester from the contact."""
    body.number, body.reopened_count = next_ticket_number(tx), 0
    return insert_tagged(tx, tickets, build_ticket(tx, body, None, relations.sent_fields(body)))


api.reads("/{ticket_id}", Ticket, "Read a ticket; its replies are at `/tickets/{ticket_id}/replies`.")


@api.put("/{ticket_id}")
@api.patch("/{ticket_id}")
def update_ticket(tx: Tx, ticket_id: Id, patch: Patch[Ticket]) -> Ticket:
    """Change a ticket; omitted fields keep their value."""
    before = tx.get(tickets, ticket_id, Ticket)
    after = build_ticket(tx, patch.apply_to(before), before, patch.given)
    moved = [name for name in ("project_id", "client_id") if getattr(after, name) != getattr(before, name)]
    if moved:
        relations.validate_no_time(tx, "ticket", ticket_id, moved[0])
    return update_tagged(tx, tickets, before, after)


@api.delete("/{ticket_id}")
def delete_ticket(tx: Tx, ticket_id: Id) -> None:
    """Delete a ticket with its replies; its time and tasks stay, without a ticket."""
    changes.delete(tx, tickets, tx.get(tickets, ticket_id, Ticket))
