"""Values of records as people read them, each by the type of its field, and the tables that lists and pages share."""

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_DOWN, Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import Table

from retainer.billing.invoices.types import Invoice
from retainer.billing.rules import is_credited
from retainer.console import words
from retainer.console.catalogue import noun_of, shortened
from retainer.console.labels import field_label, word_of
from retainer.console.names import Link, Names, path_of, tick_path
from retainer.console.page_context import PageContext
from retainer.console.shapes import choices_of, shapes_of
from retainer.documents.wording import country_name
from retainer.schema.crm import tags
from retainer.schema.identity import users
from retainer.store.constraints import references
from retainer.store.tx import Tx
from retainer.values.records import Record

Model = type[msgspec.Struct]
PARAGRAPH_LENGTH = 100
"""Characters beyond which a text is a paragraph."""
BY_TONE = {
    "good": ("accepted", "active", "billed", "completed", "done", "paid", "resolved", "up"),
    "info": ("in_progress", "in_review", "maintenance", "open", "partially_paid", "prospect", "sent", "unbilled"),
    "warn": ("checking_again", "expired", "high", "on_hold", "paused", "pending", "unpriced", "us"),
    "bad": ("declined", "down", "overdue", "urgent", "written_off"),
}
TONES = {word: tone for tone, words_of_tone in BY_TONE.items() for word in words_of_tone}
"""The colours of statuses; any other has none."""
NEAR, FULL = 80, 100
"""Percent of a budget from which on it is nearly used, and used up."""


class Value(NamedTuple):
    """A value for display: the macro `shown` of `record_blocks.html` draws each kind.

    `tone` is the colour of a text, a badge or a bar, `share` the width of a bar in percent, `detail` stands below.
    """

    kind: str
    text: str = ""
    link: Link | None = None
    links: Sequence[Link] = ()
    moment: words.Moment | None = None
    tone: str = ""
    share: int = 0
    detail: Link | None = None
    bars: Sequence[Any] = ()

    @property
    def is_number(self) -> bool:
        return self.kind in {"number", "share", "amounts"}


NOTHING = Value("none")


class Column(NamedTuple):
    """A column of the records of a kind: its field, a field that stands below, and the one by which it is sorted.

    `load` reads values that are no fields, for all records of a table at once, by their ids.
    """

    field: str
    detail: str = ""
    sort: str = ""
    load: Callable[["Values", Sequence[Any]], dict[int, Value]] | None = None


def as_columns(columns: Iterable[str | Column]) -> list[Column]:
    return [Column(column) if isinstance(column, str) else column for column in columns]


class Heading(NamedTuple):
    """The heading of a column; a link sorts by it, and `direction` is set if the list is sorted by it."""

    title: str
    is_number: bool = False
    link: str = ""
    direction: str = ""

    def sorting(self, context: PageContext, name: str, order: str, *, is_largest_first: bool = True) -> "Heading":
        """Return the heading with the link that sorts by its column, or turns the order of the list round."""
        direction = {f"-{name}": "descending", name: "ascending"}.get(order, "")
        is_rising = direction == "descending" or not (direction or is_largest_first)
        return self._replace(link=context.link(sort=name if is_rising else f"-{name}"), direction=direction)


class TableBlock(NamedTuple):
    """Rows of values; `total` is the number of all rows, if it is known, and `path` leads to them."""

    title: str
    columns: Sequence[Heading]
    rows: Sequence[Sequence[Value]]
    total: int | None = None
    path: str = ""
    note: str = ""
    foot: Sequence[Value] = ()
    macro: str = "table"

    def without_empty(self) -> "TableBlock":
        used = [place for place in range(len(self.columns)) if any(row[place].kind != "none" for row in self.rows)]
        columns = [self.columns[place] for place in used]
        return self._replace(columns=columns, rows=[[row[place] for place in used] for row in self.rows])


class Block(SimpleNamespace):
    """A block of a record's page: the macro of `record_blocks.html` that draws it, and what the macro shows."""

    def __init__(self, macro: str, **shown: Any) -> None:
        super().__init__(macro=macro, **shown)


AnyBlock = Block | TableBlock


class Fact(NamedTuple):
    """A field with its label; as a headline figure, also the list that it counts, and a note below it."""

    label: str
    value: Value
    path: str = ""
    note: str = ""


