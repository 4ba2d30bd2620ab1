"""Names of the records that a page refers to, resolved with one statement for each table."""

import json
from functools import cache

import msgspec
from sqlalchemy import Select, Table, select

from retainer.console.catalogue import Catalogue, label_from, label_of
from retainer.schema.crm import tags
from retainer.schema.identity import users
from retainer.store.constraints import singular
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.records import Record

NAMES_BY_TABLE = {
    "clients": ("name",),
    "external_contacts": ("name",),
    "projects": ("name",),
    "milestones": ("name",),
    "tasks": ("title",),
    "tickets": ("number", "subject"),
    "sites": ("name",),
    "quotes": ("number", "title"),
    "invoices": ("number", "subject"),
    "credit_notes": ("number",),
    "expenses": ("description", "vendor"),
    "time_entries": ("description",),
    "users": ("name",),
    "tags": ("name",),
}
"""The columns that make up the name of a row."""
MAX_NAMES = 5000
"""Names that one page resolves of a table; beyond it, ids stay numbers."""


class Link(msgspec.Struct):
    """A name, and the path of its page below `/console`; the path is empty without a page."""

    text: str
    path: str


class Names:
    """Collects references while a page is built; `load` resolves all of them together."""

    def __init__(self, tx: Tx, catalogue: Catalogue) -> None:
        self.tx, self.catalogue = tx, catalogue
        self._pending: dict[Table, dict[int, Link]] = {}

    def refer(self, table: Table, record_id: int) -> Link:
        """Return the link to a row; its text is the id until `load`."""
        links = self._pending.setdefault(table, {})
        if record_id not in links:
            links[record_id] = Link(f"{record_id}", self._path(table.name, record_id))
        return links[record_id]

    def own(self, table: Table, record: Record) -> Link:
        """Return the link to a record that is known."""
        return Link(title_of(table, record), self._path(table.name, record.id))

    def load(self) -> None:
        """Write the names into all links that were handed out."""
        for table, links in self._pending.items():
            names = NAMES_BY_TABLE.get(table.name, ())
            ids = json.dumps(sorted(links)[:MAX_NAMES])
            for row_id, *texts in self.tx.all(_select_names(table), ids=ids) if names else ():
                links[row_id].text = label_from(dict(zip(names, texts, strict=True)), row_id)
        self._pending = {}

    def _path(self, table: str, record_id: int) -> str:
        if table == users.name:
            return f"/people/{record_id}"
        kind = self.catalogue.by_table.get(table)
        return (
            "" if kind is None or kind.parent is not None or table == tags.name else f"/records/{kind.name}/{record_id}"
        )


def title_of(table: Table, record: Record) -> str:
    """Return the number and name of a record; without either, its kind and id: `Time entry 12`."""
    label = label_of(record)
    return f"{singular(table).capitalize()} {label}" if label == f"{record.id}" else label


@cache
def _select_names(table: Table) -> Select[int]:
    is_wanted = is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery())
    return select(table.c.id, *table.c[NAMES_BY_TABLE[table.name]]).where(is_wanted)
