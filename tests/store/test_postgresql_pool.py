"""The connection pool for PostgreSQL during outages."""

import contextlib
import gc
import socket
import struct
import threading

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from testing.ports import free_port
from testing.process import until

from retainer.store.engines import connect, postgresql
from retainer.store.engines.base import DeadlineExceeded, DiskFull, Unavailable
from retainer.store.engines.postgresql_writers import MAX_ACCOUNTS, MAX_LOCKS_AWAITED
from tests.length import only_full


def threads():
    return [thread.name for thread in threading.enumerate() if thread.name == "postgresql"]


def test_requests_fail_with_the_reason_while_one_thread_reconnects():
    engine = connect(f"postgresql://127.0.0.1:{free_port()}/agency")
    with pytest.raises(Unavailable, match="refused"):
        engine.connection()
    for _ in range(8):
        with pytest.raises(Unavailable, match=r"PostgreSQL is out of reach: .*refused"):
            engine.connection()
    assert threads() == ["postgresql"]
    engine.close()
    until(lambda: threads() == [], "no thread reconnects")
    with pytest.raises(Unavailable, match="refused"):
        engine.connection()
    engine.close()


@only_full
def test_a_connection_attempt_that_times_out_is_closed(fast_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(fast_path / ".s.PGSQL.5432"))
        silent.listen()
        engine = connect(f"postgresql:///agency?host={fast_path}")
        gc.disable()
        try:
            with pytest.raises(Unavailable, match="timeout"):
                engine.connection()
            engine.close()
            caller, _ = silent.accept()
            caller.settimeout(10)
            with caller:
                while caller.recv(4096):  # until it is closed there
                    pass
        finally:
            gc.enable()


GREETING = b"".join(
    kind + struct.pack("!I", len(content) + 4) + content
    for kind, content in (
        (b"R", struct.pack("!I", 0)),  # authenticated
        (b"S", b"server_version\x0018.0\x00"),
        (b"S", b"server_encoding\x00UTF8\x00"),
        (b"S", b"client_encoding\x00UTF8\x00"),
        (b"Z", b"I"),  # ready for a statement
    )
)
"""The messages of PostgreSQL after a connection has been opened."""


def test_a_connection_that_ends_as_soon_as_it_was_made_is_an_outage(fast_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(fast_path / ".s.PGSQL.5432"))
        server.listen()

        def greet_and_leave():
            caller, _ = server.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(GREETING)
                caller.recv(4096)

        leaving = threading.Thread(target=greet_and_leave)
        leaving.start()
        engine = connect(f"postgresql:///agency?host={fast_path}")
        with pytest.raises(Unavailable, match="closed the connection"):
            engine.connection()
        engine.close()
        leaving.join()


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        ("db1,db2", "db1,db2"),
        ("db1:5432", "db1:5432"),
        ("db1:5432,db2:5433", "db1:5432,db2:5433"),
        ("db1,db2:5433", "db1,db2:5433"),
    ],
)
def test_an_address_of_several_servers_is_shown_with_each_and_without_the_password(hosts, shown):
    engine = connect(f"postgresql://ana:secret@{hosts}/agency?target_session_attrs=read-write")
    assert engine.location == f"postgresql://ana@{shown}/agency"


def test_connections_lent_before_a_close_are_closed_when_they_return(postgresql_databases):
    engine = connect(postgresql_databases.prototype)
    lent = [engine.connection() for _ in range(2)]
    engine.give_back(lent[0])
    engine.close()
    assert lent[0].closed
    assert not lent[1].closed
    engine.give_back(lent[1])
    assert lent[1].closed
    again = engine.connection()
    engine.give_back(again)
    assert engine.connection() is again
    engine.give_back(again)
    engine.close()


def test_if_one_connection_is_closed_idle_ones_are_not_reused(postgresql_databases):
    engine = connect(postgresql_databases.prototype)
    lent = [engine.connection() for _ in range(4)]
    processes = [connection.info.backend_pid for connection in lent]
    for connection in lent:
        engine.give_back(connection)
    with postgresql_databases.admin() as admin:
        admin.execute("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s::integer[]) AS pid", [processes])
    assert engine.one("SELECT 1", []) == (1,), "on a new connection"
    assert all(connection.closed for connection in lent)
    engine.close()


def test_a_transaction_that_fails_in_the_middle_keeps_its_connection(postgresql_databases):
    engine = connect(postgresql_databases.prototype)
    idle = engine.connection()
    connection = engine.begin_write(None)
    engine.give_back(idle)
    for statement in ("SELECT 1/0", *["SELECT 1"] * 50):
        with contextlib.suppress(psycopg.Error):
            connection.run(statement, [])
    engine.end_write(connection, commit=False)
    assert not connection.closed
    assert {engine.connection(), engine.connection()} == {connection, idle}
    for lent in (connection, idle):
        assert engine.run(lent, "SELECT 2", []).fetchone() == (2,)
        engine.give_back(lent)
    engine.close()


