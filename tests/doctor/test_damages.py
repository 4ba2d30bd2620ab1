"""The doctor names each damage of a database, and never calls sound what it could not check."""

import contextlib
import random
from dataclasses import replace

import psycopg
import pytest

from retainer.doctor.examination import examine
from retainer.doctor.findings import overall
from retainer.identity import logos
from retainer.identity.actors import operator_of
from retainer.schema.billing import issued_documents
from retainer.settings import Settings
from retainer.store.engines import Sqlite, connect
from tests.databases import each_database, only_sqlite, path_of
from tests.documents.test_logo_files import png
from tests.length import TIMES, TURN

LINE = {"description": "Design", "unit_price": "100", "tax_rate": "19"}
# Each row: statements, the check that finds it, and words of what it says.
DAMAGES = {
    "the total of an invoice": ("UPDATE invoices SET total = total + 1", "documents", "total is"),
    "the subtotal of an invoice": ("UPDATE invoices SET subtotal = subtotal - 5", "documents", "subtotal is"),
    "the tax of an invoice": ("UPDATE invoices SET tax_total = 0", "documents", "tax_total is"),
    "the tax by rate": ("UPDATE invoices SET tax_breakdown = '[]'", "documents", "tax_breakdown"),
    "the paid amount": ("UPDATE invoices SET amount_paid = 0", "documents", "amount_paid is 0.00"),
    "the credited amount": ("UPDATE invoices SET amount_credited = 0", "documents", "amount_credited is 0.00"),
    "the balance": ("UPDATE invoices SET balance_due = 0", "documents", "balance_due is 0.00"),
    "the status of an invoice": ("UPDATE invoices SET status = 'paid'", "documents", "status is paid"),
    "an issued invoice made void": ("UPDATE invoices SET status = 'void'", "documents", "void"),
    "a status that no event tells of": ("UPDATE tickets SET status = 'closed'", "events", "newest event says pending"),
    "a line of an invoice": ("UPDATE invoice_lines SET amount = amount + 100", "documents", "its amount is"),
    "a deleted line": ("DELETE FROM invoice_lines WHERE kind = 'item'", "documents", "by its lines"),
    "a line of a quote": ("UPDATE quote_lines SET quantity = '2'", "documents", "its amount is"),
    "the total of a quote": ("UPDATE quotes SET total = 1", "documents", "quote"),
    "a credit note": ("UPDATE credit_notes SET total = total + 1", "documents", "credit note"),
    "the tax of a credit note": (
        "UPDATE credit_notes SET tax_total = 1, total = subtotal + 1",
        "documents",
        "credit note",
    ),
    "the part of a credit note": ("UPDATE credit_notes SET applied_amount = 0", "documents", "applied_amount is 0.00"),
    "the shares of a credit note": ("UPDATE credit_note_shares SET amount = 1", "documents", "shares by project"),
    "a deleted payment": ("DELETE FROM payments", "documents", "amount_paid is 10.00"),
    "a changed payment": ("UPDATE payments SET amount = amount + 1", "documents", "amount_paid is 10.00"),
    "the net of a discount": (
        "UPDATE payments SET net_amount = 1 WHERE amount > 0",
        "documents",
        "Its net, or its shares",
    ),
    "the shares of a discount": ("UPDATE discount_shares SET amount = 1", "documents", "its shares by project"),
    "the tax of a discount": ("UPDATE payments SET tax_breakdown = '[]'", "documents", "does not add up to its amount"),
    "the day of a discount": (
        "UPDATE payments SET paid_date = '2026-01-01' WHERE payment_id IS NULL",
        "documents",
        "It belongs to no payment",
    ),
    "a deleted discount": ("DELETE FROM payments WHERE payment_id IS NOT NULL", "documents", "amount_credited is"),
    "a deleted credit note": (
        "DELETE FROM credit_note_shares; DELETE FROM credit_notes",
        "documents",
        "amount_credited is",
    ),
    "a deleted client": ("DELETE FROM clients WHERE name = 'Busy'", "references", "there is no such client"),
    "a deleted user": ("DELETE FROM users WHERE role = 'admin'", "references", "there is no such user"),
    "a deleted account": ("DELETE FROM accounts WHERE name = 'South'", "references", "which does not exist"),
    "a record of another account": (
        "UPDATE projects SET client_id = 999999 WHERE name = 'Busy'",
        "references",
        "client_id is 999999",
    ),
    "the series of invoices at 1": ("UPDATE series SET last = 1 WHERE name LIKE 'invoices%'", "series", "is at 1"),
    "the series of tickets": ("UPDATE series SET last = 1001 WHERE name = 'tickets'", "series", "ticket number 1002"),
    "a deleted series": ("DELETE FROM series WHERE name LIKE 'credit_notes%'", "series", "is at 0"),
    "a deleted invoice": (
        "DELETE FROM invoice_lines WHERE invoice_id = 1; DELETE FROM invoices WHERE id = 1",
        "series",
        "lacks 1: 1 invoices are missing",
    ),
    "events 10 to 12 deleted": ("DELETE FROM events WHERE id BETWEEN 10 AND 12", "events", "Events 10 to 12"),
    "the first events deleted": ("DELETE FROM events WHERE id < 5", "events", "Events 1 to 4 are missing"),
    "the last events deleted": ("DELETE FROM events WHERE id > 12", "events", "created without an event"),
    "all events deleted": ("DELETE FROM events", "events", "created without an event"),
    "a deleted task": ("DELETE FROM tasks", "events", "do not say that it was deleted"),
    "a logo's bytes": ("UPDATE logos SET content = sha256_of_nothing", "files", "the digest differs"),
    "a deleted logo": ("DELETE FROM logos", "files", "which does not exist"),
    "a file's bytes": ("UPDATE file_pieces SET content = sha256_of_nothing", "files", "Its bytes are not those"),
    "a file's size": ("UPDATE files SET size = size + 1", "files", "Its size is"),
    "a file's type": ("UPDATE files SET media_type = 'text/html'", "files", "Its type is text/html"),
    "a file of nothing": ("UPDATE files SET client_id = NULL", "files", "It belongs to no record"),
    "a lost piece": ("DELETE FROM file_pieces", "files", "Piece 0 of file 1 is missing"),
    "a damaged PDF": ("UPDATE issued_documents SET pdf = sha256_of_nothing", "files", "PDF is damaged"),
    "what an invoice says": ("UPDATE document_versions SET facts = '{}'", "files", "What it says cannot be read"),
    "the first versions deleted": (
        "DELETE FROM document_versions WHERE version = 1",
        "files",
        "An earlier version of it is missing",
    ),
    "a total on paper": (
        'UPDATE document_versions SET facts = replace(facts, \'"total":"119.00"\', \'"total":"120.00"\')',
        "files",
        "another number or total",
    ),
    "issued documents deleted": ("DELETE FROM issued_documents", "sums", "count of issued_documents"),
    "search texts emptied": ("UPDATE clients SET search = ''", "texts", "search"),
    "a sort key": ("UPDATE clients SET name_sort = 'zzz'", "texts", "name_sort"),
    "a stored total": ("UPDATE projects SET tracked_minutes = 1", "sums", "totals of projects"),
    "a count": ("UPDATE totals SET count = count + 1 WHERE name = 'clients'", "sums", "count of clients"),
    "a missing counter": ("DELETE FROM totals WHERE name = 'projects'", "sums", "count of projects"),
    "deleted time": ("DELETE FROM time_entries WHERE invoice_id IS NULL", "sums", "project_sums"),
    "a column renamed": ("ALTER TABLE tags RENAME COLUMN color TO colour", "schema", "color"),
    "an index dropped": ("DROP INDEX projects_by_client", "schema", "projects_by_client"),
    "a table dropped": ("DROP TABLE timers", "schema", "timers"),
    "alembic_version emptied": ("DELETE FROM alembic_version", "schema", "alembic_version"),
    "alembic_version dropped": ("DROP TABLE alembic_version", "schema", "alembic_version"),
    "an older revision": ("UPDATE alembic_version SET version_num = '0010'", "schema", "0010"),
    "a newer revision": ("UPDATE alembic_version SET version_num = '9999'", "schema", "9999"),
    "the clock set back": (
        "UPDATE events SET at = '2999-01-01T00:00:00.000000Z' WHERE id = (SELECT max(id) FROM events)",
        "clock",
        "Set the clock",
    ),
    "a text that is no amount": (
        "UPDATE invoice_lines SET quantity = 'many'",
        "documents",
        "invoices after 0 cannot be read",
    ),
}
BYTES = {"sqlite": "x'00'", "postgresql": "'\\x00'::bytea"}


