"""How many SQL statements each operation runs, and which: a table that may only shrink."""

import re

from tests.contract.cases import HERE, OPERATIONS, rows_of, sample, send, statements_of, succeeds
from tests.contract_checker import NoChecks
from tests.factories import ApiClient, open_app

NAME = "statements.tsv"
WRITTEN = re.compile(r"(INSERT) INTO (\w+)|(UPDATE) (\w+)|(DELETE) FROM (\w+)")
READ = re.compile(r"FROM (\w+)")
INNER = re.compile(r"\([^()]*\)")
AGAIN = f"Write {NAME} again: pytest tests/contract/test_statements.py --write-statements"


def kind(statement):
    """What a statement does, and with which table first: `SELECT clients`."""
    written = WRITTEN.match(statement)
    if written:
        return " ".join(filter(None, written.groups()))
    while INNER.search(statement):
        statement = INNER.sub("", statement)
    table = READ.search(statement)
    return f"SELECT {table[1]}" if table else "SELECT"


def statements(api, operation):
    """The kinds of the statements that a sample request of an operation runs, when it is not the first of its kind."""
    succeeds(send(api, sample(api, operation)))
    request = sample(api, operation)
    with statements_of(api) as ran:
        succeeds(send(api, request))
    return [kind(statement) for statement in ran]


def test_no_operation_runs_more_statements_than_the_table_says(sqlite_databases, request):
    found = {}
    for operation in OPERATIONS:
        url = sqlite_databases.fresh()
        api = ApiClient(open_app(url), NoChecks(), sqlite_databases.agencies["north"])
        found[str(operation)] = statements(api, operation)
        sqlite_databases.discard(url)
    if request.config.getoption("--write-statements") or not (HERE / NAME).exists():
        rows = [f"{operation}\t{len(ran)}\t{', '.join(ran)}\n" for operation, ran in found.items()]
        (HERE / NAME).write_text("operation\tstatements\twhich\n" + "".join(rows), encoding="utf-8")
    promised = {operation: which.split(", ") for operation, _, which in rows_of(NAME)}
    more = {
        name: (promised[name], ran)
        for name, ran in found.items()
        if name in promised and len(ran) > len(promised[name])
    }
    assert not more, f"These run more statements than the table says; find out which are needed: {more}"
    others = {name: (promised.get(name), ran) for name, ran in found.items() if ran != promised.get(name)}
    assert not others, f"These run fewer statements than the table says, or others. {AGAIN}. {others}"
    assert found.keys() == promised.keys(), f"These operations are gone. {AGAIN}. {promised.keys() - found.keys()}"


def test_statements_are_told_by_what_they_do_first():
    assert kind("INSERT INTO clients (name) VALUES (?1) RETURNING id") == "INSERT clients"
    assert kind("SELECT name, (SELECT count(*) FROM (SELECT 1) WHERE id = ?1) AS n FROM tags, users") == "SELECT tags"
    assert kind("SELECT EXISTS (SELECT 1 FROM tags)") == "SELECT"
