"""Expiry of sessions and password links: old ones are deleted, and a restore ends all."""

from sqlalchemy import bindparam, delete

from retainer.identity.people.sessions import BROWSER_TTL
from retainer.schema.identity import password_links, pending_sign_ins, sessions
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store
from retainer.values.exact import instant_after

OLD_SESSIONS = delete(sessions).where(sessions.c.last_used_at <= bindparam("before", type_=INSTANT))
OLD_LINKS = delete(password_links).where(password_links.c.expires_at <= bindparam("before", type_=INSTANT))
OLD_PENDING = delete(pending_sign_ins).where(pending_sign_ins.c.expires_at <= bindparam("before", type_=INSTANT))


def delete_expired(store: Store) -> None:
    """Delete expired sessions, password links and unfinished sign-ins of all accounts."""
    with store.unscoped(write=True) as tx:
        tx.run(OLD_SESSIONS, before=instant_after(tx.now, -BROWSER_TTL))
        tx.run(OLD_LINKS, before=tx.now)
        tx.run(OLD_PENDING, before=tx.now)


def revoke_all(store: Store) -> None:
    """Delete all sessions, links and unfinished sign-ins.

    A restored database does not know which have ended since its backup.
    """
    with store.unscoped(write=True) as tx:
        for table in (sessions, password_links, pending_sign_ins):
            tx.run(delete(table))
