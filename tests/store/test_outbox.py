"""The outbox: one event for each changed record, in the transaction of the change, in the order of the commits."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import time_machine
from sqlalchemy import bindparam, delete, insert, literal, select, text, update

from retainer.crm.clients import Client
from retainer.crm.tags import Tag
from retainer.outbound.leases import Places
from retainer.schema.crm import clients, tags
from retainer.server.monitoring import housekeeping
from retainer.sites.monitor import schedule
from retainer.sites.monitor.schedule import CheckResult
from retainer.store import outbox
from retainer.store import tx as tx_module
from retainer.store.announcements import deleting, maintaining, updating
from retainer.store.engines import Sqlite, postgresql_writers
from retainer.store.outbox import Outbox
from retainer.store.tables import ACCOUNT, NOW, ONCE, events, totals
from retainer.values.exact import as_instant
from tests.databases import PATIENCE, each_database, only_postgresql
from tests.factories import ApiClient

pytestmark = each_database


def new_client(number):
    return Client(0, "", "", "A", number, currency="EUR", payment_terms_days=30)


def told(api, after=0):
    """The types of the events after one, each with its record and its fields."""
    sql = "SELECT type, record_id, fields FROM events WHERE account_id = $1 AND id > $2 ORDER BY id"
    return [(kind, record, json.loads(fields)) for kind, record, fields in api.sql(sql, api.account_id, after)]


def last(api):
    return api.sql("SELECT coalesce(max(id), 0) FROM events")[0][0]


def test_a_record_that_one_transaction_writes_twice_has_one_event(api):
    with api.operating() as tx:
        created = tx.insert(clients, new_client("A-1"))
        tx.update_columns(clients, created, {"notes": "Called"})
        gone = tx.insert(clients, new_client("A-2"))
        tx.delete(clients, gone)
    assert told(api) == [("client.created", created, [])]
    before = last(api)
    with api.operating() as tx:
        client = tx.get(clients, created, Client)
        client.name = "B"
        tx.update(clients, client)
        tx.touch(clients, created, "tag_ids")
        tx.update_columns(clients, created, {"status": "archived", "name": "B"})
    assert told(api, before) == [("client.archived", created, ["name", "status", "tag_ids"])]
    before = last(api)
    with api.operating() as tx:
        tx.touch(clients, created, "tag_ids")
        tx.delete(clients, created)
    assert told(api, before) == [("client.deleted", created, [])]


def test_an_update_names_the_fields_whose_values_differ(api):
    tag = api.make("/tags")["id"]
    client = api.make("/clients", hourly_rate="80", website="https://x.example")["id"]
    invoice = api.make("/invoices", client_id=client, lines=[{"description": "Design", "unit_price": "500"}])["id"]
    for path, change, event in (
        (f"/clients/{client}", {"hourly_rate": "80.00", "tag_ids": []}, None),
        (f"/clients/{client}", {"hourly_rate": "81", "website": None}, ("client.updated", ["hourly_rate", "website"])),
        (f"/clients/{client}", {"tag_ids": [tag]}, ("client.updated", ["tag_ids"])),
        (f"/clients/{client}", {"status": "prospect"}, ("client.prospect", ["status"])),
        (f"/invoices/{invoice}", {"subject": "March"}, ("invoice.updated", ["subject"])),
    ):
        before = last(api)
        assert api.patch(path, change).status == 200
        expected = [(event[0], int(path.rpartition("/")[2]), event[1])] if event else []
        assert told(api, before) == expected
    before = last(api)
    assert api.patch(f"/invoices/{invoice}", {"status": "sent"}).status == 200
    assert api.patch(f"/invoices/{invoice}", {"record_payment": {"amount": "100"}}).status == 200
    assert api.patch(f"/invoices/{invoice}", {"status": "paid"}).status == 200
    assert [kind for kind, *_ in told(api, before)] == ["invoice.sent", "invoice.partially_paid", "invoice.paid"]
    assert told(api, before)[1][2] == ["amount_paid", "balance_due", "payments", "status"]


def test_a_deletion_tells_of_every_record_that_it_deletes_or_changes(api):
    client = api.make("/clients")["id"]
    contacts = [api.make("/external-contacts", client_id=client)["id"] for _ in range(2)]
    tag = api.make("/tags")["id"]
    site = api.make("/sites", tag_ids=[tag])["id"]
    project = api.make("/projects", client_id=client)["id"]
    milestone = api.make(f"/projects/{project}/milestones")["id"]
    before = last(api)
    assert api.delete(f"/tags/{tag}").status == 204
    assert told(api, before) == [("site.updated", site, ["tag_ids"]), ("tag.deleted", tag, [])]
    before = last(api)
    assert api.delete(f"/projects/{project}").status == 204
    assert told(api, before) == [("milestone.deleted", milestone, []), ("project.deleted", project, [])]
    assert api.sql(
        "SELECT DISTINCT parent_id FROM events WHERE record_id = $1 AND type LIKE 'milestone.%'", milestone
    ) == [(project,)]
    before = last(api)
    assert api.delete(f"/clients/{client}").status == 204
    gone = [("external_contact.deleted", contact, []) for contact in contacts]
    assert told(api, before) == [*gone, ("client.deleted", client, [])]


def test_what_is_rolled_back_has_no_event(api):
    with pytest.raises(ZeroDivisionError), api.operating() as tx:
        assert tx.insert(clients, new_client("A-1")) // 0
    assert api.post("/clients", {"name": "A", "number": 7}).status == 422
    assert told(api) == []


def test_an_event_has_its_user_key_and_request(api):
    answer = api.post("/tags", {"name": "A"}, headers={"X-Request-Id": "mine"})
    context = "SELECT at, user_id, key_id, request_id FROM events ORDER BY id"
    assert api.sql(context) == [(answer.data["created_at"], api.admin_id, api.key_id, "mine")]
    with api.operating() as tx:
        tx.insert(clients, new_client("A-1"))
    assert api.sql(context)[1][1:] == (None, None, None)


NAMED = clients.c.name == "B"
SILENT = {
    "an insertion": insert(clients).values(account_id=ACCOUNT, name="A"),
    "an update": update(clients).values(name="B", updated_at=NOW),
    "a sum": update(clients).values(contacts_count=0),
    "a deletion": delete(tags),
    "a part": select(literal(1)).add_cte(delete(tags).returning(tags.c.id).cte("gone")),
    "a part of another change": updating(clients, NAMED, values={"city": "B"}).add_cte(
        deleting(tags, tags.c.name == "x").cte("gone")
    ),
}


@pytest.mark.parametrize("what", SILENT)
def test_a_statement_that_does_not_say_what_it_changes_is_refused(api, what):
    with pytest.raises(TypeError, match="without an event"), api.operating() as tx:
        tx.run(SILENT[what])


def test_a_field_cannot_be_maintained_and_a_touch_names_fields():
    for written in ("name", "updated_at"):
        with pytest.raises(TypeError, match=f"{written} of clients"):
            maintaining(clients, values={written: NOW})
    with pytest.raises(TypeError, match="names of the fields"):
        updating(clients, NAMED)


def test_rows_without_ids_are_refused(api):
    with pytest.raises(TypeError, match="one by one"), api.operating() as tx:
        tx.insert_rows(clients, [])


def test_a_record_changes_only_in_a_transaction_of_its_account(api):
    archive = updating(clients, clients.c.id == bindparam("id"), values={"status": "archived"})
    with pytest.raises(RuntimeError, match="transaction of their account"), api.store.unscoped(write=True) as tx:
        tx.run(archive, id=1)


def test_a_status_is_compared_with_the_former_one_also_if_the_record_was_not_read(api):
    client = api.make("/clients")["id"]
    before = last(api)
    for status, city in (("archived", "Bonn"), ("archived", "Ulm")):
        with api.operating() as tx:
            tx.update_columns(clients, client, {"status": status, "city": city})
    assert told(api, before) == [("client.archived", client, ["city", "status"]), ("client.updated", client, ["city"])]


def written_off(api):
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "500"}])["id"]
    return api.patch(f"/invoices/{invoice}", {"status": "written_off"}).data


THERE_AND_BACK = {
    "task": (lambda api: api.make("/tasks"), [{"status": "done"}, {"status": "todo"}]),
    "ticket": (lambda api: api.make("/tickets"), [{"status": "resolved"}, {"status": "open"}]),
    "project": (lambda api: api.make("/projects"), [{"status": "on_hold"}, {"status": "active"}]),
    "quote": (lambda api: api.make("/quotes"), [{"status": "declined"}, {"status": "draft"}]),
    "invoice": (written_off, [{"record_payment": {"amount": "1"}}, {"status": "written_off"}]),
}


@pytest.mark.parametrize("resource", THERE_AND_BACK)
def test_an_event_says_the_status_at_the_end_of_its_transaction(api, resource):
    make, steps = THERE_AND_BACK[resource]
    record = make(api)
    before = last(api)
    operations = [{"method": "PATCH", "path": f"/{resource}s/{record['id']}", "body": step} for step in steps]
    assert api.post("/batch", {"operations": operations, "atomic": True}).status == 200
    (event,) = told(api, before)
    assert event[:2] == (f"{resource}.{record['status']}", record["id"])
    assert "status" in event[2]


def test_of_several_statuses_in_a_transaction_the_last_one_is_told(api):
    client = api.make("/clients")["id"]
    before = last(api)
    with api.operating() as tx:
        for status in ("archived", "active", "prospect"):
            tx.update_columns(clients, client, {"status": status})
    assert told(api, before) == [("client.prospect", client, ["status"])]


def test_stored_sums_announce_nothing(api):
    client = api.make("/clients")["id"]
    before = last(api)
    with api.operating() as tx:
        tx.run(maintaining(clients, clients.c.id == client, values={"contacts_count": clients.c.contacts_count + 1}))
    assert told(api, before) == []


def test_a_change_without_its_event_is_an_error(api):
    """Events take the account from its counter of users, which leads a cluster to the node of the account."""
    api.sql("DELETE FROM totals WHERE name = 'users'")
    with pytest.raises(RuntimeError, match="without their events"), api.operating() as tx:
        tx.insert(clients, new_client("A-1"))


def test_a_site_that_goes_down_and_comes_up_again_tells_so(api):
    site = api.make("/sites")["id"]
    before = last(api)
    for is_up in (True, False, False, False, True):
        api.sql("UPDATE sites SET next_check_at = $1", "2020-01-01T00:00:00.000000Z")
        taken = schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1))
        for due in taken:
            schedule.save_result(api.store, due, CheckResult(is_up))
    turned = [("site.up", site, ["down_since", "status"]), ("site.down", site, ["down_since", "status"])]
    assert told(api, before) == [*turned, turned[0]]


def test_old_events_are_pruned_but_the_newest(api, other_tenant, monkeypatch):
    monkeypatch.setattr(housekeeping, "BATCH_SIZE", 2)
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    kept = "SELECT id FROM events WHERE account_id = $1 ORDER BY id"
    with time_machine.travel(moment, tick=False) as clock:
        for _ in range(3):
            api.make("/tags")
        other_tenant.make("/tags")
        clock.move_to(moment + timedelta(days=30))
        assert housekeeping.delete_old(api.store, housekeeping.EVENTS, 30) == 0
        api.make("/tags")
        clock.shift(1)
        assert [housekeeping.delete_old(api.store, housekeeping.EVENTS, 30) for _ in range(3)] == [2, 1, 0]
        assert (api.sql(kept, api.account_id), api.sql(kept, other_tenant.account_id)) == ([(4,)], [(1,)])
        clock.shift(timedelta(days=60))
        assert housekeeping.delete_old(api.store, housekeeping.EVENTS, 30) == 0
        with api.store.unscoped() as tx:
            before = as_instant(datetime.now(UTC))
            assert tx.all(housekeeping.EVENTS[0].accounts, before=before) == [], "no write for each that only has one"
        other_tenant.make("/tags")
        assert api.sql(kept, other_tenant.account_id) == [(1,), (2,)]


class Overlap:
    """A transaction whose events are written while another one of the account begins, and a reader between them."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self.seen: list[int] = []
        self.refused: list[Exception] = []

    def read(self):
        """Read the events after the last one seen, as a consumer does."""
        sql = "SELECT id FROM events WHERE account_id = $1 AND id > $2 ORDER BY id"
        self.seen += [row[0] for row in self.api.sql(sql, self.api.account_id, max(self.seen, default=0))]

    def has_to_wait(self):
        engine = self.api.store.engine
        if isinstance(engine, Sqlite):
            return bool(engine.turns.writer.waiting)
        return bool(engine.writers.queues.waiting or self.api.sql("SELECT 1 FROM pg_locks WHERE NOT granted"))

    def write_too(self):
        try:
            with self.api.operating() as tx:
                tx.insert(tags, Tag(0, "", "", "A"))  # a client would wait for the counter of clients
        except psycopg.IntegrityError as error:
            self.refused.append(error)

    def run(self):
        """Return the events that the reader has missed."""
        other = threading.Thread(target=self.write_too, daemon=True)
        with self.api.operating() as tx:
            tx.insert(clients, new_client("A-1"))
            tx._write_events()  # noqa: SLF001  # they have their ids, and are not committed
            tx.outbox = Outbox()
            other.start()
            deadline = time.monotonic() + PATIENCE
            while other.is_alive() and not self.has_to_wait() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.read()
        other.join(PATIENCE)
        self.read()
        return [event for (event,) in self.api.sql("SELECT id FROM events ORDER BY id") if event not in self.seen]


