"""Blocks of a record's page: each has a macro of its name in `record_blocks.html`."""

from collections.abc import Sequence
from typing import NamedTuple

from retainer.console.charts import Chart
from retainer.console.editing.sheet import Sheet
from retainer.console.values import TableBlock, Value
from retainer.console.words import Moment


class Fact(NamedTuple):
    """A field with its label; as a headline figure, also the list that it counts, and a note below it."""

    label: str
    value: Value
    path: str = ""
    note: str = ""


class FieldsBlock(NamedTuple):
    """Fields with their labels."""

    title: str
    fields: Sequence[Fact]
    macro: str = "fields"


class TextBlock(NamedTuple):
    """A long text."""

    title: str
    text: str
    macro: str = "text"


class Party(NamedTuple):
    """A party of a document: its role, its name with a link, and the lines of its address."""

    role: str
    name: Value
    lines: Sequence[str]


class DocumentLine(NamedTuple):
    """A line of a document, as it is printed; `work` is what it bills."""

    description: str
    project: Value
    quantity: str
    unit_price: str
    discount: str
    tax: str
    amount: str
    work: str = ""


class DocumentBlock(NamedTuple):
    """A document: parties, dates, lines, and the sums below them, of which the last is the strongest."""

    parties: Sequence[Party]
    facts: Sequence[Fact]
    lines: Sequence[DocumentLine]
    sums: Sequence[tuple[str, str]]
    has_discounts: bool
    macro: str = "document"


class Message(NamedTuple):
    """A message of a thread; an internal one is only for users of the agency."""

    author: Value
    role: str
    at: Moment | None
    text: str
    is_internal: bool


class ThreadBlock(NamedTuple):
    """The messages of a ticket, oldest first, and the paths of the pages before and after."""

    messages: Sequence[Message]
    older: str
    newer: str
    macro: str = "thread"


class FormBlock(NamedTuple):
    """The form of an action on the record, which it shows in this state."""

    title: str
    path: str
    button: str
    advice: Sequence[str]
    sheet: Sheet
    state: str
    macro: str = "form"


class DayBar(NamedTuple):
    """A day of a site: the height of its failed share in pixels, if any, and its figures in words."""

    day: str
    down: int
    has_checks: bool
    description: str


class UptimeBlock(NamedTuple):
    """The days of a site as bars, and those with failed checks as a table."""

    title: str
    summary: str
    bars: Sequence[DayBar]
    failing: TableBlock
    macro: str = "uptime"


class ChartBlock(NamedTuple):
    """A chart, and its values as a table."""

    chart: Chart
    values: TableBlock
    macro: str = "chart"


class GroupBlock(NamedTuple):
    """Blocks beside each other, where the screen is wide enough."""

    blocks: Sequence[FieldsBlock | TableBlock]
    macro: str = "group"


Block = (
    TableBlock
    | FieldsBlock
    | TextBlock
    | DocumentBlock
    | ThreadBlock
    | FormBlock
    | UptimeBlock
    | ChartBlock
    | GroupBlock
)
