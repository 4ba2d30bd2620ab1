"""Deleting an account: nothing of it is left in any table, in small steps, and no other account loses a row."""

from datetime import timedelta

import pytest
from sqlalchemy import Boolean, Date, Integer, LargeBinary

from retainer.errors import Refusal
from retainer.identity import accounts, closing
from retainer.identity.closing import BATCH_SIZE, CLOCK_DIFFERENCE, DELETED_AFTER, erase_due
from retainer.identity.people import users
from retainer.rollups import doctor
from retainer.schema import metadata
from retainer.store.engines.sql import DAY, INSTANT
from retainer.values.exact import instant_after, utcnow
from tests.databases import each_database

TABLES = [table for table in metadata.sorted_tables if table.info.get("of_account")]
ROWS = 3


def value_of(column, number):
    """Return a value for a column that refers to nothing; a different one for each number."""
    if isinstance(column.type, Boolean):
        return number % 2 == 1
    if isinstance(column.type, Integer):
        return number + 1
    if column.type is INSTANT:
        return f"2026-01-01T00:00:00.{number:06}Z"
    if column.type is DAY or isinstance(column.type, Date):
        return f"2026-01-{number % 28 + 1:02}"
    return bytes([number % 256]) if isinstance(column.type, LargeBinary) else f"{column.name} {number}"


def fill(api, first, count=ROWS):
    """Insert rows into every table for an account; they refer to each other wherever they can."""
    ids = {}
    for table in TABLES:
        ids[table.name] = []
        for number in range(first, first + count):
            row = {"account_id": api.account_id}
            for column in table.c:
                if column.name == "id" and "autoincrement" not in column.info and table.autoincrement_column is column:
                    continue
                target = column.info.get("target")
                if target is not None:
                    known = ids[target]
                    row[column.name] = known[number - first if target != table.name else -1] if known else None
                elif column.name != "account_id":
                    row[column.name] = value_of(column, number)
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join(f"${place}" for place in range(1, len(row) + 1))
            returning = " RETURNING id" if table.autoincrement_column is not None else ""
            found = api.sql(f"INSERT INTO {table.name} ({names}) VALUES ({marks}){returning}", *row.values())
            ids[table.name] += [found[0][0]] if returning else []


def counts(api):
    """Return how many rows the account of a client has in each table."""
    select = "SELECT count(*) FROM {} WHERE account_id = $1"
    return {table.name: api.sql(select.format(table.name), api.account_id)[0][0] for table in TABLES}


def announce(api, *, at=None):
    """Announce the deletion of the account, as if 30 days ago unless another time is given."""
    with api.operating() as tx:
        tx.now = at or instant_after(utcnow(), -DELETED_AFTER - 2 * CLOCK_DIFFERENCE)
        return closing.close(tx, "The contract has ended.")


def erase(api):
    """Delete what is due, batch by batch; return how many rows each has deleted, and what operators were told."""
    told, batches = [], []
    while deleted := erase_due(api.store, told.append):
        batches.append(deleted)
    return batches, told


@each_database
def test_nothing_of_a_deleted_account_is_left_in_any_table(api, other_tenant):
    fill(api, 1000)
    fill(other_tenant, 2000)
    announce(api)
    before = counts(api)
    assert min(before.values()) >= ROWS, "every table has rows"
    kept = counts(other_tenant)
    batches, told = erase(api)
    assert set(counts(api).values()) == {0}
    assert sum(batches) == sum(before.values()) + 1, "with the account itself"
    assert max(batches) < 2 * BATCH_SIZE
    assert counts(other_tenant) == kept
    assert told == [f"Account {api.account_id} was deleted, as an operator had announced."]
    listed = [account["id"] for account in accounts.list_accounts(api.store)]
    assert (api.account_id in listed, other_tenant.account_id in listed) == (False, True)
    assert other_tenant.get("/me").status == 200
    assert api.get("/me").code == "invalid_key"
    assert erase(api) == ([], [])


@each_database
def test_ids_of_a_deleted_account_are_not_used_again(api, other_tenant):
    newest = max((api, other_tenant), key=lambda each: each.account_id)
    highest = api.sql("SELECT max(id) FROM users")[0][0]
    announce(newest)
    erase(newest)
    opened, admin = open_another(api)
    assert opened > newest.account_id
    assert admin > highest


def open_another(api):
    details = accounts.AccountDetails(name="West")
    return users.open_account(api.store, details, users.UserDetails("Wim", "wim@west.example", "admin"))


def test_an_account_is_deleted_no_day_earlier_and_what_was_announced_can_be_undone(api):
    fill(api, 1000)
    before = counts(api)
    closed = announce(api, at=instant_after(utcnow(), -DELETED_AFTER + timedelta(minutes=5)))
    assert closed["status"] == "closing"
    assert erase(api) == ([], [])
    with api.operating() as tx:
        closing.resume(tx)
    assert accounts.list_accounts(api.store)[0]["status"] == "active"
    after = counts(api)
    assert after.pop("audit_entries") == before.pop("audit_entries") + 2, "both are in the audit log"
    assert after == before


def test_a_deletion_that_has_begun_is_not_undone(api):
    announce(api)
    with pytest.raises(Refusal, match="Its deletion began on ") as refused, api.operating() as tx:
        closing.resume(tx)
    assert refused.value.code == "locked"


def test_rows_that_refer_to_each_other_go_in_the_order_that_references_allow(api):
    first, second, third, *_ = (api.make("/tasks")["id"] for _ in range(BATCH_SIZE + 3))
    for child, parent in ((first, second), (second, third)):  # parents are younger here, and older otherwise
        api.sql("UPDATE tasks SET parent_id = $1 WHERE id = $2", parent, child)
    api.sql("UPDATE tasks SET parent_id = $1 WHERE id > $1", third)
    announce(api)
    erase(api)
    assert counts(api)["tasks"] == 0


def test_doctor_finds_no_fault_in_an_account_that_is_half_deleted(api):
    for number in range(3):
        api.make("/time-entries", duration_minutes=number + 1)
    announce(api)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closing, "BATCH_SIZE", 1)
        while counts(api)["time_entries"]:
            erase_due(api.store, lambda _: None)
    assert counts(api)["project_sums"] > 0, "sums without their rows"
    faults = doctor.inspect(api.store, repair=False)
    assert [fault for fault in faults if fault.endswith(f"account {api.account_id}")] == []


def test_a_row_that_is_written_meanwhile_only_delays_the_end(api):
    announce(api)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closing, "BATCH_SIZE", 1)
        while counts(api)["totals"]:
            erase_due(api.store, lambda _: None)
        api.sql("INSERT INTO totals (account_id, name, count) VALUES ($1, 'sites', 0)", api.account_id)
    assert f"Account {api.account_id} was deleted, as an operator had announced." in erase(api)[1]


def test_the_name_of_a_person_who_left_is_erased_from_their_record_without_any_mail(api):
    user_id = api.add_user("Jo Kaltwasser", email="kaltwasser@people.example")
    with api.operating() as tx:
        users.set_password(tx, user_id, "Jo", "a hash")
    api.set_user(user_id, {"is_active": False})
    api.set_user(user_id, {"name": "Former employee 7", "email": "former7@example.com"})
    queued = "SELECT count(*) FROM messages WHERE account_id = $1"
    assert api.sql(queued, api.account_id) == [(0,)], "nobody signs in with either address"
    assert "kaltwasser" not in str(api.sql("SELECT * FROM users")).lower()
    api.set_user(user_id, {"is_active": True, "email": "jo@people.example"})
    assert api.sql(queued, api.account_id) == [(2,)]
