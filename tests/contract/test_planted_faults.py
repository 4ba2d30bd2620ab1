"""Controls: when a guard of the product is taken away, the check that watches it fails.

The only place where code of the product is replaced.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from retainer.kernel import access, body, etag, idempotency, pipeline, resource, strict_json
from retainer.kernel.limits import Allowance
from retainer.store import rules, tx
from retainer.store.tx import Tx
from tests.cast import Office
from tests.contract import checks
from tests.contract.cases import OPERATIONS

BY_NAME = {str(it): it for it in OPERATIONS}
Plant = Callable[[pytest.MonkeyPatch], None]


def nothing(*_: Any, **__: Any) -> None:
    """Takes the place of a guard."""


def first(value: Any, *_: Any) -> Any:
    """Takes the place of what changes its first argument."""
    return value


def second(_: Any, value: Any) -> Any:
    """Takes the place of what judges its second argument."""
    return value


def believe_every_key(request: Any, store: Any) -> access.Caller:
    with store.everywhere("whose key is this") as transaction:
        row = transaction.one(access.BY_HASH, hash=access.key_hash(access.credential(request)))
    return access.Caller(*row)


def unchecked(request: Any) -> str:
    return (request.header("AUTHORIZATION") or "").removeprefix("Bearer ")


def ignoring_unknown(read: Callable[..., Any]) -> Callable[..., Any]:
    def reading(request: Any, *more: Any) -> Any:
        request.query = "&".join(part for part in request.query.split("&") if "no_such" not in part)
        return read(request, *more)

    return reading


def without_references(transaction: Any, table: Any, shape: Any, values: Any, own: Any) -> None:
    names = {column.name for column in table.c if "target" in column.info} | {name for name, _ in rules.lists(shape)}
    judge(transaction, table, shape, {name: value for name, value in values.items() if name not in names}, own)


def chatty(transaction: Tx, statement: Any, **values: Any) -> Any:
    rows = every_row(transaction, statement, **values)
    for _ in rows:
        transaction.connection.execute("SELECT 1")
    return rows


def forgetful(shape: Any, given: dict[str, Any], faults: Any, path: str = "") -> dict[str, Any]:
    known = {name: value for name, value in given.items() if name in shape.__struct_fields__}
    return members(shape, known, faults, path)


def one_fault(shape: Any, given: dict[str, Any], faults: Any, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    values = members(shape, given, found, path)
    faults.update(dict(list(found.items())[:1]))
    return values


def talkative(result: Any) -> bytes:
    plain = json.loads(encode(result))
    return encode(plain | {"secret": 1} if isinstance(plain, dict) else plain)


judge, every_row, members, encode = rules.check, Tx.all, body.read_members, pipeline.encode


def at(target: Any, name: str, value: Any) -> Plant:
    """Put something else in a place."""
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def unscoped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tx, "scoped", first)


def lax_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("read_none", "read_list"):
        monkeypatch.setattr(resource, name, ignoring_unknown(getattr(resource, name)))


FAULTS: dict[str, tuple[Plant, str, tuple[str, ...]]] = {
    "scopes are not required": (at(access, "require", nothing), "only_its_scope_opens", ("GET /clients",)),
    "scopes are not required for writes": (
        at(access, "require", nothing),
        "only_its_scope_opens",
        ("DELETE /tags/{tag}",),
    ),
    "plans are not looked at": (
        at(access, "admit", nothing),
        "caller_is_refused",
        ("GET /me", "a plan without the API and no trial"),
    ),
    "trials never end": (
        at(access, "admit", nothing),
        "caller_is_refused",
        ("POST /clients", "a plan without the API after its trial"),
    ),
    "the switch is not looked at": (
        at(access, "admit", nothing),
        "caller_is_refused",
        ("GET /tags", "the API switched off"),
    ),
    "revoked keys go on": (
        at(access, "authenticate", believe_every_key),
        "caller_is_refused",
        ("GET /me", "a revoked key"),
    ),
    "expired keys go on": (
        at(access, "authenticate", believe_every_key),
        "caller_is_refused",
        ("GET /me", "an expired key"),
    ),
    "deactivated users go on": (
        at(access, "authenticate", believe_every_key),
        "caller_is_refused",
        ("PATCH /tags/{tag}", "a deactivated user"),
    ),
    "a 401 has no challenge": (at(access, "CHALLENGE", {}), "caller_is_refused", ("GET /me", "no key")),
    "statements are not limited to the account: paths": (
        unscoped,
        "foreign_id_in_path_is_nothing",
        ("GET /clients/{client}",),
    ),
    "statements are not limited to the account: deletes": (
        unscoped,
        "foreign_id_in_path_is_nothing",
        ("DELETE /clients/{client}",),
    ),
    "statements are not limited to the account: bodies": (
        unscoped,
        "foreign_id_in_body_is_nothing",
        ("POST /external-contacts",),
    ),
    "statements are not limited to the account: filters": (
        unscoped,
        "foreign_id_in_filter_is_nothing",
        ("GET /external-contacts",),
    ),
    "statements are not limited to the account: lists": (unscoped, "strangers_records_do_not_show", ()),
    "references are not checked": (
        at(rules, "check", without_references),
        "foreign_id_in_body_is_nothing",
        ("POST /external-contacts",),
    ),
    "lists of references are not checked": (
        at(rules, "check", without_references),
        "foreign_id_in_body_is_nothing",
        ("PATCH /clients/{client}",),
    ),
    "If-Match is not compared: changes": (
        at(etag, "unchanged", second),
        "if_match_guards",
        ("PATCH /clients/{client}",),
    ),
    "If-Match is not compared: deletes": (at(etag, "unchanged", second), "if_match_guards", ("DELETE /tags/{tag}",)),
    "every state has one tag": (at(etag, "of", lambda _: '"same"'), "if_none_match_saves", ("GET /clients/{client}",)),
    "If-None-Match is not read": (
        at(etag, "matches", lambda *_: False),
        "if_none_match_saves",
        ("GET /clients/{client}",),
    ),
    "Idempotency-Key is not read": (at(idempotency, "attempt", nothing), "retry_is_replayed", ("POST /clients",)),
    "unknown parameters are dropped: lists": (lax_queries, "unknown_parameter_is_refused", ("GET /clients",)),
    "unknown parameters are dropped: writes": (lax_queries, "unknown_parameter_is_refused", ("DELETE /tags/{tag}",)),
    "JSON is read loosely": (
        at(strict_json, "DECODER", json.JSONDecoder()),
        "malformed_is_refused",
        ("POST /clients",),
    ),
    "nesting has no bound": (at(strict_json, "_check_depth", nothing), "malformed_is_refused", ("POST /clients",)),
    "unknown members are dropped": (at(body, "read_members", forgetful), "faults_are_named_at_once", ("POST /tags",)),
    "only the first fault is named": (at(body, "read_members", one_fault), "faults_are_named_at_once", ("POST /tags",)),
    "a list asks once more for each row": (at(Tx, "all", chatty), "list_costs_the_same", ("GET /clients",)),
    "nobody is limited": (at(Allowance, "admit", nothing), "ceiling_holds", ()),
    "strangers are not charged": (at(Allowance, "admit", nothing), "strangers_are_charged", ()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_guard_that_is_taken_away_is_missed(both: tuple[Office, Office], monkeypatch, fault):
    plant, name, given = FAULTS[fault]
    check = getattr(checks, name)
    arguments = {"office": both[0], "stranger": both[1], "operation": BY_NAME.get(given[0]) if given else None}
    arguments |= {"plight": given[-1]} if name == "caller_is_refused" else {}
    taken = {it: arguments[it] for it in check.__annotations__ if it in arguments}
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(**taken)


def test_a_checksum_that_is_not_looked_at_is_missed(office, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "credential", unchecked)
    with pytest.raises(AssertionError):
        checks.checksum_needs_no_database(office, tmp_path)


def test_pages_that_do_not_go_on_are_missed(office, monkeypatch):
    made = [office.make("/clients")["id"] for _ in range(3)]
    checks.every_record_comes_once(office, "/clients", "id", made)
    monkeypatch.setattr(resource.Page, "link", lambda page, _: f"{page.url}?per_page=2&page=1")
    with pytest.raises(AssertionError):
        checks.every_record_comes_once(office, "/clients", "id", made)


@pytest.mark.parametrize("name", ["x-request-id", "x-ratelimit-reset", "x-content-type-options"])
def test_a_header_that_is_missing_is_seen_by_the_witness(office, monkeypatch, name):
    finish = pipeline.finish

    def short(response: Any, *more: Any) -> None:
        finish(response, *more)
        response.headers = [pair for pair in response.headers if pair[0] != name]

    office.get("/me")
    monkeypatch.setattr(pipeline, "finish", short)
    with pytest.raises(AssertionError):
        office.get("/me")


def test_a_member_that_is_not_documented_is_seen_by_the_witness(office, monkeypatch):
    office.get("/me")
    monkeypatch.setattr(pipeline, "encode", talkative)
    with pytest.raises(AssertionError):
        office.get("/me")


def test_a_status_that_is_not_documented_is_seen_by_the_witness(office, monkeypatch):
    office.make("/tags")
    monkeypatch.setattr(pipeline, "reply", lambda *_: pipeline.Response(202, []))
    with pytest.raises(AssertionError):
        office.make("/tags")
