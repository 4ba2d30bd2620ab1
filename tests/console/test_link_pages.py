"""Client links in the console: creating one, its address, which is shown once, their list, and revoking one."""

import re

import pytest
from testing.agencies import SITE

from retainer.identity import audit
from tests.console.visitor import Visitor
from tests.databases import only_sqlite
from tests.factories import SENT

pytestmark = only_sqlite


@pytest.fixture
def invoice(api):
    return api.make("/invoices", **SENT)


def url_of(page):
    return re.search(rf"{SITE}/client\?token=[\w-]+", page.html)[0]


def test_a_link_is_created_and_its_address_shown_once(api, visitor, invoice):
    path = f"/console/records/invoices/{invoice['id']}"
    assert "Share link…" in visitor.get(path).text
    page = visitor.submit(f"{path}/links")
    assert page.status == 200, page.text
    url = url_of(page)
    assert "It won't be shown again" in page.text
    assert url not in visitor.get(path).html
    assert Visitor(api.app).get(url.removeprefix(SITE)).status == 200
    assert "Works until" in visitor.get(path).text
    with api.operating() as tx:
        (entry,) = audit.list_entries(tx, audit.AuditFilter(action="client link created")).entries
    assert (entry.target, entry.target_id, entry.user_name) == ("invoice", invoice["id"], "Ana Admin")


def test_the_last_day_of_a_link_is_included(api, visitor, invoice):
    path, day = f"/console/records/invoices/{invoice['id']}", f"{int(api.today[:4]) + 1}-03-31"
    visitor.submit(f"{path}/links", expires_at=day)
    (listed,) = api.get(f"/invoices/{invoice['id']}/links").data
    assert listed["expires_at"] == f"{day}T22:00:00.000000Z", "midnight of the account's zone"
    assert f"31 Mar {day[:4]}" in visitor.get(path).text


def test_the_form_says_what_the_client_sees(api, visitor, invoice):
    content = {"record": "invoice", "record_id": invoice["id"], "name": "Plan.pdf", "content": "JVBERi0xLjc="}
    assert api.post("/files", content).status == 201
    page = visitor.get(f"/console/records/invoices/{invoice['id']}/links")
    assert "without signing in." in page.text
    assert "They also see its files: Plan.pdf." in page.text
    draft = api.make("/quotes")
    assert "is a draft, which clients do not see." in visitor.get(f"/console/records/quotes/{draft['id']}/links").text
    assert "Share link…" not in visitor.get(f"/console/records/quotes/{draft['id']}").text
    assert visitor.get(f"/console/records/clients/{draft['client_id']}/links").status == 404


def test_a_revoked_link_shows_nothing(api, visitor):
    quote = api.make("/quotes", **SENT)
    path = f"/console/records/quotes/{quote['id']}"
    url = url_of(visitor.submit(f"{path}/links"))
    (link,) = [each["href"] for each in visitor.get(path).all("a") if each.text == "Revoke…"]
    assert not visitor.get(path).all("td", **{"data-label": "Revoke"}), "on a narrow screen the link says it"
    assert "The link was revoked." in visitor.submit(link).text
    assert Visitor(api.app).get(url.removeprefix(SITE)).status == 404
    assert "Client links" not in visitor.get(path).text


def test_the_answer_of_a_client_is_seen_with_its_link(api, visitor):
    quote = api.make("/quotes", **SENT)
    path = f"/console/records/quotes/{quote['id']}"
    page = url_of(visitor.submit(f"{path}/links")).removeprefix(SITE)
    Visitor(api.app).submit(page, answer="accept", name="Sofie Lindner")
    assert "Quote accepted by a client with a link" in visitor.get(path).text
    assert "Sofie Lindner" in visitor.get(path).text
    assert "Client with a link" in visitor.get("/console/audit").text


def test_a_server_without_a_public_address_says_what_is_missing(visitor, unnamed, invoice):
    visitor.app = unnamed.app
    page = visitor.get(f"/console/records/invoices/{invoice['id']}/links")
    assert "RETAINER_BASE_URL" in page.text
