"""Copies of an installation into a database of either kind, complete or not at all."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
import pytest
import time_machine
from sqlalchemy import Date, Integer, make_url, select, update
from sqlalchemy.dialects import postgresql
from testing.agencies import open_app

from retainer.jobs.jobs import start, store_input
from retainer.rollups import doctor
from retainer.schema import metadata, migrations
from retainer.store.engines import Sqlite, connect
from retainer.store.engines.base import Unavailable
from retainer.transfer import copying
from retainer.transfer.copying import TABLES, Summary, copy, summarize
from retainer.values.kinds import MAX_INTEGER
from tests.contract.filler import NOW, Filler
from tests.contract_checker import NoChecks
from tests.databases import PostgresqlDatabases, SqliteDatabases, path_of
from tests.factories import ApiClient
from tests.length import IS_FULL, first, only_full, sampled
from tests.traffic import common as traffic

KINDS = ("sqlite", "postgresql")
MOMENT = "2026-01-01T00:00:00.100000Z"
ODD = "\\N\t\\.\r\n\x01\"',|{}- äöü \U0001f642 \u2028"
"""Special characters of COPY, CSV and similar formats."""
PLACED: list[tuple[str, dict[str, Any]]] = [
    ("site_checks", {"checked_at": "2026-03-01T00:00:00.000001Z", "is_up": 1}),
    ("site_checks", {"checked_at": "0001-01-01T00:00:00.120000Z", "is_up": 0}),
    ("site_checks", {"checked_at": "9999-12-31T23:59:59.999999Z", "is_up": 0}),
    ("site_hours", {"hour": "2026-03-01T00", "up": MAX_INTEGER, "down": 0}),
    ("site_hours", {"hour": "2026-03-01T01", "up": MAX_INTEGER, "down": -MAX_INTEGER}),
    ("site_incidents", {"started_at": "2026-03-01T00:00:00.000001Z", "ended_at": MOMENT, "cause": ODD}),
    ("cost_rates", {"from_date": "0001-01-01", "amount": 1}),
    ("cost_rates", {"from_date": "9999-12-31", "amount": 2}),
    ("audit_entries", {"action": "test", "target": "key", "target_id": 1, "target_name": "", "before": ODD}),
    ("sessions", {"hash": "a", "last_used_at": MOMENT}),
    ("timers", {"work": "project_id-1", "description": "Begun", "started_at": MOMENT}),
    ("password_links", {"hash": "b", "expires_at": MOMENT}),
    ("pending_sign_ins", {"hash": "c", "expires_at": MOMENT}),
    ("second_factors", {"secret": "BASE32", "last_step": 1}),
    ("recovery_codes", {"hash": "d"}),
    ("logos", {"content": bytes(range(256)), "sha256": "e"}),
    ("refusals", {"answered_at": MOMENT, "number": 1, "code": "missing_scope", "names": '["clients:read"]'}),
    ("issued_documents", {"pdf": b"%PDF-1.7\0", "xml": b"<xml/>"}),
    (
        "webhook_deliveries",
        {"type": "client.created", "record_id": 1, "status": "pending", "attempts": 3, "error": ODD},
    ),
    (
        "jobs",
        {"kind": "tagging", "title": "Make tags", "status": "done", "options": "{}", "is_dry_run": 1, "counts": "{}"},
    ),
    ("job_refusals", {"job_id": 1, "number": 1, "position": 7, "name": ODD, "message": ODD}),
    ("job_pieces", {"job_id": 1, "number": 0, "content": bytes(range(256))}),
    ("job_records", {"job_id": 1, "record": "clients", "record_id": 1}),
    ("pauses", {"name": "monitor", "since": MOMENT, "reason": "A rehearsal"}),
]
"""Rows that no request creates, for the first site, user and account."""


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


def pay_early(api: ApiClient) -> None:
    """Record a payment with an early-payment discount."""
    terms = {"early_payment_discount_percent": "2", "early_payment_discount_days": 14}
    client = api.make("/clients", name="Early", **terms)["id"]
    line = {"description": "Design", "unit_price": "100", "tax_rate": "0"}
    invoice = api.make("/invoices", client_id=client, lines=[line], status="sent")["id"]
    payment = {"amount": "98", "early_payment_discount": True}
    assert api.patch(f"/invoices/{invoice}", {"record_payment": payment}).status == 200


def send_words(api: ApiClient) -> None:
    """Let an account have files, messages, client links and jobs with words of its own."""
    quote = api.make("/quotes", status="sent", lines=[{"description": "A secret of the other", "unit_price": "5"}])[
        "id"
    ]
    content = base64.b64encode(b"%PDF-1.7 a secret file of the other account").decode()
    file = {"record": "quote", "record_id": quote, "name": "secret of the other.pdf", "content": content}
    assert api.post("/files", file).status == 201
    secret = {"to": ["secret@other.example"], "subject": "A secret subject", "message": "A secret message of the other"}
    assert api.post(f"/quotes/{quote}/send", secret).status == 201
    assert api.post(f"/quotes/{quote}/links", {}).status == 201
    with api.operating() as tx:
        job = start(tx, "tagging", "A secret job of the other", {"name": "a secret option of the other"})
        store_input(tx, job, [b"a secret input of the other"])


class Place:
    """A database that tests read and write directly."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Yield a connection that does not check references."""
        if self.is_sqlite:
            with closing(Sqlite.driver.connect(str(path_of(self.url)), isolation_level=None)) as connection:
                yield connection
        else:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("SET session_replication_role = replica")
                connection.execute("SET TimeZone = 'UTC'")
                yield connection

    def run(self, statement: str) -> list[Any]:
        with self.connected() as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        master = "SELECT name FROM sqlite_master WHERE type = 'table'"
        catalogue = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        names = {name for (name,) in self.run(master if self.is_sqlite else catalogue)}
        return {name for name in names if not name.startswith("sqlite_")}

    def rows(self, account_id: int | None = None) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table, or those of an account, in any order."""
        found = {}
        for table in TABLES:
            names = ", ".join(f'"{column.name}"' for column in table.c)
            owner = "account_id" if "account_id" in table.c else "id" if table.name == "accounts" else "NULL"
            where = "" if account_id is None else f" WHERE {owner} = {account_id}"
            rows = self.run(f"SELECT {names} FROM {table.name}{where}")
            found[table.name] = sorted((tuple(map(plain, row)) for row in rows), key=repr)
        return found

    def last_ids(self) -> dict[str, int]:
        """Return the last id that each table has assigned, if any."""
        if self.is_sqlite:
            return {name: last for name, last in self.run("SELECT name, seq FROM sqlite_sequence") if last}
        sequences = self.run("SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'")
        return {name.removesuffix("_id_seq"): last for name, last in sequences if last}

    def schema(self) -> list[Any]:
        """Return the definitions of tables, indexes and constraints."""
        if self.is_sqlite:
            return sorted(self.run("SELECT name, sql FROM sqlite_master WHERE name <> 'sqlite_sequence'"), key=repr)
        return sorted(
            self.run(
                "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL "
                "SELECT 'constraint', conrelid::regclass || conname, pg_get_constraintdef(oid) FROM pg_constraint "
                "WHERE connamespace = 'public'::regnamespace UNION ALL "
                "SELECT 'column', table_name || column_name, concat_ws(' ', ordinal_position, data_type, "
                "is_nullable, column_default, collation_name) "
                "FROM information_schema.columns WHERE table_schema = 'public'"
            )
        )


def plain(value: Any) -> Any:
    """Return a value as SQLite stores it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return str(value) if isinstance(value, date) else int(value) if isinstance(value, bool) else value


