"""The cases of generated tests: the declared operations, requests that succeed, and the rows of the database."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import pytest
from sqlalchemy import Table

from retainer.api import ROUTES
from retainer.kernel.answers import One
from retainer.kernel.resource import Operation
from retainer.schema import metadata
from retainer.store import constraints
from retainer.store.engines import Sqlite
from retainer.values.reading import create_only
from retainer.values.texts import CONTROL_FREE
from tests.contract_checker import documented, resolved
from tests.factories import Answer, ApiClient
from tests.length import IS_FULL, sampled

HERE = Path(__file__).parent
Test = TypeVar("Test", bound=Callable[..., Any])
OPERATIONS = ROUTES.operations
PATHS = {one.path: [operation for operation in OPERATIONS if operation.path == one.path] for one in OPERATIONS}
TWINS = {(path, "PUT") for path, operations in PATHS.items() if "PATCH" in {each.method for each in operations}}
"""A PUT beside a PATCH, which is the same operation: `put_is_patch` tries it, and no other test does so again."""
TRIED = [one for one in OPERATIONS if (one.path, one.method) not in TWINS]
SCOPED = [operation for operation in OPERATIONS if operation.scope]
READS = [operation for operation in OPERATIONS if not operation.writes]
WRITES = [operation for operation in TRIED if operation.writes]
CREATES = [operation for operation in OPERATIONS if operation.created and operation.answer.is_record]
UPDATES = [operation for operation in TRIED if operation.method in {"PUT", "PATCH"}]
DELETES = [operation for operation in OPERATIONS if operation.method == "DELETE"]
BODIES = [operation for operation in TRIED if operation.body]
LISTS = [operation for operation in OPERATIONS if operation.paged]
BUSINESS = [operation for operation in OPERATIONS if operation.resource.tag != "Webhooks"]
"""The operations on what an agency may have many of, whose changes are events."""
BY_EXTERNAL_ID = [operation for operation in OPERATIONS if "external_id" in operation.parameters]
BY_ID = [operation for operation in TRIED if operation.parameters and operation not in BY_EXTERNAL_ID]
ONES = [read for read in READS if isinstance(read.answer, One) and read.answer.is_record]

SUCCESS = {200, 201, 204}
UNKNOWN_ID = 987_654_321
"""An id of no record."""
CONVERTIBLE: dict[str, dict[str, Any]] = {
    "quotes": {"status": "accepted", "lines": [{"description": "Design", "unit_price": "500"}]},
    "time_entries": {"hourly_rate": "60"},
}
"""The fields of records from which others can be created."""
POSITIONS = {"event_id"}
"""Fields of bodies that are named like references, but are positions: each account has event 1."""
REFERENCED_TABLES = {
    "template_id": "projects",
    "assignee_id": "users",
    "offset_invoice_id": "invoices",
    "record_id": "clients",  # the sample of a file is that of a client
    "accepted_line_ids": "quote_lines",
}
"""Fields of bodies that are not columns, and not named after the table that they refer to."""
VOLATILE_HEADERS = {"date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset"}
"""Headers that differ between two responses to the same request."""


def each(operations: Iterable[Operation]) -> Callable[[Test], Test]:
    """Run a test for each of these operations; in the short tier for a fifth, not always the same."""

    def mark(test: Test) -> Test:
        chosen = sampled(operations, start=len(test.__name__))
        return pytest.mark.parametrize("operation", chosen, ids=str)(test)

    return mark


def few(operations: Iterable[Operation]) -> pytest.MarkDecorator:
    """Run a test of what is decided before the operation is known: for one of each form; in the short tier, method."""
    by_form = {_form(operation): operation for operation in operations}
    return pytest.mark.parametrize("operation", list(by_form.values()), ids=str)


def _form(operation: Operation) -> tuple[object, ...]:
    """Return how a request of an operation looks."""
    more = (bool(operation.parameters), operation.body is None, operation.paged) if IS_FULL else ()
    return operation.method, *more


def home(operation: Operation) -> str:
    """Return the declared path of the collection in which an operation creates records."""
    return operation.resource.location or operation.path


CREATED_LISTS = [operation for operation in LISTS if operation.path in map(home, CREATES)]
"""The lists of records that requests create."""


def rows_of(name: str) -> list[tuple[str, ...]]:
    """Return the rows of a file in this folder, without the line of names."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file, delimiter="\t")][1:]


class Sample(NamedTuple):
    """A request that succeeds once, and the record at its path, if it names one."""

    method: str
    path: str
    body: dict[str, Any] | None
    record: dict[str, Any] | None
    etag: str | None

    @property
    def collection(self) -> str:
        return self.path.rpartition("/")[0]


