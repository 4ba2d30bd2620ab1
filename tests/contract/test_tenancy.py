"""One account never sees, counts, links or changes what another has; the database itself refuses the link."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Inspector, NullPool, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from retainer.schema import metadata
from retainer.schema.rollups import SUMMARIES
from retainer.store.engines import Sqlite
from tests.contract.cases import (
    BODIES,
    BY_ID,
    CREATED_LISTS,
    CREATES,
    LISTS,
    ONES,
    OPERATIONS,
    UNKNOWN_ID,
    WRITES,
    Sample,
    body_schema,
    commits,
    db_copy,
    dump,
    each,
    home,
    reference_filters,
    references,
    sample,
    schema_fields,
    send,
    shown,
    some,
    succeeds,
    target_of,
    with_reference,
)
from tests.databases import only_sqlite
from tests.factories import ApiClient


def foreign_paths(mine: Sample, theirs: Sample, operation: Operation) -> list[tuple[str, str]]:
    """Paths with another account's id, each beside the same path with an id that never was."""
    template, own_parts, foreign_parts = (text.split("/") for text in (operation.path, mine.path, theirs.path))
    found = []
    for position, part in enumerate(template):
        if not part.startswith("{"):
            continue
        assert own_parts[position] != foreign_parts[position]
        for rest in {tuple(own_parts[position + 1 :]), tuple(foreign_parts[position + 1 :])}:
            foreign = "/".join([*own_parts[:position], foreign_parts[position], *rest])
            found.append((foreign, "/".join([*own_parts[:position], str(UNKNOWN_ID), *rest])))
    return found


def _field_of(operation: Operation, name: str) -> tuple[str, ...] | None:
    """The field of a body that a filter looks for."""
    return next((path for path in references(operation) if path in {(name,), (f"{name}s", "0")}), None)


def _found_by(api: ApiClient, operation: Operation, name: str, table: Any) -> int:
    """The id by which a filter finds a new record of this client's account."""
    create = next((candidate for candidate in CREATES if home(candidate) == operation.path), None)
    if name == "ids" or create is None:
        return api.make(operation.path)["id"] if name == "ids" else some(api, table)
    field, record_id = _field_of(create, name), some(api, table)
    if field is not None:
        request = sample(api, create)
        succeeds(send(api, request, body=with_reference(create, request.body, field, record_id)))
    return record_id


def populate(api: ApiClient) -> None:
    """At least one record in every collection, and one with each list of references that bodies take."""
    for operation in CREATES:
        succeeds(send(api, sample(api, operation)))
        for path in references(operation):
            if path[0].endswith("_ids"):
                request, record_id = sample(api, operation), some(api, target_of(operation, path))
                succeeds(send(api, request, body=with_reference(operation, request.body, path, record_id)))


def everything_read(api: ApiClient, paths: list[str]) -> list[Any]:
    """What one client reads at these paths."""
    return [shown(api.get(path)) for path in paths]


@each(BY_ID)
def test_another_accounts_id_in_the_path_is_like_one_that_never_was(api, other_tenant, operation):
    mine, theirs = sample(api, operation), sample(other_tenant, operation)
    before = commits(api)
    for foreign, never in foreign_paths(mine, theirs, operation):
        answer, expected = (send(api, mine, path=path) for path in (foreign, never))
        assert answer.status == 404, answer
        assert shown(answer) == shown(expected)
    assert commits(api) == before
    succeeds(send(api, mine))
    succeeds(send(other_tenant, theirs))


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
    request = sample(api, operation)
    for path in references(operation):
        table, field = target_of(operation, path), ".".join(path)
        own_id, foreign = some(api, table), some(other_tenant, table)
        before = commits(api)
        bodies = (with_reference(operation, request.body, path, record_id) for record_id in (UNKNOWN_ID, foreign))
        never, answer = (send(api, request, body=body) for body in bodies)
        assert field in answer.errors, answer
        assert shown(answer) == shown(never)
        assert commits(api) == before
        if path[0] == "accepted_line_ids":  # takes lines of its own quote alone
            continue
        found = send(db_copy(api), request, body=with_reference(operation, request.body, path, own_id))
        assert found.status != 422 or found.errors.get(field) != answer.errors[field], found
    succeeds(send(api, request))