class Places:
    """Creates databases of both kinds, and copies them."""

    def __init__(self, sqlite: SqliteDatabases, postgresql: PostgresqlDatabases) -> None:
        self.databases = {"sqlite": sqlite, "postgresql": postgresql}
        self.made: list[tuple[str, str]] = []

    def new(self, kind: str) -> Place:
        """Return an empty database; for SQLite, a missing file."""
        self.made.append((kind, self.databases[kind].create()))
        return Place(self.made[-1][1])

    def copy(self, source: Place, kind: str) -> Place:
        """Return a copy in a database of a kind."""
        target = self.new(kind)
        duplicate(source, target)
        return target

    def discard(self, first: int = 0) -> None:
        for kind, url in self.made[first:]:
            self.databases[kind].discard(url)
        del self.made[first:]


def duplicate(source: Place, target: Place, show: Any = silent) -> Any:
    """Copy like the command."""
    engines = connect(source.url), connect(target.url)
    try:
        return copy(*engines, show)
    finally:
        for engine in engines:
            engine.close()


@pytest.fixture(scope="module")
def all_places(sqlite_databases, postgresql_databases) -> Iterator[Places]:
    places = Places(sqlite_databases, postgresql_databases)
    yield places
    places.discard()


@pytest.fixture
def places(all_places) -> Iterator[Places]:
    """Creates databases that are deleted after the test."""
    first = len(all_places.made)
    yield all_places
    all_places.discard(first)


