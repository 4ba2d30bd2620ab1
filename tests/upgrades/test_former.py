"""What the demo of 8cdca1b does not have, its upgrade keeps or computes, too."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from retainer.rollups import doctor
from retainer.schema import fingerprint, migrations
from retainer.schema.migrations import former as upgrade_of_former
from retainer.store.engines import Engine, connect
from retainer.store.tx import Store
from tests.test_migration_locks import LOCKED, TABLES
from tests.upgrades.former import FORMER, each_engine

of_former = pytest.mark.parametrize("former", FORMER[:1], ids=str)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with contextlib.closing(connect(url)) as opened:
        yield opened


def change(engine: Engine, *statements: str) -> None:
    with engine.schema_change() as connection:
        for statement in statements:
            connection.execute(text(statement))


def rows(engine: Engine, statement: str) -> list[Any]:
    with engine.read_snapshot() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def upgraded(engine: Engine) -> list[str]:
    """Upgrade a database, which must be in order then; return what was announced but locks."""
    said: list[str] = []
    migrations.migrate(engine, said.append)
    assert fingerprint.revision(engine) == fingerprint.head()
    assert doctor.inspect(Store(engine), repair=False) == []
    return [line for line in said if " locks " not in line]


@of_former
@each_engine
def test_numbers_that_print_alike_are_kept_and_told(engine: Engine):
    change(
        engine,
        "UPDATE clients SET number = 'K-7' WHERE account_id = 1 AND id = 1",
        "UPDATE clients SET number = 'k-7' WHERE account_id = 1 AND id = 2",
        "UPDATE projects SET code = 'A1' WHERE account_id = 1 AND id = 1",
        "UPDATE projects SET code = 'a1 ' WHERE account_id = 1 AND id = 2",
    )
    assert upgraded(engine) == [
        "Account 1: 'k-7' of clients 2 prints like that of 1. Both are kept; give one of them another.",
        "Account 1: 'a1 ' of projects 2 prints like that of 1. Both are kept; give one of them another.",
    ]
    assert rows(engine, "SELECT number, number_folded FROM clients WHERE account_id = 1 AND id < 3 ORDER BY id") == [
        ("K-7", "k-7"),
        ("k-7", "k-7\x012"),
    ]


@of_former
@each_engine
def test_a_former_secret_of_a_webhook_signs_until_its_time(engine: Engine):
    moment = "2026-11-27T12:00:00.000000Z"
    change(engine, f"UPDATE webhooks SET former_secret = 'whsec_x', former_secret_until = '{moment}' WHERE id = 1")
    assert upgraded(engine) == []
    ((kept,),) = rows(engine, "SELECT former_secrets FROM webhooks WHERE id = 1")
    assert json.loads(kept) == [{"secret": "whsec_x", "until": moment}]


@of_former
@each_engine
def test_a_cost_rate_that_was_not_counted_yet_is_counted(engine: Engine):
    before = rows(engine, "SELECT sum(labour_cost) FROM project_sums WHERE account_id = 1")
    change(
        engine,
        "UPDATE cost_rates SET amount = 12345 WHERE account_id = 1 AND user_id = 2",
        "DELETE FROM cost_rates WHERE account_id = 1 AND user_id = 3",
    )
    assert upgraded(engine) == []
    assert rows(engine, "SELECT sum(labour_cost) FROM project_sums WHERE account_id = 1") != before
    assert rows(engine, "SELECT sum(missing_cost_rate_minutes) FROM project_sums WHERE account_id = 1") > [(0,)]


@of_former
@each_engine
def test_a_logo_becomes_a_picture_and_one_that_cannot_is_told(engine: Engine):
    broken = {"sqlite": "x'3c737667'", "postgresql": r"'\x3c737667'"}[engine.dialect.name]
    change(engine, f"UPDATE logos SET content = {broken} WHERE account_id = 2")
    (told,) = upgraded(engine)
    assert told.startswith("The logo of account 2 cannot be drawn (")
    assert told.endswith("). Upload it again as a PNG.")
    found = rows(engine, "SELECT account_id, content FROM logos")
    assert [account_id for account_id, _ in found] == [1]
    assert bytes(found[0][1]).startswith(b"\x89PNG\r\n")
    assert rows(engine, "SELECT id FROM accounts WHERE logo_id IS NULL") == [(2,)]


@of_former
@each_engine
def test_the_footer_of_documents_is_that_of_each_language(engine: Engine):
    before = rows(engine, "SELECT id, document_footer, document_footer FROM accounts ORDER BY id")
    assert upgraded(engine) == []
    assert rows(engine, "SELECT id, document_footer_en, document_footer_de FROM accounts ORDER BY id") == before


@of_former
@each_engine
def test_searches_find_accents_and_each_email_of_a_client(engine: Engine):
    change(
        engine,
        "UPDATE clients SET name = 'Ærø Café', invoice_email = 'Bills@Aero.example' WHERE account_id = 1 AND id = 1",
    )
    assert upgraded(engine) == []
    found = rows(engine, "SELECT search, invoice_email_folded FROM clients WHERE account_id = 1 AND id = 1")
    ((search, email),) = found
    assert search.startswith("aero cafe")
    assert email == "bills@aero.example"


@of_former
@pytest.mark.parametrize("kind", ["postgresql"])
def test_the_upgrade_declares_what_it_locks(engine: Engine):
    with engine.schema_change() as connection:
        before = set(connection.execute(text(TABLES)).scalars())
        upgrade_of_former.upgrade(connection, lambda _: None)
        after = set(connection.execute(text(TABLES)).scalars())
        locked = before & set(connection.execute(text(LOCKED)).scalars())
    assert (before - after) | locked <= set(upgrade_of_former.LOCKS) <= before, "it writes only rows that differ"
