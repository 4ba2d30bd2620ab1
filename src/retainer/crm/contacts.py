"""External contacts: the people at the clients.

The first contact of a client becomes its primary one; making another one primary takes that from the former. After the
primary contact is deleted the client has none, until one is made primary or a new one is created.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import bindparam, select, update

from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import CONTACTS
from retainer.schema.crm import external_contacts
from retainer.schema.filters import Where
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.kinds import Email, Id, Text50, Text100, Text191, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Role = Annotated[
    Literal["general", "billing", "technical", "decision_maker"],
    Meta(title="ExternalContactRole"),
    "What to turn to the person for: anything, bills, technical matters, or decisions.",
]
Status = Annotated[
    Literal["active", "inactive"],
    Meta(title="ExternalContactStatus"),
    "`inactive` marks who has left; nothing else follows from it.",
]


class ExternalContact(Record):
    """A person at a client."""

    client_id: Annotated[Id, "The client whom the person works for."]
    first_name: Annotated[Text100 | None, "One of `first_name`, `last_name` and `email` is needed."] = None
    last_name: Annotated[Text100 | None, "Lists are sorted by it; who has none stands by first name or email."] = None
    name: Annotated[Text191, "First and last name together, or else the email address."] = READ_ONLY
    email: Annotated[Email | None, "Unique within the client, whatever the case; tickets of the person keep it."] = None
    phone: Annotated[Text50 | None, "Kept as it is written; no format is asked for."] = None
    mobile: Annotated[Text50 | None, "Kept as it is written; no format is asked for."] = None
    job_title: Annotated[Text100 | None, "What the person does there, like Head of Marketing."] = None
    role: Role = "general"
    is_primary: Annotated[
        bool, "True for one contact of each client: the first, until another takes it over by being sent with true."
    ] = SERVER_DEFAULT
    status: Status = "active"
    notes: Annotated[Text5000 | None, "For the agency's own use; `q` does not search them."] = None
    external_id: ExternalId = None
    tag_ids: TagIds = []


class ContactFilter(Filter):
    """Which contacts."""

    sorts = ("last_name", "email", "created_at", "updated_at")
    client_id: OneOf[Id] | None = None
    email: Annotated[
        OneOf[Email] | None,
        Where(
            lambda table, emails: table.c.email_folded.in_(emails),
            str.casefold,
            "Contacts with one of these addresses, whatever the case.",
        ),
    ] = None
    role: OneOf[Role] | None = None
    is_primary: bool | None = None
    status: OneOf[Status] | None = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


PRIMARY_CONTACT = select(external_contacts.c.id).where(
    external_contacts.c.client_id == bindparam("client"), external_contacts.c.is_primary
)
DEMOTE_OTHERS = (
    update(external_contacts)
    .where(
        external_contacts.c.client_id == bindparam("client"),
        external_contacts.c.is_primary,
        external_contacts.c.id != bindparam("contact"),
    )
    .values(is_primary=False, updated_at=bindparam("now"))
)


def prepare(tx: Tx, contact: ExternalContact) -> ExternalContact:
    """Fill in a contact's name, and whether it is the primary one: the first of a client is.

    A contact without any name and email address is an error, which is noted once.
    """
    contact.name = " ".join(part for part in (contact.first_name, contact.last_name) if part) or contact.email or ""
    if not contact.name and tx.readable("first_name", "last_name", "email"):
        tx.error("first_name", "Give at least one of first_name, last_name and email.")
    if contact.is_primary is None:
        contact.is_primary = tx.one(PRIMARY_CONTACT, client=contact.client_id) is None
    return contact


def save_links(
    tx: Tx, contact_id: int, contact: ExternalContact, former_tag_ids: list[int] | None = None
) -> ExternalContact:
    """Write a contact's tags, and that the client's former primary contact is none; return the contact."""
    set_tags(tx, external_contacts, contact_id, contact, contact.tag_ids, former_tag_ids)
    if contact.is_primary:
        tx.run(DEMOTE_OTHERS, client=contact.client_id, contact=contact_id, now=tx.now)
    return tx.get(external_contacts, contact_id, ExternalContact)


api = Resource("/external-contacts", tag="External contacts", scope="clients", table=external_contacts)


@api.get()
def list_external_contacts(tx: Tx, filters: ContactFilter, page: Page) -> Paged[ExternalContact]:
    """List external contacts, by last name."""
    return listing(tx, external_contacts, ExternalContact, filters, page)


@api.post()
def create_external_contact(tx: Tx, body: New[ExternalContact]) -> ExternalContact:
    """Create an external contact; the first of a client becomes its primary one."""
    return save_links(tx, changes.insert(tx, CONTACTS, external_contacts, prepare(tx, body)), body)


@api.get("/{external_contact_id}")
def get_external_contact(tx: Tx, external_contact_id: Id) -> ExternalContact:
    """Read an external contact."""
    return tx.get(external_contacts, external_contact_id, ExternalContact)


@api.put("/{external_contact_id}")
@api.patch("/{external_contact_id}")
def update_external_contact(tx: Tx, external_contact_id: Id, patch: Patch[ExternalContact]) -> ExternalContact:
    """Change an external contact; becoming primary takes that from the client's former one."""
    before = tx.get(external_contacts, external_contact_id, ExternalContact)
    after = prepare(tx, patch.apply_to(before))
    changes.update(tx, CONTACTS, external_contacts, before, after)
    return save_links(tx, external_contact_id, after, before.tag_ids)


@api.delete("/{external_contact_id}")
def delete_external_contact(tx: Tx, external_contact_id: Id) -> None:
    """Delete an external contact."""
    contact = etag.check_unchanged(tx, tx.get(external_contacts, external_contact_id, ExternalContact))
    changes.delete(tx, external_contacts, contact)