@pytest.fixture(scope="module")
def filled(all_places, sqlite_databases) -> dict[str, Place]:
    """An installation with rows in every table, and its copy in the other kind of database."""
    url = sqlite_databases.fresh()
    all_places.made.append(("sqlite", url))
    app = sqlite_databases.open(url)
    north, south = (ApiClient(app, NoChecks(), sqlite_databases.agencies[name]) for name in ("north", "south"))
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        Filler(south, clock).fill(2, "copied")
        filler = Filler(north, clock)
        filler.fill(6, "copied")
        filler.add_edges()
        north.post("/clients", {"name": "Twice", "notes": ODD.replace("\x01", "")}, headers={"Idempotency-Key": "a"})
        gone = north.make("/time-entries")["id"]
        assert north.delete(f"/time-entries/{gone}").status == 204
        pay_early(north)
        north.make("/invoices/{invoice_id}/send")
        webhook = north.make("/webhooks")["id"]
        traffic.write(north, traffic.answered(north, status=422, record="/clients/1"))
    place = Place(url)
    account, site = place.run("SELECT account_id, id FROM sites")[0]
    (user,) = place.run(f"SELECT id FROM users WHERE account_id = {account}")[0]
    common = {"account_id": account, "site_id": site, "user_id": user, "webhook_id": webhook}
    common |= {"created_at": MOMENT, "updated_at": MOMENT}
    for table, values in PLACED:
        row = {name: value for name, value in common.items() if name in metadata.tables[table].c} | values
        with place.connected() as connection:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    with time_machine.travel(NOW, tick=False):
        send_words(south)
    fill_columns(place)
    assert doctor.inspect(app.store, repair=True), "rows were written without the API"
    app.store.engine.close()
    return {"sqlite": place, "postgresql": all_places.copy(place, "postgresql")}


def fill_columns(place: Place) -> None:
    """Write a value into each column that is null in every row."""
    for table in TABLES:
        row = f"WHERE id = (SELECT max(id) FROM {table.name})" if "id" in table.c else ""
        for column in table.c:
            if place.run(f'SELECT count("{column.name}") FROM {table.name}') == [(0,)]:
                target = column.info.get("target")
                same = f"(SELECT min(id) FROM {target} AS other WHERE other.account_id = {table.name}.account_id)"
                is_day = isinstance(column.type.dialect_impl(postgresql.dialect()), Date)
                text = MOMENT[:10] if is_day else MOMENT
                value = same if target else "7" if isinstance(column.type, Integer) else f"'{text}'"
                place.run(f'UPDATE {table.name} SET "{column.name}" = {value} {row}')


each_kind = pytest.mark.parametrize("kind", KINDS)
once_on_sqlite = pytest.mark.parametrize("kind", first(KINDS))
once_on_postgresql = pytest.mark.parametrize("kind", first(reversed(KINDS)))
"""Both kinds at full length. Otherwise the one whose copy says more, or costs less if both say the same."""
WAYS = [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "sqlite"), ("postgresql", "postgresql")]
each_way = pytest.mark.parametrize(("source", "target"), first(WAYS))


def test_every_table_of_the_source_has_rows(filled):
    assert [name for name, rows in filled["sqlite"].rows().items() if not rows] == []


@each_way
def test_every_row_is_copied_unchanged_and_ids_continue_after_the_last(filled, places, source, target):
    copied = places.copy(filled[source], target)
    expected, found = filled["sqlite"].rows(), copied.rows()
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert copied.last_ids() == filled["sqlite"].last_ids()
    ids = [max_id for (max_id,) in copied.run("SELECT max(id) FROM time_entries")]
    assert copied.last_ids()["time_entries"] > ids[0], "the newest was deleted"


