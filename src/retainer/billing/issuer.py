"""The issuer: what documents print about the agency, and the snapshot of it that issuing takes."""

import msgspec
from sqlalchemy import Table, select

from retainer.documents.facts import Issuer
from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.decoding import decoder

COLUMNS = {"name": accounts.c.name, "color": accounts.c.document_color, "footer": accounts.c.document_footer}
"""The columns of an issuer whose names differ from its fields."""
FIELDS = Issuer.__struct_fields__
ISSUER = select(accounts.c.legal_name, *(COLUMNS.get(name, accounts.c.get(name)) for name in FIELDS)).where(
    accounts.c.id == ACCOUNT
)
read_snapshot = decoder(Issuer)


def load_issuer(tx: Tx) -> Issuer:
    """Return the issuer as the account's settings describe it now."""
    legal_name, *values = tx.one(ISSUER) or ()
    issuer = Issuer(**dict(zip(FIELDS, values, strict=True)))
    return msgspec.structs.replace(issuer, name=legal_name or issuer.name)


def save_snapshot(tx: Tx, table: Table, document_id: int) -> None:
    """Save the issuer with an invoice or credit note that is now issued: its document keeps it."""
    tx.update_columns(table, document_id, {"issuer_snapshot": msgspec.json.encode(load_issuer(tx)).decode()})
