"""Clients: the companies and people the agency works for."""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, select

from retainer.crm.currency import change_currency
from retainer.crm.tags import TagFilter, TagIds, insert_tagged, update_tagged
from retainer.kernel.body import New, Patch
from retainer.kernel.query import REPEATED, Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema import expressions
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.crm import clients
from retainer.schema.filters import ONE_OF_NUMBERS, one_of, one_of_folded, truth
from retainer.shared.numbering import next_number
from retainer.store.tx import Tx
from retainer.values import kinds
from retainer.values.common import EARLY_PAYMENT, Days, DiscountPercent, ExternalId, Phone, missing_terms
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Status = Annotated[
    Literal["prospect", "active", "archived"],
    Meta(title="ClientStatus"),
    "An `archived` client accepts no new contacts, projects, milestones, tasks, time, expenses, documents, tickets or "
    "sites.",
]

Language = Annotated[
    Literal["en", "de"],
    Meta(title="DocumentLanguage"),
    "Language of the client's PDFs, English or German. Null: the account's language.",
]


class Client(Record):
    """A company or person the agency works for."""

    name: Annotated[kinds.Text191, "Name on documents. Lists are sorted by it."]
    number: Annotated[
        kinds.Code50, "Unique in the account, ignoring case. Default: the next number of the series, like C-0001."
    ] = SERVER_DEFAULT
    status: Status = "active"
    email: Annotated[kinds.Email | None, "General address of the client. People are external contacts."] = None
    invoice_email: Annotated[kinds.Email | None, "Address for invoices, if different from `email`."] = None
    phone: Annotated[Phone | None, "Stored as sent, in any format."] = None
    website: Annotated[kinds.Url | None, "Home page of the client. Websites that you maintain are sites."] = None
    address_line1: Annotated[
        kinds.Text191 | None, "First line of the postal address. Issued invoices keep a copy of the address."
    ] = None
    address_line2: Annotated[kinds.Text191 | None, "Second line of the postal address, like a floor or a building."] = (
        None
    )
    city: Annotated[kinds.Text191 | None, "Town of the postal address."] = None
    region: Annotated[kinds.Text191 | None, "State, province or county of the postal address."] = None
    postal_code: Annotated[kinds.Text191 | None, "Part of the postal address. Leading zeros are kept."] = None
    country: Annotated[kinds.Country | None, "Country of the postal address."] = None
    vat_number: Annotated[
        kinds.Code50 | None,
        "VAT number, stored as sent. E-invoices name it if it has the pattern of a member state of the EU; the country "
        "gives a missing prefix. Issued invoices keep a copy; no register is checked.",
    ] = None
    registration_number: Annotated[kinds.Code50 | None, "Number in a commercial register; not checked."] = None
    currency: Annotated[
        kinds.Currency,
        "For the client's rates, projects and new documents. Default: the account's currency. Fixed once an invoice "
        "is issued.",
    ] = SERVER_DEFAULT
    hourly_rate: Annotated[
        kinds.Money | None, "For time on projects without a rate. Null: the user's rate, else the account's."
    ] = None
    tax_rate: Annotated[
        kinds.Percent | None, "Percent on new lines of invoices and quotes. Null: the account's tax rate."
    ] = None
    payment_terms_days: Annotated[
        Days, Meta(ge=0, le=365), "Days from the issue of an invoice until it is due. Default: the account's terms."
    ] = SERVER_DEFAULT
    early_payment_discount_percent: Annotated[
        DiscountPercent | None,
        "What the client can deduct from the total of an invoice if it pays early (Skonto); 0: nothing. Null: the "
        "account's discount. Invoices keep the terms with which they were issued.",
    ] = None
    early_payment_discount_days: Annotated[
        Annotated[Days, Meta(ge=0, le=365)] | None,
        "Days from the issue of an invoice in which the client can deduct `early_payment_discount_percent`.",
    ] = None
    language: Language | None = None
    reminders: Annotated[
        bool, "False: the client gets no reminders of overdue invoices, whatever the settings of the account say."
    ] = True
    notes: Annotated[kinds.Text10000 | None, "Internal notes. `q` searches them."] = None
    external_id: ExternalId = None
    tag_ids: TagIds = []
    contacts_count: Annotated[int, "External contacts of the client, including inactive ones."] = READ_ONLY
    projects_count: Annotated[int, "Projects of the client in any status, without templates."] = READ_ONLY
    sites_count: Annotated[int, "Sites of the client, monitored or not."] = READ_ONLY


def has_overdue_invoice(table: Table) -> ColumnElement[bool]:
    invoice = invoices.alias()
    is_overdue = expressions.overdue(*OPEN_INVOICES)(invoice)
    return select(invoice.c.id).where(invoice.c.client_id == table.c.id, is_overdue).exists()


class ClientFilter(Filter):
    sorts = ("name", "number", "created_at", "updated_at")
    name: Annotated[OneOf[kinds.Text191] | None, REPEATED, one_of("name", is_small=True)] = None
    status: OneOf[Status] | None = None
    country: OneOf[kinds.Country] | None = None
    currency: OneOf[kinds.Currency] | None = None
    number: Annotated[OneOf[kinds.Code50] | None, ONE_OF_NUMBERS] = None
    email: Annotated[OneOf[kinds.Email] | None, one_of_folded("email", "invoice_email", is_small=True)] = None
    vat_number: Annotated[OneOf[kinds.Code50] | None, one_of("vat_number", is_small=True)] = None
    has_overdue: Annotated[bool | None, truth(has_overdue_invoice, "clients who have an overdue invoice")] = None
    external_id: OneOf[kinds.Code191] | None = None
    tag_id: TagFilter = None


def build_client(tx: Tx, client: Client) -> Client:
    """Fill in defaults of the account. Notes an error for an early-payment discount or its days without the other."""
    client.currency = client.currency or tx.actor.currency
    if client.payment_terms_days is None:
        client.payment_terms_days = tx.actor.payment_terms_days
    percent, days = client.early_payment_discount_percent, client.early_payment_discount_days
    for field, message in missing_terms(percent, days) if tx.readable(*EARLY_PAYMENT) else ():
        tx.error(field, message)
    client.number = client.number or next_number(tx, clients, tx.actor.client_number_pattern)
    return client


api = Resource("/clients", tag="Clients", scope="clients", table=clients)
api.lists(Client, ClientFilter, "List clients, by name.")


@api.post()
def create_client(tx: Tx, body: New[Client]) -> Client:
    """Create a client; the account has defaults for number, currency and payment terms."""
    return insert_tagged(tx, clients, build_client(tx, body))


api.reads("/{client_id}", Client, "Read a client.")


@api.put("/{client_id}")
@api.patch("/{client_id}")
def update_client(tx: Tx, client_id: kinds.Id, patch: Patch[Client]) -> Client:
    """Change a client; omitted fields keep their value."""
    before = tx.get(clients, client_id, Client)
    after = build_client(tx, patch.apply_to(before))
    if after.currency != before.currency:
        change_currency(tx, client_id, after.currency)
    return update_tagged(tx, clients, before, after)


@api.delete("/{client_id}")
def delete_client(tx: Tx, client_id: kinds.Id) -> None:
    """Delete a client with its contacts. A client with other records cannot be deleted."""
    changes.delete(tx, clients, tx.get(clients, client_id, Client))
