"""Names of records: those that a page refers to, and those that a form offers; one statement reads those of a table."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, null, select

from retainer.console import words
from retainer.console.catalogue import Catalogue, label_from, label_of
from retainer.console.own_records import is_own
from retainer.schema.billing import expenses, invoices, payments
from retainer.schema.crm import clients
from retainer.schema.identity import api_keys, users
from retainer.schema.work import projects, tasks, time_entries
from retainer.store.constraints import singular
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import amount_of
from retainer.values.records import Record
from retainer.work.tasks import OPEN, Task

MAX_NAMES = 10_000
"""Names that are read of a table at once: one for each row of the longest CSV file."""
USED_CURRENCIES = select(clients.c.currency).distinct()
MAX_CHOICES = 500
"""Records that a form offers for choice; with more, it asks for the id."""


Only = Literal["", "open", "template"]
"""What a choice offers: everything, what new records can refer to, or templates.

New records cannot refer to archived clients and projects, templates, and inactive people.
"""


class Link(msgspec.Struct):
    """A name, the path of its page below `/console`, which is empty without a page, and what adds to the name."""

    text: str
    path: str
    note: str = ""
    tick: str = ""
    """The path of the form that finishes an open task."""


class Offer(NamedTuple):
    """A record or a value that a form offers, and its client, if it has one."""

    id: str
    text: str
    client_id: int | None = None

    @property
    def pair(self) -> tuple[str, str]:
        return self.id, self.text


class Names:
    """Collects references while a page is built; `load` resolves all of them together."""

    def __init__(self, tx: Tx, catalogue: Catalogue) -> None:
        self.tx, self.catalogue = tx, catalogue
        self._pending: dict[Table, dict[int, Link]] = {}

    def refer(self, table: Table, record_id: int, path: str = "") -> Link:
        """Return the link to a row, by default to its page; its text is the id until `load`."""
        links = self._pending.setdefault(table, {})
        if record_id not in links:
            links[record_id] = Link(f"{record_id}", path or path_of(self.catalogue, table, record_id))
        return links[record_id]

    def load(self) -> None:
        for table, links in self._pending.items():
            for record_id, name in load_names(self.tx, table, links).items():
                links[record_id].text = name
            for record_id in load_own(self.tx, self.catalogue, table, links):
                links[record_id].path = path_of(self.catalogue, table, record_id, is_own=True)
        self._pending = {}


def load_names(tx: Tx, table: Table, ids: Iterable[int], owner: str = "") -> dict[int, str]:
    """Return the names of records by their ids, of at most MAX_NAMES; a table without names has none.

    Ids that a request names need the `owner`: the field that names the user, if the role sees only the user's records.
    """
    wanted = sorted(ids)[:MAX_NAMES] if table.info["named_by"] else []
    rows = tx.all(_by_id(table, owner), ids=json.dumps(wanted), me=tx.actor.user_id) if wanted else ()
    return _with_unnamed(tx, table, {record_id: _name(table, record_id, texts) for record_id, *texts in rows})


def load_own(tx: Tx, catalogue: Catalogue, table: Table, ids: Iterable[int]) -> set[int]:
    """Return which rows are the user's own; none if the role sees all, or none of them."""
    owner = catalogue.owner_of(table)
    return {*load_names(tx, table, ids, owner)} if owner else set()


def load_choices(tx: Tx, table: Table, owner: str = "", *, only: Only = "", is_cut: bool = False) -> list[Offer] | None:
    """Return all records of a table with their names, by name; None if there are more than a form can offer.

    With an `owner`, they are those whose field names the user. A list that `is_cut` has the newest instead of None.
    """
    rows = tx.all(_first(table, owner, only), me=tx.actor.user_id)
    if len(rows) > MAX_CHOICES and not is_cut:
        return None
    found = [read_choice(table, row) for row in rows[:MAX_CHOICES]]
    return sorted(found, key=lambda choice: (sort_key(choice.text), int(choice.id)))


def is_open(tx: Tx, table: Table, record_id: int, owner: str = "") -> bool:
    """Return whether new records can refer to a record; with an `owner`, only if its field names the user."""
    return tx.value(_if_open(table, owner), id=record_id, me=tx.actor.user_id) is not None


def read_choice(table: Table, row: Sequence[Any]) -> Offer:
    """Return the choice of a row with `name_columns`."""
    record_id, client_id, *texts = row
    return Offer(f"{record_id}", _name(table, record_id, texts), client_id)


def load_labels(tx: Tx, table: Table, records: Iterable[Record]) -> dict[int, str]:
    """Return what records are called, by their ids."""
    return _with_unnamed(tx, table, {record.id: label_of(record) for record in records})


def title_of(tx: Tx, table: Table, record: Record) -> str:
    """Return what a record is called on its page; it must still be stored."""
    label = load_labels(tx, table, [record])[record.id]
    return f"{singular(table).capitalize()} {label}" if label == f"{record.id}" else label


