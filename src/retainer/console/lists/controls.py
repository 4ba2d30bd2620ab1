"""The filters of a list: read from the query of its page, and shown as controls that follow from their declarations."""

from collections.abc import Iterator
from functools import partial
from types import NoneType
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlencode

from sqlalchemy import Table

from retainer.console import words
from retainer.console.catalogue import Kind
from retainer.console.displays import DISPLAYS
from retainer.console.editing.fields import options_of
from retainer.console.kinds.display import Display
from retainer.console.labels import field_label
from retainer.console.names import Choice, load_choices, load_names, used_first
from retainer.console.page_context import PageContext
from retainer.console.shapes import declared
from retainer.errors import Refusal
from retainer.kernel.paging import MAX_PAGE_SIZE, PER_PAGE, Page
from retainer.kernel.query import Filter, Parameter, parameters, read_values
from retainer.schema.crm import tags
from retainer.store.constraints import references
from retainer.store.tx import Tx
from retainer.values.exact import local_day
from retainer.values.parameters import read_number, read_sort

Shape = Literal["select", "date", "text", "number"]
COMMON = {*Filter.__struct_fields__, "external_id"}
"""The filters of every list, which come after its own."""
NUMBERS = {"money", "whole", "number", "percent", "budget", "minutes"}
OFFERED = {"users", *(name for name, display in DISPLAYS.items() if display.is_offered)}
"""The tables whose records a filter offers for choice; a filter by any other stays as it came in by a link."""


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
    declared = {name: each for name, each in parameters(model).items() if name not in kind.left_out}
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
        return Asked(kind.own(context.person.user_id, model(**values)), Page(number, per_page, order, "", ""), texts)
    except Refusal as refusal:
        context.query.errors = refusal.members["errors"]
        return None


def _begun(context: PageContext, parameter: Parameter | None, text: str) -> str:
    text = text.strip()
    if parameter is None or declared(parameter.hint).shape != "moment":
        return text
    try:
        return words.day_start(text, context.person.timezone)
    except (ValueError, OverflowError):
        return text


class Controls:
    """Builds the controls of a list; the records of a table are read once."""

    def __init__(self, tx: Tx, context: PageContext, kind: Kind, display: Display, texts: dict[str, list[str]]) -> None:
        self.tx, self.context, self.texts = tx, context, texts
        self.parameters = parameters(kind.listing.query)
        self.targets = references(kind.table, kind.record)
        self.choices: dict[str, list[Choice] | None] = {}
        names = [name for name in self.parameters if name not in {"q", *kind.left_out}]
        self.all = [control for name in names if (control := self.control(name))]
        by_name = {control.name: control for control in self.all}
        self.first = [by_name[name] for name in display.filters]
        """The controls that are always visible, in the order of the declaration."""
        more = [control for control in self.all if control.name not in display.filters]
        self.more = sorted(more, key=lambda control: control.name in COMMON)

    def target(self, name: str) -> Table | None:
        """Return the table that a filter refers to."""
        return tags if name == "tag_id" else self.targets.get(name)

    def control(self, name: str) -> Control | None:
        """Return the control of a filter; None if it has none."""
        hint, target = self.parameters[name].hint, self.target(name)
        found, value = declared(hint), ",".join(self.texts.get(name, []))
        if name == "ids" or (target is not None and target.name not in OFFERED):
            return None
        if target is not None:
            return self.choice(name, target, value, or_none=NoneType in get_args(get_args(hint)[0]))
        options = options_of(found)
        if found.shape == "currency":
            options = used_first(self.tx, options)
        if options:
            return Control(name, field_label(name), "select", value, with_value([("", "Any"), *options], value))
        if found.shape in {"day", "moment"}:
            return Control(name, field_label(name), "date", self.day(value))
        return Control(name, field_label(name), "number" if found.shape in NUMBERS else "text", value)

    def choice(self, name: str, target: Table, value: str, *, or_none: bool) -> Control:
        """Return the control that offers the records of a table, or asks for an id if they are too many."""
        if target.name not in self.choices:
            self.choices[target.name] = load_choices(self.tx, target, self.context.catalogue.owner_of(target))
        found = self.choices[target.name]
        if found is None:
            return Control(name, f"{field_label(name)} (ID)", "text", value)
        none = [("none", "None")] if or_none else []
        me = [("me", f"Me ({self.context.person.name})")] if target.name == "users" and value == "me" else []
        options = [("", "Any"), *none, *me, *((str(choice.id), choice.text) for choice in found)]
        return Control(name, field_label(name), "select", value, with_value(options, value))

    def day(self, value: str) -> str:
        """Return the day of an instant in the account's time zone, or a day as it is."""
        if "T" not in value:
            return value
        try:
            return local_day(value, self.context.person.timezone)
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
        target, ids = self.target(name), {int(text) for text in value.split(",") if text.strip().isdecimal()}
        if target is None:
            return value
        found = load_names(self.tx, target, ids, self.context.catalogue.owner_of(target))
        return ", ".join(found.values()) or value


def with_value(options: list[tuple[str, str]], value: str) -> list[tuple[str, str]]:
    """Return the options, with one more for a value that is none of them: several of them, or an invalid one."""
    known = dict(options)
    if value in known:
        return options
    return [*options, (value, ", ".join(known.get(each.strip(), each) for each in value.split(",")))]
