"""The filters of a list: read from the query of its page, and shown as controls that follow from their declarations."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal, NamedTuple, get_args, get_origin
from urllib.parse import urlencode

from sqlalchemy import Table

from retainer.console import words
from retainer.console.catalogue import Kind
from retainer.console.labels import field_label, word_of
from retainer.console.lists.views import ListView
from retainer.console.names import Choice, load_choices, load_names
from retainer.console.page_context import PageContext
from retainer.errors import Refusal
from retainer.kernel.paging import MAX_PAGE_SIZE, PER_PAGE, Page
from retainer.kernel.query import Filter, Parameter, parameters, read_values
from retainer.schema import metadata
from retainer.schema.crm import tags
from retainer.store.tx import Tx
from retainer.values.exact import local_day
from retainer.values.kinds import Day, Instant
from retainer.values.parameters import read_number, read_sort

Shape = Literal["select", "date", "text", "number"]
CHOSEN_FROM = ("clients", "projects", "users", "tags")
"""The tables whose records a form offers for choice; a filter by any other stays as it came in by a link."""


class Control(NamedTuple):
    """A filter as a control of the form."""

    name: str
    label: str
    shape: Shape
    value: str
    options: list[tuple[str, str]] = []


class Chip(NamedTuple):
    """A filter without a control, which a link set: its value in words, and the query without it."""

    name: str
    label: str
    value: str
    text: str
    without: str


class Asked(NamedTuple):
    """What a page asks for: the filters and the page of the API's list, and the texts that say so."""

    filters: Filter
    page: Page
    texts: dict[str, list[str]]

    def link(self, **others: object) -> str:
        """Return the query with other values; None drops one. Another order or filter begins at the first page."""
        kept = [(name, text) for name, texts in self.texts.items() for text in texts if name not in {"page", *others}]
        return urlencode([*kept, *((name, value) for name, value in others.items() if value is not None)])

    @property
    def is_filtered(self) -> bool:
        return bool(self.texts.keys() - {"page", "per_page", "sort"})


def read_asked(context: PageContext, kind: Kind) -> Asked | None:
    """Return what a page asks for, by the rules of the API's list; None, with the errors in the form, if it is invalid.

    A blank field is left out, and a day is the instant at which it begins for the account.
    """
    model = kind.listing.query
    declared = parameters(model)
    texts = {
        name: [_begun(context, declared.get(name), text) for text in sent if text.strip()]
        for name, sent in context.query.texts.items()
    }
    texts = {name: sent for name, sent in texts.items() if sent}
    size = partial(read_number, maximum=MAX_PAGE_SIZE)
    sort = partial(read_sort, [name.lstrip("-") for name in model.sorts])
    readers = {name: parameter.read for name, parameter in declared.items()}
    try:
        pairs = [(name, text) for name, sent in texts.items() for text in sent]
        values = read_values(pairs, {"page": read_number, "per_page": size, "sort": sort, **readers})
        defaults = {"page": 1, "per_page": PER_PAGE, "sort": model.sorts[:1]}
        number, per_page, order = (values.pop(name, default) for name, default in defaults.items())
        return Asked(kind.own(context.admin.user_id, model(**values)), Page(number, per_page, order, "", ""), texts)
    except Refusal as refusal:
        context.query.errors = refusal.members["errors"]
        return None


def _begun(context: PageContext, parameter: Parameter | None, text: str) -> str:
    text = text.strip()
    if parameter is None or not _is(parameter.hint, Instant):
        return text
    try:
        return words.day_start(text, context.admin.timezone)
    except (ValueError, OverflowError):
        return text