def _payment(amount: int, currency: str, invoice: str) -> str:
    noun = "Payment" if amount > 0 else "Refund"
    return f"{noun} of {words.money(amount_of(abs(amount), currency), currency)} on {invoice}"


def _time(minutes: int, day: str, *places: str | None) -> str:
    return ", ".join([f"{words.hours(minutes)} h on {words.short_day(day)}", *list(filter(None, places))[:1]])


def _expense(amount: int, currency: str, day: str) -> str:
    return f"{words.money(amount_of(amount, currency), currency)} on {words.short_day(day)}"


Said = tuple[Callable[..., str], tuple[ColumnElement[Any], ...], tuple[Table, ...]]
SAID: dict[Table, Said] = {
    invoices: (lambda client: f"Draft for {client}", (clients.c.name,), (clients,)),
    payments: (_payment, (payments.c.amount, payments.c.currency, invoices.c.number), (invoices,)),
    time_entries: (
        _time,
        (time_entries.c.duration_minutes, time_entries.c.date, tasks.c.title, projects.c.name, clients.c.name),
        (tasks, projects, clients),
    ),
    expenses: (_expense, (expenses.c.amount, expenses.c.currency, expenses.c.date), ()),
}
"""How records are called, by their table: the words, the columns that they tell, and the tables of these."""


def _with_unnamed(tx: Tx, table: Table, names: dict[int, str]) -> dict[int, str]:
    """Return names of records with those that have none called by what they are, such as drafts, payments and time."""
    ids = [each for each, name in names.items() if name == f"{each}"]
    if table not in SAID or not ids:
        return names
    say = SAID[table][0]
    return names | {record_id: say(*told) for record_id, *told in tx.all(_said(table), ids=json.dumps(ids))}


def path_of(catalogue: Catalogue, table: Table, record_id: int, *, is_own: bool = False) -> str:
    """Return the path of the page of a row below `/console`; empty without a page that the role can open.

    If the role sees only the user's own records of the kind, it `is_own` or has no page.
    """
    if table is users:
        return f"/people/{record_id}" if "records" in catalogue.areas else ""
    if table is api_keys:
        return f"/keys/{record_id}" if "keys" in catalogue.areas else ""
    kind = catalogue.by_table.get(table.name)
    if kind is None or not (kind.reading or kind.changing) or (kind.owner and not is_own):
        return ""
    return f"/records/{kind.name}/{record_id}" if kind.reading else f"/records/{kind.name}/{record_id}/edit"


def tick_path(catalogue: Catalogue, record: Record) -> str:
    """Return the path of the form that finishes a task; empty for other records, and without the right to."""
    is_open = isinstance(record, Task) and record.status in OPEN
    return f"/records/tasks/{record.id}/tick" if is_open and catalogue.kinds["tasks"].changing else ""


def _name(table: Table, record_id: int, texts: list[object]) -> str:
    return label_from(dict(zip(table.info["named_by"], texts, strict=True)), record_id)


@cache
def _by_id(table: Table, owner: str) -> Select[int, str]:
    found = select(table.c.id, *table.c[table.info["named_by"]]).where(is_listed(table.c.id, "ids"))
    return found.where(is_own(table, owner, bindparam("me"))) if owner else found


@cache
def _if_open(table: Table, owner: str) -> Select[int]:
    return select(table.c.id).where(table.c.id == bindparam("id"), *limits_of(table, owner, "open"))


@cache
def _first(table: Table, owner: str, only: Only) -> Select[int, int | None, str]:
    found = select(*name_columns(table)).where(*limits_of(table, owner, only))
    return found.order_by(table.c.id.desc()).limit(MAX_CHOICES + 1)


def name_columns(table: Table) -> list[ColumnElement[Any]]:
    """Return the columns of a choice: the id, the client, and what makes up the name."""
    client = table.c.client_id if "client_id" in table.c else null().label("client_id")
    return [table.c.id, client, *table.c[table.info["named_by"]]]


def limits_of(table: Table, owner: str, only: Only) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of what is offered; with an `owner`, the field of it names the user `me`."""
    if owner:
        yield is_own(table, owner, bindparam("me"))
    if only and table in {clients, projects}:
        yield table.c.status != "archived"
    if only and table is projects:
        yield projects.c.is_template.is_(only == "template")
    if only and table is users:
        yield users.c.is_active


@cache
def _said(table: Table) -> Select[Any]:
    _, columns, joined = SAID[table]
    source: Any = table
    for each in joined:
        reference = f"{each.name.removesuffix('s')}_id"
        source = source.outerjoin(each, each.c.id == table.c[reference])
    return select(table.c.id, *columns).select_from(source).where(is_listed(table.c.id, "ids"))
