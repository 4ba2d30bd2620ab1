"""Messages by mail: their part of the page of a document, and those that failed, for Today."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Literal

from retainer.console import words
from retainer.console.catalogue import Catalogue
from retainer.console.kinds.display import AnyPage
from retainer.console.labels import word_of
from retainer.console.names import Link
from retainer.console.values import TableBlock, Value, Values, table_of
from retainer.kernel.roles import may
from retainer.mail.messages import SCOPES, Message, list_failed, list_of_record
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx
from retainer.values.exact import instant_after

MAX_SHOWN, SHOWN_ON_TODAY = 50, 5
SHOWN_FOR = timedelta(days=14)
"""How long Today shows a message that has failed."""
TONES = {"sent": "good", "failed": "bad", "queued": "", "cancelled": "warn"}


def blocks(page: AnyPage) -> Iterator[TableBlock]:
    """Yield who got a document, and when, the newest first."""
    record = resource_of(page.kind.table)
    found = list_of_record(page.tx, record, page.own.id, MAX_SHOWN) if record in SCOPES else []
    if found:
        yield table_of_messages(page, found)


def table_of_messages(values: Values, found: Iterable[Message]) -> TableBlock:
    rows: list[list[Value | str]] = [
        [
            message.to,
            f"Reminder {message.stage}: {message.subject}" if message.stage else message.subject,
            Value("badge", word_of(message.status), tone=TONES[message.status]),
            message.error or "",
            values.since(message.sent_at or message.created_at),
            values.person(message.user_id, "Automatic"),
        ]
        for message in found
    ]
    return table_of("Messages", ("To", "Subject", "Status", "Error", "When", "By"), rows)


def path_of(message: Message) -> str:
    """Return the path of the page that shows a message: that of its record, or of the person who gets it."""
    if message.record not in SCOPES:
        return f"/people/{message.record_id}"
    return f"/records/{message.record.replace('_', '-')}s/{message.record_id}"


def failures(tx: Tx, catalogue: Catalogue) -> Iterator[tuple[str, Literal["bad"], list[Link], list[Link], str]]:
    """Yield the card of the messages that failed lately and were not sent again; nothing if there are none.

    Those about documents are for roles that see invoices, those to people of the account for admins.
    """
    seen = {*(SCOPES if "invoices" in catalogue.kinds else ()), *(["user"] if may(tx.actor, "people") else ())}
    found = [each for each in list_failed(tx, instant_after(tx.now, -SHOWN_FOR)) if each.record in seen]
    links = [Link(each.to, path_of(each), each.subject) for each in found]
    if links:
        total = Link(words.count(len(links), "message"), links[0].path)
        yield "Mail that was not sent", "bad", [total], links[:SHOWN_ON_TODAY], ""