def table_of(
    title: str, titles: Sequence[str], rows: Iterable[Sequence[Value | str]], *, numbers: int = 0, note: str = ""
) -> TableBlock:
    """Return a table of values and texts, of which those in the last columns are numbers."""
    kinds = ["text"] * (len(titles) - numbers) + ["number"] * numbers
    columns = [Heading(each, kind == "number") for each, kind in zip(titles, kinds, strict=True)]
    cells = [
        [Value(kind, each) if isinstance(each, str) else each for each, kind in zip(row, kinds, strict=True)]
        for row in rows
    ]
    return TableBlock(title, columns, cells, note=note)


class Values:
    """Formats records for a page; `names.load` reads the names of all records that they refer to."""

    def __init__(self, tx: Tx, context: PageContext) -> None:
        self.tx, self.context = tx, context
        self.names = Names(tx, context.catalogue)
        self.currency = ""  # of amounts of a part, like a line, that has none of its own

    def field(self, record: object, name: str, table: Table | None = None, model: Model | None = None) -> Value:
        """Return the value of a field; `model` is the type that declares it, if it is not that of the record."""
        value, model = getattr(record, name), model or cast("Model", type(record))
        if value is None or value is msgspec.UNSET or value in ("", []):
            return NOTHING
        target = references(table, model).get(name) if table is not None else None
        if target is tags and table is not None:
            path = f"/records/{self.context.catalogue.by_table[table.name].name}?tag_id={{}}"
            return Value("links", links=[self.names.refer(tags, tag_id, path.format(tag_id)) for tag_id in value])
        if target is not None:
            return Value("link", link=self.names.refer(target, value))
        if isinstance(value, msgspec.Struct) or (isinstance(value, list) and isinstance(value[0], msgspec.Struct)):
            return NOTHING
        shape = shapes_of(model)[name]
        if shape == "choice":
            return _choice(record, name, value, choices_of(model)[name])
        if shape in NUMBERS:
            return Value("number", NUMBERS[shape](value))
        if shape in LOOKS:
            return LOOKS[shape](self, record, name, value)
        in_words = word_of if name in choices_of(model) else str
        return Value("text", ", ".join(map(in_words, value)) if isinstance(value, list) else str(value))

    def since(self, instant: str | None) -> Value:
        return NOTHING if instant is None else Value("since", moment=self.context.moment(instant))

    def person(self, user_id: int | None, otherwise: str = "The operator") -> Value | str:
        """Return the link to a person; `otherwise` is said without one."""
        return Value("link", link=self.names.refer(users, user_id)) if user_id else otherwise

    def table(
        self, title: str, records: Sequence[Any], table: Table | None, columns: Iterable[str | Column]
    ) -> TableBlock:
        """Return a table of records or of parts of one. The first column of records leads to their pages."""
        declared = as_columns(columns)
        loaded = {column.field: column.load(self, records) for column in declared if column.load and records}
        rows = [[self.cell(record, column, table, loaded) for column in declared] for record in records]
        titles = [field_label(column.field, table) for column in declared]
        named_by = table.info["named_by"] if table is not None else ()
        if table is not None and named_by:
            for record, row in zip(records, rows, strict=True):
                row[0] = self.label(record, declared[0].field, table)._replace(detail=row[0].detail)
            titles[0] = noun_of(table).capitalize() if declared[0].field in named_by else titles[0]
        found = [Heading(each, any(row[place].is_number for row in rows)) for place, each in enumerate(titles)]
        return TableBlock(title, found, rows)

    def cell(self, record: Record, column: Column, table: Table | None, loaded: dict[str, dict[int, Value]]) -> Value:
        """Return a cell: instants as their distance, and days that have passed as late."""
        if column.field in loaded:
            return loaded[column.field].get(record.id, NOTHING)
        value = self.field(record, column.field, table)
        if value.kind == "moment":
            value = value._replace(kind="since")
        if column.field == "due_date" and getattr(record, "is_overdue", False):
            value = value._replace(tone="late")
        below = self.detail(record, column, table) if column.detail else None
        return value._replace(detail=below) if below is not None else value

    def label(self, record: Record, name: str, table: Table) -> Value:
        value, is_day = getattr(record, name), shapes_of(type(record))[name] == "day"
        text = "Draft" if value is None else shortened(str(value))
        link = Link(f"{words.day_label(value)} {value[:4]}" if is_day else text, "")
        link.path = path_of(self.context.catalogue, table, record.id, is_own=True)
        link.tick = tick_path(self.context.catalogue, record)
        return Value("link", link=link, tone="date" if is_day else "")

    def detail(self, record: Record, column: Column, table: Table | None) -> Link | None:
        below, raw = self.field(record, column.detail, table), getattr(record, column.detail)
        if below.link is not None and below.kind == "link":
            return below.link
        raw = f"#{raw}" if isinstance(raw, int) else raw
        text = "" if raw is None else shortened(str(raw).removeprefix("https://").removesuffix("/"))
        return Link(text, "") if text and text != str(getattr(record, column.field)) else None


