"""Reading: what the rules of documents need to know of the account, the client, its contact and its projects."""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, case, func, literal, select

from retainer.billing.invoices.types import Invoice
from retainer.billing.invoices.unbilled import Rounding
from retainer.billing.quotes.types import Quote
from retainer.documents.facts import Customer, Issuer, Language
from retainer.identity.bank_accounts import BankAccount, read_bank_accounts
from retainer.schema.crm import clients, external_contacts
from retainer.schema.expressions import DOCUMENT_LANGUAGE, in_any_language, in_document_language
from retainer.schema.identity import accounts
from retainer.schema.work import projects
from retainer.store.engines.sql import is_listed
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.common import EARLY_PAYMENT

Document = Quote | Invoice


class Terms(NamedTuple):
    """What documents of a client begin with; tax rates are in percent, texts in the language of its documents."""

    status: str
    currency: str
    payment_terms_days: int
    tax_rate: Decimal
    tax_exemption_reason: str | None
    notes: str | None
    terms: str | None


class Parties(NamedTuple):
    """The sides of a document as they are now."""

    client: Terms
    customer: Customer
    contact_client_id: int | None
    """The client of the contact; None without a contact."""
    issuer: Issuer
    """With the account's default bank account; `paid_in` chooses that of a currency."""
    language: Language
    bank_accounts: Sequence[BankAccount]
    """Those for other currencies."""

    rounding: Rounding | None
    """How the account rounds time by default; None if it does not."""

    def paid_in(self, currency: str) -> Issuer:
        account = next((each for each in self.bank_accounts if each.currency == currency), None)
        details = {name: getattr(account, name) for name in BANK_DETAILS} if account else {}
        return msgspec.structs.replace(self.issuer, **details)


class DocumentProject(NamedTuple):
    """A project of a document or its lines; its monthly fee in minor units, and the days that the fee is for."""

    id: int
    name: str
    client_id: int | None
    is_template: bool
    status: str
    billing_type: str
    currency: str
    retainer_amount: int | None
    fees_from: str | None
    fees_to: str | None


BANK_DETAILS = BankAccount.__struct_fields__[1:]
Projects = dict[int, DocumentProject]
ACCOUNT_TAX_RATE = case((accounts.c.is_small_business.is_(True), "0"), else_=accounts.c.tax_rate)
TAX_RATE = func.coalesce(clients.c.tax_rate, ACCOUNT_TAX_RATE, literal("0"))
TEXTS: dict[type[Document], str] = {Quote: "quote", Invoice: "invoice"}
"""The beginning of the names of the account's texts for a kind of document."""
CUSTOMER_COLUMNS: dict[str, ColumnElement[Any]] = {
    "contact_name": external_contacts.c.name,
    "email": func.coalesce(clients.c.invoice_email, clients.c.email),
}
HAS_OWN_DISCOUNT = clients.c.early_payment_discount_percent.is_not(None)
ISSUER_COLUMNS: dict[str, ColumnElement[Any]] = {
    "name": func.coalesce(accounts.c.legal_name, accounts.c.name),
    "color": accounts.c.document_color,
    "footer": in_any_language("document_footer"),
    "language": DOCUMENT_LANGUAGE,
    "tax_exemption_reason": in_document_language("tax_exemption_reason"),
    **{name: case((HAS_OWN_DISCOUNT, clients.c[name]), else_=accounts.c[name]) for name in EARLY_PAYMENT},
}
"""The columns of an issuer whose names differ from its fields, or that depend on the client."""


def columns_of(
    side: type[Customer | Issuer], table: Table, different: Mapping[str, ColumnElement[Any]]
) -> list[ColumnElement[Any]]:
    """Return the columns of a side of a document, in the order of its fields."""
    return [different[name] if name in different else table.c[name] for name in side.__struct_fields__]


def _select_parties(kind: type[Document]) -> Select[str]:
    """Select the fields of Terms, Customer, Issuer, the contact's client, language, bank accounts and rounding."""
    texts = [in_document_language(f"{TEXTS[kind]}_{name}") for name in ("introduction", "terms")]
    return (
        select(
            *clients.c["status", "currency", "payment_terms_days"],
            TAX_RATE,
            in_document_language("tax_exemption_reason"),
            *texts,
            *columns_of(Customer, clients, CUSTOMER_COLUMNS),
            *columns_of(Issuer, accounts, ISSUER_COLUMNS),
            external_contacts.c.client_id,
            DOCUMENT_LANGUAGE,
            accounts.c.bank_accounts,
            *accounts.c["time_rounding_minutes", "time_rounding_to", "time_rounding_each"],
        )
        .select_from(
            clients.join(accounts, accounts.c.id == ACCOUNT).outerjoin(
                external_contacts, external_contacts.c.id == bindparam("contact")
            )
        )
        .where(clients.c.id == bindparam("id"))
    )


PARTIES = {kind: _select_parties(kind) for kind in TEXTS}
OF_CUSTOMER = len(Terms._fields)
OF_ISSUER = OF_CUSTOMER + len(Customer.__struct_fields__)
PROJECTS = select(*projects.c[DocumentProject._fields])
"""In the order of the fields of DocumentProject."""
LISTED = PROJECTS.where(is_listed(projects.c.id, "ids"))


def load_parties(
    tx: Tx, client_id: int | None, contact_id: int | None = None, kind: type[Document] = Invoice
) -> Parties | None:
    """Return the client with a contact, and the issuer in the client's language; None if there is no such client."""
    # Citus cannot plan joins with a bound null
    row = tx.one(PARTIES[kind], id=client_id, contact=contact_id or 0)
    if row is None:
        return None
    status, currency, days, rate, *texts = row[:OF_CUSTOMER]
    *of_issuer, contact_client_id, language, bank_accounts, minutes, direction, unit = row[OF_ISSUER:]
    issuer = dict(zip(Issuer.__struct_fields__, of_issuer, strict=True))
    percent = issuer[EARLY_PAYMENT[0]]
    issuer |= {EARLY_PAYMENT[0]: None if percent is None else Decimal(percent)}
    issuer |= {"is_small_business": bool(issuer["is_small_business"])}
    customer = Customer(**dict(zip(Customer.__struct_fields__, row[OF_CUSTOMER:OF_ISSUER], strict=True)))
    client = Terms(status, currency, days, Decimal(rate), *texts)
    others = read_bank_accounts(bank_accounts)
    rounding = Rounding(minutes, direction, unit) if minutes else None
    return Parties(client, customer, contact_client_id, Issuer(**issuer), language, others, rounding)


def load_projects(tx: Tx, project_ids: Iterable[int | None]) -> Projects:
    ids = sorted({project_id for project_id in project_ids if project_id is not None})
    rows = tx.all(LISTED, ids=json.dumps(ids)) if ids else []
    return {project.id: project for project in map(DocumentProject._make, rows)}
