"""External contacts: the people at the clients.

The first contact of a client becomes its primary one; making another one primary takes that from the former. After the
primary contact is deleted the client has none, until one is made primary or a new one is created.
"""

from typing import Annotated, Literal

from sqlalchemy import Index, bindparam, select, update

from retainer.api.tags import TagFilter, TagIds, set_tags, tag_links
from retainer.domain.fields import ExternalId
from retainer.domain.filters import Where
from retainer.domain.values import Email, Id, Text50, Text100, Text191, Text5000
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store.columns import flag, folded, ref, sortable, text, unique
from retainer.store.records import Record, auto, ro
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

contacts = tenant_table(
    "external_contacts",
    *ref("client_id", "clients", on_delete="cascade"),
    text("first_name", optional=True),
    text("last_name", optional=True),
    text("name"),
    text("email", optional=True),
    text("phone", optional=True),
    text("mobile", optional=True),
    text("job_title", optional=True),
    text("role"),
    flag("is_primary"),
    text("status"),
    text("notes", optional=True),
    text("external_id", optional=True),
    sortable("last_name", "first_name", "email"),  # who has no last name is found by the next
    folded("email", optional=True),
    folded("first_name", "last_name", "name", "email", into="search"),
    unique("client_id", "email_folded"),
    unique("external_id"),
    Index(None, "account_id", "last_name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
)
tag_links("external_contacts")

Role = Annotated[
    Literal["general", "billing", "technical", "decision_maker"],
    "What to turn to the person for: anything, bills, technical matters, or decisions.",
]
Status = Annotated[Literal["active", "inactive"], "`inactive` marks who has left; nothing else follows from it."]


class ExternalContact(Record):
    """A person at a client."""

    client_id: Annotated[Id, "The client whom the person works for."]
    first_name: Annotated[Text100 | None, "One of `first_name`, `last_name` and `email` is needed."] = None
    last_name: Annotated[Text100 | None, "Lists are sorted by it; who has none stands by first name or email."] = None
    name: Annotated[Text191, "First and last name together, or else the email address."] = ro
    email: Annotated[Email | None, "Unique within the client, whatever the case; tickets of the person keep it."] = None
    phone: Annotated[Text50 | None, "Kept as it is written; no format is asked for."] = None
    mobile: Annotated[Text50 | None, "Kept as it is written; no format is asked for."] = None
    job_title: Annotated[Text100 | None, "What the person does there, like Head of Marketing."] = None
    role: Role = "general"
    is_primary: Annotated[
        bool, "True for one contact of each client: the first, until another takes it over by being sent with true."
    ] = auto
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


PRIMARY = select(contacts.c.id).where(contacts.c.client_id == bindparam("client"), contacts.c.is_primary)
STEP_BACK = (
    update(contacts)
    .where(contacts.c.client_id == bindparam("client"), contacts.c.is_primary, contacts.c.id != bindparam("own"))
    .values(is_primary=False, updated_at=bindparam("now"))
)


def check(tx: Tx, it: ExternalContact) -> ExternalContact:
    """A contact has something to be called by; the first of a client is its primary one."""
    it.name = " ".join(part for part in (it.first_name, it.last_name) if part) or it.email or ""
    if not it.name and tx.knows("first_name", "last_name", "email"):
        for member in ("first_name", "last_name", "email"):
            tx.fault(member, "Give at least one of first_name, last_name and email.")
    if it.is_primary is None:
        it.is_primary = tx.one(PRIMARY, client=it.client_id) is None
    return it


def save_links(tx: Tx, contact: int, it: ExternalContact, *, new: bool = False) -> ExternalContact:
    """Write what a contact's row does not hold: its tags, and that the client's former primary contact is none."""
    set_tags(tx, contacts, contact, it.tag_ids, new=new)
    if it.is_primary:
        tx.run(STEP_BACK, client=it.client_id, own=contact, now=tx.now)
    return tx.get(contacts, contact, ExternalContact)


api = Resource("/external-contacts", tag="External contacts", scope="clients", table=contacts)


@api.get()
def list_external_contacts(tx: Tx, only: ContactFilter, page: Page) -> Paged[ExternalContact]:
    """List external contacts, by last name."""
    return listing(tx, contacts, ExternalContact, only, page)


@api.post()
def create_external_contact(tx: Tx, body: New[ExternalContact]) -> ExternalContact:
    """Create an external contact; the first of a client becomes its primary one."""
    return save_links(tx, tx.insert(contacts, check(tx, body)), body, new=True)


@api.get("/{external_contact}")
def get_external_contact(tx: Tx, external_contact: Id) -> ExternalContact:
    """Read an external contact."""
    return tx.get(contacts, external_contact, ExternalContact)


@api.put("/{external_contact}")
@api.patch("/{external_contact}")
def update_external_contact(tx: Tx, external_contact: Id, change: Change[ExternalContact]) -> ExternalContact:
    """Change an external contact; becoming primary takes that from the client's former one."""
    it = check(tx, change.onto(tx.get(contacts, external_contact, ExternalContact)))
    tx.update(contacts, it)
    return save_links(tx, external_contact, it)


@api.delete("/{external_contact}")
def delete_external_contact(tx: Tx, external_contact: Id) -> None:
    """Delete an external contact."""
    tx.delete(contacts, etag.unchanged(tx, tx.get(contacts, external_contact, ExternalContact)).id)
