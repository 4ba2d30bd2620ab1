"""Webhooks: what a key may have sent, their secrets, their log, and sending again. tests/webhooks sends events."""

import base64
import dataclasses
import json
import re
from datetime import timedelta
from ipaddress import ip_address

import pytest
import time_machine
from tests.contract.filler import NOW
from tests.databases import each_database, only_sqlite

from retainer.events.catalogue import TYPES
from retainer.events.deliveries import MAX_PENDING
from retainer.events.webhooks import MAX_FORMER, READ_SCOPES
from retainer.identity.keys import keys
from retainer.identity.keys.keys import Rotation

HOOKS = {"url": "https://Receiver.example/hooks"}


def stored(api, webhook_id, *columns):
    ((*values,),) = api.sql(f"SELECT {', '.join(columns)} FROM webhooks WHERE id = $1", webhook_id)
    return values


def audited(api):
    return [action for (action,) in api.sql("SELECT action FROM audit_entries WHERE target = 'webhook' ORDER BY id")]


@each_database
def test_a_webhook_begins_after_the_newest_event_and_shows_its_secret_once(api):
    api.make("/clients")
    made = api.post("/webhooks", HOOKS)
    webhook, secret = made.data, made.json["meta"]["secret"]
    assert (webhook["url"], webhook["types"], webhook["status"]) == ("https://receiver.example/hooks", None, "active")
    assert (webhook["position"], webhook["pending_count"], webhook["last_delivered_at"]) == (1, 0, None)
    assert webhook["scopes"] == READ_SCOPES
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]+=*", secret)
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert secret not in str(api.get(f"/webhooks/{webhook['id']}").json)
    assert secret not in str(api.sql("SELECT after FROM audit_entries"))
    assert audited(api) == ["webhook created"]
    assert api.get("/events").json["meta"]["latest"] == 1, "a webhook is no record of the business"


@only_sqlite
def test_a_webhook_sends_only_what_the_key_may_read_that_set_its_address(api):
    narrow = api.new_key(["webhooks:write", "webhooks:read", "clients:read"])
    refused = api.post("/webhooks", HOOKS | {"types": ["client.created", "invoice.paid", "site.up"]}, key=narrow)
    assert [message.split(".")[0] for message in refused.errors["types"]] == [
        "This key lacks the scope invoices:read",
        "This key lacks the scope sites:read",
    ]
    mine = api.post("/webhooks", HOOKS, key=narrow).data
    assert (mine["types"], mine["scopes"]) == (None, ["clients:read"])
    all_types = api.post("/webhooks", HOOKS).data
    paused = api.patch(f"/webhooks/{all_types['id']}", {"status": "paused"}, key=narrow).data
    assert paused["scopes"] == READ_SCOPES, "another status shows nothing to anybody"
    moved = api.patch(f"/webhooks/{all_types['id']}", {"url": "https://elsewhere.example"}, key=narrow).data
    assert moved["scopes"] == ["clients:read"]
    explicit = api.post("/webhooks", HOOKS | {"types": ["invoice.paid"]}).data
    stolen = api.patch(f"/webhooks/{explicit['id']}", {"url": "https://elsewhere.example"}, key=narrow)
    assert list(stolen.errors) == ["types"]


@each_database
def test_a_webhook_names_the_key_whose_scopes_it_has(api):
    webhook = api.make("/webhooks")
    path, other = f"/webhooks/{webhook['id']}", api.new_key()
    assert webhook["key_id"] == api.key_id
    assert api.patch(path, {"description": "New"}, key=other).data["key_id"] == api.key_id
    moved = api.patch(path, {"url": "https://new.example"}, key=other).data
    assert moved["key_id"] not in {None, api.key_id}
    with api.operating() as tx:
        new = keys.rotate_key(tx, moved["key_id"], Rotation())
    assert api.get(path).data["key_id"] == new.id
    chosen = api.patch(path, {"types": ["tag.created"]}, key=api.new_key()).data
    assert chosen["key_id"] not in {None, new.id}


@only_sqlite
def test_a_webhook_that_could_send_nothing_is_refused(api):
    blind = api.new_key(["webhooks:write", "clients:write"])
    for body in (HOOKS, HOOKS | {"types": None}):
        (message,) = api.post("/webhooks", body, key=blind).errors["types"]
        assert "nothing would be sent" in message
    webhook = api.make("/webhooks")["id"]
    assert set(api.patch(f"/webhooks/{webhook}", {"url": "https://new.example"}, key=blind).errors) == {"types"}
    assert api.patch(f"/webhooks/{webhook}", {"status": "paused"}, key=blind).data["scopes"] == READ_SCOPES
    (message,) = api.post("/webhooks", HOOKS | {"types": ["tag.created"]}, key=blind).errors["types"]
    assert "lacks the scope clients:read" in message, "the cause alone"


