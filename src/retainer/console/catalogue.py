"""The kinds of records that the console shows, and how they refer to each other.

They follow from the operations of the API: a page calls the same handlers, with the rights of its admin.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Table

from retainer.console.own_records import OWN_RECORDS, OwnAccess
from retainer.errors import Refusal, not_found
from retainer.kernel.paging import ListPage, Page, first_records
from retainer.kernel.query import Filter, parameters
from retainer.kernel.representations import Representation
from retainer.kernel.resource import Operation
from retainer.kernel.roles import ROLES, Area
from retainer.store.constraints import reference_columns, singular
from retainer.store.details import load_details
from retainer.store.tx import Tx
from retainer.values.records import Record
from retainer.web.direction import isolated

NAMES = ("name", "subject", "title", "url", "description", "vendor", "body")
"""The first of these fields with a value is the name of a record."""
MAX_LABEL = 80
GROUPS = (
    ("Clients & contacts", ("clients", "external-contacts", "tags")),
    ("Work", ("projects", "tasks", "time-entries")),
    ("Money", ("quotes", "invoices", "payments", "credit-notes", "expenses")),
    ("Support & sites", ("tickets", "sites")),
)
"""The kinds that have a list, in the order of the navigation."""
LISTS = tuple(name for _, names in GROUPS for name in names)


class Kind(NamedTuple):
    """A kind of record, with the operations of the API on it: None for those that it does not have."""

    name: str
    table: Table
    listing: Operation
    reading: Operation | None
    creating: Operation | None
    changing: Operation | None
    deleting: Operation | None
    parent: Table | None
    own_only: OwnAccess | None = None
    """How the role sees its user's own records, if it sees no others."""

    @property
    def owner(self) -> str:
        """Return the field that says whose a record is; empty if the role sees all."""
        return self.own_only.owner if self.own_only else ""

    @property
    def query(self) -> type[Filter]:
        return (self.own_only and self.own_only.query) or self.listing.query

    @property
    def title(self) -> str:
        return self.plural.capitalize()

    @property
    def plural(self) -> str:
        """Return the plural: `time entries`; the contacts of clients are external only to the API."""
        return self.table.name.replace("_", " ").removeprefix("external ")

    @property
    def noun(self) -> str:
        return noun_of(self.table)

    @property
    def purpose(self) -> str:
        """Return what the records are, in the words with which the reference begins its page about them."""
        text = self.listing.introduction.partition("\n")[0].partition(": ")[2]
        return text[:1].upper() + text[1:]

    @property
    def record(self) -> type[Record]:
        return self.listing.answer.model  # type: ignore[no-any-return]

    @property
    def representations(self) -> Sequence[Representation]:
        """Return the other forms in which one of its records can be read, such as a PDF."""
        return self.reading.representations if self.reading else ()

    @property
    def parent_field(self) -> str:
        return self.listing.parameters[0] if self.listing.parameters else ""

    def get(self, tx: Tx, record_id: int) -> Record:
        """Return a record with what the role may see of it. Raises `not_found`, also if it is not the user's own."""
        record: Record = tx.get(self.table, record_id, self.record)
        if self.own_only and not self.is_own(tx, record):
            raise not_found(singular(self.table))
        load_details(tx, self.table, [record])
        return self.without_hidden([record])[0]

    def is_own(self, tx: Tx, record: Record) -> bool:
        if hasattr(record, self.owner):
            return bool(getattr(record, self.owner) == tx.actor.user_id)
        return self.first(tx, {"ids": f"{record.id}"}, size=1) != []

    def without_hidden(self, records: list[Record]) -> list[Record]:
        hidden = self.own_only.hidden if self.own_only else frozenset[str]()
        for record in records:
            for name in hidden.intersection(record.__struct_fields__):
                setattr(record, name, None)
        return records

    @property
    def left_out(self) -> frozenset[str]:
        """Return the fields and filters that the role may not see, or that are the same for all its records."""
        return self.own_only.hidden | {self.owner} if self.own_only else frozenset()

    def own(self, user_id: int, query: Filter) -> Filter:
        """Limit a query to the records of the user, if the role sees no others."""
        if self.owner:
            setattr(query, self.owner, (user_id,))
        return query

    def load(self, tx: Tx, query: Filter, page: Page, *parent: int) -> ListPage[Record]:
        listed: ListPage[Record] = self.listing.handler(tx, *parent, self.own(tx.actor.user_id, query), page)
        self.without_hidden(listed.data)
        return listed

    def path_of(self, record: Record) -> str:
        """Return the path of the page that shows a record: its own, else that of its parent, else the list."""
        if self.parent is not None:
            return f"/records/{self.parent.name}/{getattr(record, self.parent_field)}"
        return f"/records/{self.name}/{record.id}" if self.reading else f"/records/{self.name}"

    def filters(self, tx: Tx, texts: dict[str, str]) -> Filter:
        known = parameters(self.query)
        values: dict[str, Any] = {
            known[name].field: known[name].read(text) for name, text in texts.items() if name in known
        }
        return self.own(tx.actor.user_id, self.query(**values))

    def page(self, tx: Tx, filters: dict[str, str], *, size: int, sort: str = "", within: int = 0) -> ListPage[Record]:
        """Return the first page of the list; `within` is the id of the parent, if it has one."""
        parent = [within] if self.parent is not None else []
        page = Page(1, size, (sort,) if sort else self.listing.query.sorts[:1], "", "")
        return self.load(tx, self.filters(tx, filters), page, *parent)

    def first(self, tx: Tx, filters: dict[str, str], *, size: int) -> list[Record]:
        query = self.filters(tx, filters)
        return self.without_hidden(first_records(tx, self.table, self.record, query, query.sorts[:1], size))


