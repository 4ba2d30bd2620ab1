"""Controls: when a guard of the product is taken away, the check that watches it fails.

Beside the controls in test_filters.py the only place where code of the product is replaced.
"""

import inspect
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from retainer.errors import FieldErrors, Refusal
from retainer.identity.keys import access, keys
from retainer.kernel import body, etag, idempotency, paging, pipeline, query, resource
from retainer.kernel.caller import Caller
from retainer.kernel.limits import Allowance
from retainer.store import constraints, statements
from retainer.store.tables import events
from retainer.store.tx import Tx
from retainer.values import strict_json
from tests.contract import checks
from tests.contract.cases import OPERATIONS
from tests.contract_checker import SCOPED

BY_NAME = {str(operation): operation for operation in OPERATIONS}
Plant = Callable[[pytest.MonkeyPatch], None]


def do_nothing(*_: Any, **__: Any) -> None:
    """Takes the place of a guard."""


def believe_every_key(request: Any, store: Any) -> Any:
    return keys.caller_of(store, access.credential(request))


def ignoring_unknown(read: Callable[..., Any]) -> Callable[..., Any]:
    def reading(request: Any, *more: Any, **options: Any) -> Any:
        request.query = "&".join(part for part in request.query.split("&") if "no_such" not in part)
        return read(request, *more, **options)

    return reading


def without_references(transaction: Any, table: Any, model: Any, values: Any, record_id: Any) -> None:
    names = {column.name for column in table.c if "target" in column.info} | {
        name for name, _ in constraints.reference_lists(model)
    }
    others = {name: value for name, value in values.items() if name not in names}
    tx_check(transaction, table, model, others, record_id)


def chatty(transaction: Tx, statement: Any, **values: Any) -> Any:
    rows = tx_all(transaction, statement, **values)
    for _ in rows:
        transaction.engine.run(transaction.connection, "SELECT 1", [])
    return rows


def drop_unknown(model: Any, given: dict[str, Any], errors: Any, path: str = "", use: str = "Create") -> dict[str, Any]:
    known = {name: value for name, value in given.items() if name in model.__struct_fields__}
    return read_fields(model, known, errors, path)


def one_error(model: Any, given: dict[str, Any], errors: Any, path: str = "", use: str = "Create") -> dict[str, Any]:
    found = FieldErrors()
    values = read_fields(model, given, found, path, use)
    errors.update(dict(list(found.items())[:1]))
    return values


def talkative(result: Any) -> bytes:
    plain = json.loads(encode(result))
    return encode(plain | {"secret": 1} if isinstance(plain, dict) else plain)


def talkative_within(result: Any) -> bytes:
    return encode({name: talkative_part(part) for name, part in json.loads(encode(result)).items()})


def talkative_part(part: Any) -> Any:
    return part | {"secret": 1} if isinstance(part, dict) else part


tx_check, tx_all, read_fields, encode = Tx.check, Tx.all, body.read_fields, pipeline.encode  # type: ignore[attr-defined]  # patched where it is called


def at(target: Any, name: str, value: Any) -> Plant:
    """Put something else in a place."""
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def refuse(code: str) -> None:
    raise Refusal(code, "No.", required_scope="", granted_scopes=[])


def keep_read_only(
    model: Any, given: dict[str, Any], errors: Any, path: str = "", use: str = "Create"
) -> dict[str, Any]:
    return read_fields(model, given, errors, path, use) | {n: v for n, v in given.items() if n == "invoice_id"}


def unscoped(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(statement: Any) -> Any:
        """Leave only events to their account: a transaction misses them before a check could see another fault."""
        return limited(statement) if getattr(statement, "table", None) is events else statement

    limited = statements.scoped
    monkeypatch.setattr(statements, "scoped", limit)


def lax_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "read_list", ignoring_unknown(paging.read_list))
    monkeypatch.setattr(resource, "read_query", ignoring_unknown(query.read_query))


class Fault(NamedTuple):
    """A guard that is taken away, the check that watches it, and how its failure reads."""

    plant: Plant
    check: str
    given: dict[str, str]
    seen: str


def on(operation: str, **more: str) -> dict[str, str]:
    return {"operation": operation, **more}


