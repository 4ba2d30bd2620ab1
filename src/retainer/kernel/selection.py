"""Selections: the related records that a response includes, and the fields to which its records are limited."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table

from retainer.errors import none_of
from retainer.store.constraints import references
from retainer.store.details import details, load_details, load_records
from retainer.store.tx import Tx
from retainer.values.parameters import MAX_LIST
from retainer.values.records import WRITE_ONLY, Record

Included = dict[str, list[Record]]
"""Related records by the name of their table, each once."""
VisibleTo = Callable[[Tx, Any], Record]
"""Returns a record with what the caller may see of it."""


class RecordSource(NamedTuple):
    """Records that responses can include: their type, the scope that reads them, and what of them a caller may see."""

    table: Table
    model: type[Record]
    scope: str | None
    visible_to: VisibleTo | None


class Selection(NamedTuple):
    """What a request adds to the records of its response, and their fields if it limits them."""

    include: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class Selectable:
    """What requests of an operation can select: the references of its records, and their parts.

    All follows from declarations. `sources` are the records that can be read, by the names of their tables.
    """

    def __init__(
        self, table: Table, model: type[Record], sources: Mapping[str, RecordSource], *, is_list: bool
    ) -> None:
        self.table = table
        self.relations = {
            name_of(field): (field, sources[target.name])
            for field, target in references(table, model).items()
            if target.name in sources
        }
        self.is_list = is_list
        self.parts = tuple(details(table, model))
        self.names = (*self.relations, *self.parts)
        own = [field for field in msgspec.structs.fields(model) if field.default is not WRITE_ONLY]
        self.fields = (*(field.name for field in own), *(() if is_list else details(table, model)))
        self.readers = {"fields": partial(read_names, self.fields)}
        if self.names:
            self.readers["include"] = partial(read_names, self.names)

    def load(self, tx: Tx, records: Sequence[Record], selection: Selection) -> Included | None:
        """Read what a request includes, with one statement for each kind of record and part; None for nothing."""
        if self.is_list:  # a single record has its parts
            load_details(tx, self.table, records, [name for name in selection.include if name in self.parts])
        wanted: dict[str, tuple[RecordSource, set[int]]] = {}
        for name in selection.include:
            if name in self.relations:
                field, source = self.relations[name]
                _, ids = wanted.setdefault(str(source.table.name), (source, set()))
                for record in records:
                    value = getattr(record, field)
                    ids.update(value if isinstance(value, list) else () if value is None else (value,))
        included = {
            name: [
                source.visible_to(tx, record) if source.visible_to else record
                for record in load_records(tx, source.table, source.model, ids)
            ]
            for name, (source, ids) in wanted.items()
        }
        return included or None

    def limit(self, record: Record, selection: Selection) -> object:
        """Return the fields of a record that a request selects, in their order; the whole record if it limits none."""
        if not selection.fields:
            return record
        shown = {"id", *selection.fields, *selection.include}
        return {name: getattr(record, name) for name in (*self.fields, *self.parts) if name in shown}


def read_names(names: Collection[str], text: str) -> tuple[str, ...]:
    sent = tuple(part.strip() for part in text.split(","))
    if len(sent) > MAX_LIST:
        raise ValueError(f"Must be a comma-separated list of at most {MAX_LIST} names; this has {len(sent)}.")
    if not set(sent) <= set(names):
        raise ValueError(f"Must be a comma-separated list of: {', '.join(names)}. {none_of(sent, names)}")
    return tuple(dict.fromkeys(sent))


def name_of(field: str) -> str:
    """Return the name by which a request includes what a field refers to: client_id is `client`, tag_ids are `tags`."""
    return f"{field.removesuffix('_ids')}s" if field.endswith("_ids") else field.removesuffix("_id")
