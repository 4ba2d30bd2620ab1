"""The issuer: what documents print about the agency, and the snapshot of it that issuing takes."""

from decimal import Decimal

import msgspec
from sqlalchemy import Table, bindparam, select, true

from retainer.documents.facts import Issuer
from retainer.schema.crm import clients
from retainer.schema.expressions import DOCUMENT_LANGUAGE, early_payment_term, in_document_language
from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values import early_payment
from retainer.values.decoding import decoder

COLUMNS = {
    "name": accounts.c.name,
    "color": accounts.c.document_color,
    "footer": in_document_language("document_footer"),
    "language": DOCUMENT_LANGUAGE,
    "tax_exemption_reason": in_document_language("tax_exemption_reason"),
    **{name: early_payment_term(name) for name in early_payment.FIELDS},
}
"""The columns of an issuer whose names differ from its fields, or that depend on the client."""
FIELDS = Issuer.__struct_fields__
ISSUER = (
    select(accounts.c.legal_name, *(COLUMNS.get(name, accounts.c.get(name)) for name in FIELDS))
    .select_from(accounts.join(clients, true()))
    .where(accounts.c.id == ACCOUNT, clients.c.id == bindparam("client"))
)
read_snapshot = decoder(Issuer)


def load_issuer(tx: Tx, client_id: int) -> Issuer:
    """Return the issuer as the account's settings describe it now, in the language of a client."""
    legal_name, *values = tx.one(ISSUER, client=client_id) or ()
    fields = dict(zip(FIELDS, values, strict=True))
    percent = fields[early_payment.PERCENT]
    fields |= {"name": legal_name or fields["name"], "is_small_business": bool(fields["is_small_business"])}
    return Issuer(**fields | {early_payment.PERCENT: None if percent is None else Decimal(percent)})


def save_snapshot(tx: Tx, table: Table, document_id: int, client_id: int) -> None:
    """Save the issuer with an invoice or credit note that is now issued: its document keeps it."""
    snapshot = msgspec.json.encode(load_issuer(tx, client_id)).decode()
    tx.update_columns(table, document_id, {"issuer_snapshot": snapshot})
