"""Kept forms: what a person had typed when the session ended, for the same person in the same browser."""

import json
from datetime import timedelta

from msgspec.structs import replace
from sqlalchemy import bindparam, select

from retainer.identity.actors import OF_ACCOUNTS, PERSON_COLUMNS, Person
from retainer.identity.people.sessions import digest
from retainer.identity.people.tokens import KEPT_FORMS
from retainer.schema.identity import kept_forms, sessions, users
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

RECENT = timedelta(days=7)
"""How long after its last use a session can still keep a form."""
Pairs = list[tuple[str, str]]


LAST_USER = (
    select(*PERSON_COLUMNS.values())
    .select_from(OF_ACCOUNTS)
    .where(
        sessions.c.hash == bindparam("hash"),
        sessions.c.last_used_at > bindparam("since", type_=INSTANT),
        users.c.is_active,
    )
)
"""The user of a recent session, which may have ended."""
BY_TOKEN = select(kept_forms.c.fields).where(
    kept_forms.c.user_id == bindparam("user"),
    kept_forms.c.hash == bindparam("hash"),
    kept_forms.c.path == bindparam("path"),
    kept_forms.c.expires_at > bindparam("at", type_=INSTANT),
)


def last_person(store: Store, token: str, address: str | None) -> Person | None:
    """Return the user whose session a token was; None if there is none, or the user is not active."""
    row = store.unscoped_one(LAST_USER, hash=digest(token), since=instant_after(utcnow(), -RECENT))
    return None if row is None else replace(Person(**dict(zip(PERSON_COLUMNS, row, strict=True))), address=address)


def keep(store: Store, person: Person, path: str, pairs: Pairs) -> str:
    """Keep a form for a user whose session has ended; return the token that finds it. It replaces the former one.

    The caller limits its size.
    """
    fields = json.dumps(pairs, ensure_ascii=False)
    with store.begin(replace(person, session_id=None), write=True) as tx:
        KEPT_FORMS.void_all_of(tx, person.user_id)
        return KEPT_FORMS.create(tx, person.user_id, path=path, fields=fields).token


def find(tx: Tx, token: str, path: str) -> Pairs | None:
    """Return the form that the acting user had typed on a page; None if there is none, or it has expired."""
    fields = tx.value(BY_TOKEN, user=tx.actor.user_id, hash=digest(token), path=path, at=tx.now)
    return None if fields is None else [(name, text) for name, text in json.loads(fields)]
