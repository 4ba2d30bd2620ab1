"""Tickets: what clients ask for, and how it was answered.

The client follows from the contact, the site or the project; the contact from the client and the requester's address. A
ticket that is resolved or closed and becomes open again was reopened. `awaiting` says whose turn it is: `us` until a
user has replied in public, the `requester` then, nobody's once it is resolved. `first_response_minutes` and
`resolution_minutes` count from the creation. Descriptions and replies are kept as they were sent; clients that show
them as HTML must escape them.
"""

from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, Text, and_, bindparam, case, cast, literal, or_, select

from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients, external_contacts
from retainer.schema.filters import Where, searched, truth
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.shared.numbering import increment_series
from retainer.store.records import Derived
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Priority
from retainer.values.exact import half_up
from retainer.values.kinds import Email, Id, Instant, Text191, Text255, Text50000, UserId
from retainer.values.records import READ_ONLY, Record, Stated
from retainer.work import propagation

FIRST_NUMBER = 1001
UNRESOLVED = ("open", "pending", "on_hold")


Status = Annotated[
    Literal["open", "pending", "on_hold", "resolved", "closed"],
    Meta(title="TicketStatus"),
    "Any can become any. A public reply by a contact opens what is `pending`, `resolved` or `closed`.",
]
StatusFilter = Annotated[
    Literal["open", "pending", "on_hold", "resolved", "closed", "unresolved"], Meta(title="TicketStatusFilter")
]
Type = Annotated[
    Literal["question", "incident", "problem", "change_request", "task"],
    Meta(title="TicketType"),
    "What kind of request it is; nothing else follows from it.",
]
Author = Annotated[
    Literal["user", "contact"], Meta(title="ReplyAuthor"), "A `user` of the agency, or a `contact` at the client."
]
Awaiting = Annotated[
    Literal["us", "requester"],
    Meta(title="TicketAwaiting"),
    "Whose turn it is: `requester` after a public reply by a user, else `us`; null once resolved or closed.",
]


def is_unresolved(table: Table) -> ColumnElement[bool]:
    """Whether a ticket is neither resolved nor closed."""
    return in_literals(table.c.status, UNRESOLVED)


def awaiting_party(table: Table) -> ColumnElement[str | None]:
    """Return whose turn it is, as an expression; null once a ticket is resolved or closed."""
    return case(
        (and_(is_unresolved(table), table.c.last_reply_by == "user"), "requester"), (is_unresolved(table), "us")
    )


def is_unanswered(table: Table) -> ColumnElement[bool]:
    """Whether no user has replied in public to a ticket that is not resolved."""
    return and_(is_unresolved(table), table.c.first_response_at.is_(None))


def is_overdue(table: Table) -> ColumnElement[bool]:
    """Whether a ticket should be resolved by now."""
    return and_(is_unresolved(table), table.c.due_at < NOW)


def has_status(table: Table, statuses: list[BindParameter[str]]) -> ColumnElement[bool]:
    """Whether a ticket has one of these statuses, or is unresolved when `unresolved` is one of them."""
    return or_(table.c.status.in_(statuses), and_(literal("unresolved").in_(statuses), is_unresolved(table)))


def contains_text(table: Table, text: BindParameter[str]) -> ColumnElement[bool]:
    """Whether a text occurs in a ticket or in its number."""
    return or_(table.c.search.contains(text, escape="/"), cast(table.c.number, Text).contains(text, escape="/"))


NUMBERED = Stated("Retainer numbers it. Leave it out; external_id takes a number of your own.")