class Controls:
    """Builds the controls of a list; the records of a table are read once."""

    def __init__(self, tx: Tx, context: PageContext, kind: Kind, view: ListView, texts: dict[str, list[str]]) -> None:
        self.tx, self.context, self.view, self.texts = tx, context, view, texts
        self.parameters = parameters(kind.listing.query)
        self.targets = dict(reference_targets(kind))
        self.choices: dict[str, list[Choice] | None] = {}
        names = [name for name in self.parameters if name not in {"q", *kind.left_out}]
        self.all = [control for name in names if (control := self.control(name))]

    def names(self, table: Table) -> dict[int, str]:
        """Return the names that were read for choices."""
        return {choice.id: choice.text for choice in self.choices.get(table.name) or ()}

    @property
    def first(self) -> list[Control]:
        """The controls that are always visible, in the order of the declaration."""
        by_name = {control.name: control for control in self.all}
        return [by_name[name] for name in self.view.filters]

    @property
    def more(self) -> list[Control]:
        return [control for control in self.all if control.name not in self.view.filters]

    def control(self, name: str) -> Control | None:
        """Return the control of a filter; None if it has none."""
        hint, target = self.parameters[name].hint, self.targets.get(name)
        value = ",".join(self.texts.get(name, []))
        item, or_none = item_of(hint)
        if name == "ids" or (target is not None and target.name not in CHOSEN_FROM):
            return None
        if target is not None:
            return self.choice(name, target, value, or_none=or_none)
        if get_origin(item) is Literal:
            options = [(each, word_of(each)) for each in get_args(item)]
            return Control(name, field_label(name), "select", value, with_value([("", "Any"), *options], value))
        if item is bool:
            options = [("", "Any"), ("true", "Yes"), ("false", "No")]
            return Control(name, field_label(name), "select", value, with_value(options, value))
        if _is(hint, Day) or _is(hint, Instant):
            return Control(name, field_label(name), "date", self.day(value))
        return Control(name, field_label(name), "number" if name.endswith(("_min", "_max")) else "text", value)

    def choice(self, name: str, target: Table, value: str, *, or_none: bool) -> Control:
        """Return the control that offers the records of a table, or asks for an id if they are too many."""
        if target.name not in self.choices:
            self.choices[target.name] = load_choices(self.tx, target)
        found = self.choices[target.name]
        if found is None:
            return Control(name, f"{field_label(name)} (ID)", "text", value)
        none = [("none", "None")] if or_none else []
        me = [("me", f"Me ({self.context.admin.name})")] if target.name == "users" and value == "me" else []
        options = [("", "Any"), *none, *me, *((str(choice.id), choice.text) for choice in found)]
        return Control(name, field_label(name), "select", value, with_value(options, value))

    def day(self, value: str) -> str:
        """Return the day of an instant in the account's time zone, or a day as it is."""
        if "T" not in value:
            return value
        try:
            return local_day(value, self.context.admin.timezone)
        except (ValueError, OverflowError):
            return ""

    def chips(self, asked: Asked) -> Iterator[Chip]:
        """Yield the filters that a link set and no control shows."""
        controlled = {control.name for control in self.all} | {"q", "page", "per_page", "sort"}
        for name, sent in asked.texts.items():
            if name not in controlled:
                value = ",".join(sent)
                yield Chip(name, field_label(name), value, self.in_words(name, value), asked.link(**{name: None}))

    def in_words(self, name: str, value: str) -> str:
        """Return the value of a filter; ids of records as their names."""
        target, ids = self.targets.get(name), {int(text) for text in value.split(",") if text.strip().isdecimal()}
        found = load_names(self.tx, target, ids) if target is not None else {}
        return ", ".join(found.values()) or value


def reference_targets(kind: Kind) -> Iterator[tuple[str, Table]]:
    """Yield the filters by records that a list refers to, and the tables of those."""
    targets = {
        column.name: metadata.tables[column.info["target"]] for column in kind.table.c if "target" in column.info
    }
    for name in parameters(kind.listing.query):
        if name == "tag_id":
            yield name, tags
        elif name in targets:
            yield name, targets[name]


def with_value(options: list[tuple[str, str]], value: str) -> list[tuple[str, str]]:
    """Return the options, with one more for a value that is none of them: several of them, or an invalid one."""
    known = dict(options)
    if value in known:
        return options
    return [*options, (value, ", ".join(known.get(each.strip(), each) for each in value.split(",")))]


def item_of(hint: object) -> tuple[object, bool]:
    """Return the plain type of a filter or of the items of its comma list, and whether it can be null."""
    item = get_args(hint)[0] if get_origin(hint) is tuple else hint
    parts = [part for part in get_args(item) if part is not type(None)]
    or_none = type(None) in get_args(item)
    return _bare(parts[0] if or_none else item), or_none


def _bare(hint: object) -> object:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is(hint: object, kind: object) -> bool:
    """Whether a filter has values of this kind: days and instants are both texts."""
    return bool(getattr(hint, "__metadata__", None) == getattr(kind, "__metadata__", None))
