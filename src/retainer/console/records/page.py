"""The page of a record: what its blocks are built from, and the tables of the records that refer to it."""

from collections.abc import Sequence
from functools import cached_property
from urllib.parse import urlencode

import msgspec
from sqlalchemy import Table

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.file_facts import build_facts
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.types import Quote
from retainer.console.catalogue import Kind, Relation
from retainer.console.labels import field_label
from retainer.console.names import Link, Names
from retainer.console.page_context import PageContext
from retainer.console.records.blocks import Column, Fact, FieldsBlock, TableBlock
from retainer.console.records.values import Value, Values
from retainer.documents.facts import Document
from retainer.schema.support import ticket_replies
from retainer.store.tx import Tx
from retainer.values.records import Record

SHOWN = 5
"""Records of a table; the rest is behind a link."""
SHOWN_PARTS = 50
"""Parts of a record, such as milestones, which have no list of their own."""
UNCOUNTED = frozenset({"time-entries"})
"""Kinds that are not counted, because a record may have very many."""
COLUMNS = {
    "clients": ("label", "status", "currency"),
    "external-contacts": ("label", "job_title", "role", "email", "phone", "is_primary"),
    "projects": ("label", "status", "billing_type", "due_date", "budget_used_percent", "unbilled_amount"),
    "tasks": ("label", "status", "assignee_id", "due_date", "tracked_minutes"),
    "time-entries": ("date", "user_id", "label", "project_id", "duration_minutes", "amount", "billing_status"),
    "expenses": ("date", "label", "category", "user_id", "net_amount", "billing_status"),
    "quotes": ("label", "status", "issue_date", "valid_until", "total"),
    "invoices": ("label", "status", "issue_date", "due_date", "total", "balance_due"),
    "credit-notes": ("label", "issue_date", "reason", "total"),
    "tickets": ("label", "status", "awaiting", "priority", "assignee_id", "opened"),
    "sites": ("label", "status", "uptime_percent_30d", "response_time_ms", "ssl_expires_at", "plugin_updates_count"),
    "milestones": ("label", "status", "due_date", "amount", "tasks_done_count", "tasks_count"),
}
"""The columns of the records of each kind on the pages of others; `label` links to the record."""


class RecordPage:
    """A record with what its page reads: one snapshot of the account."""

    def __init__(self, tx: Tx, context: PageContext, kind: Kind, record: Record) -> None:
        self.tx, self.context, self.kind, self.record = tx, context, kind, record
        self.names = Names(tx, context.catalogue)
        self.values = Values(context, self.names)

    @cached_property
    def document(self) -> Document:
        """What the PDF of an invoice, quote or credit note prints."""
        if not isinstance(self.record, Invoice | Quote | CreditNote):
            raise TypeError(f"A {self.kind.noun} is not printed.")
        return build_facts(self.tx, self.record)

    def value(self, name: str) -> Value:
        return self.values.field(self.record, name, self.kind.table)

    def facts(self, *names: str) -> list[Fact]:
        """Return those of these fields that have a value as headline facts."""
        values = [(name, self.value(name)) for name in names]
        return [Fact(field_label(name), value) for name, value in values if value.kind != "none"]

    def fields(self, title: str, names: Sequence[str]) -> FieldsBlock:
        values = [(field_label(name), self.value(name)) for name in names]
        filled = [(label, value) for label, value in values if value.kind != "none"]
        return FieldsBlock(title, filled, [label for label, value in values if value.kind == "none"])

    def path(self, kind: str, **filters: str) -> str:
        """Return the path of a list with filters; `urlencode` leaves commas as they are."""
        return f"/records/{kind}?{urlencode(filters, safe=',')}"

    def link(self, text: str, kind: str, **filters: str) -> Value:
        """Return a text that leads to a list with filters."""
        return Value("link", link=Link(text, self.path(kind, **filters)))

    def related(self, relation: Relation) -> TableBlock | None:
        """Return the first records that refer to this one, or None without any."""
        kind = relation.kind
        if kind.table is ticket_replies:
            return None
        filters = {relation.field: f"{self.record.id}"} if relation.field else {}
        size, total = SHOWN if kind.reading else SHOWN_PARTS, None
        if kind.name in UNCOUNTED:
            records = kind.first(self.tx, filters, size=size + 1)
        else:
            listed = kind.page(self.tx, filters, size=size, within=self.record.id)
            records, total = listed.data, listed.meta.total
        if not records:
            return None
        own = relation.field in {None, f"{self.kind.noun.replace(' ', '_')}_id"}
        title = kind.title if own else f"{kind.title} ({field_label(relation.field or '').lower()})"
        names = [name for name in columns_of(kind) if name != relation.field]
        block = self.table(title, records[:size], kind.table, names)
        return block._replace(total=total, path=self.path(kind.name, **filters) if kind.reading else "")

    def table(
        self, title: str, records: Sequence[msgspec.Struct], table: Table | None, names: Sequence[str]
    ) -> TableBlock:
        """Return a table with these fields of records, without empty columns."""
        rows = [[self.values.field(record, name, table) for name in names] for record in records]
        used = [place for place in range(len(names)) if any(row[place].kind != "none" for row in rows)]
        columns = [Column(field_label(names[place]), is_number(rows, place)) for place in used]
        return TableBlock(title, columns, [[row[place] for place in used] for row in rows])


def columns_of(kind: Kind) -> tuple[str, ...]:
    """Return the columns of a kind: those declared, else its name and its status."""
    declared = COLUMNS.get(kind.name) or COLUMNS.get(kind.table.name)
    return declared or ("label", "opened")


def is_number(rows: Sequence[Sequence[Value]], place: int) -> bool:
    """Return whether a column has numbers, which are aligned on the right."""
    return any(row[place].kind in {"number", "share"} for row in rows)