@pytest.fixture
def busy(api):
    """An agency with something of each kind that can be damaged."""
    terms = {"early_payment_discount_percent": "2", "early_payment_discount_days": 14}
    client = api.make("/clients", name="Busy", hourly_rate="100", tax_rate="19", **terms)["id"]
    project = api.make("/projects", client_id=client, name="Busy")["id"]
    api.make("/tasks", project_id=project)
    api.make("/tickets", client_id=client)
    ticket = api.make("/tickets", client_id=client)["id"]
    api.patch(f"/tickets/{ticket}", {"status": "pending"})
    api.patch(f"/tickets/{ticket - 1}", {"status": "pending"})
    with api.operating() as tx:
        logos.set_logo(tx, png())
    api.make("/files")
    entries = [api.make("/time-entries", project_id=project, client_id=client)["id"] for _ in range(2)]
    lines = [{"time_entry_ids": entries[:1]}, LINE]
    discounted = api.make("/invoices", client_id=client, lines=[LINE], status="sent")["id"]
    api.pay(discounted, early_payment_discount=True)
    invoice = api.make("/invoices", client_id=client, project_id=project, lines=lines, status="sent")["id"]
    api.patch(f"/invoices/{invoice}", {"notes": "Thank you"})
    with api.operating() as tx:  # as versions did that stored no facts
        files = {"invoice_id": invoice, "pdf": b"%PDF-1.7 %%EOF", "xml": b"<?xml version='1.0'?><invoice/>"}
        tx.insert_counted(issued_documents, files)
    api.pay(invoice, amount="10")
    api.make(f"/invoices/{invoice}/credit-notes", amount="20")
    api.make("/quotes", client_id=client, lines=[LINE])
    api.make("/invoices", client_id=client, lines=[LINE])
    api.store.engine.close()
    return api


