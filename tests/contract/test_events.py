"""No write of the API, and no statement, changes what a record shows without an event that names the field."""

import re
import sys
from datetime import timedelta
from pathlib import Path

import time_machine
from sqlalchemy.sql.dml import UpdateBase

import retainer
from retainer.events.catalogue import ANNOUNCED, TYPES
from retainer.store.announcements import STAMPS, announcement_of, is_field
from retainer.store.outbox import resource_of
from retainer.store.row_mapper import derived_fields
from tests.contract.filler import NOW, Filler
from tests.event_audit import MODELS, Audit
from tests.length import IS_FULL

SUMS = (
    "tracked_minutes billable_minutes unbilled_minutes billable_amount unbilled_amount to_bill_amount invoiced_amount "
    "expense_amount"
)
MEASURED = "last_checked_at last_status_code response_time_ms last_error ssl_expires_at last_synced_at"
UPTIME = "uptime_percent_24h uptime_percent_7d uptime_percent_30d"
SILENT = {
    "client": "contacts_count projects_count sites_count",
    "tag": "usage_count",
    "project": f"{SUMS} budget_used_percent progress_percent",
    "milestone": "tasks_count tasks_done_count is_overdue",
    "task": "tracked_minutes remaining_minutes subtasks_count is_overdue",
    "time_entry": "billing_status",
    "quote": "status",
    "invoice": "is_overdue days_overdue is_imported",
    "credit_note": "is_imported",
    "ticket": "tracked_minutes",
    "site": f"status {MEASURED} {UPTIME}",
}
"""The fields that can change without an event that names them: they follow from other records, checks or the time."""
BY_CAUSE = {
    "project": {"quote_id"},
    "milestone": {"invoice_id"},
    "quote": {"invoice_id"},
    "ticket": {"replies_count"},
    "site": {"down_since"},
}
"""Computed fields whose cause names them in the event: what makes a project, bills a milestone, answers a ticket."""
GUIDE = Path(retainer.__file__).parent / "reference/templates/guide/sync.md"


class AuditedFiller(Filler):
    """A filler that compares every record with the events after each request."""

    audit: Audit

    def call(self, method, path, body=None):
        self.clock.shift(0.000001)  # so that each change shows in `updated_at`
        before, last = self.audit.shown(), self.audit.last
        answer = super().call(method, path, body)
        for resource, fields in self.audit.unnamed(before, last).items():
            hidden = fields - set(SILENT.get(resource, "").split())
            assert not hidden, f"{method} {path} {body} changed {hidden} of a {resource}, and no event names that"
        events = self.audit.check((method, path, body, answer))
        if answer.status >= 400:
            assert events == []
        return answer


def test_every_write_tells_what_it_has_changed_of_each_record(api):
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        filler = AuditedFiller(api, clock)
        filler.audit = Audit(api)
        filler.fill(6 if IS_FULL else 3, "events")
        filler.add_edges()
        filler.add_care()
        told = {row[0] for row in api.sql("SELECT DISTINCT type FROM events")}
    assert {"client.created", "invoice.paid", "invoice.void", "ticket.resolved"} <= told <= set(TYPES)


def test_every_statement_of_the_program_says_what_it_changes():
    """Those that functions build are refused when they run."""
    for module in [module for name, module in sys.modules.items() if name.startswith("retainer.")]:
        for statement in vars(module).values():
            if isinstance(statement, UpdateBase):
                announcement_of(statement)  # or it raises TypeError


def test_every_computed_field_is_named_by_events_or_is_silent():
    for table, model in MODELS:
        name = resource_of(table)
        announced = ANNOUNCED[name]
        computed = {*derived_fields(model)} | {
            column.name
            for column in table.c
            if column.name in model.__struct_fields__ and not is_field(column) and column.name not in STAMPS
        }
        named = set().union(*announced.computed.values(), BY_CAUSE.get(name, ()), {"tag_ids"})
        assert computed <= named | set(SILENT.get(name, "").split()), name


def test_the_guide_lists_each_field_that_changes_without_an_event():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", GUIDE.read_text("utf-8"), re.MULTILINE))
    listed = {name: set(re.findall(r"`(\w+)`", text)) for name, text in rows.items()}
    assert {name: fields & set(SILENT[name].split()) for name, fields in listed.items()} == {
        name: set(fields.split()) for name, fields in SILENT.items()
    }


def test_an_event_names_the_fields_that_follow_from_those_that_changed(api):
    def fields_after(method, path, body):
        after = api.get("/events").json["meta"]["latest"]
        assert api.call(method, path, body).status < 300
        return {(each["resource"]): set(each["fields"]) for each in api.get("/events", {"after": after}).data}

    site = api.make("/sites")["id"]
    assert "status" in fields_after("PATCH", f"/sites/{site}", {"monitoring_enabled": False})["site"]
    ticket = api.make("/tickets")["id"]
    replied = fields_after("POST", f"/tickets/{ticket}/replies", {"body": "Yes", "author_type": "contact"})
    assert {"awaiting", "last_reply_by", "replies_count"} <= replied["ticket"]
    entry = api.make("/time-entries", hourly_rate="60")
    lines = [{"time_entry_ids": [entry["id"]]}]
    billed = fields_after("POST", "/invoices", {"client_id": entry["client_id"], "lines": lines})
    assert {"billing_status", "is_locked", "invoice_line_id"} <= billed["time_entry"]
    invoice = api.pay()["invoice_id"]
    credited = fields_after("POST", f"/invoices/{invoice}/credit-notes", {})
    assert {"refund_due", "amount_credited"} <= credited["invoice"]
    assert api.get(f"/invoices/{invoice}").data["refund_due"] != "0.00"
