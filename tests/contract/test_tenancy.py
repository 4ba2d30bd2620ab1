"""One account never sees, counts, links or changes what another has; the database itself refuses the link."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from retainer.schema import metadata
from retainer.schema.rollups import SUMMARIES
from retainer.store.engines import Sqlite
from tests.contract.cases import (
    BODIES,
    BY_ID,
    CREATES,
    LISTS,
    OPERATIONS,
    WRITES,
    body_schema,
    commits,
    each,
    members_of,
    reference_filters,
    references,
    sample,
    send,
    shown,
    succeeds,
)
from tests.contract.checks import (
    foreign_id_in_body_is_nothing,
    foreign_id_in_filter_is_nothing,
    foreign_id_in_path_is_nothing,
    other_tenants_records_do_not_show,
    write_leaves_other_tenants_alone,
)
from tests.databases import only_sqlite


@each(BY_ID)
def test_another_accounts_id_in_the_path_is_like_one_that_never_was(api, other_tenant, operation):
    foreign_id_in_path_is_nothing(api, other_tenant, operation)


@each([operation for operation in BY_ID if len(operation.parameters) > 1])
def test_a_child_of_another_parent_is_nothing(api, operation):
    request, parent = sample(api, operation), sample(api, operation).path.split("/")[2]
    before = commits(api)
    first, kind, _, *rest = request.path.split("/")
    assert send(api, request, path="/".join([first, kind, parent, *rest])).status == 404
    assert commits(api) == before
    succeeds(send(api, request))


@each([operation for operation in BODIES if references(operation)])
def test_another_accounts_id_in_a_body_is_like_one_that_never_was(api, other_tenant, operation):
    foreign_id_in_body_is_nothing(api, other_tenant, operation)


@each([operation for operation in LISTS if reference_filters(operation)])
def test_another_accounts_id_in_a_filter_is_like_one_that_never_was(api, other_tenant, operation):
    foreign_id_in_filter_is_nothing(api, other_tenant, operation)


def test_lists_totals_and_counts_do_not_show_another_accounts_records(api, other_tenant):
    other_tenants_records_do_not_show(api, other_tenant)


@each(WRITES)
def test_a_write_changes_no_row_of_another_account(api, other_tenant, operation):
    write_leaves_other_tenants_alone(api, other_tenant, operation)


@each(CREATES)
def test_a_value_that_one_account_has_taken_is_free_in_another(api, other_tenant, operation):
    mine, theirs = sample(api, operation), sample(other_tenant, operation)
    made = succeeds(send(api, mine)).data
    linked = {path[0] for path in references(operation)}
    taken = {name: made[name] for name in members_of(body_schema(operation)) if name in made and name not in linked}
    succeeds(send(other_tenant, theirs, body=theirs.body | taken))


def test_numbers_begin_anew_in_each_account(api, other_tenant):
    for operation in (create for create in CREATES if create.path.count("/") == 1):
        both = [client.make(operation.path).get("number") for client in (api, other_tenant)]
        assert both[0] == both[1], operation


def test_the_same_idempotency_key_of_another_account_is_another(api, other_tenant):
    for client in (api, other_tenant):
        answer = succeeds(client.post("/tags", {"name": "Same"}, headers={"Idempotency-Key": "same"}))
        assert "idempotency-replayed" not in answer.headers


def test_an_account_id_that_is_sent_is_refused(api, other_tenant):
    for operation in OPERATIONS:
        request = sample(api, operation)
        refused = send(api, request, query={"account_id": other_tenant.account_id})
        assert refused.code == "unknown_parameter"
        if operation.body:
            answer = send(api, request, body=request.body | {"account_id": other_tenant.account_id})
            assert "account_id" in answer.errors


def test_two_clients_of_one_account_read_the_same(api):
    api.make("/clients")
    key = api.new_key(user_id=api.member_id)
    assert shown(api.get("/clients")) == shown(api.get("/clients", key=key))


# What the catalogue of the database says

OF_NOBODY = {"accounts", "alembic_version", "sqlite_sequence"}
Key = tuple[str, list[tuple[str, str]]]


@pytest.fixture
def connection(api) -> Iterator[Any]:
    """A connection whose changes come to nothing."""
    opened = api.store.engine.connect()
    opened.execute("PRAGMA ignore_check_constraints = ON")
    opened.execute("BEGIN IMMEDIATE")
    yield opened
    opened.execute("ROLLBACK")
    opened.close()


def tenant_tables(connection: Any) -> list[str]:
    found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert found > OF_NOBODY
    return sorted(found - OF_NOBODY)


def foreign_keys(connection: Any, table: str) -> list[Key]:
    """The tables that a table refers to, each with the pairs of columns."""
    rows = sorted(connection.execute(f"PRAGMA foreign_key_list({table})").fetchall())
    groups = [list(group) for _, group in itertools.groupby(rows, key=lambda row: row[0])]
    return [(group[0][2], [(row[3], row[4]) for row in group]) for group in groups]


@only_sqlite
def test_every_table_of_an_account_says_whose_its_rows_are(connection):
    for table in tenant_tables(connection):
        columns = {row[1]: row for row in connection.execute(f"PRAGMA table_info({table})")}
        assert columns["account_id"][3] == 1, f"{table}.account_id may be null"
        assert ("accounts", [("account_id", "id")]) in foreign_keys(connection, table)


@only_sqlite
def test_every_key_begins_with_the_account(connection):
    """But for the row's own id, which is never given twice, and the hash of an API key, which finds the account."""
    found_by_hash = []
    for table in tenant_tables(connection):
        primary = {row[5]: row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]}
        assert primary in ({1: "id"}, primary | {1: "account_id"}), table
        for _, name, is_unique, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
            columns = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
            if is_unique and columns[0] != "account_id":
                found_by_hash.append((table, columns))
    assert found_by_hash == [("api_keys", ["hash"])]