@only_sqlite
def test_a_pattern_of_types_is_refused_with_the_types_that_it_means(api):
    tags = "patterns are not taken. Name each: tag.created, tag.updated, tag.deleted."
    errors = api.post("/webhooks", HOOKS | {"types": ["tag.*", "*"]}).errors
    assert errors["types.0"][0].endswith(f"; {tags}")
    assert errors["types.1"][0].endswith("; patterns are not taken.")
    assert api.get("/events", "types=tag.*").errors["types"][0].endswith(f"; {tags}")
    assert f"tag.* is none of them: {tags}" in api.get("/events", "types=tag.*,site.up").errors["types"][0]


def test_types_are_kept_in_the_order_of_the_catalogue_and_each_once(api):
    sent = ["site.up", "client.created", "site.up"]
    assert api.make("/webhooks", types=sent)["types"] == ["client.created", "site.up"]
    assert "types" in api.post("/webhooks", HOOKS | {"types": []}).errors
    assert "types.0" in api.post("/webhooks", HOOKS | {"types": ["client.renamed"]}).errors


@each_database
def test_an_account_has_a_limited_number_of_webhooks(api, other_tenant):
    made = [api.make("/webhooks")["id"] for _ in range(20)]
    refused = api.create("/webhooks")
    assert "its plan includes 20." in refused.errors["url"][0]
    other_tenant.make("/webhooks")
    assert api.delete(f"/webhooks/{made[0]}").status == 204
    api.make("/webhooks")


@only_sqlite
def test_a_receiver_cannot_be_named_by_user_and_password(api):
    for url in ("https://user:secret@receiver.example/", "ftp://receiver.example/", "receiver.example"):
        assert list(api.post("/webhooks", {"url": url}).errors) == ["url"]


@only_sqlite
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("169.254.169.254", "169.254.169.254"),
        ("[::1]", "::1"),
        ("[::ffff:192.168.1.1]:8443", "::ffff:192.168.1.1"),
        ("0x0a000005", "10.0.0.5"),
        ("192.168.257", "192.168.1.1"),
    ],
)
def test_a_private_receiver_is_refused_by_the_address_that_its_url_spells(api, host, address):
    (message,) = api.post("/webhooks", {"url": f"http://{host}/hooks"}).errors["url"]
    assert (str(ip_address(address)) in message, "RETAINER_MONITOR_ALLOW" in message) == (True, True)
    webhook = api.make("/webhooks")
    path = f"/webhooks/{webhook['id']}"
    assert list(api.patch(path, {"url": f"http://{host}"}).errors) == ["url"]
    assert api.patch(path, {"description": "New"}).status == 200


@only_sqlite
def test_a_receiver_that_the_operator_allows_or_that_is_a_name_is_accepted(api):
    for host in ("127.0.0.1:9", "localhost:9", "8.8.8.8", "intranet", "no-such-host.example"):
        assert api.post("/webhooks", {"url": f"http://{host}/"}).status == 201, host
    api.app.settings = dataclasses.replace(api.app.settings, monitor_allow=())
    for host in ("127.0.0.1", "127.1", "localhost", "shop.localhost"):
        (message,) = api.post("/webhooks", {"url": f"http://{host}:9/"}).errors["url"]
        assert "127.0.0.1" in message
    webhook = api.get("/webhooks").data[0]
    paused = api.patch(f"/webhooks/{webhook['id']}", {"status": "paused"})
    assert paused.data["status"] == "paused", "what was allowed before can still be paused"


@each_database
def test_a_rotated_secret_overlaps_with_the_former_one(api):
    with time_machine.travel(NOW, tick=False):
        made = api.create("/webhooks")
        first, webhook = made.json["meta"]["secret"], made.data["id"]
        rotated = api.post(f"/webhooks/{webhook}/rotate-secret")
        assert rotated.status == 200
        second = rotated.json["meta"]["secret"]
    assert first != second
    current, former = stored(api, webhook, "secret", "former_secrets")
    until = f"{NOW + timedelta(hours=24):%Y-%m-%dT%H:%M:%S.000000Z}"
    assert (current, json.loads(former)) == (second, [{"secret": first, "until": until}])
    assert audited(api) == ["webhook created", "webhook secret rotated"]


@each_database
def test_rotations_are_refused_while_too_many_former_secrets_sign(api):
    with time_machine.travel(NOW, tick=False) as clock:
        path = f"/webhooks/{api.make('/webhooks')['id']}/rotate-secret"
        assert [api.post(path).status for _ in range(MAX_FORMER)] == [200] * MAX_FORMER
        refused = api.post(path)
        assert (refused.code, "2026-04-01T22:30:00" in refused.json["message"]) == ("locked", True)
        assert refused.errors == {"secret": [refused.json["message"]]}
        clock.shift(timedelta(hours=24))
        assert api.post(path).status == 200


@only_sqlite
def test_a_webhook_is_paused_and_continues_where_it_was(api):
    webhook = api.make("/webhooks")
    api.make("/clients")
    path = f"/webhooks/{webhook['id']}"
    assert api.patch(path, {"status": "paused"}).data["status"] == "paused"
    assert list(api.patch(path, {"status": "disabled"}).errors) == ["status"]
    refused = api.post(f"{path}/test")
    assert (refused.code, refused.errors) == ("locked", {"status": [refused.json["message"]]})
    resumed = api.patch(path, {"status": "active"}).data
    assert (resumed["status"], resumed["position"]) == ("active", webhook["position"])
    assert audited(api) == ["webhook created", "webhook changed", "webhook changed"]


