"""Expiry of sessions, password links and kept forms: old ones are deleted, and a restore ends all."""

from sqlalchemy import bindparam, delete

from retainer.identity.people.sessions import BROWSER_TTL
from retainer.schema.identity import kept_forms, password_links, pending_sign_ins, sessions
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store
from retainer.values.exact import instant_after

OLD_SESSIONS = delete(sessions).where(sessions.c.last_used_at <= bindparam("before", type_=INSTANT))
EXPIRED = [
    delete(table).where(table.c.expires_at <= bindparam("before", type_=INSTANT))
    for table in (password_links, pending_sign_ins, kept_forms)
]


def delete_expired(store: Store) -> None:
    """Delete expired sessions, password links, unfinished sign-ins and kept forms of all accounts."""
    with store.unscoped(write=True) as tx:
        tx.run(OLD_SESSIONS, before=instant_after(tx.now, -BROWSER_TTL))
        for statement in EXPIRED:
            tx.run(statement, before=tx.now)


def revoke_all(store: Store) -> None:
    """Delete all sessions, links, unfinished sign-ins and kept forms.

    A restored database does not know which have ended since its backup.
    """
    with store.unscoped(write=True) as tx:
        for table in (sessions, password_links, pending_sign_ins, kept_forms):
            tx.run(delete(table))
