"""Webhooks of a server, of `retainer deliver`, and to the receiver that the guide prints."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest
from testing.ports import free_port
from testing.process import running, tell, until, with_database

from retainer.api import ROUTES
from retainer.reference.markdown import MARKDOWN
from retainer.reference.pages import pages_of
from tests.length import only_full
from tests.webhooks.receiver import Receiver

ALLOW = {"RETAINER_MONITOR_ALLOW": "127.0.0.0/8"}


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def agency_at(server):
    """A client with a key of a new agency."""
    return closing(server.client(server.agency("North", "agency")["key"]))


def program():
    """The receiver as the guide prints it."""
    (code,) = (
        block.content
        for block in MARKDOWN.parse(pages_of(ROUTES)["/docs/webhooks"].text)
        if block.type == "fence" and block.info == "python"
    )
    return code


def stored(folder):
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / "events.db")) as file:
        return [json.loads(body)["id"] for (body,) in file.execute("SELECT body FROM events ORDER BY rowid")]
    return []


@only_full
def test_the_receiver_of_the_guide_acts_once_for_each_event_although_it_is_killed(tmp_path):
    folder, port = with_database(tmp_path), free_port()
    with running(folder, "--no-monitor", **ALLOW) as server, agency_at(server) as client:
        hook = client.insist("POST", "/webhooks", {"url": f"http://127.0.0.1:{port}/"}).json
        environment = os.environ | {"PORT": str(port), "WEBHOOK_SECRET": hook["meta"]["secret"]}

        def begin():
            return subprocess.Popen([sys.executable, "-c", program()], cwd=tmp_path, env=environment, stderr=-3)

        process = begin()
        try:
            for number in range(30):
                client.insist("POST", "/tags", {"name": f"Tag {number}"})
                if number in {9, 19}:
                    until(lambda least=number: len(stored(tmp_path)) > least // 2, "events arrive")
                    process.kill()
                    process.wait()
                    process = begin()
            path = f"/webhooks/{hook['data']['id']}/redeliver"
            until(lambda: sorted(stored(tmp_path)) == [*range(1, 31)], "every event is stored once")
            client.insist("POST", path, {"since": "2026-01-01T00:00:00Z"})
            deliveries = f"/webhooks/{hook['data']['id']}/deliveries?per_page=100"
            until(
                lambda: sum(each["attempts"] for each in client.insist("GET", deliveries).json["data"]) >= 60,
                "sent again",
            )
            assert sorted(stored(tmp_path)) == [*range(1, 31)]
        finally:
            process.kill()
            process.wait()


def test_deliver_sends_what_is_due_and_a_server_without_webhooks_does_not(tmp_path, receiver):
    folder = with_database(tmp_path)
    with running(folder, "--no-monitor", "--no-webhooks", **ALLOW) as server, agency_at(server) as client:
        client.insist("POST", "/webhooks", {"url": receiver.url})
        client.insist("POST", "/tags", {"name": "New"})
        assert tell(folder, "deliver", "--pause", **ALLOW) == {"webhooks": "paused"}
        assert tell(folder, "deliver", "--resume", **ALLOW) == {"webhooks": "on"}
        assert receiver.got == []
        assert tell(folder, "deliver", "--once", **ALLOW) == {"sent": 1}
    assert receiver.events == [1]


def test_commands_create_change_test_and_delete_a_webhook(tmp_path, receiver):
    folder = with_database(tmp_path)
    with running(folder, "--no-monitor", "--no-webhooks") as server:
        account = server.agency("North", "agency")["account_id"]
    made = tell(folder, "webhook", "create", account, "--url", receiver.url, "--types", "tag.created", **ALLOW)
    hook = made["webhook_id"]
    assert made["secret"].startswith("whsec_")
    (shown,) = tell(folder, "webhook", "list", account)["webhooks"]
    assert (shown["url"], shown["types"], shown["status"]) == (receiver.url, ["tag.created"], "active")
    assert tell(folder, "webhook", "set", hook, "--types", "all", "--description", "Books")["types"] is None
    assert tell(folder, "webhook", "rotate", hook)["secret"] != made["secret"]
    assert tell(folder, "webhook", "test", hook)["status"] == "pending"
    assert tell(folder, "deliver", "--once", **ALLOW) == {"sent": 1}
    (delivery,) = tell(folder, "webhook", "deliveries", hook, "--status", "delivered")["deliveries"]
    assert (delivery["type"], delivery["response_body"]) == ("webhook.test", "thanks")
    assert receiver.got[0].event["url"] == f"http://127.0.0.1:8000/api/public/v1/webhooks/{hook}"
    assert tell(folder, "webhook", "set", hook, "--status", "paused")["status"] == "paused"
    again = tell(folder, "webhook", "redeliver", hook, "--since", "2026-01-01T00:00:00Z")
    assert (again["position"], again["events"]) == (0, 0)
    assert tell(folder, "webhook", "delete", hook) == {"deleted": hook}
    assert tell(folder, "webhook", "list", account) == {"webhooks": []}