Relation = tuple[Kind, str | None]
"""A kind of record that refers to another, and the field that does; None for children."""


class Catalogue:
    """The kinds of records that have a list or announce their changes, as far as a role may see them.

    The others are shown elsewhere: users on the pages of people, and webhooks on pages of their own.
    """

    def __init__(self, operations: list[Operation], role: str) -> None:
        self.areas: frozenset[Area] = ROLES[role]
        self._operations = {(operation.method, operation.path): operation for operation in operations}
        on_one = {
            (each.method, each.resource.path): each
            for each in operations
            if each.parameters and each.path == f"{each.resource.path}/{{{each.parameters[-1]}}}"
        }
        self.kinds: dict[str, Kind] = {}
        for listing in operations:
            path, table = listing.path, listing.resource.table
            name, creating = path.rpartition("/")[2], self._operations.get(("POST", path))
            is_kind = table is not None and (table.info["announced"] or name in LISTS)
            if listing.paged and table is not None and is_kind and path == listing.resource.path:
                reading, changing, deleting = (on_one.get((method, path)) for method in ("GET", "PATCH", "DELETE"))
                parent = listing.resource.parent
                own = None if "records" in self.areas else OWN_RECORDS.get(name)
                if own is not None:
                    writing = {"POST": creating, "PATCH": changing, "DELETE": deleting}
                    writing |= dict.fromkeys(writing.keys() - own.methods)
                    creating, changing, deleting = writing.values()
                if own is not None or "records" in self.areas:
                    self.kinds[name] = Kind(name, table, listing, reading, creating, changing, deleting, parent, own)
        self.by_table = {kind.table.name: kind for kind in self.kinds.values()}

    def owner_of(self, table: Table, *, is_named: bool = False) -> str:
        """Return the field that says whose a record is, if the role sees only its user's own; empty if it sees all.

        Of some tables, it reads the names of all records, which it does not see: for names alone, `is_named`.
        """
        kind = self.by_table.get(table.name)
        own = kind.own_only if kind else None
        return own.owner if own and not (is_named and own.is_named) else ""

    def operation(self, method: str, path: str) -> Operation:
        return self._operations[method, path]

    def find(self, name: str, has: str = "reading") -> Kind:
        kind = self.kinds.get(name)
        if kind is None or getattr(kind, has) is None:
            raise no_such_page()
        return kind

    def relations(self, table: Table) -> list[Relation]:
        found = list[Relation]()
        for kind in self.kinds.values():
            if kind.parent is table:
                found.append((kind, None))
            elif kind.parent is None:
                known = parameters(kind.listing.query)
                names = [name for name, to in reference_columns(kind.table) if to is table and name in known]
                found += [(kind, name) for name in names]
        return found

    @property
    def navigation(self) -> list[tuple[str, list[Kind]]]:
        known = [(group, [self.kinds[name] for name in names if name in self.kinds]) for group, names in GROUPS]
        return [(group, found) for group, found in known if found]


def no_such_page() -> Refusal:
    return Refusal("not_found", "This page does not exist, or your role does not include it.")


def noun_of(table: Table) -> str:
    return singular(table).removeprefix("external ")


def label_of(record: Record) -> str:
    return label_from({name: getattr(record, name, None) for name in ("number", *NAMES)}, record.id)


def label_from(values: Mapping[str, object], record_id: int) -> str:
    """Return the number and name among the values of a record, or its id without either: `#1024 · Checkout is slow`."""
    name = next((str(text) for field in NAMES if (text := values.get(field))), "")
    number = values.get("number")
    parts = [f"#{number}" if isinstance(number, int) else str(number)] if number is not None else []
    return " · ".join([*parts, *([isolated(shortened(name))] if name else [])]) or f"{record_id}"


def shortened(name: str) -> str:
    return name if len(name) <= MAX_LABEL else f"{name[: MAX_LABEL - 1]}…"
