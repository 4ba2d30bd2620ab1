"""What operations answer with: one record or another value, a list with or without sums, a feed, or nothing."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from retainer.errors import as_text
from retainer.kernel import etag, paging
from retainer.kernel.http import Request, Response
from retainer.kernel.selection import Included, Selectable, Selection
from retainer.store.tx import Tx
from retainer.values.records import Record

T = TypeVar("T")
M = TypeVar("M")
CONTENT = ("content-type", "application/json; charset=utf-8")
encode = msgspec.json.Encoder(enc_hook=as_text).encode


class CreatedRecord(NamedTuple):
    """The result of an operation that has created a record, where it could have changed one."""

    result: object


class WithMeta(msgspec.Struct, Generic[T, M]):
    """A result with more information under `meta`."""

    data: T
    meta: M


class SelectedRecord(NamedTuple):
    """A record, and what a response shows of it and of related records."""

    record: Record
    data: object
    included: Included | None


@dataclass(frozen=True)
class Answer:
    """How the result of an operation becomes a response."""

    hint: Any
    """The type of the result, as its function declares it."""
    model: Any = None
    """The type of its record or value, or of those that it lists."""

    @property
    def is_record(self) -> bool:
        """Whether it is a single record."""
        return False

    @property
    def reads(self) -> type[Record] | None:
        """The type of the records that a reading operation shows."""
        return None

    def select(self, tx: Tx, result: Any, selectable: Selectable, selection: Selection) -> object:  # noqa: ARG002
        """Return what a request selects of the result."""
        return result

    def respond(self, result: Any, _: Request, /) -> Response:
        return Response(200, [CONTENT], encode(result))


class Nothing(Answer):
    def respond(self, _: Any, __: Request, /) -> Response:
        return Response(204, [])


class Feed(Answer):
    """What has come after a position. The operation can wait for it."""


class List(Answer):
    """A page of a list of records."""

    @property
    def reads(self) -> type[Record] | None:
        return self.model  # type: ignore[no-any-return]

    def select(self, tx: Tx, result: Any, selectable: Selectable, selection: Selection) -> object:
        result.included = selectable.load(tx, result.data, selection) or msgspec.UNSET
        result.data = [selectable.limit(record, selection) for record in result.data]
        return result


class SummedList(List):
    """A page of a list of records, with the sums of the whole list if they are requested."""


@dataclass(frozen=True)
class One(Answer):
    """A record, whose state is its ETag, or another value."""

    _: KW_ONLY
    meta: Any = None
    """The type of the information under `meta`."""
    is_read: bool
    creates: bool
    location: str | None
    """The path of new records, if it is not that of the request."""

    @cached_property
    def is_record(self) -> bool:
        return isinstance(self.model, type) and issubclass(self.model, Record)

    @property
    def reads(self) -> type[Record] | None:
        return self.model if self.is_read and self.is_record else None

    def select(self, tx: Tx, result: Any, selectable: Selectable, selection: Selection) -> object:
        included = selectable.load(tx, [result], selection)
        return SelectedRecord(result, selectable.limit(result, selection), included)

    def respond(self, result: Any, request: Request, /) -> Response:
        is_new = self.creates or isinstance(result, CreatedRecord)
        result = result.result if isinstance(result, CreatedRecord) else result
        headers, record, shown, more, included = [CONTENT], result, result, b"", b""
        if self.meta is not None:
            record, shown, more = result.data, result.data, b',"meta":%b' % encode(result.meta)
        elif isinstance(result, SelectedRecord):
            record, shown = result.record, result.data
            included = b"" if result.included is None else b',"included":%b' % encode(result.included)
        data = encode(shown) + included
        if self.is_record:
            tag = etag.compute_for_record(record, data)
            known = request.environ.get("HTTP_IF_NONE_MATCH")
            if known is not None and self.is_read and etag.matches(known, tag):
                return Response(304, [("etag", tag)])
            headers.append(("etag", tag))
            if is_new:
                place = self.location or request.path.partition("/external:")[0]
                headers.append(("location", f"{request.base_url}{place}/{record.id}"))
        return Response(201 if is_new else 200, headers, b'{"data":%b%b}' % (data, more))


LISTS: dict[Any, type[Answer]] = {paging.ListPage: List, paging.SummedPage: SummedList, paging.FeedPage: Feed}


def answer_of(hint: Any, *, is_read: bool, creates: bool, location: str | None) -> Answer:
    """Return the answer of an operation from the type that its function returns."""
    kind, parts = get_origin(hint), get_args(hint)
    if hint is NoneType:
        return Nothing(hint)
    if kind in LISTS:
        return LISTS[kind](hint, parts[0])
    model, meta = parts if kind is WithMeta else (hint, None)
    return One(hint, model, meta=meta, is_read=is_read, creates=creates, location=location)
