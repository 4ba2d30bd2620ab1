"""Forms that a session has sent: one that is sent again, by a second press of a button, gets the answer of the first.

A session keeps the answers to its last forms. They have no secrets: a secret is in the first answer alone.
"""

from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from retainer.identity.people.sessions import digest
from retainer.schema.identity import sessions
from retainer.store.tx import Tx
from retainer.values.decoding import decoder

KEPT = 8
"""Number of answers that a session keeps: those of several open pages, and of forms sent again by going back."""
ANSWERS = select(sessions.c.sent_form, sessions.c.answer).where(sessions.c.id == bindparam("id"))


class SentForm(NamedTuple):
    session_id: int
    content: str
    """The path and the fields, of which one differs each time the form is shown, and the token of the session."""

    def answer(self, tx: Tx) -> bytes | None:
        """Return the answer that was kept; None for a form that is not among the last ones of the session."""
        kept = self._kept(tx).get(digest(self.content))
        return None if kept is None else bytes(kept)

    def keep(self, tx: Tx, answer: bytes) -> None:
        """Keep an answer, which must have no secret; the oldest one is dropped."""
        kept = [*self._kept(tx).items(), (digest(self.content), msgspec.Raw(answer))][-KEPT:]
        forms, answers = zip(*kept, strict=True)
        values = {"sent_form": msgspec.json.encode(forms).decode(), "answer": msgspec.json.encode(answers).decode()}
        tx.update_columns(sessions, self.session_id, values)

    def _kept(self, tx: Tx) -> dict[str, msgspec.Raw]:
        forms, answers = tx.one(ANSWERS, id=self.session_id) or (None, None)
        if not forms or not forms.startswith("["):  # a version before this one kept the last form alone
            return {}
        return dict(zip(decoder(list[str])(forms), decoder(list[msgspec.Raw])(answers), strict=True))
