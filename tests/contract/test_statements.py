"""How many SQL statements each operation runs, and how often it waits for PostgreSQL: it may only shrink."""

from retainer.store.engines.postgresql_connection import PostgresqlConnection, PostgresqlCursor
from tests.contract.cases import HERE, OPERATIONS, rows_of, sample, send, statements_of, succeeds
from tests.contract_checker import NoChecks
from tests.databases import each_database
from tests.factories import ApiClient
from tests.length import sampled

pytestmark = each_database

NAME = "statements.tsv"
AGAIN = f"Write {NAME} again: pytest tests/contract/test_statements.py --write-statements"


WAITING = (
    (PostgresqlCursor, "fetchone"),
    (PostgresqlCursor, "fetchall"),
    (PostgresqlConnection, "sync"),
    (PostgresqlConnection, "exit_pipeline"),
)


class RoundTrips:
    """Counts how often an application waits for PostgreSQL: for the result of a statement, or for all that was sent."""

    def __init__(self, monkeypatch):
        self.count = 0
        for kind, name in WAITING:
            monkeypatch.setattr(kind, name, self.counting(getattr(kind, name)))

    def counting(self, method):
        def call(waiting):
            has_arrived = isinstance(waiting, PostgresqlCursor) and waiting.connection.sent and waiting.pgresult
            self.count += not has_arrived  # a statement outside a transaction was waited for when it was sent
            return method(waiting)

        return call


def statements(databases, operation, round_trips):
    """How many statements a request of an operation runs, when it is not the first of its kind, and the round trips."""
    url = databases.fresh()
    app = databases.open(url)
    api = ApiClient(app, NoChecks(), databases.agencies["north"], databases)
    succeeds(send(api, sample(api, operation)))
    request, round_trips.count = sample(api, operation), 0
    with statements_of(api) as ran:
        succeeds(send(api, request))
    count = round_trips.count
    databases.close()
    return len(ran), count


def test_no_operation_runs_more_statements_than_the_table_says(
    sqlite_databases, postgresql_databases, request, monkeypatch
):
    found, round_trips = {}, RoundTrips(monkeypatch)
    is_written = request.config.getoption("--write-statements")
    for operation in OPERATIONS if is_written else sampled(OPERATIONS, 3):
        on_sqlite, _ = statements(sqlite_databases, operation, round_trips)
        on_postgresql, count = statements(postgresql_databases, operation, round_trips)
        assert on_sqlite == on_postgresql, f"{operation}: both databases run the same statements"
        found[str(operation)] = (str(on_sqlite), str(count))
    if is_written:
        lines = ["\t".join((operation, *row)) + "\n" for operation, row in found.items()]
        (HERE / NAME).write_text("operation\tstatements\tround trips\n" + "".join(lines), encoding="utf-8")
    promised = {operation: tuple(row) for operation, *row in rows_of(NAME)}
    others = {name: (promised.get(name), row) for name, row in found.items() if row != promised.get(name)}
    assert not others, f"These differ from the table. If they take more, find out why. {AGAIN}. {others}"
    assert promised.keys() == {*map(str, OPERATIONS)}, f"Operations have come or gone. {AGAIN}."
