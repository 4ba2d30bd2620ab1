"""The logo of an account, which its documents print."""

import hashlib
from typing import NamedTuple

from sqlalchemy import bindparam, delete, or_, select

from retainer.errors import invalid
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.identity.plans import find_excess
from retainer.schema.billing import credit_notes, document_versions, invoices
from retainer.schema.identity import accounts, logos
from retainer.store.engines.sql import TEXT
from retainer.store.tx import Tx


class Logo(NamedTuple):
    id: int
    content: bytes
    sha256: str


LOGO = select(*logos.c[Logo._fields]).where(logos.c.id == bindparam("id"))
REMOVE = delete(logos).where(logos.c.id == bindparam("id"))
PRINTED = [
    select(facts.table.c.id)
    .where(or_(*(facts.like(bindparam(name, type_=TEXT)) for name in ("followed", "last"))))
    .limit(1)
    for facts in (invoices.c.issuer_snapshot, credit_notes.c.issuer_snapshot, document_versions.c.facts)
]
"""The statements that find an issued document whose issuer had a logo."""


def find_logo(tx: Tx, logo_id: int | None) -> Logo | None:
    row = None if logo_id is None else tx.one(LOGO, id=logo_id)
    return None if row is None else Logo(*row)


def set_logo(tx: Tx, content: bytes | None) -> None:
    """Replace the logo, or remove it with None; issued documents keep theirs."""
    account = get_account(tx)
    former = find_logo(tx, account["logo_id"])
    after, logo_id = None, None
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        if former is not None and former.sha256 == digest:
            return
        logo_id = tx.insert_raw(logos, {"content": content, "sha256": digest})
        after = Logo(logo_id, content, digest)
    if former is None and after is None:
        return
    tx.update_columns(accounts, account["id"], {"logo_id": logo_id})
    if former is not None:
        forms = {"followed": f'%"logo_id":{former.id},%', "last": f'%"logo_id":{former.id}}}%'}
        if not any(tx.one(statement, **forms) is not None for statement in PRINTED):
            tx.run(REMOVE, id=former.id)
    if excess := find_excess(tx, "logos", added=0):
        raise invalid({"logo": [excess]})
    target = audit.Target("account", account["id"], account["name"])
    audit.note(tx, "account changed", target, before={"logo": described(former)}, after={"logo": described(after)})


def described(logo: Logo | None) -> str | None:
    return logo and f"A picture of {len(logo.content):,} bytes"