def test_a_reader_sees_events_in_the_order_of_their_ids_without_gaps(api):
    overlap = Overlap(api)
    assert overlap.run() == []
    assert (overlap.seen, overlap.refused) == ([1, 2], [])


def allow_overlaps(api, monkeypatch):
    """Let two transactions of an account write at the same time."""
    monkeypatch.setattr(postgresql_writers, "TRY_LOCK", "SELECT $1::INTEGER + $2::INTEGER > 0")
    monkeypatch.setattr(api.store.engine.writers.queues, "share", 2)


@only_postgresql
def test_without_the_lock_of_the_account_the_key_refuses_what_would_overtake(api, monkeypatch):
    allow_overlaps(api, monkeypatch)
    overlap = Overlap(api)
    assert overlap.run() == []
    assert (overlap.seen, len(overlap.refused)) == ([1], 1)


@only_postgresql
def test_ids_of_a_sequence_would_show_a_later_event_before_an_earlier_one(api, monkeypatch):
    """The planted fault: neither the lock nor ids that follow the last committed one."""
    allow_overlaps(api, monkeypatch)
    names = (*outbox.CONTEXT, *outbox.PER_RECORD)
    values = (bindparam(name, type_=events.c[name].type) for name in names)
    planted = insert(events).from_select(
        ["account_id", "id", *names],
        select(totals.c.account_id, text("nextval('clients_id_seq')"), *values).where(ONCE),
    )
    monkeypatch.setattr(tx_module, "INSERT_EVENT", planted)
    overlap = Overlap(api)
    (missed,) = overlap.run()
    assert missed < min(overlap.seen)
