"""Clients: the companies and people the agency works for."""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import Index, bindparam, select

from retainer.api.tags import TagFilter, TagIds, set_tags, tag_links
from retainer.domain import billing, consequences, settlement, work
from retainer.domain.filters import truth
from retainer.domain.numbering import next_number
from retainer.domain.values import Country, Currency, Email, Id, Money, Percent, Text50, Text191, Text10000, Url
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store.columns import decimal, folded, integer, money, sortable, text, unique
from retainer.store.records import Record, auto, ro
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

clients = tenant_table(
    "clients",
    text("name"),
    text("number"),
    text("status"),
    text("email", optional=True),
    text("invoice_email", optional=True),
    text("phone", optional=True),
    text("website", optional=True),
    text("address_line1", optional=True),
    text("address_line2", optional=True),
    text("city", optional=True),
    text("region", optional=True),
    text("postal_code", optional=True),
    text("country", optional=True),
    text("vat_number", optional=True),
    text("registration_number", optional=True),
    text("currency"),
    money("hourly_rate", optional=True),
    decimal("tax_rate", optional=True),
    integer("payment_terms_days"),
    text("notes", optional=True),
    text("external_id", optional=True),
    folded("name"),
    sortable("name"),
    folded("name", "number", "email", "notes", into="search"),
    unique("number"),
    unique("external_id"),
    Index(None, "account_id", "name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
)
tag_links("clients")

Status = Literal["prospect", "active", "archived"]


class Client(Record):
    """A company or person the agency works for."""

    name: Text191
    number: Text50 = auto
    status: Status = "active"
    email: Email | None = None
    invoice_email: Email | None = None
    phone: Text50 | None = None
    website: Url | None = None
    address_line1: Text191 | None = None
    address_line2: Text191 | None = None
    city: Text191 | None = None
    region: Text191 | None = None
    postal_code: Text191 | None = None
    country: Country | None = None
    vat_number: Text50 | None = None
    registration_number: Text50 | None = None
    currency: Currency = auto
    hourly_rate: Money | None = None
    tax_rate: Percent | None = None
    payment_terms_days: Annotated[int, Meta(ge=0, le=365)] = auto
    notes: Text10000 | None = None
    external_id: Text191 | None = None
    tag_ids: TagIds = []
    contacts_count: Annotated[int, work.count_of("external_contacts", "client_id")] = ro
    projects_count: Annotated[int, work.count_of("projects", "client_id", having=work.is_live)] = ro
    sites_count: Annotated[int, work.count_of("sites", "client_id")] = ro


class ClientFilter(Filter):
    """Which clients."""

    sorts = ("name", "number", "created_at", "updated_at")
    status: OneOf[Status] | None = None
    country: OneOf[Country] | None = None
    currency: OneOf[Currency] | None = None
    number: OneOf[Text50] | None = None
    email: OneOf[Email] | None = None
    has_overdue: Annotated[bool | None, truth(settlement.has_overdue)] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


TAKEN = select(clients.c.id).where(clients.c.number == bindparam("number"))


def fill(tx: Tx, it: Client) -> Client:
    """What is left out comes from the account: currency, payment terms, and the next number."""
    it.currency = it.currency or tx.actor.currency
    if it.payment_terms_days is None:
        it.payment_terms_days = tx.actor.payment_terms_days
    it.number = it.number or next_number(tx, "clients", tx.actor.client_number_pattern, TAKEN, tx.today)
    return it


api = Resource("/clients", tag="Clients", scope="clients", table=clients)


@api.get()
def list_clients(tx: Tx, only: ClientFilter, page: Page) -> Paged[Client]:
    """List clients, by name."""
    return listing(tx, clients, Client, only, page)


@api.post()
def create_client(tx: Tx, body: New[Client]) -> Client:
    """Create a client; number, currency and payment terms come from the account when they are left out."""
    client = tx.insert(clients, fill(tx, body))
    set_tags(tx, clients, client, body.tag_ids, new=True)
    return tx.get(clients, client, Client)


@api.get("/{client}")
def get_client(tx: Tx, client: Id) -> Client:
    """Read a client."""
    return tx.get(clients, client, Client)


@api.put("/{client}")
@api.patch("/{client}")
def update_client(tx: Tx, client: Id, change: Change[Client]) -> Client:
    """Change a client; members left out keep their value."""
    before = tx.get(clients, client, Client)
    it = fill(tx, change.onto(before))
    if it.currency != before.currency:
        settlement.fixed_by_invoice(tx, client, "currency")
        billing.fixed_by_milestone(tx, client, "currency")
        consequences.of_client(tx, client, it.currency)
    tx.update(clients, it)
    set_tags(tx, clients, client, it.tag_ids)
    return tx.get(clients, client, Client)


@api.delete("/{client}")
def delete_client(tx: Tx, client: Id) -> None:
    """Delete a client with its contacts; refused while other records belong to it."""
    tx.delete(clients, etag.unchanged(tx, tx.get(clients, client, Client)).id)