@pytest.mark.parametrize("is_attempt", [False, True])
def test_a_statement_skipped_after_a_failed_one_is_prepared_again(postgresql_databases, is_attempt):
    engine = connect(postgresql_databases.prototype)

    def use(*statements):
        """Run statements in a transaction that is rolled back; the last may fail because of an earlier one."""
        connection = engine.begin_write(None)
        try:
            with engine.savepoint(connection, may_repeat=False) if is_attempt else contextlib.nullcontext():
                for statement in statements[:-1]:
                    connection.run(statement, [])
                return connection.run(statements[-1], []).fetchall()
        finally:
            engine.end_write(connection, commit=False)

    taken = "INSERT INTO accounts SELECT * FROM accounts"
    with pytest.raises(engine.conflict):
        use(taken, "SELECT 0")
    use("SELECT 3")
    use("SELECT 3")
    with pytest.raises(engine.conflict):
        use(taken, "SELECT 3")
    assert use("SELECT 3") == [(3,)]
    engine.close()


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT pg_sleep(60)", DeadlineExceeded),
        ("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)", DeadlineExceeded),
        ("SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)", Unavailable),
        (f"SELECT {' + '.join('1' * 20_000)}", psycopg.errors.StatementTooComplex),
        ("DO $$ BEGIN RAISE disk_full; END $$", DiskFull),
        ("SELECT 1/0", psycopg.errors.DivisionByZero),
    ],
    ids=["too slow", "cancelled", "ended", "too complex", "full", "wrong"],
)
def test_errors_of_the_server_become_ours(postgresql_databases, statement, kind):
    engine = connect(postgresql_databases.prototype)
    connection = engine.connection()
    engine.run(connection, "SET statement_timeout = 100", [])
    with pytest.raises(psycopg.Error) as raised:
        engine.run(connection, statement, [])
    assert type(engine.translate_error(raised.value)) is kind
    engine.give_back(connection)
    engine.close()


def test_a_write_waits_for_another_of_its_account_but_not_for_one_of_another_account(postgresql_databases):
    """In the same process and in another one."""
    engine, elsewhere = (connect(postgresql_databases.prototype) for _ in range(2))
    first, begun = engine.begin_write(1), []

    def write(writer):
        connection = writer.begin_write(1)
        begun.append(writer)
        writer.end_write(connection, commit=True)

    threads = [threading.Thread(target=write, args=(each,)) for each in (engine, elsewhere)]
    for thread in threads:
        thread.start()
    engine.end_write(engine.begin_write(2), commit=True)
    locked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    until(lambda: engine.one(locked, []) == (1,), "the other process waits for the account's lock")
    until(lambda: engine.writers.queues.waiting == 1, "this process waits without a connection")
    assert begun == []
    engine.end_write(first, commit=True)
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert {*begun} == {engine, elsewhere}
    for each in (engine, elsewhere):
        assert (each.writers.queues.free, each.writers.awaited.free) == (MAX_ACCOUNTS, MAX_LOCKS_AWAITED)
        each.close()


def test_a_commit_that_the_server_rolled_back_is_not_taken_for_one(postgresql_databases):
    """PostgreSQL answers ROLLBACK to the COMMIT of a transaction that has failed, without an error."""
    engine = connect(postgresql_databases.prototype)
    connection = engine.begin_write(1)
    engine.run(connection, "SELECT 1 / 0", [])
    with contextlib.suppress(psycopg.Error):
        connection.sync()
    with pytest.raises(Unavailable, match="PostgreSQL answered ROLLBACK"):
        engine.end_write(connection, commit=True)
    engine.end_write(engine.begin_write(1), commit=True)
    engine.close()


def test_a_database_that_cannot_hold_every_name_is_refused(postgresql_databases):
    with postgresql_databases.admin() as admin:
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            engine = postgresql.Postgresql(make_conninfo(postgresql_databases.prototype, dbname="latin"))
            with pytest.raises(Unavailable, match=r"has the encoding LATIN1.* createdb --encoding=UTF8"):
                engine.connection()
            engine.close()
        finally:
            admin.execute("DROP DATABASE latin")


def test_a_user_without_rights_gets_the_reason(postgresql_databases):
    with postgresql_databases.admin() as admin:
        admin.execute("CREATE ROLE lowly LOGIN")
        try:
            engine = postgresql.Postgresql(make_conninfo(postgresql_databases.prototype, user="lowly"))
            with pytest.raises(Unavailable, match="permission denied"):
                engine.one("SELECT name FROM accounts", [])
            with pytest.raises(Unavailable, match="permission denied"), engine.schema_change() as connection:
                connection.exec_driver_sql("CREATE TABLE mine (id INTEGER)")
            engine.close()
        finally:
            admin.execute("DROP ROLE lowly")
