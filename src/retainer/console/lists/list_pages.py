"""The pages of lists of records, and their CSV files: the API's own lists, with the same filters and orders."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from sqlalchemy import Table

from retainer.console import words
from retainer.console.catalogue import Kind
from retainer.console.displays import DISPLAYS
from retainer.console.kinds.display import Display
from retainer.console.labels import field_label
from retainer.console.lists.controls import Asked, Controls, read_asked
from retainer.console.lists.downloads import MAX_ROWS, build_table
from retainer.console.names import Link
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.reports.tables import hours
from retainer.console.values import NOTHING, Heading, TableBlock, Value, Values, as_columns
from retainer.errors import Refusal, invalid
from retainer.kernel.paging import Page
from retainer.rollups.list_sums import MAX_SUMMED, Sum, is_money, load_sums
from retainer.store.constraints import references
from retainer.store.engines.base import Row
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.web.csv_files import csv_response

PAGING = ("page", "per_page", "sort")
DATES = ("day", "since")
"""The kinds of values whose latest are of interest first."""


class Tab(NamedTuple):
    """A view of a list as a tab, and whether it is shown."""

    title: str
    query: str
    is_shown: bool


def find(context: PageContext) -> tuple[Kind, Display]:
    kind = context.catalogue.kinds.get(context.path_parameters["kind"])
    if kind is None or kind.parent is not None:
        raise Refusal("not_found", "This kind of record does not exist.")
    return kind, DISPLAYS[kind.name].without(kind.left_out)


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the records of a kind, filtered and sorted; without a query, its first view. Raises `not_found`."""
    kind, display = find(context)
    if display.views and not context.query.texts:
        context.query.texts.update({name: [text] for name, text in parse_qsl(display.views[0][1])})
    asked = read_asked(context, kind)
    controls = Controls(tx, context, kind, display, asked.texts if asked else context.query.texts)
    shown: dict[str, Any] = {
        "kind": kind,
        "controls": controls,
        "asked": asked,
        "sorts": sorts_of(kind),
        "tabs": tabs_of(display, asked),
    }
    if asked is None:
        labels = {name: field_label(name) for name in context.query.errors}
        return context.render("records", **shown, labels=labels, chips=[], block=None)
    listed = kind.load(tx, asked.filters, asked.page)
    values = Values(tx, context)
    block = values.table(kind.title, listed.data, kind.table, display.columns)
    sums = display.sums and listed.data and load_sums(tx, kind.table, display.sums, asked.filters, listed.meta.total)
    values.names.load()
    meta, number = listed.meta, listed.meta.current_page
    return context.render(
        "records",
        **shown,
        chips=list(controls.chips(asked)),
        block=block._replace(
            columns=[*sortable(kind, display, block, asked)],
            foot=foot_of(kind.table, display, sums, meta.total) if sums else (),
        ),
        meta=meta,
        is_summed=sums is not None,
        max_summed=MAX_SUMMED,
        max_rows=MAX_ROWS,
        previous=asked.link(page=min(number - 1, meta.last_page)) if number > 1 else "",
        following=asked.link(page=number + 1) if number < meta.last_page else "",
        query=asked.link(),
    )


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the first MAX_ROWS records of a filtered list as a CSV file. Raises `not_found`, `validation_failed`."""
    kind, _ = find(context)
    asked = read_asked(context, kind)
    if asked is None:
        raise invalid(context.query.errors)
    listed = kind.load(tx, asked.filters, Page(1, MAX_ROWS, asked.page.sort, "", ""))
    header, rows = build_table(tx, kind.record, listed.data, references(kind.table, kind.record))
    part = f"-first-{MAX_ROWS}" if listed.meta.total > MAX_ROWS else ""
    return csv_response(f"{kind.name}-{tx.today}{part}", header, rows, NO_STORE)


def tabs_of(display: Display, asked: Asked | None) -> list[Tab]:
    """Return the views of a list; shown is the one whose filters are those of the page, in whatever order."""
    filters = {name: texts for name, texts in asked.texts.items() if name not in PAGING} if asked else None
    found = list[Tab]()
    for title, query in display.views:
        own = {name: [text] for name, text in parse_qsl(query) if name not in PAGING}
        found.append(Tab(title, query or "page=1", own == filters and not any(tab.is_shown for tab in found)))
    return found


def sortable(kind: Kind, display: Display, block: TableBlock, asked: Asked) -> Iterator[Heading]:
    """Yield the headings of a list; those of fields that the API sorts by are links, the largest or latest first."""
    known = {name.lstrip("-") for name in kind.listing.query.sorts}
    current = asked.page.sort[0]
    for place, (heading, column) in enumerate(zip(block.columns, as_columns(display.columns), strict=True)):
        field = column.sort or column.field
        if field not in known:
            yield heading
        elif current.lstrip("-") == field:
            is_descending = current.startswith("-")
            link = asked.link(sort=field if is_descending else f"-{field}")
            yield heading._replace(link=link, direction="descending" if is_descending else "ascending")
        else:
            is_latest = heading.is_number or field == "date" or any(row[place].kind in DATES for row in block.rows)
            yield heading._replace(link=asked.link(sort=f"-{field}" if is_latest else field))


def sorts_of(kind: Kind) -> list[tuple[str, str]]:
    names = [name.lstrip("-") for name in kind.listing.query.sorts]
    labels = {name: field_label(name, kind.table) for name in names}
    both = [[(name, f"{labels[name]}, ascending"), (f"-{name}", f"{labels[name]}, descending")] for name in names]
    return [("", "Default"), *(each for pair in both for each in pair)]


def foot_of(table: Table, display: Display, rows: list[Row], total: int) -> list[Value]:
    """Return the last row: the sum of each summed field in its column, as hours, or in each currency."""
    fields = [column.field for column in as_columns(display.columns)]
    found = [Value("text", f"All {total:,}"), *(NOTHING for _ in fields[1:])]
    for position, each in enumerate(display.sums, start=1):
        texts = [*sum_texts(table, each, rows, position)]
        if texts:
            label = Link(each.label, "") if each.label else None
            links = [Link(text, "") for text in texts]
            found[fields.index(each.field)] = Value("amounts", links=links, detail=label)
    return found


def sum_texts(table: Table, each: Sum, rows: list[Row], position: int) -> Iterator[str]:
    if is_money(table, each.field):
        yield from (words.money(amount_of(row[position], row[0]), row[0]) for row in rows if row[position] is not None)
    elif minutes := sum(row[position] for row in rows):
        yield hours(minutes)
