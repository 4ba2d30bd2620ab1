"""Lists: pages, sorting, links and totals."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, literal_column, null, select, text

from retainer.errors import invalid
from retainer.kernel.cursors import FOREIGN, Cursor, Key, Sort, check_cursor, follows, keys_of, list_id, read_cursor
from retainer.kernel.http import Request
from retainer.kernel.query import (
    Filter,
    Others,
    Readers,
    Signature,
    conditions,
    others_of,
    parameters,
    read_pairs,
    read_values,
    signature_of,
)
from retainer.kernel.selection import Included
from retainer.store.engines.base import Row
from retainer.store.row_mapper import R, row_mapper
from retainer.store.statements import Deferred
from retainer.store.tables import totals
from retainer.store.tx import Tx
from retainer.values.parameters import from_text, read_number, read_sort
from retainer.values.records import Record

T = TypeVar("T")
S = TypeVar("S")
PER_PAGE = 25
MAX_PAGE_SIZE = 100


class Page(msgspec.Struct, frozen=True):
    """The requested page of a list, its order and address; `others` are the other parameters as sent."""

    number: int
    size: int
    sort: Sort
    url: str
    others: str
    has_totals: bool = False
    """Whether sums over the whole list were requested."""
    max_counted: int | None = None
    """Records of a filtered list that are counted, and those of the page; None counts all."""
    list_id: str = ""
    """What distinguishes the list and its filters from others, for its cursors."""
    cursor: Cursor | None = None
    """The position after which the page begins, wherever that is by now; None: after the pages before it."""

    @property
    def max_total(self) -> int | None:
        """Return the total that stands for this number or more; None if all are counted."""
        return None if self.max_counted is None else max(self.max_counted, self.number * self.size) + 1

    def link(self, number: int) -> str:
        """Return the address of a page, with all other query parameters as they were sent."""
        return f"{self.url}?{self.others}page={number}"

    def next_link(self, row: Row, keys: int) -> str:
        """Return the address of the page after this one, which begins after `row`, whose sort keys come second."""
        cursor = Cursor(self.list_id, self.number + 1, self.sort, row[1 : keys + 1])
        return f"{self.link(cursor.page)}&cursor={cursor.text()}"


Limits = tuple[type[Filter], Signature, tuple[str, ...]]
"""The conditions of a list: its filter class, the filters sent, and the columns of the parent."""


class Listed(NamedTuple):
    """What statements for the pages of a list have in common."""

    table: Table
    model: type[Record]
    limits: Limits
    sort: Sort


class PageLinks(msgspec.Struct):
    """Absolute addresses of other pages; null at the ends."""

    first: str
    last: str
    prev: str | None
    next: str | None


class PageMeta(msgspec.Struct):
    """The position of the page in the list."""

    current_page: int
    from_: int | None = msgspec.field(name="from")
    last_page: int
    path: str
    per_page: int
    to: int | None
    total: int


class Paged(msgspec.Struct, Generic[T]):
    """A page of records."""

    data: list[T]
    links: PageLinks
    meta: PageMeta
    included: Included | msgspec.UnsetType = msgspec.UNSET


class SummedMeta(PageMeta, Generic[S]):
    """The position of the page in the list, and the sums of the list if they were requested."""

    totals: list[S] | msgspec.UnsetType = msgspec.UNSET


class Summed(Paged[T], Generic[T, S]):
    """A page of records of a list that can be summed up; `S` has a currency and the sums in it."""


def read_list(
    request: Request, model: type[Filter], others: Readers, *, is_summed: bool = False
) -> tuple[Filter, Page, Others]:
    """Return the filters and the page of a list request, and the values of its `others`.

    Raises one refusal for all invalid parameters.
    """
    url = request.base_url + request.path
    if not request.query:
        return model(), Page(1, PER_PAGE, model.sorts[:1], url, "", list_id=list_id(request.path, {})), {}
    pairs = read_pairs(request)
    readers = {name: parameter.read for name, parameter in parameters(model).items()}
    size = partial(read_number, maximum=MAX_PAGE_SIZE)
    sort = partial(read_sort, [name.lstrip("-") for name in model.sorts])
    totals = {"totals": from_text(bool)} if is_summed else {}
    values = read_values(
        pairs,
        {"page": read_number, "per_page": size, "sort": sort, "cursor": read_cursor, **totals, **others, **readers},
    )
    cursor: Cursor | None = values.pop("cursor", None)
    defaults = {"page": cursor.page if cursor else 1, "per_page": PER_PAGE, "sort": model.sorts[:1], "totals": False}
    number, per_page, order, has_totals = (values.pop(name, default) for name, default in defaults.items())
    found = {name: values.pop(name) for name in others if name in values}
    own_id = list_id(request.path, values)
    if cursor is not None and (cursor.list_id, cursor.page, cursor.sort) != (own_id, number, order):
        raise invalid({"cursor": [_misplaced(cursor, own_id, number)]})
    sent = others_of(pairs, "page", "cursor")
    page = Page(number, per_page, order, url, sent, has_totals, list_id=own_id, cursor=cursor)
    return model(**values), page, found


def _misplaced(cursor: Cursor, own_id: str, number: int) -> str:
    """Return the error of a cursor that was sent with another list, page or order than its own."""
    if cursor.list_id != own_id:
        return FOREIGN
    if cursor.page != number:
        return f"This cursor begins page {cursor.page}. Leave `cursor` out to read page {number}."
    return f"This cursor belongs to the order `sort={','.join(cursor.sort)}`. Send it with the same `sort`."


def listing(tx: Tx, table: Table, model: type[R], filters: Filter, page: Page, **within: int) -> Paged[R]:
    """Return a page of the records `within` a parent that match the filters, with the total.

    The first page is one statement, with the total in each row. Other pages need the total first, because a page in
    the second half is read from the end. With `max_counted`, every page does: counting stops at `max_total`. A page
    after a cursor reads one record more, which tells whether there is a next page. Raises `validation_failed` for a
    cursor of another list.
    """
    signature, values = signature_of(filters, tx.actor.user_id)
    values |= within
    limits = (type(filters), signature, tuple(within))
    records = row_mapper(table, model)
    keys = keys_of(records, page.sort)
    load = partial(_load, tx, Listed(table, model, limits, page.sort), values)
    total, offset = 0, (page.number - 1) * page.size
    rows: list[Row] = []
    has_more = False
    if page.number == 1 and page.max_total is None and page.cursor is None:
        rows = load(page.size, "first")
        total = rows[0][-1] or 0 if rows else 0
        has_more = total > page.size
    else:
        tx.snapshot()
        bounds = {} if page.max_total is None else {"max_total": page.max_total}
        total = tx.value(Deferred(_total, (table, limits, *bounds)), **bounds, **values) or 0
        if page.cursor is not None:
            check_cursor(page.cursor, keys)
            found = load(page.size + 1, "after", page.cursor.nulls, **page.cursor.binds)
            rows, has_more = found[: page.size], len(found) > page.size
        else:
            size = min(page.size, total - offset)
            behind = total - offset - size
            has_more = behind > 0
            is_behind = behind < offset and total != page.max_total
            direction, skipped = ("backward", behind) if is_behind else ("forward", offset)
            rows = load(size, direction, offset=skipped) if size > 0 else []
            if is_behind:
                rows.reverse()
    next_link = page.next_link(rows[-1], len(keys)) if has_more and rows else None
    return _paged([records.read(row) for row in rows], page, total, next_link)


def first_records(
    tx: Tx, table: Table, model: type[R], filters: Filter, sort: Sort, size: int, **within: int
) -> list[R]:
    """Return the first records of a list, without a count of the others, which may be many."""
    signature, values = signature_of(filters, tx.actor.user_id)
    limits = (type(filters), signature, tuple(within))
    rows = _load(tx, Listed(table, model, limits, sort), values | within, size, "forward", offset=0)
    return list(map(row_mapper(table, model).read, rows))


def _paged(records: list[R], page: Page, total: int, next_link: str | None) -> Paged[R]:
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
    return Paged(records, links, meta)


def _limits(table: Table, limits: Limits) -> list[ColumnElement[bool]]:
    model, signature, within = limits
    return [*(table.c[name] == bindparam(name) for name in within), *conditions(table, model, signature)]


def _total(table: Table, limits: Limits, bound: str = "") -> Select[Any]:
    """Return the statement for the total: without filters the stored count, because counting slows with the rows.

    With filters, it counts up to the value that is bound as `bound`, if that is given.
    """
    default_exclusion = limits[0].default_exclusion
    if limits[1:] == (default_exclusion.by_default if default_exclusion else (), ()):
        count = totals.c.count - default_exclusion.total.scalar_subquery() if default_exclusion else totals.c.count
        return select(count).where(totals.c.name == table.name)
    if not bound:
        return select(func.count()).select_from(table).where(*_limits(table, limits))
    found: Select[int] = select(literal_column("1")).select_from(table).where(*_limits(table, limits))
    return select(func.count()).select_from(found.suffix_with(text(f"LIMIT :{bound}")).subquery("found"))


def _load(tx: Tx, listed: Listed, values: dict[str, object], *rest: object, **more: object) -> list[Row]:
    return tx.all(Deferred(_rows, (listed, *rest)), **values, **more)


def _rows(listed: Listed, size: int, direction: str, nulls: tuple[bool, ...] = ()) -> Select[Any]:
    """Return the statement for a page, with the sort keys in each row.

    `first` has the total in each row, too; `forward` and `backward` skip records from one end of the list; `after`
    begins after a cursor whose `nulls` are null. LIMIT is literal and the first page has no OFFSET: with bound values,
    SQLite's plan is 50 % slower. Pages that skip records select ids first: PostgreSQL would build all skipped rows,
    which takes seconds for a million.
    """
    table, model, limits, sort = listed
    records = row_mapper(table, model)
    indexed = keys_of(records, sort)
    computed = [Key(func.coalesce(key.column, null()), *key[1:]) for key in indexed]
    is_small = any(parameters(limits[0])[name].where.is_small and form is not False for name, form in limits[1])
    keys = computed if is_small else indexed  # if few records match, an index in this order would scan all rows
    order = partial(_order, is_backward=direction == "backward")
    rows = records.rows.add_columns(*(key.column.label(f"key_{place}") for place, key in enumerate(keys)))
    if direction in {"forward", "backward"}:
        ids = select(table.c.id).where(*_limits(table, limits)).order_by(*order(keys))
        ids = ids.suffix_with(text(f"LIMIT {size} OFFSET :offset")).correlate(None)
        return rows.where(table.c.id.in_(ids)).order_by(*order(computed))
    found = rows.where(*_limits(table, limits)).order_by(*order(keys)).suffix_with(text(f"LIMIT {size}"))
    if direction == "after":
        return found.where(follows(keys, nulls))
    return found.add_columns(_total(table, limits).scalar_subquery().label("total"))


def _order(keys: list[Key], *, is_backward: bool) -> Iterator[ColumnElement[object]]:
    for key in keys:
        ordered = key.column.desc() if key.is_descending != is_backward else key.column.asc()
        if key.is_nullable:
            ordered = ordered.nulls_first() if is_backward else ordered.nulls_last()
        yield ordered
