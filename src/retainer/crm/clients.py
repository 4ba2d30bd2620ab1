"""Clients: the companies and people the agency works for."""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, select

from retainer.crm.currency import check_currency, propagate_currency
from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import REPEATED, Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema import expressions
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.crm import clients
from retainer.schema.filters import one_of, truth
from retainer.shared.numbering import next_number
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.kinds import Country, Currency, Email, Id, Money, Percent, Text50, Text191, Text10000, Url
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Status = Annotated[
    Literal["prospect", "active", "archived"],
    Meta(title="ClientStatus"),
    "An `archived` client takes nothing new: no contacts, projects, milestones, tasks, time, expenses, documents, "
    "tickets or sites.",
]


class Client(Record):
    """A company or person the agency works for."""

    name: Annotated[Text191, "As it is written on documents; lists are sorted by it."]
    number: Annotated[Text50, "Unique in the account; the next of its series, like C-0001, when left out."] = (
        SERVER_DEFAULT
    )
    status: Status = "active"
    email: Annotated[Email | None, "The client's general address; people at the client are external contacts."] = None
    invoice_email: Annotated[
        Email | None, "Where invoices should go, if elsewhere than `email`. Retainer sends no mail itself."
    ] = None
    phone: Annotated[Text50 | None, "Kept as it is written; no format is asked for."] = None
    website: Annotated[Url | None, "The client's home page; websites that you look after are sites."] = None
    address_line1: Annotated[
        Text191 | None, "First line of the postal address, which invoices keep as it is when they are issued."
    ] = None
    address_line2: Annotated[Text191 | None, "Second line of the postal address, like a floor or a building."] = None
    city: Annotated[Text191 | None, "Town of the postal address."] = None
    region: Annotated[Text191 | None, "State, province or county of the postal address."] = None
    postal_code: Annotated[Text191 | None, "Part of the postal address; text, so that leading zeros stay."] = None
    country: Annotated[Country | None, "Country of the postal address."] = None
    vat_number: Annotated[
        Text50 | None, "Kept by invoices as it is when they are issued; not checked with any register."
    ] = None
    registration_number: Annotated[Text50 | None, "Number in a commercial register or the like; not checked."] = None
    currency: Annotated[
        Currency,
        "Of the client's rates, projects and new documents; the account's when left out. Fixed once an invoice is "
        "issued.",
    ] = SERVER_DEFAULT
    hourly_rate: Annotated[
        Money | None, "For time on projects without a rate of their own; null: that of the user or the account applies."
    ] = None
    tax_rate: Annotated[Percent | None, "Percent on new lines of invoices and quotes; null: the account's."] = None
    payment_terms_days: Annotated[
        int, Meta(ge=0, le=365), "Days from an invoice's issue until it is due; the account's when left out."
    ] = SERVER_DEFAULT
    notes: Annotated[Text10000 | None, "For the agency's own use; `q` searches them."] = None
    external_id: ExternalId = None
    tag_ids: TagIds = []
    contacts_count: Annotated[int, "External contacts of the client, inactive ones too."] = READ_ONLY
    projects_count: Annotated[int, "Projects for the client in any status, without templates."] = READ_ONLY
    sites_count: Annotated[int, "Sites of the client, monitored or not."] = READ_ONLY


def has_overdue_invoice(table: Table) -> ColumnElement[bool]:
    """Whether a client has an overdue invoice."""
    invoice = invoices.alias()
    is_overdue = expressions.overdue(*OPEN_INVOICES)(invoice)
    return select(invoice.c.id).where(invoice.c.client_id == table.c.id, is_overdue).exists()


class ClientFilter(Filter):
    """Which clients."""

    sorts = ("name", "number", "created_at", "updated_at")
    name: Annotated[OneOf[Text191] | None, REPEATED, one_of("name", is_small=True)] = None
    status: OneOf[Status] | None = None
    country: OneOf[Country] | None = None
    currency: OneOf[Currency] | None = None
    number: OneOf[Text50] | None = None
    email: OneOf[Email] | None = None
    vat_number: Annotated[OneOf[Text50] | None, one_of("vat_number", is_small=True)] = None
    has_overdue: Annotated[bool | None, truth(has_overdue_invoice, "clients who have an overdue invoice")] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


def fill_defaults(tx: Tx, client: Client) -> Client:
    """Fill in what is left out from the account: currency, payment terms, and the next number."""
    client.currency = client.currency or tx.actor.currency
    if client.payment_terms_days is None:
        client.payment_terms_days = tx.actor.payment_terms_days
    client.number = client.number or next_number(tx, clients, tx.actor.client_number_pattern)
    return client


api = Resource("/clients", tag="Clients", scope="clients", table=clients)


@api.get()
def list_clients(tx: Tx, filters: ClientFilter, page: Page) -> Paged[Client]:
    """List clients, by name."""
    return listing(tx, clients, Client, filters, page)


@api.post()
def create_client(tx: Tx, body: New[Client]) -> Client:
    """Create a client; number, currency and payment terms come from the account when they are left out."""
    client_id = tx.insert(clients, fill_defaults(tx, body))
    set_tags(tx, clients, client_id, body, body.tag_ids)
    return tx.get(clients, client_id, Client)


@api.get("/{client_id}")
def get_client(tx: Tx, client_id: Id) -> Client:
    """Read a client."""
    return tx.get(clients, client_id, Client)


@api.put("/{client_id}")
@api.patch("/{client_id}")
def update_client(tx: Tx, client_id: Id, patch: Patch[Client]) -> Client:
    """Change a client; members left out keep their value."""
    before = tx.get(clients, client_id, Client)
    after = fill_defaults(tx, patch.apply_to(before))
    if after.currency != before.currency:
        check_currency(tx, client_id)
        propagate_currency(tx, client_id, after.currency)
    tx.update(clients, after)
    set_tags(tx, clients, client_id, after, after.tag_ids, before.tag_ids)
    return tx.get(clients, client_id, Client)


@api.delete("/{client_id}")
def delete_client(tx: Tx, client_id: Id) -> None:
    """Delete a client with its contacts; refused while other records belong to it."""
    changes.delete(tx, clients, etag.check_unchanged(tx, clients, tx.get(clients, client_id, Client)))
