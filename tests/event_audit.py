"""The audit of events: after each request, every announced table and what records show are compared with the events."""

import json
from typing import Any

import msgspec

from retainer.events.catalogue import RESOURCES, TYPES
from retainer.events.events import event_of, load_after
from retainer.schema import TAG_LINKS, metadata
from retainer.store.announcements import is_field
from retainer.store.outbox import resource_of
from retainer.store.row_mapper import row_mapper
from tests.factories import ApiClient

MODELS = [(each.table, each.operations[0].answer.model) for each in RESOURCES if each.table is not None]
ANNOUNCED = [table for table in metadata.sorted_tables if table.info.get("announced")]
PARTS = (
    *((links.name, "record_id", owner.name, "tag_ids") for owner, links in TAG_LINKS.items()),
    ("quote_lines", "quote_id", "quotes", "lines"),
    ("invoice_lines", "invoice_id", "invoices", "lines"),
    ("payments", "invoice_id", "invoices", "payments"),
    ("credit_notes", "invoice_id", "invoices", "credit_notes"),
    ("site_plugins", "site_id", "sites", "plugins"),
)
"""The tables of parts: the column of their record, its table, and its field."""
Records = dict[tuple[str, int], dict[str, Any]]


class Audit:
    """The records of an account as they were last seen, and the last event."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self.records, self.last = self.read(), 0
        self.last = max((event["id"] for event in self.events()), default=0)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the account's rows of a table, by the names of their columns."""
        columns = metadata.tables[name].c.keys()
        order = "id" if "id" in columns else ", ".join(columns[1:3])
        sql = f"SELECT {', '.join(columns)} FROM {name} WHERE account_id = $1 ORDER BY {order}"
        return [dict(zip(columns, row, strict=True)) for row in self.api.sql(sql, self.api.account_id)]

    def read(self) -> Records:
        """Return the fields of each record, with its parts; stored sums and hidden columns are left out."""
        found: Records = {}
        for table in ANNOUNCED:
            shown = [column.name for column in table.c if is_field(column) or column.name == "updated_at"]
            for row in self.rows(table.name):
                found[resource_of(table), row["id"]] = {name: row[name] for name in shown}
        for name, column, owner, field in PARTS:
            shown = [column.name for column in metadata.tables[name].c if "hidden" not in column.info]
            for row in self.rows(name):
                record = found[resource_of(metadata.tables[owner]), row[column]]
                record[field] = [*record.get(field, []), {name: row[name] for name in shown}]
        return found

    def events(self) -> list[dict[str, Any]]:
        """Return the events since the last one."""
        found = [event for event in self.rows("events") if event["id"] > self.last]
        return [event | {"resource": event["type"].partition(".")[0]} for event in found]

    def shown(self) -> Records:
        """Return each record as lists show it."""
        with self.api.operating() as tx:
            return {
                (resource_of(table), record.id): msgspec.to_builtins(record)
                for table, model in MODELS
                for record in row_mapper(table, model).read_all(tx.all(row_mapper(table, model).rows))
            }

    def unnamed(self, before: Records, last: int) -> dict[str, set[str]]:
        """Return the members by resource that show another value than before, and that no event since then names."""
        after = self.shown()
        with self.api.operating() as tx:
            events = [event_of(row, "") for row in load_after(tx, list(TYPES), last, 10_000)]
        named = {(event.resource, event.record_id): {*event.fields, "updated_at"} for event in events}
        found: dict[str, set[str]] = {}
        for key in before.keys() & after.keys():
            changed = {name for name, value in before[key].items() if after[key][name] != value}
            found.setdefault(key[0], set()).update(changed - named.get(key, set()))
        return {resource: members for resource, members in found.items() if members}

    def check(self, what: object) -> list[dict[str, Any]]:
        """Raise AssertionError unless the events since the last check say what has changed; return them."""
        before, after, events = self.records, self.read(), self.events()
        kinds, told = {}, {(event["resource"], event["record_id"]): event for event in events}
        assert len(told) == len(events), f"{what}: a record has several events: {events}"
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                kinds[key] = "created" if key not in before else "deleted" if key not in after else "updated"
        assert kinds.keys() == told.keys(), f"{what}: changed were {kinds}, and events tell of {events}"
        for key, kind in kinds.items():
            event, fields = told[key], set(json.loads(told[key]["fields"]))
            if kind != "updated":
                assert (event["type"], fields) == (f"{key[0]}.{kind}", set()), what
                continue
            old, new = before[key], after[key]
            changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)} - {"updated_at"}
            assert changed <= fields, f"{what}: {changed - fields} of {key} have changed, and the event tells {fields}"
            turned = new["status"] if "status" in changed and key[0] != "site" else "updated"
            assert event["type"] == f"{key[0]}.{turned}" or key[0] == "site", f"{what}: {event}"
        self.records = after
        self.last = max([self.last, *(event["id"] for event in events)])
        return events
