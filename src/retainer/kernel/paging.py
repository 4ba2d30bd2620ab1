"""Lists: pages, sorting, links and totals."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, literal_column, null, select, text

from retainer.kernel.http import Request
from retainer.kernel.query import (
    Filter,
    Signature,
    conditions,
    others_of,
    parameters,
    read_pairs,
    read_values,
    signature_of,
)
from retainer.store.engines.base import Row
from retainer.store.row_mapper import R, RowMapper, row_mapper
from retainer.store.statements import Deferred
from retainer.store.tables import totals
from retainer.store.tx import Tx
from retainer.values.parameters import from_text, read_number, read_sort
from retainer.values.records import Record

T = TypeVar("T")
S = TypeVar("S")
Sort = tuple[str, ...]
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

    @property
    def max_total(self) -> int | None:
        """Return the total that stands for this number or more; None if all are counted."""
        return None if self.max_counted is None else max(self.max_counted, self.number * self.size) + 1

    def link(self, number: int) -> str:
        """Return the address of a page, with all other query parameters as they were sent."""
        return f"{self.url}?{self.others}page={number}"


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


class SummedMeta(PageMeta, Generic[S]):
    """The position of the page in the list, and the sums of the list if they were requested."""

    totals: list[S] | msgspec.UnsetType = msgspec.UNSET


class Summed(Paged[T], Generic[T, S]):
    """A page of records of a list that can be summed up; `S` has a currency and the sums in it."""


def read_list(request: Request, model: type[Filter], *, is_summed: bool = False) -> tuple[Filter, Page]:
    """Return the filters and the page of a list request. Raises one refusal for all invalid parameters."""
    url = request.base_url + request.path
    if not request.query:
        return model(), Page(1, PER_PAGE, model.sorts[:1], url, "")
    pairs = read_pairs(request)
    readers = {name: parameter.read for name, parameter in parameters(model).items()}
    size = partial(read_number, maximum=MAX_PAGE_SIZE)
    sort = partial(read_sort, [name.lstrip("-") for name in model.sorts])
    totals = {"totals": from_text(bool)} if is_summed else {}
    values = read_values(pairs, {"page": read_number, "per_page": size, "sort": sort, **totals, **readers})
    defaults = {"page": 1, "per_page": PER_PAGE, "sort": model.sorts[:1], "totals": False}
    number, per_page, order, has_totals = (values.pop(name, default) for name, default in defaults.items())
    return model(**values), Page(number, per_page, order, url, others_of(pairs, "page"), has_totals)


def listing(tx: Tx, table: Table, model: type[R], filters: Filter, page: Page, **within: int) -> Paged[R]:
    """Return a page of the records `within` a parent that match the filters, with the total.

    The first page is one statement, with the total in each row. Other pages need the total first, because a page in
    the second half is read from the end. With `max_counted`, every page does: counting stops at `max_total`.
    """
    signature, values = signature_of(filters, tx.actor.user_id)
    values |= within
    limits = (type(filters), signature, tuple(within))
    total, offset = 0, (page.number - 1) * page.size
    rows: list[Row] = []
    if page.number == 1 and page.max_total is None:
        rows = tx.all(Deferred(_rows, (table, model, limits, page.sort, page.size, "first")), **values)
        total = rows[0][-1] or 0 if rows else 0
    else:
        tx.snapshot()
        bounds = {} if page.max_total is None else {"max_total": page.max_total}
        total = tx.value(Deferred(_total, (table, limits, *bounds)), **bounds, **values) or 0
        size = min(page.size, total - offset)
        behind = total - offset - size
        is_behind = behind < offset and total != page.max_total
        direction, skipped = ("backward", behind) if is_behind else ("forward", offset)
        if size > 0:
            rows = tx.all(Deferred(_rows, (table, model, limits, page.sort, size, direction)), offset=skipped, **values)
        if direction == "backward":
            rows.reverse()
    read = row_mapper(table, model).read
    return _paged([read(row) for row in rows], page, offset, total)


def first_records(
    tx: Tx, table: Table, model: type[R], filters: Filter, sort: Sort, size: int, **within: int
) -> list[R]:
    """Return the first records of a list, without a count of the others, which may be many."""
    signature, values = signature_of(filters, tx.actor.user_id)
    limits = (type(filters), signature, tuple(within))
    rows = tx.all(Deferred(_rows, (table, model, limits, sort, size, "forward")), offset=0, **values, **within)
    return list(map(row_mapper(table, model).read, rows))


def _paged(records: list[R], page: Page, offset: int, total: int) -> Paged[R]:
    last, number = max(1, -(-total // page.size)), page.number
    links = PageLinks(
        page.link(1),
        page.link(last),
        page.link(min(number - 1, last)) if number > 1 else None,
        page.link(number + 1) if number < last else None,
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


Limits = tuple[type[Filter], Signature, tuple[str, ...]]
"""The conditions of a list: its filter class, the filters sent, and the columns of the parent."""


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


def _rows(table: Table, model: type[Record], limits: Limits, sort: Sort, size: int, direction: str) -> Select[Any]:
    """Return the statement for a page: `first` with the total in each row, `forward` or `backward`.

    LIMIT is literal and the first page has no OFFSET: with bound values, SQLite's plan is 50 % slower. Other pages
    select ids first: PostgreSQL would build all skipped rows, which takes seconds for a million.
    """
    records = row_mapper(table, model)
    order = partial(_order, records, sort, is_backward=direction == "backward")
    is_small = any(parameters(limits[0])[name].where.is_small for name, _ in limits[1])
    if direction == "first":
        total = _total(table, limits).scalar_subquery().label("total")
        found = records.rows.add_columns(total).where(*_limits(table, limits))
        return found.order_by(*order(is_small=is_small)).suffix_with(text(f"LIMIT {size}"))
    ids = select(table.c.id).where(*_limits(table, limits)).order_by(*order(is_small=is_small))
    ids = ids.suffix_with(text(f"LIMIT {size} OFFSET :offset")).correlate(None)
    return records.rows.where(table.c.id.in_(ids)).order_by(*order(is_small=True))


def _order(records: RowMapper, sort: Sort, *, is_backward: bool, is_small: bool) -> Iterator[ColumnElement[object]]:
    """Yield the order of a page. If few rows match, it avoids an index in this order, which would scan all rows."""
    for part in (*sort, "-id" if sort[-1].startswith("-") else "id"):
        column = records.order(part.removeprefix("-"))
        if is_small:
            column = func.coalesce(column, null())
        ordered = column.desc() if part.startswith("-") != is_backward else column.asc()
        if getattr(column, "nullable", True):
            ordered = ordered.nulls_first() if is_backward else ordered.nulls_last()
        yield ordered
