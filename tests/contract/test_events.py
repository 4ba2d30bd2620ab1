"""No write of the API, and no statement, changes a record without an event."""

from datetime import timedelta

import time_machine

from retainer.events.catalogue import TYPES
from tests.contract.filler import NOW, Filler
from tests.event_audit import Audit


class AuditedFiller(Filler):
    """A filler that compares every record with the events after each request."""

    audit: Audit

    def call(self, method, path, body=None):
        self.clock.shift(0.000001)  # so that each change shows in `updated_at`
        answer = super().call(method, path, body)
        events = self.audit.check((method, path, body, answer))
        if answer.status >= 400:
            assert events == []
        return answer


def test_every_write_tells_what_it_has_changed_of_each_record(api):
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        filler = AuditedFiller(api, clock)
        filler.audit = Audit(api)
        filler.fill(6, "events")
        filler.add_edges()
        filler.add_care()
        told = {row[0] for row in api.sql("SELECT DISTINCT type FROM events")}
    assert {"client.created", "invoice.paid", "invoice.void", "ticket.resolved"} <= told <= set(TYPES)