OK = r"^(.*: )?20[014] "
OURS = r"^500 "
ANY_KEY = at(access, "authenticate", believe_every_key)
ANY_PLAN = at(access, "admit", do_nothing)
NO_SCOPES = at(Caller, "require_scope", do_nothing)
UNLINKED = at(Tx, "check", without_references)
UNCOMPARED = at(etag, "check_unchanged", do_nothing)

FAULTS = {
    "scopes are not required to read": Fault(NO_SCOPES, "scope_is_required", on("GET /clients"), OK),
    "scopes are not required to write": Fault(NO_SCOPES, "scope_is_required", on("PUT /tags/{tag_id}"), OK),
    "scopes are not told": Fault(
        at(Caller, "require_scope", lambda *_: refuse("missing_scope")),
        "scope_is_required",
        on("GET /clients"),
        "clients:read",
    ),
    "plans are not looked at": Fault(
        ANY_PLAN, "callers_are_refused", on("GET /me", auth_failures="a plan without the API and no trial"), OK
    ),
    "trials never end": Fault(
        ANY_PLAN, "callers_are_refused", on("POST /clients", auth_failures="a plan without the API after its trial"), OK
    ),
    "the switch is not looked at": Fault(
        ANY_PLAN, "callers_are_refused", on("GET /tags", auth_failures="the API switched off"), OK
    ),
    "revoked keys go on": Fault(ANY_KEY, "callers_are_refused", on("GET /me", auth_failures="a revoked key"), OK),
    "expired keys go on": Fault(ANY_KEY, "callers_are_refused", on("GET /me", auth_failures="an expired key"), OK),
    "deactivated users go on": Fault(
        ANY_KEY, "callers_are_refused", on("PATCH /tags/{tag_id}", auth_failures="a deactivated user"), OK
    ),
    "a 401 has no challenge": Fault(
        at(access, "CHALLENGE", {}), "callers_are_refused", on("GET /me", auth_failures="no key"), "startswith"
    ),
    "statements see all accounts: paths": Fault(
        unscoped, "foreign_id_in_path_is_nothing", on("GET /clients/{client_id}"), "200 == 404"
    ),
    "statements see all accounts: deletes": Fault(
        unscoped, "foreign_id_in_path_is_nothing", on("DELETE /clients/{client_id}"), "204 == 404"
    ),
    "statements see all accounts: bodies": Fault(
        unscoped, "foreign_id_in_body_is_nothing", on("POST /external-contacts"), OURS
    ),
    "statements see all accounts: filters": Fault(
        unscoped, "foreign_id_in_filter_is_nothing", on("GET /external-contacts"), r"== \[\]"
    ),
    "statements see all accounts: lists": Fault(unscoped, "other_tenants_records_do_not_show", {}, "At index 0 diff"),
    "references are not checked": Fault(UNLINKED, "foreign_id_in_body_is_nothing", on("POST /external-contacts"), OURS),
    "lists of references are not checked": Fault(
        UNLINKED, "foreign_id_in_body_is_nothing", on("PATCH /clients/{client_id}"), OURS
    ),
    "If-Match is not compared: changes": Fault(UNCOMPARED, "if_match_guards", on("PUT /clients/{client_id}"), OK),
    "If-Match is not compared: deletes": Fault(UNCOMPARED, "if_match_guards", on("DELETE /tags/{tag_id}"), OK),
    "every state has one tag": Fault(
        at(etag, "compute_for_record", lambda *_: '"same"'),
        "if_none_match_saves",
        on("GET /clients/{client_id}"),
        "same.* != .*same",
    ),
    "If-None-Match is not read": Fault(
        at(etag, "matches", lambda *_: False), "if_none_match_saves", on("GET /clients/{client_id}"), r"\(304, b''"
    ),
    "Idempotency-Key is not read": Fault(
        at(idempotency, "read_attempt", do_nothing), "retry_is_replayed", on("POST /clients"), "^201 "
    ),
    "unknown parameters are dropped: lists": Fault(lax_queries, "unknown_parameter_is_refused", on("GET /clients"), OK),
    "unknown parameters are dropped: writes": Fault(
        lax_queries, "unknown_parameter_is_refused", on("DELETE /tags/{tag_id}"), OK
    ),
    "JSON is read loosely": Fault(
        at(strict_json, "DECODER", json.JSONDecoder()), "malformed_is_refused", on("POST /clients"), '"name": 2'
    ),
    "nesting has no bound": Fault(
        at(strict_json, "_check_depth", do_nothing), "malformed_is_refused", on("POST /clients"), r"\[\[\["
    ),
    "unknown fields are dropped": Fault(
        at(body, "read_fields", drop_unknown), "faults_are_named_at_once", on("POST /tags"), "no_such"
    ),
    "only the first fault is named": Fault(
        at(body, "read_fields", one_error), "faults_are_named_at_once", on("POST /tags"), "no_such"
    ),
    "read-only fields are written": Fault(
        at(body, "read_fields", keep_read_only),
        "read_only_fields_are_ignored",
        on("PATCH /time-entries/{entry_id}"),
        r"^(422|500) ",
    ),
    "a list asks once more for each row": Fault(
        at(Tx, "all", chatty), "list_costs_the_same", on("GET /clients"), r"assert \["
    ),
    "nobody is limited": Fault(at(Allowance, "admit", do_nothing), "ceiling_holds", {}, "200, 200, 429, 429"),
    "strangers are not limited": Fault(
        at(Allowance, "admit", do_nothing), "anonymous_callers_are_charged", {}, "rate_limited"
    ),
}


