"""Examples of refusals: one request for each code of the catalogue, after the day of the integration."""

from collections.abc import Iterator
from typing import Any

from retainer.identity import closing
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.kernel.http import MAX_BODY_BYTES
from retainer.kernel.idempotency import Attempt
from tests.factories import Answer, ApiClient

UNKNOWN = "rtn_000000000000000000000000000000000GJ9s"
"""A key that is none: its last six characters do not follow from the others."""


def refusals(api: ApiClient, studio: dict[str, Any]) -> Iterator[Answer]:
    """Provoke every refusal of the catalogue once, in the order in which requests are validated."""
    yield api.call("POST", "/tags", raw=b'{"name": "Care plan"')
    yield api.get("/tags", headers={"Host": "agency.example,other.example"})
    coded = {"Content-Length": "", "Transfer-Encoding": "gzip, chunked"}
    yield api.call("POST", "/tags", raw=b"", headers=coded)
    yield api.get("/clients", key=None)
    yield api.get("/clients", key=UNKNOWN)
    yield from of_keys(api, studio)
    yield from of_the_account(api)
    yield api.get("/invoices", key=studio["lacking"])
    yield api.get("/clients/4711")
    yield api.call("DELETE", "/clients")
    yield api.get("/clients/1", headers={"Accept": "application/pdf"})
    yield from of_repeated_writes(api)
    yield api.get("/events", "after=4711")
    yield api.patch("/clients/1", {"phone": "+49 221 5550143"}, headers={"If-Match": '"c0ffee"'})
    yield api.call("POST", "/tags", raw=b" " * (MAX_BODY_BYTES + 1))
    yield api.call("POST", "/tags", raw=b"name=Urgent", headers={"Content-Type": "application/x-www-form-urlencoded"})
    yield api.post("/clients", {"email": "office", "country": "Germany"})
    yield api.get("/invoices", "state=open")
    yield from of_rules(api, studio)
    yield from of_the_server(api)


def of_keys(api: ApiClient, studio: dict[str, Any]) -> Iterator[Answer]:
    """Send keys that were valid once."""
    for name, change in (("Revoked", "revoked_at"), ("Expired", "expires_at")):
        details = KeyDetails(name, studio["member_id"], ["clients:read"])
        with api.operating() as tx:
            key_id, key = keys.create_key(tx, details)
        api.sql(f"UPDATE api_keys SET {change} = $1 WHERE id = $2", "2026-03-16T09:30:00.000000Z", key_id)
        yield api.get("/clients", key=key)
    api.sql("UPDATE users SET is_active = 0 WHERE id = $1", studio["member_id"])
    yield api.get("/clients", key=studio["lacking"])
    api.sql("UPDATE users SET is_active = 1 WHERE id = $1", studio["member_id"])


def of_the_account(api: ApiClient) -> Iterator[Answer]:
    """Send a valid key of an account that may not use the API."""
    with api.operating() as tx:
        closing.suspend(tx, "The invoice of February is not paid.")
    yield api.get("/clients")
    with api.operating() as tx:
        closing.resume(tx)
    for trial_ends_at in (None, "2026-03-15T22:59:59.000000Z"):
        api.sql("UPDATE accounts SET plan = $1, trial_ends_at = $2", "studio", trial_ends_at)
        yield api.get("/clients")
    api.sql("UPDATE accounts SET plan = $1", "agency")
    api.switch_api(on=False)
    yield api.get("/clients")
    api.switch_api(on=True)


def of_repeated_writes(api: ApiClient) -> Iterator[Answer]:
    """Send writes under an Idempotency-Key that is in use."""
    headers = {"Idempotency-Key": "order-20418"}
    with Attempt(api.app.pipeline.running, api.key_id, headers["Idempotency-Key"], ""):
        yield api.post("/tags", {"name": "Urgent"}, headers=headers)
    api.post("/tags", {"name": "Urgent"}, headers=headers)
    yield api.post("/tags", {"name": "Waiting"}, headers=headers)


def of_rules(api: ApiClient, studio: dict[str, Any]) -> Iterator[Answer]:
    """Ask for what the rules of records do not allow."""
    yield api.patch("/invoices/2", {"status": "draft"})
    yield api.delete("/clients/1")
    yield api.patch("/invoices/2", {"project_id": 1})
    yield api.post("/invoices", {"client_id": 1, "lines": [{"time_entry_ids": [1, 3]}]})
    yield api.post("/invoices", {"client_id": 1, "unbilled_work": {"time": {}}})
    member = api.new_key(list(SCOPES), user_id=studio["member_id"])
    yield api.delete("/time-entries/1", key=member)
    mail_from, api.store.mail_from = api.store.mail_from, ""
    yield api.post("/invoices/2/send")
    api.store.mail_from = mail_from


def of_the_server(api: ApiClient) -> Iterator[Answer]:
    """Ask for too much, and ask when the server fails or its database is gone."""
    with api.operating() as tx:
        key_id, busy = keys.create_key(tx, KeyDetails("Busy", api.admin_id, ["clients:read"]))
    api.spend(f"key:{key_id}", 600)
    yield api.get("/clients", key=busy)
    key, pipeline = api.new_key(), api.app.pipeline
    noted, pipeline.note_key_use = pipeline.note_key_use, fail
    yield api.get("/clients", key=key)
    pipeline.note_key_use = noted
    api.engine.close()
    aside = api.path.rename(api.path.with_suffix(".aside"))
    yield api.get("/clients", key=key)
    aside.rename(api.path)


def fail(*_: object) -> None:
    """Fail as code of ours might."""
    raise RuntimeError("planted")