@each_database
def test_a_test_is_queued_and_listed(api):
    webhook = api.make("/webhooks")["id"]
    queued = api.post(f"/webhooks/{webhook}/test")
    assert queued.status == 200
    assert (queued.data["type"], queued.data["event_id"], queued.data["status"]) == ("webhook.test", None, "pending")
    assert api.get(f"/webhooks/{webhook}/deliveries").data == [queued.data]
    assert api.get(f"/webhooks/{webhook}").data["pending_count"] == 1
    assert api.delete(f"/webhooks/{webhook}").status == 204
    assert api.sql("SELECT count(*) FROM webhook_deliveries") == [(0,)]


@each_database
def test_a_webhook_goes_back_to_a_time(api):
    with time_machine.travel(NOW, tick=False) as clock:
        for _ in range(5):
            api.make("/tags")
            clock.shift(timedelta(hours=1))
        webhook = api.make("/webhooks")["id"]
        path = f"/webhooks/{webhook}/redeliver"
        positions = []
        for hours in (4, 6, 1.5, 1, -9):
            api.sql("UPDATE webhooks SET position = 5")
            since = (NOW + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
            positions.append(api.post(path, {"since": since}).data["position"])
        assert positions == [4, 5, 2, 1, 0]
        api.sql("UPDATE webhooks SET position = 1")
        later = (NOW + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert api.post(path, {"since": later}).data["position"] == 1, "nothing is skipped"
    for body in ({}, {"event_id": 1, "since": "2026-01-01T00:00:00Z"}):
        assert "event_id" in api.post(path, body).errors


@each_database
def test_sending_again_says_how_many_events_that_are(api):
    with time_machine.travel(NOW, tick=False) as clock:
        for path in ("/tags", "/sites", "/tags", "/tags"):
            api.make(path)
            clock.shift(timedelta(hours=1))
        webhook = api.make("/webhooks", types=["tag.created"])["id"]
    path = f"/webhooks/{webhook}/redeliver"

    def count(**body):
        return api.post(path, body).json["meta"]["events_count"]

    assert count(event_id=1) == 1
    assert count(since="2030-01-01T00:00:00Z") == 0
    assert count(since=(NOW + timedelta(hours=1)).isoformat()) == 2
    api.sql("UPDATE webhooks SET position = 3")
    assert count(since=NOW.isoformat()) == 2, "the fourth event has not been sent yet"


@each_database
def test_an_event_is_sent_again_by_its_id(api):
    api.make("/tags")
    api.make("/sites")
    webhook = api.make("/webhooks", types=["tag.created"])["id"]
    path = f"/webhooks/{webhook}/redeliver"
    assert api.post(path, {"event_id": 1}).data["pending_count"] == 1
    assert api.post(path, {"event_id": 1}).data["pending_count"] == 1, "it is already pending"
    for unknown in (2, 99):
        assert "event_id" in api.post(path, {"event_id": unknown}).errors
    api.make("/tags")
    assert "not been sent yet" in api.post(path, {"event_id": 3}).errors["event_id"][0]
    api.sql(f"UPDATE webhooks SET pending_count = {MAX_PENDING}")
    assert api.post(f"/webhooks/{webhook}/test").code == "locked"


@only_sqlite
def test_a_key_sees_deliveries_of_what_it_may_read(api):
    api.make("/tags")
    api.make("/sites")
    webhook = api.make("/webhooks")["id"]
    for event_id in (1, 2):
        api.post(f"/webhooks/{webhook}/redeliver", {"event_id": event_id})
    api.post(f"/webhooks/{webhook}/test")
    path = f"/webhooks/{webhook}/deliveries"

    def seen(key="own", **query):
        return [each["type"] for each in api.get(path, query, key=key).data]

    assert seen() == ["webhook.test", "site.created", "tag.created"]
    assert seen(type="site.created,tag.created", status="pending") == ["site.created", "tag.created"]
    assert seen(q="SITE") == ["site.created"]
    narrow = api.new_key(["webhooks:read", "clients:read"])
    assert seen(narrow) == ["webhook.test", "tag.created"]
    refused = api.get(path, {"type": "site.created,webhook.test"}, key=narrow)
    assert refused.errors == {"type": ["This key lacks the scope sites:read. Leave out the events of: site."]}
    assert seen(narrow, type="webhook.test,tag.created") == ["webhook.test", "tag.created"]


@only_sqlite
def test_a_webhook_of_another_account_is_nothing(api, other_tenant):
    webhook = other_tenant.make("/webhooks")["id"]
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/deliveries"),
        *(("POST", f"/{action}") for action in ("rotate-secret", "test", "redeliver")),
    ):
        body = None if method in {"GET", "DELETE"} else {}
        assert api.call(method, f"/webhooks/{webhook}{path}", body).status == 404


@pytest.mark.parametrize("kind", ["webhook.test", "client.created"])
def test_only_events_can_be_chosen(api, kind):
    assert (kind in TYPES) == (api.post("/webhooks", HOOKS | {"types": [kind]}).status == 201)
