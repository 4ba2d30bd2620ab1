"""Lists: pages, sorting, links and totals; and followed lists, to whose end records are added in order."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, null, select, text

from retainer.errors import invalid
from retainer.kernel.cursors import (
    MISPLACED,
    Cursor,
    Sort,
    SortKey,
    check_cursor,
    follows,
    keys_of,
    list_id,
    read_cursor,
)
from retainer.kernel.http import Request
from retainer.kernel.query import Filter, FilterShapes, Readers, conditions, others_of, parameters, shapes_of
from retainer.kernel.selection import Included
from retainer.store.engines.sql import json_row, text_of_lines
from retainer.store.row_mapper import R, RowMapper, decode_row, decode_rows, row_mapper
from retainer.store.statements import DeferredStatement
from retainer.store.tables import totals
from retainer.store.tx import Tx
from retainer.values.parameters import from_text, read_number, read_sort
from retainer.values.records import Record

T = TypeVar("T")
S = TypeVar("S")
Address = Annotated[str, Meta(examples=["https://agency.example/?page=1"], extra_json_schema={"format": "uri"})]
PER_PAGE = 25
MAX_PAGE_SIZE = 100
SHORT_BYTES = 100_000
"""Maximum size of a text of rows that is decoded in one call, which takes about 0.2 ms."""


class Page(msgspec.Struct, frozen=True):
    """The requested page of a list, its order and address; `others` are the other parameters as sent."""

    number: int
    size: int
    sort: Sort
    url: str
    others: str
    has_totals: bool = False
    """Whether sums over the whole list were requested."""
    list_id: str = ""
    """What distinguishes the list and its filters from others, for its cursors."""
    cursor: Cursor | None = None
    """The position after which the page begins, wherever that is by now; None: after the pages before it."""

    def link(self, number: int) -> str:
        return f"{self.url}?{self.others}page={number}"

    def next_link(self, last: Sequence[Any]) -> str:
        """Return the address of the page after this one, which begins after a record with these sort keys."""
        cursor = Cursor(self.list_id, self.number + 1, self.sort, tuple(last))
        text = urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")
        return f"{self.link(cursor.page)}&cursor={text}"


Start = Literal["first", "offset"] | tuple[bool, ...]
"""Where a page begins: with the first record, at an OFFSET, or after a cursor, of whose values these are null."""


class ListShape(NamedTuple):
    """What of a list is part of the SQL text: lists with the same shape share their statements."""

    table: Table
    model: type[Record]
    filter_type: type[Filter]
    filters: FilterShapes
    parents: tuple[str, ...]
    """The columns of the parent in the path."""
    sort: Sort


class PageLinks(msgspec.Struct):
    """Absolute addresses of other pages; null at the ends."""

    first: Annotated[Address, "Address of page 1, with all other query parameters as they were sent."]
    last: Annotated[Address, "Address of the page with the last records; page 1 when there are none."]
    prev: Annotated[Address | None, "Address of the page before this one; null on page 1."]
    next: Annotated[
        Address | None,
        "Address of the page that begins after this one's last record; null at the end. Follow it to read all.",
    ]


class PageMeta(msgspec.Struct):
    """The position of the page in the list."""

    current_page: Annotated[int, "The requested `page`, even if it is past the end."]
    from_: Annotated[
        int | None, "Position of the page's first record in the whole list, from 1; null if the page is empty."
    ] = msgspec.field(name="from")
    last_page: Annotated[int, "Number of pages; 1 if there are no records."]
    path: Annotated[Address, "Address of the list without its query parameters."]
    per_page: Annotated[int, "Maximum number of records on a page."]
    to: Annotated[int | None, "Position of the page's last record in the whole list; null if the page is empty."]
    total: Annotated[int, "Number of records that match the filters, on all pages."]


class ListPage(msgspec.Struct, Generic[T]):
    """A page of a list, its position, and links to other pages."""

    data: Annotated[list[T], "The records of the page, in the order of `sort`."]
    links: Annotated[PageLinks, "Addresses of other pages of the same list."]
    meta: Annotated[PageMeta, "The position of the page in the list."]
    included: Included | msgspec.UnsetType = msgspec.UNSET


class SummedMeta(PageMeta, Generic[S]):
    """The position of the page in the list, and the sums of the list if they were requested."""

    totals: list[S] | msgspec.UnsetType = msgspec.UNSET


class SummedPage(ListPage[T], Generic[T, S]):
    """A page of records of a list that can be summed up; `S` has a currency and the sums in it."""


class FollowLinks(msgspec.Struct):
    """Where the list continues."""

    next: Annotated[str, "Address of what comes next, even if nothing has come yet."]


class FollowMeta(msgspec.Struct):
    """The position in the list."""

    next_after: Annotated[int, "The position to continue from: send it as `after`. Store it with what you have read."]
    has_more: Annotated[bool, "Whether there is more now. If false, the next request can wait with `Prefer`."]
    latest: Annotated[int, "Id of the account's newest event, whether or not this key and these parameters show it."]
    per_page: Annotated[int, "Maximum number of events in a response."]


class FeedPage(msgspec.Struct, Generic[T]):
    """What has come after a position."""

    data: Annotated[list[T], "What follows the position, oldest first; often nothing."]
    links: FollowLinks
    meta: FollowMeta


def page_readers(model: type[Any], *, is_summed: bool) -> Readers:
    return {
        "page": read_number,
        "per_page": partial(read_number, maximum=MAX_PAGE_SIZE),
        "sort": partial(read_sort, [name.lstrip("-") for name in model.sorts]),
        "cursor": read_cursor,
        **({"totals": from_text(bool)} if is_summed else {}),
    }


def take_page(request: Request, filters: Filter, pairs: list[tuple[str, str]], found: dict[str, Any]) -> Page:
    """Return the page of a list request, and remove its parameters from what was `found`.

    Raises `validation_failed` for a cursor of another list, page, order or filter.
    """
    cursor: Cursor | None = found.pop("cursor", None)
    number, size = found.pop("page", cursor.page if cursor else 1), found.pop("per_page", PER_PAGE)
    sort, has_totals = found.pop("sort", filters.sorts[:1]), found.pop("totals", False)
    own_id = list_id(request.path, filters)
    if cursor is not None and (cursor.list_id, cursor.page, cursor.sort) != (own_id, number, sort):
        raise invalid({"cursor": [MISPLACED]})
    others = others_of(pairs, "page", "cursor") if pairs else ""
    return Page(number, size, sort, request.base_url + request.path, others, has_totals, own_id, cursor)


def listing(tx: Tx, table: Table, model: type[R], filters: Filter, page: Page, **within: int) -> ListPage[R]:
    """Return a page of the records `within` a parent that match the filters, with the total.

    A page after a cursor reads one record more, to know whether there is a next page. Raises `validation_failed` for
    a cursor of another list.
    """
    filter_shapes, values = shapes_of(filters, tx.actor.user_id)
    values |= within
    shape = ListShape(table, model, type(filters), filter_shapes, tuple(within), page.sort)
    records, cursor, offset = row_mapper(table, model), page.cursor, (page.number - 1) * page.size
    start: Start = "offset" if offset else "first"
    if cursor is not None:
        check_cursor(cursor, keys_of(records, page.sort))
        start = tuple(value is None for value in cursor.values)
        values |= {f"cursor__{place}": value for place, value in enumerate(cursor.values) if value is not None}
    size = page.size + 1 if cursor else page.size
    ((found, total),) = tx.all(DeferredStatement(_page, (shape, size, start)), offset=offset, **values)
    rows, total = _decode(found), total or 0  # an account without any record has no count
    shown, has_more = rows[: page.size], len(rows) > page.size if cursor else total > offset + page.size
    next_link = page.next_link(shown[-1][len(records.columns) :]) if has_more and shown else None
    return _paged(_records(records, shown), page, total, next_link)


def first_records(
    tx: Tx, table: Table, model: type[R], filters: Filter, sort: Sort, size: int, **within: int
) -> list[R]:
    """Return the first records of a list, without a count of the others, which may be many."""
    filter_shapes, values = shapes_of(filters, tx.actor.user_id)
    shape = ListShape(table, model, type(filters), filter_shapes, tuple(within), sort)
    found = tx.value(DeferredStatement(_rows, (shape, size, "first")), **values, **within)
    return _records(row_mapper(table, model), _decode(found))


def _decode(text: str | bytes | None) -> list[list[Any]]:
    """Return the rows of a page, each with the sort keys behind the columns of its record.

    Those of a file, which may have 10,000, one after another, as others wait for the interpreter meanwhile.
    """
    if not text or len(text) < SHORT_BYTES:
        return decode_rows(text or "")
    return [decode_row(line) for line in (text.split(b"\n") if isinstance(text, bytes) else text.split("\n"))]


def _records(mapper: RowMapper, rows: list[list[Any]]) -> list[Any]:
    columns = len(mapper.columns)
    return mapper.read_values(row[:columns] for row in rows)


def _paged(records: list[R], page: Page, total: int, next_link: str | None) -> ListPage[R]:
    number, offset = page.number, (page.number - 1) * page.size
    last = max(1, -(-total // page.size))
    if page.cursor is not None:  # records before it were added or removed, maybe
        last = max(last, number + 1) if next_link else number
    links = PageLinks(
        page.link(1), page.link(last), page.link(min(number - 1, last)) if number > 1 else None, next_link
    )
    meta = PageMeta(
        current_page=number,
        from_=offset + 1 if records else None,
        last_page=last,
        path=page.url,
        per_page=page.size,
        to=offset + len(records) if records else None,
        total=total,
    )
    return ListPage(records, links, meta)


def _limits(shape: ListShape) -> list[ColumnElement[bool]]:
    within = [shape.table.c[name] == bindparam(name) for name in shape.parents]
    return [*within, *conditions(shape.table, shape.filter_type, shape.filters)]


def _total(shape: ListShape) -> Select[Any]:
    """Return the statement for the total: without filters the stored count, because counting slows with the rows."""
    excluded = shape.filter_type.default_exclusion
    if (shape.filters, shape.parents) == (excluded.by_default if excluded else (), ()):
        count = totals.c.count - excluded.total.scalar_subquery() if excluded else totals.c.count
        return select(count).where(totals.c.name == shape.table.name)
    return select(func.count()).select_from(shape.table).where(*_limits(shape))


def _page(shape: ListShape, size: int, start: Start) -> Select[Any]:
    """Return the statement for the rows of a page, and the total."""
    return _rows(shape, size, start).add_columns(_total(shape).scalar_subquery())


def _rows(shape: ListShape, size: int, start: Start) -> Select[Any]:
    """Return the statement for the rows of a page, as one text: each row that is fetched may wait for the interpreter.

    LIMIT is literal and the first page has no OFFSET: with bound values, SQLite's plan is 50 % slower. A page with an
    OFFSET selects ids first, because PostgreSQL would build all skipped rows, which takes seconds for a million.
    """
    table, records = shape.table, row_mapper(shape.table, shape.model)
    indexed = keys_of(records, shape.sort)
    computed = [SortKey(func.coalesce(key.column, null()), *key[1:]) for key in indexed]
    wheres = {name: parameter.where for name, parameter in parameters(shape.filter_type).items()}
    is_small = any(wheres[name].is_small and filter_shape is not False for name, filter_shape in shape.filters)
    keys = computed if is_small else indexed  # if few records match, an index in this order would scan all rows
    limits = [*_limits(shape), *([follows(keys, start)] if isinstance(start, tuple) else [])]
    rows = select(json_row(*records.columns, *(key.column for key in keys)).label("row")).select_from(table)
    if start == "offset":
        ids = select(table.c.id).where(*limits).order_by(*_order(keys))
        ids = ids.suffix_with(text(f"LIMIT {size} OFFSET :offset")).correlate(None)
        rows = rows.where(table.c.id.in_(ids)).order_by(*_order(computed))
    else:
        rows = rows.where(*limits).order_by(*_order(keys)).suffix_with(text(f"LIMIT {size}"))
    return select(text_of_lines(rows.subquery("page").c.row))


def _order(keys: list[SortKey]) -> Iterator[ColumnElement[object]]:
    for key in keys:
        ordered = key.column.desc() if key.is_descending else key.column.asc()
        yield ordered.nulls_last() if key.is_nullable else ordered
