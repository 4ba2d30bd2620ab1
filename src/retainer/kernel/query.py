"""Lists: from a typed filter class to SQL conditions, with order, pages and totals."""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlencode

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, select, text

from retainer.domain.members import FAULTY, reader
from retainer.domain.values import Id, Instant, Text191
from retainer.errors import Faults, Refusal, invalid
from retainer.kernel.http import Request
from retainer.store.records import R, Record, view
from retainer.store.tx import Tx

T = TypeVar("T")
OneOf = tuple[T, ...]
"""A comma list: one of these."""

LONGEST_LIST = 100
PER_PAGE = 25
NUMBER = re.compile(r"[0-9]{1,16}")
BOOLEANS = {"true": True, "false": False}


class Where:
    """How a filter limits the rows, when it is not `column = value`.

    `condition` makes it from the table and what stands for the value: bound parameters for a comma list, the bool
    itself for a flag, one bound parameter otherwise. `value` says what is bound for each value.
    """

    def __init__(
        self,
        condition: Callable[[Table, Any], ColumnElement[bool]],
        value: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.condition = condition
        self.value = value


def searched(q: str) -> str:
    """The text that a search looks for, without case; its percent signs and underscores stand for themselves."""
    return re.sub(r"([/%_])", r"/\1", q.casefold())


class Filter(msgspec.Struct):
    """The query parameters that every list takes; lists add their own members."""

    ids: Annotated[OneOf[Id] | None, Where(lambda table, ids: table.c.id.in_(ids))] = None
    q: Annotated[Text191 | None, Where(lambda table, q: table.c.search.contains(q, escape="/"), searched)] = None
    created_since: Annotated[Instant | None, Where(lambda table, at: table.c.created_at >= at)] = None
    created_before: Annotated[Instant | None, Where(lambda table, at: table.c.created_at < at)] = None
    updated_since: Annotated[Instant | None, Where(lambda table, at: table.c.updated_at >= at)] = None
    updated_before: Annotated[Instant | None, Where(lambda table, at: table.c.updated_at < at)] = None

    sorts: ClassVar[tuple[str, ...]] = ("id",)
    """The members that a list can be sorted by; the first, with its sign, is the default."""


class Page(msgspec.Struct, frozen=True):
    """Which part of a list, in which order, and where the list stands."""

    number: int
    size: int
    sort: tuple[str, ...]
    url: str
    others: str

    def link(self, number: int) -> str:
        """The address of a page, with every other query parameter as it was sent."""
        return f"{self.url}?{self.others}page={number}"


class Links(msgspec.Struct):
    """Absolute addresses of pages; null at the ends."""

    first: str
    last: str
    prev: str | None
    next: str | None


class Meta(msgspec.Struct):
    """Where this page stands in the list."""

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
    links: Links
    meta: Meta


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter: how its text is read, and how it limits the rows."""

    name: str
    hint: Any
    read: Callable[[str], Any]
    where: Where


@cache
def parameters(only: type[Filter]) -> dict[str, Parameter]:
    """The filters of a list, by name."""
    return {
        name: _parameter(name, hint)
        for name, hint in get_type_hints(only, include_extras=True).items()
        if name != "sorts"
    }


def _parameter(name: str, hint: Any) -> Parameter:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    inner = hint.__origin__ if marks else hint
    (inner,) = (part for part in get_args(inner) if part is not NoneType)
    where = next((mark for mark in marks if isinstance(mark, Where)), None)
    several = get_origin(inner) is tuple
    if where is None:
        where = Where(lambda table, value: table.c[name].in_(value) if several else table.c[name] == value)
    return Parameter(name, inner, _list_of(get_args(inner)[0]) if several else _one(inner), where)


def _one(hint: Any) -> Callable[[str], Any]:
    """Read one value from text; raises ValueError with the sentence."""
    bare = hint.__origin__ if get_origin(hint) is Annotated else hint
    convert = reader(hint)

    def read(given: str) -> Any:
        value: Any = given
        if bare is bool:
            value = BOOLEANS.get(given)
        elif bare is int:
            value = int(given) if NUMBER.fullmatch(given) else None
        faults: Faults = {}
        found = convert(value, "it", faults)
        if found is FAULTY:
            raise ValueError(faults["it"][0].removesuffix("; this is null.").removesuffix(".") + ".")
        return found

    return read


def _list_of(hint: Any) -> Callable[[str], Any]:
    read_one = _one(hint)

    def read(given: str) -> Any:
        parts = given.split(",")
        if len(parts) > LONGEST_LIST:
            raise ValueError(f"Must be a comma list of at most {LONGEST_LIST} values; this has {len(parts)}.")
        return tuple(read_one(part.strip()) for part in parts)

    return read


def read_pairs(request: Request) -> list[tuple[str, str]]:
    """The query parameters as sent. Raises `bad_request` for a query that is no UTF-8 or names one twice."""
    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise Refusal("bad_request", "The query string cannot be read: send at most 200 parameters in UTF-8.") from None
    return pairs


def read_none(request: Request) -> None:
    """For operations without query parameters: any is refused."""
    if request.query:
        errors = {name: ["This operation takes no query parameters."] for name, _ in read_pairs(request)}
        raise invalid(errors, "unknown_parameter")


def read_list(request: Request, only: type[Filter]) -> tuple[Filter, Page]:
    """The filters and the page that a list request asks for. Every faulty parameter is named at once."""
    url = request.base_url + request.path
    if not request.query:
        return NO_FILTER.setdefault(only, only()), Page(1, PER_PAGE, _default_sort(only), url, "")
    known = parameters(only)
    pairs = read_pairs(request)
    faults: Faults = {}
    unknown = [name for name, _ in pairs if name not in known and name not in READ_PAGE]
    for name in unknown:
        valid = ", ".join([*READ_PAGE, *known])
        faults[name] = [f"There is no such parameter here. Valid are: {valid}."]
    values: dict[str, Any] = {}
    for name, given in pairs:
        if name in unknown:
            continue
        if name in values:
            faults[name] = ["Send this parameter once; several values are a comma list."]
        try:
            values[name] = READ_PAGE[name](given, only) if name in READ_PAGE else known[name].read(given)
        except ValueError as fault:
            values[name] = None
            faults[name] = [str(fault)]
    if faults:
        raise invalid(faults, "unknown_parameter" if unknown else "validation_failed")
    others = urlencode([pair for pair in pairs if pair[0] != "page"])
    page = Page(
        values.pop("page", 1),
        values.pop("per_page", PER_PAGE),
        values.pop("sort", None) or _default_sort(only),
        url,
        f"{others}&" if others else "",
    )
    return only(**values), page


def _whole(given: str, largest: int) -> int:
    if not NUMBER.fullmatch(given) or not 1 <= int(given) <= largest:
        raise ValueError(f"Must be a whole number from 1 to {largest}.")
    return int(given)


def _sort(given: str, only: type[Filter]) -> tuple[str, ...]:
    names = [name.lstrip("-") for name in only.sorts] + ["id"]
    asked = tuple(part.strip() for part in given.split(","))
    if any(part.removeprefix("-") not in names for part in asked) or len(asked) > len(names):
        raise ValueError(f"Must be a comma list of: {', '.join(names)}; a minus sign before a name descends.")
    return asked


def _default_sort(only: type[Filter]) -> tuple[str, ...]:
    return only.sorts[:1]


READ_PAGE: dict[str, Callable[[str, type[Filter]], Any]] = {
    "page": lambda given, _: _whole(given, 2**53 - 1),
    "per_page": lambda given, _: _whole(given, 100),
    "sort": _sort,
}
NO_FILTER: dict[type[Filter], Filter] = {}

Shape = tuple[tuple[str, Any], ...]
"""Which filters a list has, without their values: one statement serves all requests of a shape."""


def listing(tx: Tx, table: Table, shape: type[R], only: Filter, page: Page) -> Paged[R]:
    """A page of the account's records that pass the filters, and how many there are in all."""
    asked, values = _asked(only)
    total = tx.value(_count(table, type(only), asked), **values) if asked else tx.total(table)
    offset = (page.number - 1) * page.size
    rows = []
    if offset < total:
        statement = _rows(table, shape, type(only), asked, page.sort, first=page.number == 1)
        if page.number > 1:
            values["offset"] = offset
        rows = tx.all(statement, limit=page.size, **values)
    records = list(map(view(table, shape).read, rows))
    last = max(1, -(-total // page.size))
    number = page.number
    return Paged(
        records,
        Links(
            page.link(1),
            page.link(last),
            page.link(min(number - 1, last)) if number > 1 else None,
            page.link(number + 1) if number < last else None,
        ),
        Meta(
            current_page=number,
            from_=offset + 1 if records else None,
            last_page=last,
            path=page.url,
            per_page=page.size,
            to=offset + len(records) if records else None,
            total=total,
        ),
    )


def _asked(only: Filter) -> tuple[Shape, dict[str, Any]]:
    """The shape of a filter, and the values that its statement binds."""
    if NO_FILTER.get(type(only)) is only:
        return (), {}
    asked: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    for name, parameter in parameters(type(only)).items():
        value = getattr(only, name)
        if value is None:
            continue
        bound = parameter.where.value
        if isinstance(value, tuple):
            room = 1 << (len(value) - 1).bit_length()  # few shapes: lists are filled up to a power of two
            asked.append((name, room))
            for position in range(room):
                item = value[min(position, len(value) - 1)]
                values[f"{name}_{position}"] = bound(item)
        elif isinstance(value, bool):
            asked.append((name, value))
        else:
            asked.append((name, None))
            values[name] = bound(value)
    return tuple(asked), values


def _conditions(table: Table, only: type[Filter], asked: Shape) -> list[ColumnElement[bool]]:
    known = parameters(only)
    found = []
    for name, form in asked:
        value: Any = bindparam(name)
        if isinstance(form, bool):
            value = form
        elif isinstance(form, int):
            value = [bindparam(f"{name}_{position}") for position in range(form)]
        found.append(known[name].where.condition(table, value))
    return found


@lru_cache(maxsize=1024)
def _count(table: Table, only: type[Filter], asked: Shape) -> Select[Any]:
    return select(func.count()).select_from(table).where(*_conditions(table, only, asked))


@lru_cache(maxsize=1024)
def _rows(
    table: Table, shape: type[Record], only: type[Filter], asked: Shape, sort: tuple[str, ...], *, first: bool
) -> Select[Any]:
    """The statement of a page. The first page has no OFFSET: a bound one costs SQLite half as much again."""
    statement = view(table, shape).rows.where(*_conditions(table, only, asked))
    newest_first = sort[-1].startswith("-")
    for part in (*sort, "-id" if newest_first else "id"):
        name = part.removeprefix("-")
        column = table.c.get(f"{name}_folded", table.c[name])
        if column.nullable:
            statement = statement.order_by(column.is_(None))
        statement = statement.order_by(column.desc() if part.startswith("-") else column)
    return statement.suffix_with(text("LIMIT :limit" if first else "LIMIT :limit OFFSET :offset"))