@only_sqlite
def test_every_id_is_a_key_together_with_its_account_and_never_given_twice(connection):
    for table in tenant_tables(connection):
        names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if "id" not in names:
            continue
        indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
        keys = [
            [row[2] for row in connection.execute(f"PRAGMA index_info({index[1]})")] for index in indexes if index[2]
        ]
        assert ["account_id", "id"] in keys, table
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        assert "AUTOINCREMENT" in sql
        assert "STRICT" in sql


@only_sqlite
def test_every_reference_takes_the_account_along(connection):
    for table in tenant_tables(connection):
        for target, pairs in foreign_keys(connection, table):
            assert target == "accounts" or pairs[0] == ("account_id", "account_id"), f"{table} to {target}: {pairs}"
            assert target == "accounts" or len(pairs) == 2


@only_sqlite
def test_every_column_that_is_named_like_a_reference_is_one(connection):
    for table in {*tenant_tables(connection)} - {table.name for table in SUMMARIES}:  # there, 0 is none
        referring = {pair[0] for _, pairs in foreign_keys(connection, table) for pair in pairs}
        names = {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}
        assert {name for name, kind in names.items() if name.endswith("_id") and kind == "INTEGER"} <= referring, table


class Rows:
    """Makes a row in every table for two accounts, by the catalogue alone."""

    def __init__(self, connection: Any, accounts: tuple[int, int]) -> None:
        self.connection = connection
        self.serial = itertools.count(10**9)
        self.ids: dict[tuple[str, int], int] = {}
        for account_id in accounts:
            for table in metadata.sorted_tables:
                if table.name not in OF_NOBODY:
                    self.ids[table.name, account_id] = self.insert(table.name, account_id)

    def insert(self, table: str, account_id: int, **others: Any) -> int:
        """A row of an account whose references, where they must be, are to rows of the same account."""
        columns = self.connection.execute(f"PRAGMA table_info({table})").fetchall()
        needed = {row[1]: self.value(row[2]) for row in columns if row[3] and row[1] != "id"}
        for target, pairs in foreign_keys(self.connection, table):
            name = pairs[-1][0]
            if target != "accounts" and name in needed:
                needed[name] = self.ids[target, account_id]
        values = needed | {"account_id": account_id} | others
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        return self.connection.execute(sql, tuple(values.values())).lastrowid

    def value(self, kind: str) -> Any:
        number = next(self.serial)
        return {"INTEGER": number, "TEXT": f"text {number}", "BLOB": b"x"}[kind]


@only_sqlite
def test_the_database_itself_refuses_a_reference_to_another_account(api, other_tenant, connection):
    rows = Rows(connection, (api.account_id, other_tenant.account_id))
    tried = 0
    for table in tenant_tables(connection):
        for target, pairs in foreign_keys(connection, table):
            if target == "accounts":
                continue
            name, tried = pairs[-1][0], tried + 1
            with pytest.raises(Sqlite.driver.IntegrityError, match="FOREIGN KEY"):
                rows.insert(table, api.account_id, **{name: rows.ids[target, other_tenant.account_id]})
            rows.insert(table, other_tenant.account_id, **{name: rows.insert(target, other_tenant.account_id)})
    assert tried >= 8