@pytest.mark.parametrize(("source", "target"), WAYS[:2] if IS_FULL else WAYS[1:2])
def test_every_row_of_every_batch_is_copied(filled, places, source, target, monkeypatch):
    monkeypatch.setattr(copying, "BATCH_SIZE", 3)
    copied, told = places.new(target), []
    assert duplicate(filled[source], copied, lambda what, done, _: what == "Rows" and told.append(done)) == told[-1]
    assert len(told) > 2 * len(TABLES), "many have several batches"
    assert copied.rows() == filled["sqlite"].rows()
    assert sorted(told) == told


def test_pieces_of_files_are_read_a_few_at_once(sqlite_databases):
    place = Place(sqlite_databases.fresh())
    place.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120) "
        "INSERT INTO file_pieces (account_id, file_id, position, content) SELECT 1, 1, i, x'00' FROM n"
    )
    with closing(connect(place.url)) as engine, engine.read_snapshot() as connection:
        batches = [len(rows) for rows in copying.stream(connection, metadata.tables["file_pieces"], Summary())]
    assert (sum(batches), max(batches)) == (120, copying.LARGE_ROWS), "each piece has 64 KiB"


def texts_of(rows: list[tuple[Any, ...]]) -> set[bytes]:
    """Return the texts and the bytes of rows."""
    cells = (cell for row in rows for cell in row if isinstance(cell, (str, bytes)))
    return {cell if isinstance(cell, bytes) else cell.encode() for cell in cells}


def is_telling(text: bytes) -> bool:
    """Whether a text is long enough to tell whose it is."""
    return len(text) > 9 and re.search(rb"[A-Za-z]{3}|%PDF", text) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_one_account_is_copied_with_all_of_its_rows_and_no_byte_of_another(filled, places, kind):
    place, target = filled[kind], places.new("sqlite")
    mine, other = (account for (account,) in place.run("SELECT id FROM accounts ORDER BY id"))
    copy_account(place, target, mine)
    rows, found = {account: place.rows(account) for account in (mine, other)}, target.rows()
    left_out = {table.name for table in copying.NOT_OF_ACCOUNT} | {"pauses"}
    for name in rows[mine].keys() - left_out - {"messages"}:
        assert found[name] == rows[mine][name], name
    assert [name for name in left_out - {"pauses"} if found[name]] == []
    own, texts = (texts_of([row for each in rows[account].values() for row in each]) for account in (mine, other))
    content, said = path_of(target.url).read_bytes(), b"\n".join(own)
    foreign = {text[:200] for text in texts if is_telling(text) and text[:200] not in said}
    assert sum(b"secret" in word for word in foreign) > 7
    assert [word for word in foreign if word in content] == []
    assert {"files", "file_pieces", "messages", "client_links", "jobs"} <= {
        name for name, each in rows[other].items() if each
    }


@once_on_sqlite
def test_the_copy_of_an_account_sends_no_message_that_its_source_sends(filled, places, kind):
    source = places.copy(filled[kind], kind)
    (account,) = source.run("SELECT account_id FROM messages WHERE status = 'queued' LIMIT 1")[0]
    queued = source.run(f"SELECT * FROM messages WHERE account_id = {account} AND status = 'queued'")
    assert queued
    job = f"SELECT max(id) FROM jobs WHERE account_id = {account}"
    source.run(f"UPDATE jobs SET kind = 'bulk', status = 'running', next_step_at = '{MOMENT}' WHERE id = ({job})")
    live, suspended = places.new("sqlite"), places.new("sqlite")
    copy_account(source, live, account)
    assert [each for each, *_ in live.run("SELECT status, error FROM messages ORDER BY id")].count("queued") == 0
    errors = live.run("SELECT count(*) FROM messages WHERE status = 'cancelled' AND error LIKE '%copied%'")
    assert errors == [(len(queued),)]
    assert source.run(f"SELECT * FROM messages WHERE account_id = {account} AND status = 'queued'") == queued
    stopped = live.run("SELECT status, next_step_at IS NULL, message LIKE '%copied%' FROM jobs WHERE kind = 'bulk'")
    assert stopped == [("stopped", 1, 1)], "nor does it go on with a job"
    source.run(f"UPDATE accounts SET suspended_at = '{MOMENT}' WHERE id = {account}")
    copy_account(source, suspended, account)
    assert suspended.rows()["messages"] == source.rows(account)["messages"], "the source sends none any more"


