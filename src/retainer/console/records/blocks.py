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


class DocumentBlock(NamedTuple):
    """A document: parties with their addresses, dates, lines, and the sums below them."""

    parties: Sequence[Fact]
    facts: Sequence[Fact]
    lines: TableBlock
    sums: Sequence[tuple[str, str]]
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


class UptimeBlock(NamedTuple):
    """The days of a site as bars, and those with failed checks as a table."""

    summary: str
    days: Value
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