NUMBERS: dict[str, Callable[[Any], str]] = {
    "whole": words.number,
    "number": lambda value: words.number(value.normalize()),
    "percent": words.percent,
    "uptime": lambda value: words.percent(Decimal(str(value)).quantize(Decimal("0.1"), ROUND_DOWN), 1),
    "minutes": lambda value: f"{words.hours(value)} h",
    "milliseconds": lambda value: f"{words.number(value)} ms",
    "seconds": lambda value: words.count(value, "second") if value % 60 else words.count(value // 60, "minute"),
    "days": lambda value: words.count(value, "day"),
}
"""The texts of numbers by their shape. An uptime is rounded down: only one without a failed check is 100.0%."""


def money(amount: Decimal, currency: str, tone: str = "") -> Value:
    return Value("number", words.money(amount, currency), tone=tone)


def badge_of(status: str) -> Value:
    return Value("badge", word_of(status), tone=TONES.get(status, ""))


def badges_of(record: object) -> list[Value]:
    """Return the badges of a record: an overdue invoice only says so, other records that are late say both.

    A sent invoice is open until something is paid, and credited if its credit notes cover its total. A site whose last
    check failed is checked again before it is down.
    """
    status: str = getattr(record, "status", "")
    days: int = getattr(record, "days_overdue", 0)
    if days:
        return [badge_of("overdue")._replace(detail=Link(f"{words.count(days, 'day')} late", ""))]
    if isinstance(record, Invoice):
        status = "credited" if is_credited(record) else "open" if status == "sent" else status
    is_rechecked = status in {"up", "unknown"} and getattr(record, "last_error", None) is not None
    badges = [badge_of("checking_again" if is_rechecked else status)] if status else []
    return [*badges, badge_of("overdue")] if getattr(record, "is_overdue", False) else badges


def _choice(record: object, name: str, value: str, choices: Sequence[str]) -> Value:
    """Return a word; it is a badge if one of the words that the field can have has a colour."""
    if name == "status":
        return badges_of(record)[0]
    return badge_of(value) if any(word in TONES for word in choices) else Value("text", word_of(value))


def _budget(_: Values, record: msgspec.Struct, __: str, value: object) -> Value:
    """Return the bar of a used budget; on what is completed, it warns of nothing."""
    exact = Decimal(str(value))
    percent = int(exact)
    tone = "bad" if percent > FULL else "warn" if percent >= NEAR else "good"
    is_over = getattr(record, "completed_at", None) is not None
    return Value("share", words.percent(exact, 1), tone="" if is_over else tone, share=min(percent, FULL))


def _text(_: Values, __: msgspec.Struct, ___: str, value: str) -> Value:
    return Value("long" if "\n" in value or len(value) > PARAGRAPH_LENGTH else "text", value)


LOOKS: dict[str, Callable[[Values, Any, str, Any], Value]] = {
    "money": lambda values, record, _, value: money(value, getattr(record, "currency", values.currency)),
    "budget": _budget,
    "flag": lambda _, __, ___, value: Value("text", "Yes" if value else "No"),
    "day": lambda _, __, ___, value: Value("day", words.short_day(value)),
    "moment": lambda values, _, __, value: Value("moment", moment=values.context.moment(value)),
    "country": lambda _, __, ___, value: Value("text", country_name(value, "en")),
    "email": lambda _, __, ___, value: Value("address", value, Link(value, f"mailto:{value}")),
    "url": lambda _, __, ___, value: Value("address", value, Link(value, value)),
    "phone": lambda _, __, ___, value: Value("address", value, Link(value, f"tel:{''.join(value.split())}")),
    "text": _text,
    "long": _text,
}
"""How values look by their shape, if they are no plain text."""
