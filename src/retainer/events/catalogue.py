"""The catalogue of events: the resources whose changes are announced, and every type, from their declarations."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_args, get_type_hints

from msgspec import Meta
from sqlalchemy import Column, Table
from sqlalchemy.sql import visitors

from retainer.kernel.resource import Resource
from retainer.resources import OF_AREAS
from retainer.sites import sites
from retainer.store.announcements import CREATED, DELETED, UPDATED, is_field
from retainer.store.outbox import resource_of
from retainer.store.row_mapper import derived_fields
from retainer.values.records import Record

OBSERVED = ("up", "down")
"""The statuses of a site that are announced: the monitor observes them. The others follow from fields and the time."""
UNANNOUNCED = {"invoice.draft", "quote.expired"}
"""Statuses that nothing becomes by a change: an invoice begins as a draft, a quote expires with its last day."""


class AnnouncedResource(NamedTuple):
    """A resource whose changes are announced."""

    name: str
    scope: str
    changes: tuple[str, ...]
    address: str
    """The path at which a record is read, with `{parent_id}` and `{id}`."""
    computed: dict[str, frozenset[str]]
    """The fields that are computed from each column of a record's own row."""

    @property
    def types(self) -> list[str]:
        return [f"{self.name}.{change}" for change in self.changes]


def is_announced(resource: Resource) -> bool:
    return resource.table is not None and resource.table.info["announced"] and resource.operations[0].paged


def _announced(resource: Resource) -> AnnouncedResource:
    table, (listing, *others) = resource.table, resource.operations
    if table is None or resource.scope is None:
        raise TypeError(f"{resource.path} has no table or no scope, so its records cannot be followed.")
    name, model = resource_of(table), listing.answer.model
    statuses = get_args(get_type_hints(model).get("status")) if "status" in table.c else ()
    turns = OBSERVED if resource is sites.api else statuses
    changes = tuple(turn for turn in turns if f"{name}.{turn}" not in UNANNOUNCED)
    path = resource.path
    for parameter in listing.parameters:
        path = path.replace(f"{{{parameter}}}", "{parent_id}")
    is_read_alone = any(each.method == "GET" for each in others)
    address = f"{path}/{{id}}" if is_read_alone else f"{path}?ids={{id}}"
    return AnnouncedResource(
        name, f"{resource.scope}:read", (CREATED, UPDATED, DELETED, *changes), address, _computed(table, model)
    )


def _computed(table: Table, model: type[Record]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for name, derived in derived_fields(model).items():
        for part in visitors.iterate(derived.expression(table)):
            if isinstance(part, Column) and part.table is table and is_field(part):
                found[part.name] = found.get(part.name, frozenset()) | {name}
    if "currency" in table.c:  # the same minor units are another amount: 0.00 EUR and 0 JPY
        amounts = {name for name in model.__struct_fields__ if name in table.c and table.c[name].info.get("money")}
        amounts |= {name for name, derived in derived_fields(model).items() if derived.money}
        found["currency"] = found.get("currency", frozenset()) | amounts
    return found


RESOURCES = list(filter(is_announced, OF_AREAS))
"""The resources whose changes are announced."""
ANNOUNCED = {each.name: each for each in map(_announced, RESOURCES)}
"""The announced resources by name, in the order of the reference."""
TYPES = tuple(kind for each in ANNOUNCED.values() for kind in each.types)
NAMES = tuple(ANNOUNCED)


def scope_errors(asked: Iterable[str], has_scope: Callable[[str], bool]) -> list[str]:
    """Return an error for each scope that is lacking to read the events of these types or resources."""
    errors = []
    for scope in sorted({ANNOUNCED[word.partition(".")[0]].scope for word in asked}):
        if not has_scope(scope):
            names = ", ".join(each.name for each in ANNOUNCED.values() if each.scope == scope)
            errors.append(f"This key lacks the scope {scope}. Leave out the events of: {names}.")
    return errors


if TYPE_CHECKING:
    EventType = str
    EventResource = str
else:
    EventType = Annotated[Literal[TYPES], Meta(title="EventType")]
    EventResource = Annotated[Literal[NAMES], Meta(title="EventResource")]
