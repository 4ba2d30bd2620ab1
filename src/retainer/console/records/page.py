"""The page of a record: what its facts and blocks are built from."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlencode

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.files import build_facts
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.types import Quote
from retainer.console.catalogue import Kind
from retainer.console.labels import field_label
from retainer.console.names import Link
from retainer.console.page_context import PageContext
from retainer.console.values import Block, Fact, Value, Values
from retainer.documents.facts import Document
from retainer.store.tx import Tx
from retainer.values.records import Record

R = TypeVar("R", bound=Record)


class Watched:
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
        self.kind, self.own = kind, record
        self.seen: set[str] = set()
        self.memo: dict[str, Any] = {}
        """What facts have read that blocks need, too."""
        self.record = cast("R", Watched(record, self.seen))

    @cached_property
    def document(self) -> Document:
        if not isinstance(self.own, Invoice | Quote | CreditNote):
            raise TypeError(f"A {self.kind.noun} is not printed.")
        return build_facts(self.tx, self.own)

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