@pytest.fixture(autouse=True)
def nothing_is_produced_here(both):
    """What a broken product answers is no evidence that the product answers it."""
    contract_checker = both[0].contract_checker
    before = set(contract_checker.seen)
    yield
    contract_checker.seen = before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_guard_that_is_taken_away_is_missed(both, monkeypatch, fault):
    plant, name, given, seen = FAULTS[fault]
    api, other_tenant = both
    for _ in range(100):
        other_tenant.next()  # so that no name is that of the other agency
    check = getattr(checks, name)
    arguments = {"api": api, "other_tenant": other_tenant, "held": ["sites:read"], **given}
    arguments["operation"] = BY_NAME.get(given.get("operation"))
    if plant is unscoped:
        SCOPED.clear()  # what was prepared before the fault would still be limited
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=seen):
        check(*[arguments[name] for name in inspect.signature(check).parameters])
    if plant is unscoped:
        with pytest.raises(AssertionError):
            SCOPED.check()


def test_a_checksum_that_is_not_looked_at_is_missed(api, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "digest", lambda key: key)
    with pytest.raises(AssertionError):
        checks.checksum_needs_no_database(api, tmp_path)


def test_pages_that_do_not_go_on_are_missed(api, monkeypatch):
    made = [api.make("/clients")["id"] for _ in range(3)]
    checks.every_record_comes_once(api, "/clients", "id", made)
    monkeypatch.setattr(resource.Page, "link", lambda page, _: f"{page.url}?per_page=2&page=1")
    with pytest.raises(AssertionError):
        checks.every_record_comes_once(api, "/clients", "id", made)


@pytest.mark.parametrize("name", ["x-request-id", "x-ratelimit-reset", "x-content-type-options"])
def test_a_header_that_is_missing_is_seen_by_the_contract_checker(api, monkeypatch, name):
    finish = pipeline.add_headers

    def short(response: Any, *more: Any) -> None:
        finish(response, *more)
        response.headers[:] = [pair for pair in response.headers if pair[0] != name]

    api.get("/me")
    monkeypatch.setattr(pipeline, "add_headers", short)
    with pytest.raises(AssertionError):
        api.get("/me")


@pytest.mark.parametrize("telling", [talkative, talkative_within])
def test_a_field_that_is_not_documented_is_seen_by_the_contract_checker(api, monkeypatch, telling):
    api.get("/me")
    monkeypatch.setattr(pipeline, "encode", telling)
    with pytest.raises(AssertionError):
        api.get("/me")


def test_a_status_that_is_not_documented_is_seen_by_the_contract_checker(api, monkeypatch):
    api.make("/tags")
    monkeypatch.setattr(pipeline, "reply", lambda *_: pipeline.Response(202, []))
    with pytest.raises(AssertionError):
        api.make("/tags")
