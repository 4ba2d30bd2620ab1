"""The read-only pages of records: fields, related records, and the requests that changed them."""

import json
import re
from decimal import Decimal
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
from sqlalchemy import Table, select

from retainer.billing import files
from retainer.console import words
from retainer.console.catalogue import Catalogue, Kind, label_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.records.actions import list_actions
from retainer.identity.keys import key_list
from retainer.identity.people import users
from retainer.kernel.resource import read_id
from retainer.schema.crm import tags
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.traffic.request_log import requests_of_record
from retainer.values.records import Record

SHOWN_RELATED = 5
REQUESTS = 5
PARAGRAPH_LENGTH = 100
"""Characters beyond which a text is a paragraph."""
INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z")
HIDDEN_FIELDS = {"id"}
LABELS = {
    "address_line1": "Address line 1",
    "address_line2": "Address line 2",
    "external_id": "External ID",
    "php_version": "PHP version",
    "receipt_url": "Receipt URL",
    "ssl_expires_at": "SSL expires at",
    "tag_ids": "Tags",
    "url": "URL",
    "vat_number": "VAT number",
    "wp_update_version": "WordPress update",
    "wp_version": "WordPress version",
}
"""Labels of fields that do not follow from their names."""
TAG_NAMES = (
    select(tags.c.name).where(is_listed(tags.c.id, listed("ids", INTEGER).scalar_subquery())).order_by(tags.c.name)
)


class Value(NamedTuple):
    """A value for display: text, a paragraph, an instant, a link, the rows of a table, or none."""

    kind: Literal["text", "long", "moment", "link", "rows", "none"]
    text: str = ""
    link: str = ""
    moment: words.Moment | None = None
    rows: list[dict[str, "Value"]] = []


class Related(NamedTuple):
    """Records that refer to another: their number, the first of them, and the link to all."""

    kind: Kind
    title: str
    total: int
    records: list[tuple[str, str]]
    """Label and path; the path is empty without a page."""
    link: str


def show(tx: Tx, context: PageContext) -> Reply:
    """Show a record. Raises `not_found`."""
    catalogue = context.catalogue
    kind = catalogue.find(context.path_parameters["kind"])
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    fields = Reader(tx, context).fields(record, catalogue.references(kind))
    written_by = requests_of_record(tx, kind.name, record.id, REQUESTS)
    return context.render(
        "record",
        kind=kind,
        record=record,
        label=label_of(record),
        actions=list_actions(kind, record),
        lacks=files.missing_in_draft(tx, record),
        fields=[(name, value) for name, value in fields if value.kind != "none"],
        empty=[name for name, value in fields if value.kind == "none"],
        related=[each for each in related_to(tx, catalogue, kind, record) if each.total],
        written_by=written_by,
        names={key.id: key.name for key in key_list.list_keys(tx)} if written_by else {},
    )


def related_to(tx: Tx, catalogue: Catalogue, kind: Kind, record: Record) -> list[Related]:
    """Return the records that refer to a record."""
    found = []
    for other, field in catalogue.relations(kind.table):
        filters = {field: str(record.id)} if field else {}
        listed = other.page(tx, filters, size=SHOWN_RELATED, within=record.id)
        path = f"/records/{other.name}" if other.reading else ""
        title = (
            other.title
            if field in {None, f"{kind.noun.replace(' ', '_')}_id"}
            else f"{other.title} ({field_label(field)})"
        )
        found.append(
            Related(
                other,
                title,
                listed.meta.total,
                [(label_of(each), path and f"{path}/{each.id}") for each in listed.data],
                f"{path}?{urlencode(filters)}" if path and listed.meta.total > SHOWN_RELATED else "",
            )
        )
    return found


class Reader:
    """Reads the fields of records for display; looks up each record that they refer to once."""

    def __init__(self, tx: Tx, context: PageContext) -> None:
        self.tx, self.context = tx, context
        self._labels: dict[tuple[str, int], str] = {}
        self._users: dict[int, str] | None = None

    def fields(self, record: msgspec.Struct, references: dict[str, Table]) -> list[tuple[str, Value]]:
        """Return the fields of a record with their labels."""
        return [
            (field_label(name), self.tags(value) if name == "tag_ids" else self.value(value, references.get(name)))
            for name, value in msgspec.structs.asdict(record).items()
            if name not in HIDDEN_FIELDS and value is not msgspec.UNSET
        ]

    def tags(self, ids: list[int]) -> Value:
        """Return the names of tags."""
        return self.value([name for (name,) in self.tx.all(TAG_NAMES, ids=json.dumps(ids))] if ids else None)

    def value(self, value: object, target: Table | None = None) -> Value:
        """Return a value; an id of a record of the table `target` is a link."""
        if value is None or value in ("", []):
            return Value("none")
        if target is not None and isinstance(value, int):
            return self.link(target.name, value)
        if isinstance(value, msgspec.Struct) or (isinstance(value, list) and isinstance(value[0], msgspec.Struct)):
            return self.rows(value if isinstance(value, list) else [value])
        if isinstance(value, str) and INSTANT.fullmatch(value):
            return Value("moment", moment=self.context.moment(value))
        text = text_of(value)
        return Value("long" if "\n" in text or len(text) > PARAGRAPH_LENGTH else "text", text)

    def rows(self, records: list[msgspec.Struct]) -> Value:
        """Return the parts of a record as rows, without empty columns."""
        rows = [self.fields(record, {}) for record in records]
        used = {name for row in rows for name, each in row if each.kind != "none"}
        return Value("rows", rows=[{name: each for name, each in row if name in used} for row in rows])

    def link(self, table: str, record_id: int) -> Value:
        """Return a link to a record of a table."""
        if table == "users":
            if self._users is None:
                self._users = {user["id"]: user["name"] for user in users.list_users(self.tx)}
            return Value("link", self._users.get(record_id, str(record_id)), f"/people/{record_id}")
        kind = self.context.catalogue.by_table.get(table)
        if kind is None:
            return Value("text", str(record_id))
        if (table, record_id) not in self._labels:
            self._labels[table, record_id] = label_of(kind.get(self.tx, record_id))
        return Value("link", self._labels[table, record_id], f"/records/{kind.name}/{record_id}")


def text_of(value: object) -> str:
    """Return a plain value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return f"{value:,f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def field_label(name: str) -> str:
    """Return the label of a field."""
    return LABELS.get(name) or name.removesuffix("_id").replace("_", " ").capitalize()
