"""The kinds of records that the console shows, and how they refer to each other.

They follow from the operations of the API: a page calls the same handlers, with the rights of its admin.
"""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from sqlalchemy import Table

from retainer.errors import Refusal
from retainer.kernel.paging import Page, Paged, first_records
from retainer.kernel.query import parameters
from retainer.kernel.resource import Operation
from retainer.store.constraints import reference_columns, singular
from retainer.store.tx import Tx
from retainer.values.records import Record

NAMES = ("name", "subject", "title", "url", "description", "vendor", "body")
"""The first of these fields with a value is the name of a record."""
MAX_LABEL = 80


class Kind(NamedTuple):
    """A kind of record, with the operations of the API that list it and read one."""

    name: str
    table: Table
    listing: Operation
    reading: Operation | None
    parent: Table | None

    @property
    def title(self) -> str:
        """Return the heading: `Time entries`."""
        return self.plural.capitalize()

    @property
    def plural(self) -> str:
        """Return the plural: `time entries`; the contacts of clients are external only to the API."""
        return self.table.name.replace("_", " ").removeprefix("external ")

    @property
    def noun(self) -> str:
        """Return the singular: `time entry`."""
        return singular(self.table).removeprefix("external ")

    @property
    def record(self) -> type[Record]:
        """Return the type of the records that the list returns."""
        model, *_ = get_args(self.listing.answers)
        return model  # type: ignore[no-any-return]

    def get(self, tx: Tx, record_id: int) -> Record:
        """Return a record. Raises `not_found`."""
        if self.reading is None:
            raise Refusal("not_found", f"A {self.noun} has no page of its own.")
        record: Record = self.reading.handler(tx, record_id)
        return record

    def page(
        self, tx: Tx, filters: dict[str, str], *, number: int = 1, size: int = 25, sort: str = "", within: int = 0
    ) -> Paged[Record]:
        """Return a page of the list, filtered by query parameters; `within` is the id of the parent, if it has one.

        Without `sort`, it has the default order.
        """
        known = parameters(self.listing.query)
        values = {known[name].field: known[name].read(text) for name, text in filters.items() if name in known}
        page = Page(number, size, (sort,) if sort else self.listing.query.sorts[:1], "", "")
        parent = [within] if self.parent is not None else []
        listed: Paged[Record] = self.listing.handler(tx, *parent, self.listing.query(**values), page)
        return listed

    def first(self, tx: Tx, filters: dict[str, str], *, size: int, sort: str = "", within: int = 0) -> list[Record]:
        """Return the first records of the list without counting the others."""
        known = parameters(self.listing.query)
        values = {known[name].field: known[name].read(text) for name, text in filters.items() if name in known}
        parent = {f"{singular(self.parent).replace(' ', '_')}_id": within} if self.parent is not None else {}
        model, *_ = get_args(self.listing.answers)
        order = (sort,) if sort else self.listing.query.sorts[:1]
        found: list[Record] = first_records(tx, self.table, model, self.listing.query(**values), order, size, **parent)
        return found


class Relation(NamedTuple):
    """A kind of record that refers to another, and the field that does; None for children."""

    kind: Kind
    field: str | None


class Catalogue:
    """The kinds of records that have a list and announce their changes.

    The others are shown elsewhere: users on the pages of people, payments with their invoice, and webhooks on pages of
    their own.
    """

    def __init__(self, operations: list[Operation]) -> None:
        lists = [each for each in operations if each.paged and is_announced(each.resource.table)]
        details = {
            operation.resource.path: operation
            for operation in operations
            if operation.method == "GET" and not operation.paged and _reads_one(operation)
        }
        self.kinds = {
            operation.path.strip("/"): Kind(
                operation.path.strip("/").replace("/", "-"),
                operation.resource.table,
                operation,
                details.get(operation.resource.path),
                operation.resource.parent,
            )
            for operation in lists
            if operation.resource.table is not None and operation.path == operation.resource.path
        }
        self._operations = {(operation.method, operation.path): operation for operation in operations}
        self.by_table = {kind.table.name: kind for kind in self.kinds.values() if kind.reading is not None}

    def operation(self, method: str, path: str) -> Operation:
        """Return an operation of the API, whose handler an action calls."""
        return self._operations[method, path]

    def find(self, name: str) -> Kind:
        """Return a kind by its name in paths. Raises `not_found`."""
        kind = self.kinds.get(name)
        if kind is None or kind.reading is None:
            raise Refusal("not_found", "This kind of record does not exist.")
        return kind

    def relations(self, table: Table) -> list[Relation]:
        """Return the kinds that refer to records of a table."""
        found = []
        for kind in self.kinds.values():
            if kind.parent is table:
                found.append(Relation(kind, None))
            elif kind.parent is None:
                known = parameters(kind.listing.query)
                names = [name for name, to in reference_columns(kind.table) if to is table and name in known]
                found += [Relation(kind, name) for name in names]
        return found

    def references(self, kind: Kind) -> dict[str, Table]:
        """Return the fields of a kind that refer to other records, with their tables."""
        return dict(reference_columns(kind.table))


def label_of(record: Record) -> str:
    """Return the number and name of a record, or its id without either."""
    return label_from({name: getattr(record, name, None) for name in ("number", *NAMES)}, record.id)


def label_from(values: Mapping[str, object], record_id: int) -> str:
    """Return the number and name among the values of a record, or its id without either."""
    name = next((str(text) for field in NAMES if (text := values.get(field))), "")
    number = values.get("number")
    parts = [str(number)] if number is not None else []
    if name:
        parts.append(shortened(name))
    return " · ".join(parts) or f"{record_id}"


def shortened(name: str) -> str:
    """Return a name with at most MAX_LABEL characters."""
    return name if len(name) <= MAX_LABEL else f"{name[: MAX_LABEL - 1]}…"


def is_announced(table: Table | None) -> bool:
    """Return whether changes of a table's records are announced."""
    return table is not None and bool(table.info["announced"])


def _reads_one(operation: Operation) -> bool:
    """Whether an operation reads one record by its id."""
    is_plain = (
        operation.path == f"{operation.resource.path}/{{{operation.parameters[-1]}}}" if operation.parameters else False
    )
    model: object = operation.record
    return is_plain and isinstance(model, type) and issubclass(model, Record) and not get_args(model)