@once_on_sqlite
def test_one_account_is_copied_into_a_new_database_alone(filled, places, kind):
    used = places.new(kind)
    with opened(used) as engine:
        migrations.migrate(engine)
    with pytest.raises(Unavailable, match=r"exists already.*free pages"):
        copy_account(filled["sqlite"], used, 1)


def copy_account(source: Place, target: Place, account: int) -> None:
    engines = connect(source.url), connect(target.url)
    try:
        copy(*engines, silent, account)
    finally:
        for engine in engines:
            engine.close()


@each_way
def test_an_id_is_not_assigned_again_even_when_its_table_is_empty(places, source, target):
    first = places.new(source)
    with opened(first) as engine:
        migrations.migrate(engine)
    for statement in ("INSERT INTO accounts", "INSERT INTO accounts"):
        first.run(f"{statement} {ACCOUNT[first.is_sqlite]}")
    first.run("DELETE FROM accounts")
    second = places.copy(first, target)
    second.run(f"INSERT INTO accounts {ACCOUNT[second.is_sqlite]}")
    assert second.run("SELECT id FROM accounts") == [(3,)]


ACCOUNT = {
    is_sqlite: "(created_at, updated_at, name, plan, api_enabled, currency, timezone, tax_rate, payment_terms_days, "
    f"client_number_pattern, working_weekdays) VALUES ('{MOMENT}', '{MOMENT}', 'N', 'agency', {yes}, 'EUR', 'UTC', "
    "'0', 30, 'C-{0000}', '[]')"
    for is_sqlite, yes in ((True, 1), (False, "true"))
}


@contextmanager
def opened(place: Place) -> Iterator[Any]:
    engine = connect(place.url)
    yield engine
    engine.close()


@each_kind
def test_the_tables_are_those_that_a_new_database_has(filled, places, kind):
    new = places.new(kind)
    with opened(new) as engine:
        if kind == "postgresql":
            migrations.migrate(engine)
        else:  # whose migrations order columns differently
            path_of(new.url).touch()
            with engine.schema_change() as connection:
                metadata.create_all(connection)
                migrations.stamp(connection, migrations.head())
    assert places.copy(filled["sqlite"], kind).schema() == new.schema()


def test_reports_find_a_copy_on_postgresql_in_their_indexes(filled, places):
    copied = places.new("postgresql")
    name = make_url(copied.url).database  # VACUUM marks what is on the disk, and other tests do not wait for that
    copied.run(f"ALTER DATABASE {name} SET synchronous_commit = on")
    duplicate(filled["sqlite"], copied)
    for table in ("invoices", "payments", "time_entries"):
        pages = f"SELECT relpages > 0 AND relallvisible = relpages FROM pg_class WHERE relname = '{table}'"
        assert copied.run(pages) == [(True,)], table


@once_on_sqlite
def test_a_database_that_was_only_migrated_is_filled(filled, places, kind):
    copied = places.new(kind)
    with opened(copied) as engine:
        migrations.migrate(engine)
    duplicate(filled["sqlite"], copied)
    assert copied.rows() == filled["sqlite"].rows()
    assert copied.last_ids() == filled["sqlite"].last_ids()


@once_on_postgresql
def test_the_doctor_and_the_api_find_the_copy_in_order(filled, places, kind, sqlite_databases):
    first = places.copy(filled["sqlite"], "sqlite")
    second, agency = places.copy(first, kind), sqlite_databases.agencies["north"]
    apis = [ApiClient(open_app(place.url), NoChecks(), agency) for place in (first, second)]
    assert doctor.inspect(apis[1].store, repair=False) == []
    with time_machine.travel(NOW, tick=False):
        for path in ("/clients", "/time-entries", "/reports/overview", "/reports/project-profitability"):
            answers = [api.get(path).body for api in apis]
            assert answers[0] == answers[1], path
        for path in ("/clients", "/time-entries", "/quotes"):
            assert apis[0].make(path)["id"] == apis[1].make(path)["id"]
    for api in apis:
        api.store.engine.close()


