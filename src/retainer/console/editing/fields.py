"""The fields of forms and filters, as the types of the API declare them: label, control, choices, default and hint."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import NamedTuple, Self, get_args, get_type_hints

import msgspec
import pycountry
from iso4217 import Currency
from sqlalchemy import Table

from retainer.console.forms import Form
from retainer.console.labels import HINTS, USUAL, field_label, in_words, word_of
from retainer.console.names import USED_CURRENCIES, Choice, Only, load_choices, load_names
from retainer.console.page_context import PageContext
from retainer.console.shapes import Declared, declared, mark_of
from retainer.console.typed import value_text
from retainer.schema.crm import clients
from retainer.store.constraints import reference_columns
from retainer.store.row_mapper import RefersTo
from retainer.store.tables import metadata
from retainer.store.tx import Tx
from retainer.values import kinds
from retainer.values.reading import WritableField, writable_fields
from retainer.values.records import DetailOnly, Record

UNITS = {"percent": "%", "days": "days", "seconds": "seconds"}
"""Units that the label of a field repeats."""
CONTROLS = {"minutes": "hours", "days": "whole", "seconds": "whole", "country": "choice"}
"""The controls of shapes that have none of their own."""
SEVERAL = {"references", "choices", "scopes"}
NOT_REFILLED = {"secret", "code", "file"}
"""The controls that a refused form shows empty."""
LINE_FIELDS = (
    *("description", "quantity", "unit", "unit_price", "discount_percent", "tax_rate", "project_id"),
    "is_optional",
)
"""The fields of a line of a document, in the order of the form; what bills work follows from the work."""
UNITS_OF_ACCOUNT = {"BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI", "UYW", "XAD"}
"""Codes of ISO 4217 for funds. Metals, and codes for tests and for none, have no exponent there."""
HELPFUL = re.compile(
    r"[Bb]lank|[Oo]nly for|[Nn]ot before|[Uu]nique|[Oo]ne of|never|instead|seconds|Limit|Monthly|negative"
)
"""What marks the sentences that help a person to fill in a field; the others explain records to programs."""
OF_PROGRAMS = re.compile(r"your own system|is deleted|reports count|`q`|: unassigned|: no estimate|the quote's\.")


class Field(NamedTuple):
    """A field of a form; `default` is the text of a new record. `columns` are the fields of at most `high` rows."""

    name: str
    label: str
    shape: str
    hint: str = ""
    is_required: bool = False
    is_filled_in: bool = False
    """Whether the server fills it in if it is blank."""
    default: str = ""
    options: tuple[tuple[str, str], ...] = ()
    low: int = 0
    high: int = 0
    unit: str = ""
    length: int = 0
    target: Table | None = None
    only: Only = "open"
    columns: tuple["Field", ...] = ()
    empty: str = ""
    """What a choice says before one is chosen, if it does not follow from the field."""
    usual: str = ""
    """What a blank choice stands for, with `{currency}` or `{language}` of the account."""
    autocomplete: str = "off"
    accept: str = ""
    """The types of files that a browser offers."""

    @property
    def blanks(self) -> list[tuple[str, str]]:
        is_filled_in = self.is_filled_in or "If blank" in self.hint
        if self.empty:
            return [("", self.empty)]
        if self.shape == "reference":
            return [("", "Me" if self.is_filled_in else "None" if not self.is_required else "Select…")]
        return [] if self.is_required or self.default else [("", (self.usual or "Default") if is_filled_in else "None")]


@cache
def fields_of(model: type[msgspec.Struct], table: Table, use: str = "Create") -> tuple[Field, ...]:
    return tuple(_fields(model, table, use))


def choose_fields(model: type[msgspec.Struct], table: Table, *names: str, use: str = "Create") -> list[Field]:
    by_name = {field.name: field for field in fields_of(model, table, use)}
    return [by_name[name] for name in names]


def _fields(model: type[msgspec.Struct], table: Table, use: str) -> Iterator[Field]:
    hints = get_type_hints(model, include_extras=True)
    targets = dict(reference_columns(table))
    for name, written in writable_fields(model, use).items():
        found = declared(hints[written.name])
        mark = next((mark for mark in found.marks if isinstance(mark, RefersTo)), None)
        target = targets.get(name, metadata.tables[mark.target] if mark else None)
        only: Only = "template" if mark and mark.is_template else "open"
        field = Field(name, field_label(name, table), "text", target=target, only=only)
        field = field._replace(usual=USUAL.get((table.name, name), ""), hint=HINTS.get((table.name, name), ""))
        part = next((mark for mark in found.marks if isinstance(mark, DetailOnly)), None)
        if part is not None:
            (item,) = get_args(found.type)
            if issubclass(item, Record):
                by_name = {each.name: each for each in fields_of(item, metadata.tables[part.table], "Child")}
                columns = tuple(by_name[each] for each in LINE_FIELDS if each in by_name)
                yield field._replace(shape="rows", columns=columns, high=max_length(found))
            continue
        shape = control_of(found, target)
        if shape and name != "position":
            yield _completed(field._replace(shape=shape), written, found, model)


def _completed(field: Field, written: WritableField, found: Declared, model: type[msgspec.Struct]) -> Field:
    description = next((mark for mark in found.marks if isinstance(mark, str)), "")
    unit, (low, high), default = UNITS.get(found.shape, ""), found.bounds, written.default
    filled_in = written.default is None and NoneType not in get_args(get_type_hints(model)[written.name])
    return field._replace(
        label=f"{field.label}, {unit}" if unit else field.label,
        hint=field.hint or hint_of(description, model),
        is_required=written.required,
        is_filled_in=filled_in,
        default=value_text(default, field.shape, "en") if isinstance(default, str | int | Decimal) else "",
        options=tuple(options_of(found)) if field.shape in {"choice", "choices", "currency"} else (),
        low=low,
        high=high,
        unit=unit,
        length=max_length(found),
    )


def max_length(found: Declared) -> int:
    """Return the most characters of a text, or items of a list; 0 without a limit."""
    meta = (mark for mark in found.marks if isinstance(mark, msgspec.Meta))
    return next((mark.max_length for mark in meta if mark.max_length is not None), 0)


def control_of(found: Declared, target: Table | None) -> str:
    """Return the control of a field; empty for what only programs send."""
    if found.shape == "list":
        of_items = {"whole": "numbers", "choice": "choices"}
        return "references" if target is not None else of_items.get(declared(get_args(found.type)[0]).shape, "")
    if target is not None:
        return "reference"
    is_id = mark_of(kinds.Id) in found.marks
    return "" if is_id else CONTROLS.get(found.shape, found.shape)


def options_of(found: Declared) -> list[tuple[str, str]]:
    if found.shape == "list":
        return options_of(declared(get_args(found.type)[0]))
    if found.shape == "choice":
        return [(value, word_of(value)) for value in get_args(found.type)]
    if found.shape == "flag":
        return [("true", "Yes"), ("false", "No")]
    return [*countries()] if found.shape == "country" else [*currencies()] if found.shape == "currency" else []


@cache
def countries() -> tuple[tuple[str, str], ...]:
    named = ((country.alpha_2, getattr(country, "common_name", country.name)) for country in pycountry.countries)
    return tuple(sorted(named, key=lambda pair: pair[1]))


@cache
def currencies() -> tuple[tuple[str, str], ...]:
    """Return the codes and names of the currencies in which people pay, by code."""
    names = {currency.alpha_3: currency.name for currency in pycountry.currencies}
    codes = sorted({currency.code for currency in Currency if currency.exponent is not None} - UNITS_OF_ACCOUNT)
    return tuple((code, f"{code} · {names[code]}" if code in names else code) for code in codes)


def hint_of(description: str, model: type[msgspec.Struct]) -> str:
    """Return what a form says about a field: its description without what helps programs alone."""
    if not issubclass(model, Record):  # a form of its own, whose texts are for people alone
        return description
    sentences = re.split(r"(?<=[.;])\s+(?=[A-Z])", in_words(description, model.__struct_encode_fields__))
    text = " ".join(each for each in sentences if HELPFUL.search(each) and not OF_PROGRAMS.search(each)).rstrip(";")
    return text[:1].upper() + text[1:]


ID = re.compile(r"[1-9][0-9]{0,14}")


class Inputs:
    """The inputs of a page, which is drawn after its transaction: `load` reads what they offer, each table once."""

    record: Record | None = None

    def __init__(self, tx: Tx, context: PageContext, form: Form) -> None:
        self.tx, self.context, self.form = tx, context, form
        self.fields, self.hidden = list[Field](), list[Field]()
        self.choices: dict[tuple[Table, Only], list[Choice] | None] = {}
        self.names: dict[tuple[Table, str], dict[str, str]] = {}
        """The names of the records in a text, by their ids."""
        self.is_loaded = False
        self.used_currencies: set[str] = set()
        self.stored_now: dict[str, str] = {}

    def load(self) -> Self:
        """Read the records and the names that the inputs show, and the currencies in use."""
        if self.is_loaded:
            return self
        shown = [*self.shown()]
        if any(field.shape == "currency" for field, _ in shown):
            self.used_currencies = {self.tx.actor.currency, *(code for (code,) in self.tx.all(USED_CURRENCIES))}
        self._load_names([(field.target, text) for field, text in shown if self._is_named(field, text)])
        self.is_loaded = True
        return self

    def _is_named(self, field: Field, text: str) -> bool:
        """Whether the page shows the name of a record that its field does not offer."""
        if field.target is None:
            return False
        offered = self._offered(field, field.target)
        return offered is None or field in self.hidden or all(choice.id != text for choice in offered)

    def shown(self) -> Iterable[tuple[Field, str]]:
        """Return the fields with their texts."""
        return [(field, self.text(field)) for field in self.fields]

    def label(self, field: Field) -> str:
        return field.label

    def stored(self, _: Field) -> str:
        return ""

    def text(self, field: Field) -> str:
        """Return the text that a field shows: as typed, unless it is secret, or as it is before it is edited."""
        return "" if field.shape in NOT_REFILLED else self.form.text(field.name, self.stored(field))

    def blanks(self, field: Field) -> list[tuple[str, str]]:
        """Return the option for no choice, with the account's currency or language if one of these is then used."""
        own = self.context.person
        said = {"currency": own.currency, "language": word_of(own.language)}
        return [(value, text.format_map(said)) for value, text in field.blanks]

    def values(self, field: Field, text: str) -> list[tuple[str, str]]:
        found = [*field.options]
        if field.shape == "currency":
            found.sort(key=lambda option: (option[0] not in self.used_currencies, option[0]))
        options = [Choice(*option) for option in (*self.blanks(field), *found)]
        return [(choice.id, choice.text) for choice in self._with_chosen(options, text, None)]

    def options(self, field: Field, text: str) -> list[Choice] | None:
        """Return the records that a reference offers, with the chosen ones; None if they are too many."""
        table = field.target
        found = [] if table is None else self._offered(field, table)
        if table is None or found is None:
            return found
        return self._with_chosen([*(Choice(*option) for option in field.options), *found], text, table)

    def _offered(self, field: Field, table: Table) -> list[Choice] | None:
        key = (table, field.only)
        if key not in self.choices:
            self.choices[key] = self._load_choices(*key)
        return self.choices[key]

    def name_of(self, field: Field, text: str) -> str:
        """Return a record as a search field names it: `Bergmann Optik (#12)`."""
        found = self._named(field.target, text)
        return f"{found[text]} (#{text})" if text in found else text

    def owner_of(self, table: Table, _: str) -> str:
        """Return the field that says whose a record is, if the role sees only its user's own."""
        return self.context.catalogue.owner_of(table, is_named=True)

    def _with_chosen(self, options: list[Choice], text: str, table: Table | None) -> list[Choice]:
        """Return the options, with one more for a text that is none of them, such as several of them."""
        if not text or any(choice.id == text for choice in options):
            return options
        known = {choice.id: choice.text for choice in options} | self._named(table, text)
        return [*options, Choice(text, ", ".join(known.get(part.strip(), part) for part in text.split(",")))]

    def _named(self, table: Table | None, text: str) -> dict[str, str]:
        """Return the names of records by their ids, which a comma separates, as far as the role sees them."""
        if table is None:
            return {}
        if (table, text) not in self.names:
            self._load_names([(table, text)])
        return self.names[table, text]

    def _load_names(self, shown: Iterable[tuple[Table | None, str]]) -> None:
        """Read the names of the records in texts: those of a table with one statement."""
        ids = defaultdict[tuple[Table, str], dict[str, list[int]]](dict)
        for table, text in shown:
            if table is not None and (table, text) not in self.names:
                parts = [part.strip() for part in text.split(",")]
                ids[table, self.owner_of(table, text)][text] = [int(part) for part in parts if ID.fullmatch(part)]
        for (table, owner), by_text in ids.items():
            names = load_names(self.tx, table, {each for found in by_text.values() for each in found}, owner)
            for text, found in by_text.items():
                self.names[table, text] = {f"{each}": names[each] for each in found if each in names}

    def _load_choices(self, table: Table, only: Only) -> list[Choice] | None:
        owner = self.context.catalogue.owner_of(table, is_named=True)
        found = load_choices(self.tx, table, owner, only=only)
        if found is None or not only:
            return found
        names = load_names(self.tx, clients, {choice.client_id for choice in found if choice.client_id})
        return [
            choice._replace(text=f"{choice.text} ({names[choice.client_id]})") if choice.client_id in names else choice
            for choice in found
        ]
