"""The contract checker: compares every response that a test gets with the OpenAPI document."""

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsonschema_rs import Draft202012Validator

from retainer.api import RESOURCES
from retainer.kernel.resource import Operation
from retainer.kernel.routes import Routes
from retainer.openapi.document import document
from retainer.reference.resources import may_have
from retainer.schema import metadata
from retainer.settings import BASE_PATH
from retainer.store.engines import Engine, Sqlite
from retainer.store.engines.postgresql import Postgresql
from retainer.store.statements import CompiledStatement, Statements, statements_of

if TYPE_CHECKING:
    from tests.factories import Answer

COMMON_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
MARKS = re.compile(b"\xef\xb7[\x90-\x93]")
"""What surrounds the parts of a sentence, in UTF-8."""
SCHEMA = re.compile(r"'#/components/schemas/(\w+)'")
UNDOCUMENTED = {"HEAD", "OPTIONS", "TRACE"}
Promise = tuple[str, str]


@functools.cache
def documented() -> dict[str, Any]:
    """Return the OpenAPI document with closed models.

    The published ones are open, so that fields can be added; here a field that is not documented is an error.
    """
    made = document(Routes(RESOURCES).bound.values(), f"https://agency.example{BASE_PATH}")
    for schema in made["components"]["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    return made


@functools.cache
def operations() -> dict[tuple[str, str], Operation]:
    """Return the operations by their path and method."""
    return {(each.path, each.method): each for each in Routes(RESOURCES).operations}


@functools.cache
def path_patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return each documented path and its pattern."""
    return [
        (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in sorted(documented()["paths"], key=is_general)
    ]


def is_general(path: str) -> bool:
    """Return whether another path may match a part of what a path matches."""
    return "external:" not in path


@functools.lru_cache(maxsize=4096)
def template_of(path: str) -> str | None:
    """Return the documented path that matches a path, or None."""
    return next((template for pattern, template in path_patterns() if pattern.fullmatch(path)), None)


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node of the document, or the one that it refers to."""
    while "$ref" in node:
        found: Any = documented()
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


class ContractChecker:
    """Checks responses, and notes which documented ones it has seen."""

    def __init__(self) -> None:
        self.seen: set[Promise] = set()

    def check(self, method: str, path: str, answer: "Answer", *, is_limited: bool = False) -> None:
        """Fail if a response is not as documented; if it `is_limited` to some fields, others may be absent."""
        self.check_headers(answer)
        assert not MARKS.search(answer.body), f"marks of parts are for pages: {answer}"
        if answer.status >= 400 and method != "HEAD":
            assert {"message", "code", "request_id", "docs_url"} <= set(answer.json), answer
            assert answer.json["docs_url"].endswith(f"/docs/errors#{answer.code}"), answer
        template = template_of(path)
        operation = documented()["paths"].get(template, {}).get(method.lower())
        if template is None or operation is None:
            assert answer.status in {401, 402, 403, 404, 405, 413, 429} or method in UNDOCUMENTED, answer
            return
        assert str(answer.status) in operation["responses"], f"{method} {path} is not documented to answer {answer}"
        if answer.status == 422:
            named = may_have(operations()[template, method], answer.code)
            assert named, f"the reference does not name {answer.code} for {method} {template}: {answer}"
        self.seen.add(promise(operation, str(answer.status)))
        response = resolved(operation["responses"][str(answer.status)])
        for name, header in response.get("headers", {}).items():
            if resolved(header).get("required"):
                assert name.lower() in answer.headers, f"{name} is missing: {answer.headers}"
        media_type = answer.headers.get("content-type", "").partition(";")[0]
        if media_type != "application/json" and answer.body:
            assert media_type in response["content"], answer.headers
        elif "content" in response:
            is_partial = is_limited and answer.status == 200
            validator = schema_validator(template, method.lower(), str(answer.status), is_partial=is_partial)
            for error in validator.iter_errors(answer.json):
                raise AssertionError(f"{method} {path}: {error.message} at {error.instance_path}: {answer}")
        else:
            assert answer.body == b"", answer

    def check_headers(self, answer: "Answer") -> None:
        """Fail if one of the common headers is missing or wrong."""
        for name in COMMON_HEADERS:
            assert re.fullmatch(r"\d+", answer.headers.get(name, "")), f"{name}: {answer.headers}"
        assert answer.headers.get("x-request-id"), answer.headers
        assert answer.headers.get("x-content-type-options") == "nosniff", answer.headers
        assert "private" in answer.headers.get("cache-control", ""), answer.headers
        assert {"Authorization", "X-Api-Key"} <= set(answer.headers.get("vary", "").split(", ")), answer.headers
        if answer.body and "content-disposition" not in answer.headers:
            assert answer.headers.get("content-type") == "application/json; charset=utf-8"

    def unproduced(self) -> list[Promise]:
        """Return the documented responses that no test has produced, after a whole run."""
        operations = [operation for methods in documented()["paths"].values() for operation in methods.values()]
        promised = {promise(operation, status) for operation in operations for status in operation["responses"]}
        return sorted(promised - self.seen)


def promise(operation: dict[str, Any], status: str) -> Promise:
    """Return a documented response of an operation; a common error is the same for all of them."""
    return operation["responses"][status].get("$ref", operation["operationId"]), status


# What an INSERT does on a conflict is limited by its own row: the key begins with the account.
FROM = re.compile(r"\b(?:FROM|(?<!DO )(?<!FOR )UPDATE) ((?:\w+(?: AS \w+)?(?:, )?)+)|\bJOIN (\w+(?: AS \w+)?)")


def unlimited(prepared: CompiledStatement) -> list[str]:
    """Return the tables of an account of which a statement reads or changes rows of all accounts."""
    return unlimited_text(prepared.text, tuple(prepared.names))


@functools.cache
def unlimited_text(text: str, names: tuple[str, ...]) -> list[str]:
    """Do so for a text in which ?1 or $1::BIGINT stands for the first of the names."""
    statement = re.sub(r"[?$](\d+)(?:::\w+)?", lambda place: f":{names[int(place[1]) - 1]}", text)
    parts = [part for found in FROM.findall(statement) for part in ", ".join(filter(None, found)).split(", ")]
    tables = [part.split(" AS ") for part in parts if part]
    others = {"json_each", "json_array_elements_text", *re.findall(r"(?:WITH|,)\s+(\w+) AS\s*\(", statement)}
    found = [name for name in tables if name[0] not in others]
    tenants = [name[-1] for name in found if metadata.tables[name[0]].info.get("of_account")]
    returned = statement.partition(" RETURNING ")[2]  # where SQLite's columns are named without their table
    if "AND account_id = :account_id" in returned:
        tenants = [name for name in tenants if f"FROM {name}" not in returned]
    return [name for name in tenants if f"{name}.account_id = :account_id" not in statement]


class CheckedStatements:
    """Prepares statements, and notes those that are not limited to one account."""

    def __init__(self, statements: Statements) -> None:
        self.wrong: list[str] = []
        self.prepare = statements.of_account
        self.prepared = functools.lru_cache(4096)(self._checked)

    def _checked(self, statement: Any) -> CompiledStatement:
        prepared = self.prepare(statement)
        if unlimited(prepared):
            self.wrong.append(prepared.text)
        return prepared

    def clear(self) -> None:
        """Forget all prepared statements."""
        self.prepare.cache_clear()
        self.prepared.cache_clear()

    def check(self) -> None:
        """Fail if a statement prepared since the last check is not limited; then forget all."""
        wrong, self.wrong = self.wrong, []
        if wrong:
            self.clear()
        assert wrong == [], wrong


class AllCheckedStatements:
    """The statements of all databases."""

    def __init__(self, *engines: type[Engine]) -> None:
        self.of_engines = []
        for engine in engines:
            statements = statements_of(engine.dialect, engine.marker)
            self.of_engines.append(CheckedStatements(statements))
            statements.of_account = self.of_engines[-1].prepared

    def clear(self) -> None:
        """Forget all prepared statements."""
        for checked in self.of_engines:
            checked.clear()

    def check(self) -> None:
        """Fail if a statement prepared since the last check is not limited."""
        for checked in self.of_engines:
            checked.check()


SCOPED = AllCheckedStatements(Sqlite, Postgresql)


@functools.cache
def schema_validator(template: str, method: str, status: str, *, is_partial: bool) -> Draft202012Validator:
    """Return the validator of an operation's response with a status, compiled once, with the schemas that it needs."""
    response = resolved(documented()["paths"][template][method]["responses"][status])
    schema = response["content"]["application/json"]["schema"]
    if "anyOf" in schema:
        schema = schema["anyOf"][is_partial]
    needed = dict(schemas_of(schema))
    return Draft202012Validator({**schema, "components": {"schemas": needed}})


def schemas_of(node: Any) -> Iterator[tuple[str, Any]]:
    """Return the named schemas that a schema refers to, directly or not."""
    texts, found = [repr(node)], set()
    while texts:
        for name in set(SCHEMA.findall(texts.pop())) - found:
            found.add(name)
            texts.append(repr(documented()["components"]["schemas"][name]))
            yield name, documented()["components"]["schemas"][name]


class NoChecks(ContractChecker):
    """Accepts every response, for tests that send many and compare them with a model."""

    def check(self, method: str, path: str, answer: "Answer", *, is_limited: bool = False) -> None:
        """Accept a response."""