def statements_on(url, text):
    """Run statements on a database that does not check references meanwhile."""
    kind = "sqlite" if url.startswith("sqlite") else "postgresql"
    statements = text.replace("sha256_of_nothing", BYTES[kind]).split("; ")
    if kind == "sqlite":
        with contextlib.closing(Sqlite.driver.connect(path_of(url), isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys=OFF")
            return sum(max(connection.execute(statement).rowcount, 0) for statement in statements)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        return sum(max(connection.execute(statement).rowcount, 0) for statement in statements)


def examined(url, **options):
    engine = connect(url, is_limited=False)
    try:
        return examine(engine, Settings(database_url=url), lambda *_: None, **options)
    finally:
        engine.close()


def answer(outcomes):
    """The overall result, and all lines of the outcomes."""
    return overall(outcomes), [line for outcome in outcomes for line in outcome.lines()]


@each_database
def test_each_damage_is_named_and_a_sound_database_is_sound(busy):
    """Each damage on one of the databases today, and on the other tomorrow."""
    url, unnamed = busy.app.settings.database, {}
    assert answer(examined(url)) == ("ok", [])
    for place, (damage, (statements, check, words)) in enumerate(DAMAGES.items()):
        if TIMES == 1 and (place + TURN + url.startswith("sqlite")) % 2:
            continue
        copy = busy.databases.copy(url)
        statements_on(copy, statements)
        outcomes = examined(copy)
        result, lines = answer(outcomes)
        if result == "ok" or not any(line.startswith(f"{check}: ") and words in line for line in lines):
            unnamed[damage] = lines
        if check == "schema":
            assert {each.result for each in outcomes if each.check in {"sums", "documents"}} == {"not checked"}
        busy.databases.discard(copy)
    assert unnamed == {}


FILES = {
    "an empty file": (lambda file: file.write_bytes(b""), "not checked", "There is no database at"),
    "no file": (lambda file: file.unlink(), "not checked", "There is no database at"),
    "another file": (lambda file: file.write_bytes(b"This is no database. " * 500), "wrong", "not a database"),
    "a truncated file": (lambda file: file.write_bytes(file.read_bytes()[:200_000]), "wrong", "integrity"),
}


def overwrite(file, name):
    """Put random bytes over the rows in the first page of a table or an index; they are at its end."""
    with contextlib.closing(Sqlite.driver.connect(file)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name]).fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as opened:
        opened.seek(page * 4096 - 600)
        opened.write(random.Random(1).randbytes(600))


@only_sqlite
def test_a_damaged_file_is_named(busy):
    url = busy.app.settings.database
    names = ("clients", "events", "invoices_by_issue_date", "time_entries_by_created_at")
    cases = FILES | {
        f"bytes of {name}": (lambda file, name=name: overwrite(file, name), "wrong", "integrity") for name in names
    }
    for damage, (spoil, expected, words) in cases.items():
        copy = busy.databases.copy(url)
        spoil(path_of(copy))
        result, lines = answer(examined(copy))
        assert result == expected, (damage, lines)
        assert any(words in line for line in lines), (damage, lines)
        busy.databases.discard(copy)


@each_database
def test_texts_and_sums_are_repaired(busy):
    copy = busy.databases.copy(busy.app.settings.database)
    statements_on(copy, "UPDATE clients SET search = '', name_sort = ''; UPDATE projects SET tracked_minutes = 1")
    statements_on(copy, "DELETE FROM totals WHERE name = 'projects'")
    assert overall(examined(copy)) == "wrong"
    repaired = {each.check: each.repaired for each in examined(copy, repair=True)}
    assert f"totals of projects of account {busy.account_id}" in repaired["sums"]
    assert any("search" in line for line in repaired["texts"])
    assert answer(examined(copy)) == ("ok", [])
    busy.databases.discard(copy)


@each_database
@pytest.mark.parametrize(
    "damage", ["a deleted payment", "a deleted client", "issued documents deleted", "a deleted task"]
)
def test_what_is_lost_is_never_made_to_look_right(busy, damage):
    copy = busy.databases.copy(busy.app.settings.database)
    statements_on(copy, DAMAGES[damage][0])
    before = answer(examined(copy))
    result, lines = answer(examined(copy, repair=True))
    assert result == "wrong"
    assert any("was not repaired" in line for line in lines), lines
    assert answer(examined(copy)) == before
    busy.databases.discard(copy)


def test_backups_that_are_late_a_full_disk_and_a_lost_valkey_are_named(api, tmp_path, monkeypatch):
    url = api.app.settings.database
    engine = connect(url, is_limited=False)
    kept = tmp_path / "kept"
    kept.mkdir()
    settings = Settings(database_url=url, backup_dir=kept, valkey_url="valkey://office:s3cret@127.0.0.1:9")

    def lines(check, **changed):
        outcomes = examine(engine, replace(settings, **changed), lambda *_: None)
        return [line for outcome in outcomes for line in outcome.lines() if outcome.check == check]

    if engine.name == "SQLite":
        name = path_of(url).stem
        (kept / f"{name}-20200101T000000Z.db.gz").touch()
        assert "is of 2020-01-01T00:00:00" in lines("backups")[0]
        monkeypatch.setattr("retainer.doctor.surroundings.free_bytes", lambda _: 1000)
        assert "1,000 bytes left" in lines("disk")[0]
    (lost,) = lines("valkey")
    assert "out of reach" in lost
    assert "s3cret" not in lost
    assert lines("valkey", valkey_url="") == []
    (backups,) = (each for each in examine(engine, replace(settings, backup_dir=None), lambda *_: None) if each.note)
    assert (backups.check, backups.result) == ("backups", "ok")
    assert ("RETAINER_BACKUP_DIR is not set" in backups.note) is (engine.name == "SQLite")
    engine.close()


def test_the_doctor_opens_no_event_and_writes_nothing(api):
    before = api.databases.commits(api.app)
    assert overall(examined(api.app.settings.database)) == "ok"
    assert api.databases.commits(api.app) == before
    assert operator_of(api.store, api.account_id).account_id == api.account_id
