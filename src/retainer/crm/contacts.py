"""External contacts: the people at the clients.

The first contact of a client becomes its primary contact. If another contact becomes primary, the former one no longer
is. If the primary contact is deleted or moves to another client, the oldest active contact becomes primary. A contact
cannot move to another client while tickets, quotes or invoices refer to it.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import bindparam, select

from retainer.crm.tags import TagFilter, TagIds, insert_tagged, update_tagged
from retainer.errors import part
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema.billing import invoices, quotes
from retainer.schema.crm import clients, external_contacts
from retainer.schema.filters import one_of_folded
from retainer.schema.support import tickets
from retainer.shared import relations
from retainer.store.announcements import updating
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Phone
from retainer.values.kinds import Code191, Email, FullName, Id, Text100, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, NeededUnless, Record

Role = Annotated[
    Literal["general", "billing", "technical", "decision_maker"],
    Meta(title="ExternalContactRole"),
    "What the person is responsible for.",
]
Status = Annotated[
    Literal["active", "inactive"],
    Meta(title="ExternalContactStatus"),
    "`inactive` marks a person who has left. It has no other effect.",
]


class ExternalContact(Record):
    """A person at a client."""

    client_id: Annotated[
        Id, "Client that the person works for. Fixed while tickets, quotes or invoices refer to the contact."
    ]
    first_name: Annotated[
        Text100 | None,
        NeededUnless(("last_name", "email")),
        "One of `first_name`, `last_name` and `email` is required.",
    ] = None
    last_name: Annotated[Text100 | None, "Lists are sorted by it, else by first name or email."] = None
    name: Annotated[FullName, "First and last name, else the email address."] = READ_ONLY
    email: Annotated[Email | None, "Unique within the client, ignoring case. Tickets of the person keep it."] = None
    phone: Annotated[Phone | None, "Stored as sent, in any format."] = None
    mobile: Annotated[Phone | None, "Stored as sent, in any format."] = None
    job_title: Annotated[Text100 | None, "Position at the client, like Head of Marketing."] = None
    role: Role = "general"
    is_primary: Annotated[
        bool,
        "True for one contact of each client: the first, whatever is sent, until another one becomes primary. `false` "
        "does not change the primary one. If it is deleted or moved, the oldest active one becomes primary.",
    ] = SERVER_DEFAULT
    status: Status = "active"
    notes: Annotated[Text5000 | None, "Internal notes. `q` does not search them."] = None
    external_id: ExternalId = None
    tag_ids: TagIds = []


class ContactFilter(Filter):
    sorts = ("last_name", "email", "created_at", "updated_at")
    client_id: OneOf[Id] | None = None
    email: Annotated[OneOf[Email] | None, one_of_folded("email")] = None
    role: OneOf[Role] | None = None
    is_primary: bool | None = None
    status: OneOf[Status] | None = None
    external_id: OneOf[Code191] | None = None
    tag_id: TagFilter = None


PRIMARY_CONTACT = select(external_contacts.c.id).where(
    external_contacts.c.client_id == bindparam("client"), external_contacts.c.is_primary
)
OLDEST_ACTIVE = (
    select(external_contacts.c.id)
    .where(external_contacts.c.client_id == bindparam("client"), external_contacts.c.status == "active")
    .order_by(external_contacts.c.created_at, external_contacts.c.id)
    .limit(1)
)
PROMOTE = updating(
    external_contacts, external_contacts.c.id == OLDEST_ACTIVE.scalar_subquery(), values={"is_primary": True}
)
DEMOTE_OTHERS = updating(
    external_contacts,
    external_contacts.c.client_id == bindparam("client"),
    external_contacts.c.is_primary,
    external_contacts.c.id != bindparam("contact"),
    values={"is_primary": False},
)
CLIENT = select(clients.c.status, PRIMARY_CONTACT.scalar_subquery()).where(clients.c.id == bindparam("client"))


def build_contact(tx: Tx, contact: ExternalContact, before: ExternalContact | None) -> ExternalContact:
    """Return a contact with its name, and whether it is primary: the first of a client is. Notes every error."""
    contact.name = " ".join(part for part in (contact.first_name, contact.last_name) if part) or contact.email or ""
    if not contact.name and tx.readable("first_name", "last_name", "email"):
        tx.error("first_name", f"Give at least one of {part('first_name')}, {part('last_name')} and email.")
    is_moved = before is None or contact.client_id != before.client_id
    if before is not None and not is_moved and contact.is_primary is not None:
        contact.is_primary = contact.is_primary or before.is_primary
        return contact
    client_status, primary_id = tx.one(CLIENT, client=contact.client_id) or (None, None)
    if not contact.is_primary:
        contact.is_primary = primary_id in {None, contact.id}
    relations.validate_client_open(tx, "client_id", contact, before, client_status)
    if before is not None and is_moved:
        advice = f"Create a contact at client {contact.client_id} instead."
        tables = (tickets, quotes, invoices)
        relations.validate_unreferred(tx, "contact_id", tables, before.id, "client_id", advice)
    return contact


def demote_others(tx: Tx, contact: ExternalContact, contact_id: int = 0) -> ExternalContact:
    """Demote the primary contact of the client, if this one becomes primary; return this one."""
    if contact.is_primary:
        tx.run(DEMOTE_OTHERS, client=contact.client_id, contact=contact_id)
    return contact


def promote_next(tx: Tx, former: ExternalContact) -> None:
    if former.is_primary:
        tx.run(PROMOTE, client=former.client_id)


api = Resource("/external-contacts", tag="External contacts", scope="clients", table=external_contacts)
api.lists(ExternalContact, ContactFilter, "List external contacts, by last name.")


@api.post()
def create_external_contact(tx: Tx, body: New[ExternalContact]) -> ExternalContact:
    """Create an external contact; the first of a client becomes primary."""
    contact = build_contact(tx, body, None)
    return insert_tagged(tx, external_contacts, demote_others(tx, contact))


api.reads("/{external_contact_id}", ExternalContact, "Read an external contact.")


@api.put("/{external_contact_id}")
@api.patch("/{external_contact_id}")
def update_external_contact(tx: Tx, external_contact_id: Id, patch: Patch[ExternalContact]) -> ExternalContact:
    """Change an external contact; if it becomes primary, the client's former primary contact no longer is."""
    before = tx.get(external_contacts, external_contact_id, ExternalContact)
    built = build_contact(tx, patch.apply_to(before), before)
    after = update_tagged(tx, external_contacts, before, demote_others(tx, built, before.id))
    if after.client_id != before.client_id:
        promote_next(tx, before)
    return after


@api.delete("/{external_contact_id}")
def delete_external_contact(tx: Tx, external_contact_id: Id) -> None:
    """Delete an external contact; if it was primary, the oldest active one becomes primary."""
    contact = tx.get(external_contacts, external_contact_id, ExternalContact)
    changes.delete(tx, external_contacts, contact)
    promote_next(tx, contact)
