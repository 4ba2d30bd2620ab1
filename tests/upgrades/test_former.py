"""What the demo of 8cdca1b does not have, its upgrade keeps or computes, too."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from retainer.rollups import doctor
from retainer.schema import fingerprint, migrations
from retainer.schema.migrations import former as upgrade_of_former
from retainer.store.engines import Engine, connect
from retainer.store.tx import Store
from tests.test_migration_locks import LOCKED, TABLES
from tests.upgrades.former import ENGINES, FORMER, create

MOMENT = "2026-11-27T12:00:00.000000Z"
CHANGES = (
    "UPDATE clients SET number = 'K-7' WHERE account_id = 1 AND id = 1",
    "UPDATE clients SET number = 'k-7' WHERE account_id = 1 AND id = 2",
    "UPDATE clients SET name = 'Ærø Café', invoice_email = 'Bills@Aero.example' WHERE account_id = 1 AND id = 1",
    "UPDATE projects SET code = 'A1' WHERE account_id = 1 AND id = 1",
    "UPDATE projects SET code = 'a1 ' WHERE account_id = 1 AND id = 2",
    f"UPDATE webhooks SET former_secret = 'whsec_x', former_secret_until = '{MOMENT}' WHERE id = 1",
    "UPDATE cost_rates SET amount = 12345 WHERE account_id = 1 AND user_id = 2",
    "DELETE FROM cost_rates WHERE account_id = 1 AND user_id = 3",
)
BROKEN = {"sqlite": "x'3c737667'", "postgresql": r"'\x3c737667'"}
"""A logo that cannot be drawn."""
FOOTERS = "SELECT id, document_footer, document_footer FROM accounts ORDER BY id"
LABOUR_COST = "SELECT sum(labour_cost) FROM project_sums WHERE account_id = 1"


class Upgraded(NamedTuple):
    """A database with what an upgrade may meet; what was told but locks, and what was there before."""

    engine: Engine
    told: list[str]
    footers: list[Any]
    labour_cost: list[Any]


@pytest.fixture(scope="module", params=ENGINES)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    url = create(FORMER[0], request.param, tmp_path_factory.mktemp("former"), request)
    with contextlib.closing(connect(url)) as engine:
        broken = f"UPDATE logos SET content = {BROKEN[request.param]} WHERE account_id = 2"
        with engine.schema_change() as connection:
            for statement in (*CHANGES, broken):
                connection.execute(text(statement))
        footers, labour_cost, said = rows(engine, FOOTERS), rows(engine, LABOUR_COST), list[str]()
        migrations.migrate(engine, said.append)
        yield Upgraded(engine, [line for line in said if " locks " not in line], footers, labour_cost)


def rows(engine: Engine, statement: str) -> list[Any]:
    with engine.read_snapshot() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_an_upgraded_database_is_in_order(upgraded: Upgraded):
    assert fingerprint.revision(upgraded.engine) == fingerprint.head()
    assert doctor.inspect(Store(upgraded.engine), repair=False) == []


def test_numbers_that_print_alike_are_kept_and_told(upgraded: Upgraded):
    assert [line for line in upgraded.told if " logo " not in line] == [
        "Account 1: 'k-7' of clients 2 prints like that of 1. Both are kept; give one of them another.",
        "Account 1: 'a1 ' of projects 2 prints like that of 1. Both are kept; give one of them another.",
    ]
    kept = "SELECT number, number_folded FROM clients WHERE account_id = 1 AND id < 3 ORDER BY id"
    assert rows(upgraded.engine, kept) == [("K-7", "k-7"), ("k-7", "k-7\x012")]


def test_a_former_secret_of_a_webhook_signs_until_its_time(upgraded: Upgraded):
    ((kept,),) = rows(upgraded.engine, "SELECT former_secrets FROM webhooks WHERE id = 1")
    assert json.loads(kept) == [{"secret": "whsec_x", "until": MOMENT}]


def test_a_cost_rate_that_was_not_counted_yet_is_counted(upgraded: Upgraded):
    assert rows(upgraded.engine, LABOUR_COST) != upgraded.labour_cost
    missing = "SELECT sum(missing_cost_rate_minutes) FROM project_sums WHERE account_id = 1"
    assert rows(upgraded.engine, missing) > [(0,)]


def test_a_logo_becomes_a_picture_and_one_that_cannot_is_told(upgraded: Upgraded):
    (told,) = [line for line in upgraded.told if " logo " in line]
    assert told.startswith("The logo of account 2 cannot be drawn (")
    assert told.endswith("). Upload it again as a PNG.")
    found = rows(upgraded.engine, "SELECT account_id, content FROM logos")
    assert [account_id for account_id, _ in found] == [1]
    assert bytes(found[0][1]).startswith(b"\x89PNG\r\n")
    assert rows(upgraded.engine, "SELECT id FROM accounts WHERE logo_id IS NULL") == [(2,)]


def test_the_footer_of_documents_is_that_of_each_language(upgraded: Upgraded):
    now = rows(upgraded.engine, "SELECT id, document_footer_en, document_footer_de FROM accounts ORDER BY id")
    assert now == upgraded.footers


def test_searches_find_accents_and_each_email_of_a_client(upgraded: Upgraded):
    found = rows(upgraded.engine, "SELECT search, invoice_email_folded FROM clients WHERE account_id = 1 AND id = 1")
    ((search, email),) = found
    assert search.startswith("aero cafe")
    assert email == "bills@aero.example"


@pytest.mark.parametrize("former", FORMER[:1], ids=str)
@pytest.mark.parametrize("kind", ["postgresql"])
def test_the_upgrade_declares_what_it_locks(url: str):
    with contextlib.closing(connect(url)) as engine, engine.schema_change() as connection:
        before = set(connection.execute(text(TABLES)).scalars())
        upgrade_of_former.upgrade(connection, lambda _: None)
        after = set(connection.execute(text(TABLES)).scalars())
        locked = before & set(connection.execute(text(LOCKED)).scalars())
    assert (before - after) | locked <= set(upgrade_of_former.LOCKS) <= before, "it writes only rows that differ"
