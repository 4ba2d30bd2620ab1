"""Forms that a session sends twice, by a second press of a button: the second gets the answer of the first.

A browser shows only the last answer, which may have a secret. The session keeps it until it sends another form,
encrypted with its token, of which the server has only a hash.
"""

import hashlib
from operator import xor
from typing import NamedTuple

from sqlalchemy import bindparam, select

from retainer.identity.people.sessions import digest
from retainer.schema.identity import sessions
from retainer.store.tx import Tx

ANSWER = select(sessions.c.answer).where(sessions.c.id == bindparam("id"), sessions.c.sent_form == bindparam("form"))


class SentForm(NamedTuple):
    session_id: int
    content: str
    """The path and the fields, of which one differs each time the form is shown, and the token of the session."""

    def answer(self, tx: Tx) -> bytes | None:
        """Return the answer that was kept; None for a form that the session has not sent just before."""
        row = tx.one(ANSWER, id=self.session_id, form=digest(self.content))
        return None if row is None else self._sealed(bytes.fromhex(row[0]))

    def keep(self, tx: Tx, answer: bytes) -> None:
        kept = {"sent_form": digest(self.content), "answer": self._sealed(answer).hex()}
        tx.update_columns(sessions, self.session_id, kept)

    def _sealed(self, text: bytes) -> bytes:
        """Encrypt or decrypt an answer with a key stream of its length, which no other answer has: forms differ."""
        pad = hashlib.shake_256(f"answer {self.content}".encode()).digest(len(text))
        return bytes(map(xor, text, pad))