@only_full
@once_on_postgresql
def test_writes_during_a_copy_are_not_in_it(filled, places, kind):
    source, target = places.copy(filled[kind], kind), places.new("postgresql")
    before, seen = source.rows(), set()

    def write_once(what: str, done: int, total: int) -> None:
        if what not in seen:  # after the accounts, before the clients; and before both are compared
            source.run("UPDATE clients SET name = name || '!'")
            source.run("DELETE FROM time_entries WHERE id = (SELECT max(id) FROM time_entries)")
            seen.add(what)

    duplicate(source, target, write_once)
    assert seen == {"Rows", "Indexes", "Comparing"}
    assert source.rows() != before
    assert target.rows() == before


# Refusals and failures


@once_on_sqlite
def test_a_target_with_one_row_in_any_table_is_refused(filled, places, kind):
    place = places.new(kind)
    with opened(place) as engine:
        migrations.migrate(engine)
    place.run(f"INSERT INTO pauses (name, since, reason) VALUES ('monitor', '{MOMENT}', 'A rehearsal')")
    with pytest.raises(Unavailable, match=r"is not empty, it has pauses\. Name a new one, or one that is empty\."):
        duplicate(filled["sqlite"], place)
    assert len(place.run("SELECT name FROM pauses")) == 1


@each_kind
def test_the_tables_of_another_program_are_left_alone(filled, places, kind):
    other = places.new(kind)
    if kind == "sqlite":
        path_of(other.url).touch()
    other.run("CREATE TABLE users (name TEXT)")
    with pytest.raises(
        Unavailable, match=r"tables of another program: users\. Name a database of Retainer, or a new one"
    ):
        duplicate(filled["sqlite"], other)
    assert other.tables() == {"users"}


@once_on_sqlite
def test_a_target_of_another_schema_is_refused(filled, places, kind):
    other = places.new(kind)
    with opened(other) as engine:
        migrations.migrate(engine)
    other.run("DROP TABLE timers")
    with pytest.raises(Unavailable, match=r"table timers is missing\. Nothing was changed"):
        duplicate(filled["sqlite"], other)
    assert other.tables() == {"alembic_version", *metadata.tables} - {"timers"}


@once_on_sqlite
def test_a_database_of_another_version_is_not_copied(filled, places, kind):
    source, target = places.copy(filled["sqlite"], kind), places.new("sqlite")
    for revision, advice in (("0001", "from before the first release"), ("9999", "run the newer version")):
        source.run(f"UPDATE alembic_version SET version_num = '{revision}'")
        with pytest.raises(Unavailable, match=f"has revision {revision}.*{advice}"):
            duplicate(source, target)
    assert not path_of(target.url).exists()


@each_kind
def test_a_source_without_our_tables_is_refused(places, kind):
    with pytest.raises(Unavailable, match="is not a database of Retainer: there is nothing to copy"):
        duplicate(places.new(kind), places.new("sqlite"))


@once_on_postgresql
def test_a_broken_reference_fails_the_whole_copy(filled, places, kind):
    broken, copied = places.copy(filled["sqlite"], "sqlite"), places.new(kind)
    broken.run("UPDATE payments SET invoice_id = 987654")
    with pytest.raises(Unavailable, match=r"987654|broken references") as refusal:
        duplicate(broken, copied)
    assert "\n  File" not in str(refusal.value)
    assert copied.tables() == set()


def test_a_text_that_the_other_database_cannot_hold_is_named_with_its_table(filled, places):
    source, target = places.copy(filled["sqlite"], "sqlite"), places.new("postgresql")
    source.run("UPDATE tickets SET subject = 'a' || char(0) || 'b'")
    with pytest.raises(Unavailable, match=r"tickets.*NUL"):
        duplicate(source, target)
    assert target.tables() == set()


FAULTS = [
    ("clients", "NEW.name := NEW.name || ' '", "clients has other values"),
    ("clients", "NEW.payment_terms_days := 1", "clients has other values"),
    ("clients", "NEW.created_at := NEW.created_at + interval '1 microsecond'", "clients has other values"),
    (
        "audit_entries",
        "IF NEW.before LIKE '%|%' THEN RETURN NULL; END IF",
        r"audit_entries has \d+ rows in the source and",
    ),
    ("clients", "RAISE EXCEPTION 'No room'", "No room"),
]


