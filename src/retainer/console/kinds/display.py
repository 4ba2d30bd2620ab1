"""What a kind of record shows, declared once: its list, and the facts and blocks of its page."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, cast
from urllib.parse import urlencode

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice
from retainer.billing.papers import load_paper
from retainer.billing.quotes.types import Quote
from retainer.console.catalogue import Kind
from retainer.console.labels import field_label
from retainer.console.names import Link
from retainer.console.page_context import PageContext
from retainer.console.values import AnyBlock, Block, Column, Fact, Value, Values, as_columns
from retainer.documents.facts import Document
from retainer.rollups.list_sums import Sum
from retainer.store.tx import Tx
from retainer.values.records import Record

R = TypeVar("R", bound=Record)


class ReadTracker:
    """A record that remembers which of its fields were read."""

    def __init__(self, record: Record, seen: set[str]) -> None:
        self._record, self._seen = record, seen

    def __getattr__(self, name: str) -> object:
        self._seen.add(name)
        return getattr(self._record, name)


class RecordPage(Values, Generic[R]):
    """A record with what its page reads: one snapshot of the account.

    Facts and blocks read fields of `record`, or by name. The fields that they have read are `seen`, and are not listed
    again below. `own` is the record for functions of the API.
    """

    def __init__(self, tx: Tx, context: PageContext, kind: Kind, record: R) -> None:
        super().__init__(tx, context)
        self.kind, self.own, self.currency = kind, record, getattr(record, "currency", "")
        self.seen: set[str] = set()
        self.memo: dict[str, Any] = {}
        """What facts have read that blocks need, too."""
        self.record = cast("R", ReadTracker(record, self.seen))

    @cached_property
    def document(self) -> Document:
        if not isinstance(self.own, Invoice | Quote | CreditNote):
            raise TypeError(f"A {self.kind.noun} is not printed.")
        return load_paper(self.tx, self.own)

    def value(self, name: str) -> Value:
        self.seen.add(name)
        return self.field(self.own, name, self.kind.table)

    def facts(self, *names: str) -> list[Fact]:
        found = [Fact(field_label(name, self.kind.table), self.value(name)) for name in names]
        return [fact for fact in found if fact.value.kind != "none"]

    def fields(self, title: str, names: Sequence[str]) -> Block:
        return Block("fields", title=title, fields=self.facts(*names))

    def path(self, kind: str, **filters: str) -> str:
        """Return the path of a list with filters; `urlencode` leaves commas as they are."""
        return f"/records/{kind}?{urlencode(filters, safe=',')}"

    def link(self, text: str, kind: str, **filters: str) -> Value:
        return Value("link", link=Link(text, self.path(kind, **filters)))


AnyPage = RecordPage[Any]


class FieldLock(NamedTuple):
    """The fields that cannot change, whether the record cannot be deleted, and the reason; empty without a lock."""

    fields: Collection[str] = ()
    stays: bool = False
    reason: str = ""


FREE = FieldLock()


class Display(NamedTuple):
    """What a kind of record shows. All that is not declared here follows from the types of its fields."""

    columns: tuple[str | Column, ...]
    """The columns of its list, and of its records on the pages of others. The first one leads to the record."""
    filters: tuple[str, ...] = ()
    """The filters that are always visible; all others are under "More filters"."""
    sort: str = ""
    """The order of its list, if it is not that of the API; and of what a search finds."""
    views: tuple[tuple[str, str], ...] = ()
    """Titles and queries of the tabs above the list; the list begins with the first of them."""
    sums: tuple[Sum, ...] = ()
    """The sums below the list, each of which is in one of its columns."""
    facts: tuple[str, ...] | Callable[[AnyPage], list[Fact]] = ()
    blocks: Callable[[AnyPage], Iterable[AnyBlock]] = lambda _: ()
    links: tuple[tuple[str, str], ...] = ()
    """The labels and paths of other pages at the head of its list, which may be limited to one client."""
    forms: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """The forms on its page: the path of an action, a title, and the fields that stand elsewhere on the page."""
    created_as: tuple[str, str] = ("", "")
    """Another status that its form can give a new record, and the label of the button that does."""
    lock: Callable[[Any], FieldLock] = lambda _: FREE
    """What the API no longer changes of a record, and what to do instead."""
    parts: Mapping[str, tuple[str, ...]] = {}
    """The fields of its form that stand together below a heading, in their order, after those without one."""
    rare: tuple[str, ...] = ()
    """The fields that its form shows under "More fields", in addition to the external id."""
    preset_only: tuple[str, ...] = ()
    """The fields that an action sets, or that a site itself reports; a link can preset them."""
    has_receipt: bool = False
    """Whether the form for a new record takes a file."""
    is_counted: bool = True
    """Whether the pages of others say how many there are; a record may have very many."""
    is_offered: bool = False
    """Whether filters offer its records for choice; a filter by any other stays as a link has set it."""

    def without(self, left_out: Collection[str]) -> "Display":
        return self._replace(
            columns=tuple(column for column in as_columns(self.columns) if column.field not in left_out),
            filters=tuple(name for name in self.filters if name not in left_out),
            views=tuple(view for view in self.views if not any(f"{name}=" in view[1] for name in left_out)),
            sums=tuple(each for each in self.sums if each.field not in left_out),
        )