@each([operation for operation in CREATED_LISTS if reference_filters(operation)])
def test_another_accounts_id_in_a_filter_is_like_one_that_never_was(api, other_tenant, operation):
    path = sample(api, operation).path
    for name, table in reference_filters(operation).items():
        own_id, foreign = (_found_by(client, operation, name, table) for client in (api, other_tenant))
        answer, never = (api.get(path, {name: record_id}) for record_id in (foreign, UNKNOWN_ID))
        assert answer.data == never.data == []
        assert answer.json["meta"] == never.json["meta"]
        assert answer.json["meta"]["total"] == 0
        place = path if "{" not in operation.path else None
        creates = [create for create in CREATES if home(create) == operation.path]
        settable = name == "ids" or (creates and _field_of(creates[0], name))
        if place and creates and settable:
            assert len(api.get(path, {name: own_id}).data) == 1


def test_lists_totals_and_counts_do_not_show_another_accounts_records(api, other_tenant):
    populate(api)
    paths = [sample(api, operation).path for operation in [*LISTS, *ONES]]
    before = everything_read(api, paths)
    populate(other_tenant)
    assert everything_read(api, paths) == before


def test_a_write_changes_no_row_of_another_account(api, other_tenant):
    populate(other_tenant)
    before = dump(api, other_tenant.account_id)
    for operation in WRITES:
        api.app.pipeline.limiter = SlidingWindow()
        succeeds(send(api, sample(api, operation)))
        assert dump(api, other_tenant.account_id) == before, operation


@each(CREATES)
def test_a_value_that_one_account_has_taken_is_free_in_another(api, other_tenant, operation):
    mine, theirs = sample(api, operation), sample(other_tenant, operation)
    made = succeeds(send(api, mine)).data
    linked = {path[0] for path in references(operation)}
    taken = {name: made[name] for name in schema_fields(body_schema(operation)) if name in made and name not in linked}
    succeeds(send(other_tenant, theirs, body=theirs.body | taken))


def test_numbers_begin_anew_in_each_account(api, other_tenant):
    for operation in (create for create in CREATES if create.path.count("/") == 1):
        both = [client.make(operation.path).get("number") for client in (api, other_tenant)]
        assert both[0] == both[1], operation


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

OF_NOBODY = {"accounts", "alembic_version", "pauses"}
Key = tuple[str, list[tuple[str, str]]]


@pytest.fixture
def connection(api) -> Iterator[Connection]:
    """A connection with which SQLAlchemy reads the catalogue; its changes come to nothing."""
    engine: Any = api.store.engine
    if isinstance(engine, Sqlite):
        opened = create_engine("sqlite://", creator=engine.connect, module=engine.driver, poolclass=NullPool)
        begin = ["PRAGMA ignore_check_constraints = ON", "BEGIN IMMEDIATE"]
    else:
        opened = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(engine.url), poolclass=NullPool)
        begin = []
    with opened.connect() as connection:
        for statement in begin:
            connection.exec_driver_sql(statement)
        yield connection
        connection.exec_driver_sql("ROLLBACK")


@pytest.fixture
def catalogue(connection) -> Inspector:
    return inspect(connection)


def tenant_tables(catalogue: Inspector) -> list[str]:
    found = set(catalogue.get_table_names())
    assert found > OF_NOBODY
    return sorted(found - OF_NOBODY)


def columns_of(catalogue: Inspector, table: str) -> dict[str, Any]:
    return {column["name"]: column for column in catalogue.get_columns(table)}


def foreign_keys(catalogue: Inspector, table: str) -> list[Key]:
    """The tables that a table refers to, each with the pairs of columns."""
    return [
        (key["referred_table"], [*zip(key["constrained_columns"], key["referred_columns"], strict=True)])
        for key in catalogue.get_foreign_keys(table)
    ]


def unique_keys(catalogue: Inspector, table: str) -> set[tuple[Any, ...]]:
    """The columns of which a table has every combination once, or once where a condition is met; but for its key."""
    constraints = {tuple(constraint["column_names"]) for constraint in catalogue.get_unique_constraints(table)}
    return constraints | {tuple(index["column_names"]) for index in catalogue.get_indexes(table) if index["unique"]}


def test_every_table_of_an_account_says_whose_its_rows_are(catalogue):
    for table in tenant_tables(catalogue):
        assert not columns_of(catalogue, table)["account_id"]["nullable"], table
        assert ("accounts", [("account_id", "id")]) in foreign_keys(catalogue, table)


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")  # none is unique
def test_every_key_begins_with_the_account(api, catalogue):
    """But for the row's own id on SQLite, which is never given twice; and for the hash that finds the account."""
    found_by_hash = []
    alone = [["id"]] if api.store.engine.name == "SQLite" else []
    for table in tenant_tables(catalogue):
        primary = catalogue.get_pk_constraint(table)["constrained_columns"]
        assert primary[0] == "account_id" or primary in alone, table
        found_by_hash += [(table, *key) for key in unique_keys(catalogue, table) if key[0] != "account_id"]
    assert found_by_hash == [
        (table, "hash") for table in ("api_keys", "password_links", "pending_sign_ins", "sessions")
    ]