@pytest.mark.parametrize(("table", "fault", "message"), sampled(FAULTS, 3))
def test_a_target_that_changes_rows_is_detected(filled, places, table, fault, message):
    target = places.new("postgresql")
    target.run(
        f"CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {fault}; RETURN NEW; END $$;"
        "CREATE FUNCTION plant() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF to_regclass('{table}') IS NOT NULL AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'fault') THEN "
        f"CREATE TRIGGER fault BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION fault(); END IF; END $$;"
        "CREATE EVENT TRIGGER plant ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION plant()"
    )
    target.run("ALTER EVENT TRIGGER plant ENABLE ALWAYS")
    with pytest.raises(Unavailable, match=message):
        duplicate(filled["sqlite"], target)
    assert target.tables() == set()


@only_full
@each_kind
def test_a_killed_copy_leaves_nothing_and_can_be_repeated(filled, places, kind):
    copied, source = places.new(kind), filled["sqlite"]
    program = (
        "import os, sys; from retainer.transfer.copying import copy; from retainer.store.engines import connect\n"
        "copy(*map(connect, sys.argv[1:]), lambda what, done, total: what == 'Indexes' and os.kill(os.getpid(), 9))"
    )
    killed = subprocess.run([sys.executable, "-c", program, source.url, copied.url], check=False, timeout=120)
    assert killed.returncode == -9
    assert copied.tables() == set()
    duplicate(source, copied)
    assert copied.rows() == source.rows()


# Comparison


def summaries(place: Place) -> dict[str, Summary]:
    with opened(place) as engine, engine.read_snapshot() as connection:
        return {table.name: summarize(connection, table) for table in TABLES}


def test_summaries_are_the_same_in_both_kinds_of_database(filled):
    found = summaries(filled["sqlite"])
    assert found == summaries(filled["postgresql"])
    assert filled["sqlite"].run("SELECT count(*) FROM site_hours") == [(found["site_hours"].rows,)]


class Undone(Exception):
    """Rolls a transaction back."""


@once_on_sqlite
def test_a_change_of_any_value_changes_the_summary(filled, places, kind):
    with opened(places.copy(filled["sqlite"], kind)) as engine, suppress(Undone), engine.schema_change() as connection:
        if kind == "postgresql":
            connection.exec_driver_sql("SET session_replication_role = replica")
        for table in sampled(TABLES, 3):
            before = summarize(connection, table)
            for column in table.c:
                row = connection.execute(select(table).where(column.is_not(None))).mappings().first()
                key = [each == row[each.name] for each in table.primary_key]
                for value in [changed(row[column.name]), *([None] if column.nullable else [])]:
                    change = connection.begin_nested()
                    connection.execute(update(table).where(*key).values({column.name: value}))
                    after = summarize(connection, table)
                    assert after.rows == before.rows
                    assert after.digest != before.digest, f"{table.name}.{column.name}: {row[column.name]} -> {value}"
                    change.rollback()
            assert summarize(connection, table) == before
        raise Undone


def changed(value: Any) -> Any:
    """Return a similar but different value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 1 - value if value in {0, 1} else value + 10**6
    if isinstance(value, bytes):
        return value + b"x"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return "2001-02-03"
    if re.fullmatch(r"\d{4}-.*T.*Z", value):
        return f"{value[:-2]}{(int(value[-2]) + 1) % 10}Z"
    return f"{value} "


def test_values_exchanged_between_two_rows_are_detected(filled, places):
    for kind in first(KINDS):
        place = places.copy(filled["sqlite"], kind)
        before = summaries(place)["clients"]
        (one_id, one), (other_id, other) = place.run("SELECT id, notes FROM clients WHERE notes IS NOT NULL")[:2]
        assert one != other
        place.run(f"UPDATE clients SET notes = '{other}' WHERE id = {one_id}")
        place.run(f"UPDATE clients SET notes = '{one}' WHERE id = {other_id}")
        after = summaries(place)["clients"]
        assert after.rows == before.rows
        assert after.digest != before.digest
