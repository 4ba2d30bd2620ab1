"""Webhooks as admins see them: created, shown, tested, paused, rotated, sent again, deleted."""

import re

import pytest

from retainer.events.sender.loop import Sender
from tests.webhooks.receiver import LOOPBACK, Receiver

NEW = "/console/webhooks/new"


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def send(api):
    return Sender(api.store, LOOPBACK, "", lambda *_: None, lambda _: None).run_once()


def made(visitor, receiver, **fields):
    """Create a webhook; return its path and its secret."""
    shown = visitor.submit(NEW, **{"url": receiver.url, "description": "Books"} | fields)
    (number,) = set(re.findall(r"/console/webhooks/(\d+)", shown.html))
    return f"/console/webhooks/{number}", re.search(r"whsec_[\w+/]+=*", shown.html)[0]


def test_a_new_webhook_shows_its_secret_once_and_sends_what_happens(api, visitor, receiver):
    assert "No webhooks yet." in visitor.get("/console/webhooks").text
    path, secret = made(visitor, receiver, description="Accounting")
    assert secret not in visitor.get(path).html
    tag = api.make("/tags")["id"]
    assert send(api) == 1
    assert receiver.got[0].event["url"] == f"http://agency.example/api/public/v1/tags?ids={tag}"
    page = visitor.get(path)
    assert page.title.startswith("Accounting")
    for text in ("tag.created", "delivered", "thanks", "All events"):
        assert text in page.text
    assert "Accounting" in visitor.get("/console/webhooks").text
    assert secret not in page.html
    assert "webhook created" in visitor.get("/console/audit").text


def test_types_are_chosen_and_changed(api, visitor, receiver):
    path, _ = made(visitor, receiver, types=["tag.created", "site.up"])
    assert "2 types" in visitor.get(path).text
    assert 'value="site.up" checked' in visitor.get(f"{path}/edit").html
    saved = visitor.submit(f"{path}/edit", leave=("types",), types=["tag.deleted"])
    assert "Saved." in saved.text
    assert api.get("/webhooks").data[0]["types"] == ["tag.deleted"]
    assert "tag.deleted" in visitor.get("/console/webhooks").text
    visitor.submit(f"{path}/edit", types="")
    assert api.get("/webhooks").data[0]["types"] is None


def test_a_new_webhook_needs_a_description(api, visitor):
    refused = visitor.submit(NEW, url="https://receiver.example/hooks")
    assert (refused.status, refused.error_of("description")) == (422, "Enter a description.")
    assert api.get("/webhooks").data == []


def test_a_webhook_keeps_its_description(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    refused = visitor.submit(f"{path}/edit", description=" ")
    assert (refused.status, refused.error_of("description")) == (422, "Enter a description.")
    assert api.get("/webhooks").data[0]["description"] == "Books"


def test_all_errors_of_a_form_are_shown_together(visitor):
    refused = visitor.post(NEW, {"url": "ftp://receiver.example", "types": ["no.such"]})
    assert (refused.status, refused.error_of("description")) == (422, "Enter a description.")
    assert "no longer offered" in refused.text


def test_a_refused_form_shows_its_errors_and_keeps_the_input(visitor):
    refused = visitor.post(NEW, {"url": "ftp://receiver.example", "description": "Kept", "types": ["site.up"]})
    assert refused.status == 422
    assert 'id="url-error"' in refused.html
    assert 'value="Kept"' in refused.html
    assert 'value="site.up" checked' in refused.html


def test_a_webhook_is_tested_paused_and_resumed(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    visitor.submit(path, action=f"{path}/test")
    assert send(api) == 1
    assert "webhook.test" in visitor.get(path).text
    assert "paused" in visitor.submit(path, action=f"{path}/pause").text
    api.make("/tags")
    assert send(api) == 0
    assert visitor.post(f"{path}/test", {}).status == 422
    assert "Resumed." in visitor.submit(path, action=f"{path}/resume").text
    assert send(api) == 1


def test_a_webhook_that_was_disabled_is_noticed(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    receiver.fail(410)
    api.make("/tags")
    send(api)
    for page in (visitor.get("/console/webhooks"), visitor.get("/console/api"), visitor.get(path)):
        assert "The receiver answered 410" in page.text
    assert "webhook disabled" in visitor.get("/console/audit").text


def test_events_are_sent_again(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    api.make("/tags")
    send(api)
    assert "Queued 1 event to be sent again." in visitor.submit(path, action=f"{path}/redeliver", event_id="1").text
    assert send(api) == 1
    visitor.post(f"{path}/redeliver", {"since": "2026-01-01"})
    assert send(api) == 1
    assert receiver.events == [1, 1, 1]
    refused = visitor.post(f"{path}/redeliver", {"since": "yesterday"})
    assert (refused.status, "Must be a date" in refused.text) == (422, True)


def test_a_delivery_leads_to_its_record_unless_that_was_deleted(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    project, tag = api.make("/projects", name="Relaunch"), api.make("/tags")
    api.delete(f"/tags/{tag['id']}")
    send(api)
    page = visitor.get(path)
    assert f"/console/records/projects/{project['id']}" in page.links
    assert "Relaunch" in page.text
    assert f"record {tag['id']}" in page.text


def test_deliveries_are_filtered_and_paged(api, visitor, receiver):
    path, _ = made(visitor, receiver)
    receiver.fail(events={1})
    for _ in range(30):
        api.make("/tags")
    send(api)
    assert "event 1," in visitor.get(f"{path}?status=pending").text
    assert "event 2," not in visitor.get(f"{path}?status=pending").text
    assert f"{path}?page=2" in visitor.get(path).links
    assert "Older" not in visitor.get(f"{path}?page=2").text
    assert visitor.get(f"{path}?page=0").status == 200
    odd = visitor.get(f"{path}?status=odd")
    assert (odd.status, "Status : Must be one of" in odd.text) == (422, True)


def test_a_secret_is_rotated_and_a_webhook_deleted(api, visitor, receiver):
    path, secret = made(visitor, receiver)
    rotated = visitor.submit(f"{path}/rotate")
    assert re.search(r"whsec_[\w+/]+=*", rotated.html)[0] != secret
    assert "Webhook deleted." in visitor.submit(f"{path}/delete").text
    assert api.get("/webhooks").data == []
    assert visitor.get(path).status == 404