def test_every_id_is_a_key_together_with_its_account(catalogue):
    for table in tenant_tables(catalogue):
        primary = tuple(catalogue.get_pk_constraint(table)["constrained_columns"])
        if "id" in columns_of(catalogue, table):
            assert ("account_id", "id") in {primary, *unique_keys(catalogue, table)}, table


@only_sqlite
def test_no_id_is_given_twice(api, catalogue):
    for table in tenant_tables(catalogue):
        ((sql,),) = api.sql("SELECT sql FROM sqlite_master WHERE name = $1", table)
        is_numbered = "id" in columns_of(catalogue, table) and table != "events"  # each follows the newest, which stays
        assert ("AUTOINCREMENT" in sql) == is_numbered, table
        assert "STRICT" in sql


def test_every_reference_takes_the_account_along(catalogue):
    for table in tenant_tables(catalogue):
        for target, pairs in foreign_keys(catalogue, table):
            assert target == "accounts" or pairs[0] == ("account_id", "account_id"), f"{table} to {target}: {pairs}"
            assert target == "accounts" or len(pairs) == 2


def test_every_column_that_is_named_like_a_reference_is_one(catalogue):
    others = {table.name for table in SUMMARIES} | {"events"}  # 0 is none; events outlive what they name
    named_by_others = {"audit_entries": {"target_id", "link_id"}, "webhook_deliveries": {"event_id", "record_id"}}
    named_by_others |= {
        "allocations": {"deleted_work_id"},
        "messages": {"record_id", "message_id"},
        "job_records": {"record_id"},
    }
    for table in {*tenant_tables(catalogue)} - others:
        referring = {pair[0] for _, pairs in foreign_keys(catalogue, table) for pair in pairs}
        kinds = {name: column["type"].python_type for name, column in columns_of(catalogue, table).items()}
        named = {name for name, kind in kinds.items() if name.endswith("_id") and kind is int}
        assert named - named_by_others.get(table, set()) <= referring, table


class Rows:
    """Makes a row in every table for two accounts, by the catalogue alone."""

    def __init__(self, connection: Connection, accounts: tuple[int, int]) -> None:
        self.connection = connection
        self.catalogue = inspect(connection)
        self.serial = itertools.count(10**9)
        self.ids: dict[tuple[str, int], int] = {}
        for account_id in accounts:
            for table in metadata.sorted_tables:
                if table.name not in OF_NOBODY:
                    self.ids[table.name, account_id] = self.insert(table.name, account_id)

    def insert(self, table: str, account_id: int, **others: Any) -> int:
        """A row of an account whose references, where they must be, are to rows of the same account."""
        columns = columns_of(self.catalogue, table)
        needed = {name: self.value(column["type"]) for name, column in columns.items() if not column["nullable"]}
        for target, pairs in foreign_keys(self.catalogue, table):
            name = pairs[-1][0]
            if target != "accounts" and name in needed:
                needed[name] = self.ids[target, account_id]
        values = needed | {"account_id": account_id} | others
        names, places = ", ".join(f'"{name}"' for name in values), ", ".join(f":{name}" for name in values)
        with self.connection.begin_nested():
            sql = f"INSERT INTO {table} ({names}) VALUES ({places})"
            self.connection.execute(text(sql), values)
        return values.get("id", 0)

    def value(self, kind: Any) -> Any:
        number = next(self.serial)
        values = {int: number, str: f"text {number}", bytes: b"x", bool: True}
        return values.get(kind.python_type, datetime(2026, 1, 1, tzinfo=UTC))


def test_the_database_itself_refuses_a_reference_to_another_account(api, other_tenant, connection):
    rows = Rows(connection, (api.account_id, other_tenant.account_id))
    tried = 0
    for table in tenant_tables(rows.catalogue):
        for target, pairs in foreign_keys(rows.catalogue, table):
            if target == "accounts":
                continue
            name, tried = pairs[-1][0], tried + 1
            with pytest.raises(IntegrityError, match=r"(?i)foreign key"):
                rows.insert(table, api.account_id, **{name: rows.ids[target, other_tenant.account_id]})
            rows.insert(table, other_tenant.account_id, **{name: rows.insert(target, other_tenant.account_id)})
    assert tried >= 8
