"""The doctor finds every sum that is kept and wrong, names it, and writes it anew from its rows."""

from datetime import datetime

import pyotp
import pytest
from msgspec.structs import replace
from sqlalchemy import select, update

from retainer.identity import logos
from retainer.identity.actors import operator_of
from retainer.identity.people import second_factors
from retainer.identity.people.sessions import SECOND_STEPS
from retainer.rollups import doctor
from retainer.rollups.record_totals import TOTALS
from retainer.schema.rollups import SUMMARIES
from retainer.store.announcements import ANNOUNCES
from retainer.store.tables import totals
from tests.databases import each_database
from tests.documents.test_logo_files import png

pytestmark = each_database

LINE = {"description": "Design", "unit_price": "100"}


@pytest.fixture
def busy(api):
    """An agency in which every sum has something to add up."""
    client = api.make("/clients", hourly_rate="100", tag_ids=[api.make("/tags")["id"]])["id"]
    project = api.make("/projects", client_id=client)["id"]
    api.post(f"/projects/{project}/milestones", {"name": "Launch"})
    api.make("/tasks", project_id=project)
    ticket = api.make("/tickets", client_id=client)["id"]
    api.post(f"/tickets/{ticket}/replies", {"body": "On it."})
    entries = [api.make("/time-entries", project_id=project, client_id=client)["id"] for _ in range(3)]
    expense = api.make("/expenses", project_id=project, client_id=client)["id"]
    lines = [{"time_entry_ids": entries[:1]}, {"expense_ids": [expense]}, LINE]
    invoice = api.make("/invoices", client_id=client, project_id=project, lines=lines, status="sent")
    api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "10"}})
    api.post(f"/invoices/{invoice['id']}/credit-notes", {"amount": "20"})
    assert doctor.inspect(api.store, repair=False) == []
    return api


def rows_of(store, table):
    with store.unscoped() as tx:
        return sorted(map(repr, tx.all(select(table))))


SUMS = [
    *((table, column.name, table.name) for table in SUMMARIES for column in table.c if column.info.get("sum")),
    *((table, column, f"totals of {table.name}") for table, names in TOTALS.items() for column in names),
    (totals, "count", None),
]


def test_a_sum_that_is_wrong_is_found_named_and_written_anew(busy):
    for table, column, name in SUMS:
        right = rows_of(busy.store, table)
        with busy.store.unscoped(write=True) as tx:
            wrong = update(table).values({column: table.c[column] + 1}).where(table.c.account_id == busy.account_id)
            wrong = wrong.execution_options(**{ANNOUNCES: None})
            assert tx.change(wrong), f"there is a row of {table.name} to be wrong"
        names = [f"count of {row[0]}" for row in counted(busy)] if name is None else [name]
        found = [f"{each} of account {busy.account_id}" for each in names]
        assert doctor.inspect(busy.store, repair=False) == found, column
        assert rows_of(busy.store, table) != right, "it only looks"
        assert doctor.inspect(busy.store, repair=True) == found
        assert rows_of(busy.store, table) == right, column
    assert doctor.inspect(busy.store, repair=False) == []


def counted(api):
    """The tables that have a counter, in the order in which the doctor looks at them."""
    with api.store.unscoped() as tx:
        names = {row[0] for row in tx.all(select(totals.c.name).where(totals.c.account_id == api.account_id))}
    return [(table.name,) for table in doctor.counted() if table.name in names]


def test_a_second_look_compiles_no_statement(busy):
    compiled = busy.store.statements.of_account.cache_info
    before = compiled().misses
    assert doctor.inspect(busy.store, repair=False) == []
    assert compiled().misses == before


def test_a_counter_that_is_missing_is_found(busy):
    total = busy.get("/clients").json["meta"]["total"]
    with busy.store.unscoped(write=True) as tx:
        tx.run(totals.delete().where(totals.c.name == "clients", totals.c.account_id == busy.account_id))
    assert doctor.inspect(busy.store, repair=True) == [f"count of clients of account {busy.account_id}"]
    assert busy.get("/clients").json["meta"]["total"] == total > 0


def test_tables_without_a_counter_are_not_counted(api):
    admin = replace(operator_of(api.store, api.account_id), user_id=api.admin_id, role="admin")
    with api.store.begin(admin, write=True) as tx:
        logos.set_logo(tx, png())
        secret = pyotp.random_base32()
        assert second_factors.add(tx, secret, pyotp.TOTP(secret).at(datetime.fromisoformat(tx.now)))
        SECOND_STEPS.create(tx, api.admin_id)
    assert doctor.inspect(api.store, repair=False) == []