def sample(api: ApiClient, operation: Operation) -> Sample:
    """Create the records that an operation needs; return a request that succeeds."""
    if operation in BY_EXTERNAL_ID:
        made = api.create(operation.resource.path, external_id=f"Ö:{api.next()}")
        path = f"{operation.resource.path}/external:{quote(made.data['external_id'])}"
        body = made.data if operation.body else None
        return Sample(operation.method, path, body, made.data, made.headers["etag"])
    if not operation.path.endswith("}"):
        path = api.at(operation.path)
        is_sent = operation.use == "Create" and operation.body is not None
        return Sample(operation.method, path, api.recipe(path) if is_sent else None, None, None)
    collection, _, _ = operation.path.rpartition("/{")
    collection = api.at(collection)
    made = api.create(collection)
    path = f"{collection}/{made.data['id']}"
    body = made.data if operation.method in {"PUT", "PATCH"} else None
    return Sample(operation.method, path, body, made.data, made.headers.get("etag"))


def send(api: ApiClient, request: Sample, **options: Any) -> Answer:
    """Send a sample, or one with another `path` or `body`."""
    path, body = options.pop("path", request.path), options.pop("body", request.body)
    return api.call(request.method, path, None if "raw" in options else body, **options)


def succeeds(answer: Answer) -> Answer:
    """Return a response, which must be a success."""
    assert answer.status in SUCCESS, answer
    return answer


def kept_headers(answer: Answer) -> dict[str, str]:
    """Return the headers that do not differ from request to request."""
    return {name: value for name, value in answer.headers.items() if name not in VOLATILE_HEADERS}


def shown(answer: Answer) -> tuple[Any, ...]:
    """Return the parts of a response that do not differ from request to request."""
    body = answer.json if answer.body else {}
    return answer.status, {name: value for name, value in body.items() if name != "request_id"}, kept_headers(answer)


TOKEN = re.compile(r"token=[A-Za-z0-9_-]{43}")


def timeless(value: Any) -> Any:
    """Return JSON with the same text in place of every timestamp, and of the token of a link."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        stamped = {name for name, item in value.items() if name.endswith("_at") and item is not None}
        return {name: "then" if name in stamped else timeless(item) for name, item in value.items()}
    return TOKEN.sub("token=", value) if isinstance(value, str) else value


def dump(api: ApiClient, account_id: int | None = None) -> dict[str, Counter[str]]:
    """Return all rows of all tables, of all accounts or of one, except the last use of keys and stored responses."""
    engine = api.store.engine
    connection = engine.connection()
    found = {}
    for table in metadata.tables:
        if table == "idempotency_keys":
            continue
        cursor = engine.run(connection, f"SELECT * FROM {table}", [])
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        mine = [row for row in rows if account_id is None or row.get("account_id") == account_id]
        found[table] = Counter(str({**row, "last_used_at": None}) for row in mine)
    engine.give_back(connection)
    return found


def commits(api: ApiClient) -> Any:
    """Return a value that every commit that changes the database changes."""
    return api.databases.commits(api.app)


def db_copy(api: ApiClient) -> ApiClient:
    """Return the client at another application, on a copy of the database."""
    api.store.engine.close()
    return api.on(api.databases.open(api.databases.copy(api.app.settings.database)))


def another_process(api: ApiClient) -> ApiClient:
    """Return the client at another application, on the same database."""
    return api.on(api.databases.open(api.app.settings.database))


def held_writes(api: ApiClient, patience: int) -> AbstractContextManager[None]:
    """A block in which writes wait; two connections give up after `patience` seconds."""
    return api.databases.held_writes(api.app, api.account_id, patience)


@contextmanager
def statements_of(api: ApiClient) -> Iterator[list[str]]:
    """The statements that an application runs in the block, except those that begin and end transactions."""
    engine, seen = api.store.engine, list[str]()
    run, one = engine.run, engine.one

    def note(connection: Any, text: str, values: list[Any]) -> Any:
        seen.append(text)
        return run(connection, text, values)

    def note_single(text: str, values: list[Any]) -> Any:
        if isinstance(engine, Sqlite):  # PostgreSQL runs it by `run`
            seen.append(text)
        return one(text, values)

    engine.run, engine.one = note, note_single  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del engine.run, engine.one
    seen[:] = [text for text in seen if not text.startswith(("BEGIN", "SAVEPOINT", "RELEASE", "SELECT pg_advisory"))]


# What the OpenAPI document says


def described(operation: Operation) -> dict[str, Any]:
    """Return the description of an operation."""
    return documented()["paths"][operation.path][operation.method.lower()]


def body_schema(operation: Operation) -> dict[str, Any]:
    """Return the schema of an operation's body."""
    return resolved(described(operation)["requestBody"]["content"]["application/json"]["schema"])


def schema_fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the schemas of the fields that a body may set, each without its null."""
    return {name: bare(field) for name, field in schema["properties"].items() if not field.get("readOnly")}


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references; a choice with null becomes a type that may be null."""
    if "anyOf" not in schema:
        return resolved(schema)
    choice = resolved(next(choice for choice in schema["anyOf"] if choice.get("type") != "null"))
    return choice | {"type": [choice["type"], "null"]}


def is_decimal(schema: dict[str, Any]) -> bool:
    """Return whether a schema is that of a decimal: a string, for which a body may also have a number."""
    return r"(\.[0-9]{1," in schema.get("pattern", "")


