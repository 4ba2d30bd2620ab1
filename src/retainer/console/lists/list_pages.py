"""The pages of lists of records, and their CSV files: the API's own lists, with the same filters and orders."""

from collections.abc import Iterator

import msgspec
from sqlalchemy import Table

from retainer.console import words
from retainer.console.catalogue import Kind
from retainer.console.labels import field_label
from retainer.console.lists.cells import Cells
from retainer.console.lists.controls import Asked, Controls, read_asked
from retainer.console.lists.downloads import MAX_ROWS, build_table
from retainer.console.lists.views import VIEWS, Column, ListView
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.reports.tables import hours
from retainer.errors import Refusal, invalid
from retainer.kernel.paging import Page
from retainer.rollups.list_sums import MAX_SUMMED, is_money, load_sums
from retainer.store.engines.base import Row
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.web.csv_files import csv_response

DESCENDING_FIRST = {"money", "minutes", "since", "count", "percent", "day"}
"""The forms of columns whose largest or latest values are of interest first."""


class Order(msgspec.Struct, frozen=True):
    """How a column sorts: the link of its heading, and the direction in which the list is sorted by it."""

    link: str
    direction: str = ""


def find(context: PageContext) -> tuple[Kind, ListView]:
    name = context.path_parameters["kind"]
    if name not in VIEWS or name not in context.catalogue.kinds:
        raise Refusal("not_found", "This kind of record does not exist.")
    kind = context.catalogue.kinds[name]
    return kind, VIEWS[name].without(kind.left_out)


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the records of a kind, filtered and sorted. Raises `not_found`."""
    kind, view = find(context)
    asked = read_asked(context, kind)
    texts = asked.texts if asked else context.query.texts
    controls = Controls(tx, context, kind, view, texts)
    if asked is None:
        return context.render(
            "records",
            kind=kind,
            view=view,
            controls=controls,
            labels={name: field_label(name) for name in context.query.errors},
            asked=None,
            chips=[],
            rows=[],
            sorts=sorts_of(kind),
        )
    listed = kind.load(tx, asked.filters, asked.page)
    known = {name: {each.id: each.text for each in found} for name, found in controls.choices.items() if found}
    cells = Cells(tx, context, kind, view, listed.data, known)
    sums = load_sums(tx, kind.table, view.sums, asked.filters, listed.meta.total) if view.sums and listed.data else []
    number = listed.meta.current_page
    return context.render(
        "records",
        kind=kind,
        view=view,
        controls=controls,
        asked=asked,
        chips=list(controls.chips(asked)),
        sorts=sorts_of(kind),
        orders=[order_of(kind, column, asked) for column in view.columns],
        meta=listed.meta,
        rows=[cells.row(record) for record in listed.data],
        sums=None if sums is None else dict(shown_sums(kind.table, view.sums, sums)),
        max_summed=MAX_SUMMED,
        max_rows=MAX_ROWS,
        previous=asked.link(page=min(number - 1, listed.meta.last_page)) if number > 1 else "",
        following=asked.link(page=number + 1) if number < listed.meta.last_page else "",
        query=asked.link(),
    )


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the first MAX_ROWS records of a filtered list as a CSV file. Raises `not_found`, `validation_failed`."""
    kind, _ = find(context)
    asked = read_asked(context, kind)
    if asked is None:
        raise invalid(context.query.errors)
    listed = kind.load(tx, asked.filters, Page(1, MAX_ROWS, asked.page.sort, "", ""))
    header, rows = build_table(tx, kind.record, listed.data, context.catalogue.references(kind))
    part = f"-first-{MAX_ROWS}" if listed.meta.total > MAX_ROWS else ""
    return csv_response(f"{kind.name}-{tx.today}{part}", header, rows, NO_STORE)


def order_of(kind: Kind, column: Column, asked: Asked) -> Order | None:
    """Return how the heading of a column sorts; None if the API does not sort by its field."""
    field = column.sort or column.field
    if field not in {name.lstrip("-") for name in kind.listing.query.sorts}:
        return None
    first = asked.page.sort[0]
    if first.lstrip("-") == field:
        is_descending = first.startswith("-")
        return Order(
            asked.link(sort=field if is_descending else f"-{field}"), "descending" if is_descending else "ascending"
        )
    begins_descending = column.form in DESCENDING_FIRST or field == "date"
    return Order(asked.link(sort=f"-{field}" if begins_descending else field))


def sorts_of(kind: Kind) -> list[tuple[str, str]]:
    names = [name.lstrip("-") for name in kind.listing.query.sorts]
    labels = {name: name.removesuffix("_at").replace("_", " ").capitalize() for name in names}
    both = [[(name, f"{labels[name]}, ascending"), (f"-{name}", f"{labels[name]}, descending")] for name in names]
    return [("", "Default"), *(each for pair in both for each in pair)]


def shown_sums(table: Table, fields: tuple[str, ...], rows: list[Row]) -> Iterator[tuple[str, list[str]]]:
    """Yield each summed field with its sum as lines: hours, or the amount in each currency."""
    for position, field in enumerate(fields if rows else (), start=1):
        if is_money(table, field):
            amounts = [(amount_of(row[position], row[0]), row[0]) for row in rows if row[position] is not None]
            yield field, [words.money(*amount) for amount in amounts]
        else:
            minutes = sum(row[position] for row in rows)
            yield field, [hours(minutes)] if minutes else []