class Ticket(Record):
    """What a client asks for."""

    subject: Annotated[Text255, "What it is about, in one line."]
    description: Annotated[
        Text50000 | None, "What was asked, kept as it was sent: escape it before showing it as HTML."
    ] = None
    number: Annotated[int, NUMBERED, "Counts from 1001 in each account; for people, where `id` is for programs."] = (
        READ_ONLY
    )
    client_id: Annotated[Id | None, "Follows from contact, site or project, and must agree with them."] = None
    contact_id: Annotated[Id | None, "Contact who opened the ticket; null again when the contact is deleted."] = None
    site_id: Annotated[Id | None, "Site that it is about; null again when that is deleted."] = None
    project_id: Annotated[Id | None, "Project that it belongs to; null again when that is deleted."] = None
    requester_name: Annotated[
        Text191 | None, "Name of the requester; the contact's if left out, and kept when the contact is deleted."
    ] = None
    requester_email: Annotated[
        Email | None,
        "Where to answer; the contact's when left out. That of a contact of the client makes it the `contact_id`. "
        "Retainer sends no mail itself.",
    ] = None
    status: Status = "open"
    priority: Priority = "normal"
    type: Type = "question"
    assignee_id: Annotated[UserId | None, "User who handles it, active when chosen; null: nobody yet."] = None
    due_at: Annotated[Instant | None, "When it should be resolved; from then on it is overdue unless it is."] = None
    first_response_at: Annotated[Instant | None, "When a user first replied in public; null until then."] = READ_ONLY
    first_response_minutes: Annotated[
        int | None, "From creation to the first public reply by a user, rounded half up."
    ] = READ_ONLY
    resolved_at: Annotated[
        Instant | None, "When it was resolved or closed at first since it was last open; null while it is open."
    ] = READ_ONLY
    closed_at: Annotated[Instant | None, "When it became `closed`, else null."] = READ_ONLY
    resolution_minutes: Annotated[
        int | None, "From creation to `resolved_at`, rounded half up; null while it is open."
    ] = READ_ONLY
    reopened_count: Annotated[int, "How often it was opened again after it was resolved or closed."] = READ_ONLY
    last_reply_at: Annotated[Instant | None, "When the last public reply was made; null without any."] = READ_ONLY
    last_reply_by: Annotated[Author | None, "Whom the last public reply is from."] = READ_ONLY
    awaiting: Annotated[Awaiting | None, Derived(awaiting_party)] = READ_ONLY
    replies_count: Annotated[int, "Public and internal replies together."] = READ_ONLY
    tracked_minutes: Annotated[int, "Time that was recorded on it, billable or not."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []


class TicketFilter(Filter):
    """Which tickets."""

    sorts = ("-created_at", "updated_at", "last_reply_at", "priority", "due_at", "number")
    q: Annotated[
        Text191 | None,
        Where(contains_text, searched),
        "Tickets in whose number, subject or description this text occurs, whatever the case.",
    ] = None
    status: Annotated[
        OneOf[StatusFilter] | None,
        Where(has_status),
        "Records whose `status` is one of these; `unresolved` stands for `open`, `pending` and `on_hold`.",
    ] = None
    priority: OneOf[Priority] | None = None
    type: OneOf[Type] | None = None
    client_id: OneOf[Id | None] | None = None
    contact_id: OneOf[Id] | None = None
    requester_email: Annotated[
        OneOf[Email] | None,
        Where(
            lambda table, emails: table.c.requester_email_folded.in_(emails),
            str.casefold,
            "Tickets whose `requester_email` is one of these addresses, whatever the case.",
            is_small=True,
        ),
    ] = None
    site_id: OneOf[Id] | None = None
    project_id: OneOf[Id] | None = None
    assignee_id: OneOf[UserId | None] | None = None
    awaiting: Annotated[
        OneOf[Awaiting] | None,
        Where(lambda table, parties: awaiting_party(table).in_(parties)),
        "Unresolved tickets where it is the turn of one of these.",
    ] = None
    unanswered: Annotated[bool | None, truth(is_unanswered, "unresolved tickets that no user has answered")] = None
    overdue: Annotated[bool | None, truth(is_overdue, "unresolved tickets whose `due_at` has passed")] = None
    number: OneOf[Id] | None = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


class Requester(NamedTuple):
    """The requester's contact, as far as a ticket depends on it."""

    client_id: int
    name: str
    email: str | None


CONTACT = select(*external_contacts.c[Requester._fields]).where(external_contacts.c.id == bindparam("id"))
CONTACT_BY_EMAIL = select(external_contacts.c.id, external_contacts.c.name).where(
    external_contacts.c.client_id == bindparam("client"), external_contacts.c.email_folded == bindparam("email")
)
SITE = select(sites.c.client_id).where(sites.c.id == bindparam("id"))
PROJECT = select(projects.c.client_id).where(projects.c.id == bindparam("id"))
CLIENT = select(clients.c.status).where(clients.c.id == bindparam("id"))
NARROWER = {"project_id": PROJECT, "site_id": SITE, "contact_id": CONTACT}
"""Fields from which the client follows, each with a statement whose first column is that client."""


def prepare(tx: Tx, ticket: Ticket, before: Ticket | None, sent: relations.SentFields) -> Ticket:
    """Fill in whom a ticket is from and for, its number, and when it was resolved.

    `sent` holds the fields of the body, and gets those that followed from them.
    """
    sent_relations = relations.named_fields(ticket, sent, "client_id", *NARROWER)
    for field, statement in NARROWER.items() if relations.concerns(before, sent, "client_id", *NARROWER) else ():
        row = tx.one(statement, id=getattr(ticket, field)) if getattr(ticket, field) else None
        if row and (row[0] is not None or field == "project_id"):
            relations.derive_parent(tx, ticket, sent, field, "client_id", row[0])
        if row and field == "contact_id" and (before is None or ticket.contact_id != before.contact_id):
            requester = Requester(*row)
            ticket.requester_name = ticket.requester_name if "requester_name" in sent else requester.name
            ticket.requester_email = ticket.requester_email if "requester_email" in sent else requester.email
    find_contact(tx, ticket, before, sent)
    if ticket.client_id and (before is None or ticket.client_id != before.client_id):
        status = tx.value(CLIENT, id=ticket.client_id)
        field = relations.first_named(sent_relations, "client_id", *NARROWER)
        relations.check_open(tx, field, f"Client {ticket.client_id}", status)
    relations.resolve_user(tx, ticket, "assignee_id", before.assignee_id if before else None)
    if before is None:
        ticket.number, ticket.reopened_count = increment_series(tx, "tickets", FIRST_NUMBER), 0
    update_resolution(ticket, before.status if before else "open", before.created_at if before else tx.now, tx.now)
    return ticket


def find_contact(tx: Tx, ticket: Ticket, before: Ticket | None, sent: relations.SentFields) -> None:
    """Let the contact of the client with the requester's address be the ticket's, unless the body says which is."""
    email = ticket.requester_email
    is_new = before is None or email != before.requester_email
    if email is None or "contact_id" in sent or "requester_email" not in sent or not is_new:
        return
    row = tx.one(CONTACT_BY_EMAIL, client=ticket.client_id, email=email.casefold()) if ticket.client_id else None
    if row and tx.readable("contact_id", "requester_name"):
        ticket.contact_id = row[0]
        ticket.requester_name = ticket.requester_name if "requester_name" in sent else row[1]


def update_resolution(ticket: Ticket, former_status: str, created_at: str, now: str) -> None:
    """Fill in when a ticket was resolved and closed, and in how many minutes; count when it is opened again."""
    if ticket.status in UNRESOLVED:
        ticket.reopened_count += former_status not in UNRESOLVED
        ticket.resolved_at = ticket.closed_at = ticket.resolution_minutes = None
        return
    ticket.closed_at = (ticket.closed_at or now) if ticket.status == "closed" else None
    if ticket.resolved_at is None:
        ticket.resolved_at, ticket.resolution_minutes = now, minutes_between(created_at, now)


def minutes_between(start: str, end: str) -> int:
    """Return the whole minutes between two moments, rounded half up."""
    return half_up((datetime.fromisoformat(end) - datetime.fromisoformat(start)) // timedelta(seconds=1), 60)


api = Resource("/tickets", tag="Tickets", scope="tickets", table=tickets)


@api.get()
def list_tickets(tx: Tx, filters: TicketFilter, page: Page) -> Paged[Ticket]:
    """List tickets, newest first."""
    return listing(tx, tickets, Ticket, filters, page)


@api.post()
def create_ticket(tx: Tx, body: New[Ticket]) -> Ticket:
    """Create a ticket; the client follows from contact, site or project, the requester from the contact."""
    ticket_id = tx.insert(tickets, prepare(tx, body, None, relations.sent_fields(body)))
    set_tags(tx, tickets, ticket_id, body, body.tag_ids)
    return tx.get(tickets, ticket_id, Ticket)


@api.get("/{ticket_id}")
def get_ticket(tx: Tx, ticket_id: Id) -> Ticket:
    """Read a ticket; its replies are at /tickets/{ticket_id}/replies."""
    return tx.get(tickets, ticket_id, Ticket)


@api.put("/{ticket_id}")
@api.patch("/{ticket_id}")
def update_ticket(tx: Tx, ticket_id: Id, patch: Patch[Ticket]) -> Ticket:
    """Change a ticket; members left out keep their value."""
    before = tx.get(tickets, ticket_id, Ticket)
    after = prepare(tx, patch.apply_to(before), before, patch.given)
    moved = [name for name in ("project_id", "client_id") if getattr(after, name) != getattr(before, name)]
    if moved:
        propagation.check_no_time(tx, "ticket", ticket_id, moved[0])
    tx.update(tickets, after)
    set_tags(tx, tickets, ticket_id, after, after.tag_ids, before.tag_ids)
    return tx.get(tickets, ticket_id, Ticket)


@api.delete("/{ticket_id}")
def delete_ticket(tx: Tx, ticket_id: Id) -> None:
    """Delete a ticket with its replies; time and tasks that belong to it stay, without a ticket."""
    changes.delete(tx, tickets, etag.check_unchanged(tx, tickets, tx.get(tickets, ticket_id, Ticket)))