def is_free_text(schema: dict[str, Any]) -> bool:
    """Return whether a schema takes any words; those of one line refuse control characters."""
    return not {"enum", "format"} & schema.keys() and schema.get("pattern") in {None, CONTROL_FREE}


def kinds(schema: dict[str, Any]) -> set[str]:
    """Return the types that a schema accepts."""
    given = schema.get("type", [])
    return {given} if isinstance(given, str) else set(given)


@cache
def query_parameters(operation: Operation) -> dict[str, dict[str, Any]]:
    """Return the schemas of an operation's query parameters."""
    found = [resolved(parameter) for parameter in described(operation)["parameters"]]
    schemas = {parameter["name"]: parameter["schema"] for parameter in found if parameter["in"] == "query"}
    return {
        name: schema | {"items": bare(schema["items"])} if "items" in schema else bare(schema)
        for name, schema in schemas.items()
    }


# References


@cache
@cache
def references(operation: Operation) -> list[tuple[str, ...]]:
    """Return the paths of the fields of a body that refer to records; the first entry of a list is `0`."""
    fixed = create_only(operation.body) if operation.method != "POST" else frozenset()
    return [path for path in _references(body_schema(operation), ()) if path[0] not in fixed]


def _references(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in schema_fields(schema).items():
        item = bare(field["items"]) if "array" in kinds(field) else field
        here = (*path, name, "0") if "array" in kinds(field) else (*path, name)
        if name.endswith(("_id", "_ids")) and "integer" in kinds(item) and name not in POSITIONS:
            yield here
        elif "properties" in item:
            yield from _references(item, here)


def with_reference(operation: Operation, body: dict[str, Any], path: tuple[str, ...], record_id: int) -> dict[str, Any]:
    """Return a body whose field at a path refers to this record, without the price, which work has by itself."""
    if path[0] in {"time_entry_ids", "expense_ids", "milestone_id"}:
        body = {name: value for name, value in body.items() if name != "unit_price"}
    return with_value(operation, body, path, record_id)


def with_value(operation: Operation, body: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return a body with a value at a path, whose parts have examples of what they need besides."""
    return body | {path[0]: _planted(schema_fields(body_schema(operation))[path[0]], path[1:], value)}


def _planted(schema: dict[str, Any], path: tuple[str, ...], value: object) -> Any:
    if not path:
        return value
    if path[0] == "0":
        return [_planted(bare(schema["items"]), path[1:], value)]
    fields = schema_fields(schema)
    needed = {name: fields[name]["examples"][0] for name in schema.get("required", []) if name != path[0]}
    return needed | {path[0]: _planted(fields[path[0]], path[1:], value)}


def target_of(operation: Operation, path: tuple[str, ...]) -> Table:
    """Return the table that a field refers to, by its column, its type or its name."""
    table, name = operation.resource.table, next(part for part in reversed(path) if part != "0")
    if table is not None and len(path) <= 2 and name in table.c and "target" in table.c[name].info:
        return metadata.tables[table.c[name].info["target"]]
    if len(path) <= 2 and operation.body and name in dict(constraints.reference_lists(operation.body)):
        return dict(constraints.reference_lists(operation.body))[name]
    if name in REFERENCED_TABLES:
        return metadata.tables[REFERENCED_TABLES[name]]
    words = re.sub(r"_ids?$", "", name).replace("_", " ")
    found = [candidate for candidate in metadata.tables.values() if constraints.singular(candidate) == words]
    assert found, f"{operation}: say in REFERENCED_TABLES which table {name} refers to"
    return found[0]


def some(api: ApiClient, table: Table) -> int:
    """Return the id of a new record of a table, or of the member for users."""
    if table.name == "users":
        return api.member_id
    paths = [create.path for create in CREATES if create.resource.table is table]
    assert paths, f"no operation makes a record of {table.name}"
    return api.make(paths[0], **CONVERTIBLE.get(table.name, {}))["id"]


def reference_filters(operation: Operation) -> dict[str, Table]:
    """Return the filters of a list that accept ids, and the tables of these."""
    found = {}
    for name, schema in query_parameters(operation).items():
        if name == "ids" and operation.resource.table is not None:
            found[name] = operation.resource.table
        elif name.endswith("_id") and '"integer"' in json.dumps(schema):
            found[name] = _filtered(operation, name)
    return found


def _filtered(operation: Operation, name: str) -> Table:
    model = operation.answer.model
    lists = dict(constraints.reference_lists(model))
    return lists.get(f"{name}s") if f"{name}s" in lists else target_of(operation, (name,))


OTHER_STATE = {"If-Match": '"another-state"'}


def some_change(path: str, record: dict[str, Any], word: str) -> dict[str, str]:
    """A body that changes the record at a path and says nothing of its relations, nor what the path says."""
    texts = ("description", "notes", "name", "url") if "/external:" in path else ("external_id", "description", "color")
    name = next(name for name in texts if name in record)
    return {name: f"#{word.encode().hex()[:6]:0<6}" if name == "color" else word}
