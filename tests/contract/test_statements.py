"""How many SQL statements each operation runs, which, and how often it waits for PostgreSQL: it may only shrink."""

import re

from retainer.store.engines.postgresql_connection import Connection, Cursor
from tests.contract.cases import HERE, OPERATIONS, rows_of, sample, send, statements_of, succeeds
from tests.contract_checker import NoChecks
from tests.databases import each_database
from tests.factories import ApiClient

pytestmark = each_database

NAME = "statements.tsv"
WRITTEN = r"(INSERT) INTO (\w+)|(UPDATE) (\w+)|(DELETE) FROM (\w+)"
ALSO = re.compile(rf"\b(?:also_\d+|inserted) AS\s+\((?:{WRITTEN})")
READ = re.compile(r"FROM (\w+)")
INNER = re.compile(r"\([^()]*\)")
AGAIN = f"Write {NAME} again: pytest tests/contract/test_statements.py --write-statements"


def kinds(statement):
    """What a statement does, and with which table first: `SELECT clients`; more where it combines others."""
    also = [" ".join(filter(None, groups)) for groups in ALSO.findall(statement)]
    while INNER.search(statement):
        statement = INNER.sub("", statement)
    written = re.match(rf"(?:WITH \w+ AS .*?)?(?:{WRITTEN})", statement, re.DOTALL)
    if written:
        return [" ".join(filter(None, written.groups())), *also]
    table = READ.search(statement)
    if table and table[1] == "inserted":  # the id of what a part has inserted
        return also
    return [f"SELECT {table[1]}" if table else "SELECT"]


WAITING = ((Cursor, "fetchone"), (Cursor, "fetchall"), (Connection, "sync"), (Connection, "exit_pipeline"))


class RoundTrips:
    """Counts how often an application waits for PostgreSQL: for the result of a statement, or for all that was sent."""

    def __init__(self, monkeypatch):
        self.count = 0
        for kind, name in WAITING:
            monkeypatch.setattr(kind, name, self.counting(getattr(kind, name)))

    def counting(self, method):
        def call(waiting):
            has_arrived = isinstance(waiting, Cursor) and waiting.connection.sent and waiting.pgresult
            self.count += not has_arrived  # a statement outside a transaction was waited for when it was sent
            return method(waiting)

        return call


def statements(databases, operation, round_trips):
    """The statements that a request of an operation runs, when it is not the first of its kind, and the round trips."""
    url = databases.fresh()
    app = databases.open(url)
    api = ApiClient(app, NoChecks(), databases.agencies["north"], databases)
    succeeds(send(api, sample(api, operation)))
    request, round_trips.count = sample(api, operation), 0
    with statements_of(api) as ran:
        succeeds(send(api, request))
    count = round_trips.count
    databases.close()
    return ran, count


def test_no_operation_runs_more_statements_than_the_table_says(
    sqlite_databases, postgresql_databases, request, monkeypatch
):
    found, round_trips = {}, RoundTrips(monkeypatch)
    for operation in OPERATIONS:
        ran, _ = statements(sqlite_databases, operation, round_trips)
        combined, count = statements(postgresql_databases, operation, round_trips)
        which = [what for statement in ran for what in kinds(statement)]
        again = [what for statement in combined for what in kinds(statement)]
        assert again == which, "both databases do the same, which one of them combines"
        found[str(operation)] = (str(len(ran)), str(len(combined)), str(count), ", ".join(which))
    if request.config.getoption("--write-statements") or not (HERE / NAME).exists():
        lines = ["\t".join((operation, *row)) + "\n" for operation, row in found.items()]
        (HERE / NAME).write_text(
            "operation\ton SQLite\ton PostgreSQL\tround trips\twhich\n" + "".join(lines), encoding="utf-8"
        )
    promised = {operation: tuple(row) for operation, *row in rows_of(NAME)}
    more = {
        name: (promised[name], row)
        for name, row in found.items()
        if name in promised
        and any(int(now) > int(before) for now, before in zip(row[:3], promised[name], strict=False))
    }
    assert not more, f"These take more statements or round trips than the table says; find out why: {more}"
    others = {name: (promised.get(name), row) for name, row in found.items() if row != promised.get(name)}
    assert not others, f"These take less than the table says, or other statements. {AGAIN}. {others}"
    assert found.keys() == promised.keys(), f"These operations are gone. {AGAIN}. {promised.keys() - found.keys()}"


def test_statements_are_told_by_what_they_do_first():
    assert kinds("INSERT INTO clients (name) VALUES (?1) RETURNING id") == ["INSERT clients"]
    assert kinds("SELECT name, (SELECT count(*) FROM (SELECT 1) WHERE id = ?1) AS n FROM tags, users") == [
        "SELECT tags"
    ]
    assert kinds("SELECT EXISTS (SELECT 1 FROM tags)") == ["SELECT"]
    assert kinds("WITH also_1 AS (INSERT INTO totals (n) VALUES (1)) UPDATE tags SET n = 1 WHERE id IN (SELECT 1)") == [
        "UPDATE tags",
        "INSERT totals",
    ]
    assert kinds(
        "WITH changed AS (SELECT 1 FROM tasks), also_1 AS (INSERT INTO totals (n) SELECT 1 FROM changed) UPDATE tags"
    ) == ["UPDATE tags", "INSERT totals"]
    assert kinds(
        "WITH inserted AS (INSERT INTO tags (n) VALUES (1)), also_1 AS (INSERT INTO totals (n) VALUES (1)) "
        "SELECT id FROM inserted"
    ) == ["INSERT tags", "INSERT totals"]
    assert kinds("WITH changed AS (SELECT id FROM tasks) INSERT INTO tags (id) SELECT id FROM changed") == [
        "INSERT tags"
    ]
