"""The pages of client links: what a client sees and does with one, and what nobody sees without."""

import base64
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from retainer.client_pages import site, visitors
from retainer.identity import audit, closing
from retainer.store.tx import ActorChanged
from retainer.values.common import read_payment_url
from retainer.values.exact import instant_after, utcnow
from tests.client_pages.links import LINES, OPTION, answer, link, send_quote
from tests.console.visitor import Fields, Visitor
from tests.databases import each_database
from tests.factories import SENT

pytestmark = each_database
PAY = {
    "iban": "DE89370400440532013000",
    "payment_url": "https://pay.example/{number}?amount={amount}&currency={currency}",
}


def add_file(api, record, record_id, name="Plan.pdf", content=b"%PDF-1.7 plan"):
    body = {"record": record, "record_id": record_id, "name": name, "content": base64.b64encode(content).decode()}
    return api.post("/files", body).data


def entries(api, action):
    with api.operating() as tx:
        return audit.list_entries(tx, audit.AuditFilter(action=action)).entries


def test_a_form_that_is_too_large_to_be_read_has_a_page(api, client):
    page = client.call("POST", link(api, send_quote(api)), bytes(2 << 20))
    assert (page.status, "This did not work" in page.text) == (413, True)


def test_a_client_sees_an_invoice_with_its_files_and_how_to_pay_it(api, client):
    api.set_account(PAY)
    invoice = api.make("/invoices", status="sent", lines=LINES, currency="EUR", notes="Thank you for the trust.")
    file = add_file(api, "invoice", invoice["id"])
    path = link(api, invoice)
    page = client.get(path)
    assert page.status == 200, page.text
    for text in (invoice["number"], "Design", "€500.00", "Thank you for the trust.", "DE89 3704 0044 0532 0130 00"):
        assert text in page.text, page.text
    (pay,) = [each["href"] for each in page.all("a") if each.text == "Pay now"]
    assert pay == f"https://pay.example/{invoice['number']}?amount=500&currency=EUR"
    (code,) = page.all("img", "qr")
    assert code["src"].startswith("data:image/svg+xml;base64,")
    pdf, token = client.get(path.replace("/client?", "/client/pdf?")), path.partition("token=")[2]
    assert (pdf.status, pdf.headers["content-type"], pdf.html[:5]) == (200, "application/pdf", "%PDF-")
    bytes_ = client.get(f"/client/files/{file['id']}?token={token}")
    assert (bytes_.status, bytes_.html, bytes_.headers["content-type"]) == (200, "%PDF-1.7 plan", "application/pdf")


def test_each_answer_keeps_search_engines_caches_scripts_and_other_sites_out(api, client):
    invoice = api.make("/invoices", **SENT)
    file, path = add_file(api, "invoice", invoice["id"], "a.html", b"<script>alert(1)</script>"), link(api, invoice)
    pages = [path, path.replace("?", "/pdf?"), path.replace("?", f"/files/{file['id']}?"), "/client?token=x"]
    for each in pages:
        headers = client.get(each).headers
        assert headers["cache-control"] == "no-store", each
        assert headers["x-robots-tag"] == "noindex, nofollow", each
        assert headers["referrer-policy"] == "no-referrer", each
        assert headers["x-content-type-options"] == "nosniff", each
        assert "set-cookie" not in headers
    policy = client.get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not client.get(path).all("script")
    headers = client.get(pages[2]).headers
    assert headers["content-disposition"].startswith("attachment;")
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "/client" not in client.get("/robots.txt").html, "engines that may not read a page cannot see its noindex"


def test_addresses_are_copied_from_the_page_as_they_are(api, client):
    api.set_account({"email": "accounts.receivable@northlight-studio.example"})
    line = {"description": "Files at https://files.example/projects/2026/autumn/brochure-final.pdf", "unit_price": "9"}
    page = client.get(link(api, api.make("/invoices", status="sent", lines=[line])))
    assert "accounts.receivable@northlight-studio.example" in page.text
    assert line["description"] in page.text


def test_what_became_of_an_invoice_is_said_in_a_sentence(api, client):
    invoice = api.make("/invoices", **SENT)
    path = link(api, invoice)
    api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "100"}})
    assert "Of €500.00, €400.00 is still due." in client.get(path).text
    api.patch(f"/invoices/{invoice['id']}", {"status": "paid"})
    assert "This invoice is paid. Thank you." in client.get(path).text
    assert "Pay now" not in client.get(path).text
    void = api.make("/invoices", **SENT)
    path = link(api, void)
    api.patch(f"/invoices/{void['id']}", {"status": "void"})
    assert "This invoice is void. Nothing is to be paid." in client.get(path).text
    credited = api.make("/invoices", **SENT)
    path = link(api, credited)
    api.post(f"/invoices/{credited['id']}/credit-notes", {})
    assert "This invoice was credited in full. Nothing is to be paid." in client.get(path).text


def test_a_client_accepts_a_quote_with_a_name_and_the_optional_lines_it_wants(api, client):
    quote = send_quote(api, lines=[*LINES, OPTION])
    path = link(api, quote)
    page = client.get(path)
    (option,) = page.all("input", name="line")
    form = {"answer": "accept", "name": "Sofie Lindner", "line": option["value"]}
    for unconfirmed in ({}, {"total": "500"}):
        asked = answer(client, path, **form, **unconfirmed)
        assert "With the lines that you chose, the total is €980.00." in asked.text
        assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent", "no page showed this total"
    (total,) = asked.all("input", name="total")
    done = answer(client, path, **form, total=total["value"])
    assert "Sofie Lindner accepted this quote on" in done.text
    assert "will contact you about the next steps." in done.text
    read = api.get(f"/quotes/{quote['id']}").data
    assert (read["status"], read["accepted_by"], read["total"]) == ("accepted", "Sofie Lindner", "980.00")
    assert not done.all("form"), "it is answered"
    event = api.get("/events", {"types": "quote.accepted"}).data[-1]
    link_id = api.get(f"/quotes/{quote['id']}/links").data[0]["id"]
    assert (event["record_id"], event["link_id"], event["user_id"], event["key_id"]) == (
        quote["id"],
        link_id,
        None,
        None,
    )
    (entry,) = entries(api, "quote accepted")
    assert (entry.link_id, entry.user_id, entry.address) == (link_id, None, "198.51.100.4")
    assert entry.after["name"] == "Sofie Lindner"


def test_the_total_to_confirm_has_the_tax_of_all_lines_together(api, client):
    lines = [{"description": each, "unit_price": "0.03", "tax_rate": "19"} for each in ("Design", "Photographs")]
    quote = send_quote(api, lines=[lines[0], lines[1] | {"is_optional": True}])
    path = link(api, quote)
    form = {"answer": "accept", "name": "Sofie", "line": client.get(path).all("input", name="line")[0]["value"]}
    asked = answer(client, path, **form)
    answer(client, path, **form, total=asked.all("input", name="total")[0]["value"])
    total = api.get(f"/quotes/{quote['id']}").data["total"]
    assert f"the total is €{total}." in asked.text


def test_a_client_declines_a_quote_with_a_reason(api, client):
    quote = send_quote(api)
    path = link(api, quote)
    done = answer(client, path, answer="decline", name="Sofie Lindner", reason="Too late for us.")
    assert "This quote was declined on" in done.text
    read = api.get(f"/quotes/{quote['id']}").data
    assert (read["status"], read["decline_reason"], read["accepted_by"]) == ("declined", "Too late for us.", None)
    (entry,) = entries(api, "quote declined")
    assert entry.after == {"name": "Sofie Lindner", "status": "declined", "decline_reason": "Too late for us."}


def test_an_answer_without_a_name_or_without_any_line_is_refused_beside_its_field(api, client):
    quote = send_quote(api, lines=[OPTION])
    path = link(api, quote)
    page = answer(client, path, answer="accept", name=" ")
    assert page.status == 422
    assert [each.text for each in page.all("p", "error")] == ["Choose at least one line.", "Enter your name."]
    long = answer(client, path, answer="decline", name="x" * 192)
    assert "Enter at most 191 characters." in long.text
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"


def test_a_quote_that_changed_since_it_was_opened_is_not_accepted(api, client):
    quote = send_quote(api)
    path = link(api, quote)
    form = [*Fields(client.get(path).html).forms[path], ("answer", "accept"), ("name", "Sofie")]
    api.patch(f"/quotes/{quote['id']}", {"notes": "Now without support."})
    page = client.post(path, dict(form) | {"name": "Sofie"})
    assert (page.status, "The quote has changed since you opened it" in page.text) == (422, True)
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"
    assert "Now without support." in page.text
    assert "accepted this quote" in answer(client, path, answer="accept", name="Sofie").text


def test_an_expired_and_a_withdrawn_quote_say_so_and_cannot_be_answered(api, client):
    quote = send_quote(api)
    path = link(api, quote)
    fields = {"answer": "accept", "name": "Sofie", "version": "1"}
    api.sql("UPDATE quotes SET valid_until = '2020-01-31' WHERE id = $1", quote["id"])
    assert "Ask" in client.get(path).text
    assert client.follow(client.post(path, fields)).text.count("for a new one.") == 1
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "expired"
    other = send_quote(api)
    path = link(api, other)
    api.patch(f"/quotes/{other['id']}", {"status": "cancelled"})
    assert "has withdrawn this quote." in client.follow(client.post(path, fields)).text


def test_a_quote_that_is_a_draft_again_shows_nothing_until_it_is_sent(api, client):
    quote = send_quote(api)
    path = link(api, quote)
    api.patch(f"/quotes/{quote['id']}", {"status": "cancelled"})
    api.patch(f"/quotes/{quote['id']}", {"status": "draft", "notes": "Secret thoughts"})
    for each in (path, path.replace("?", "/pdf?")):
        page = client.get(each)
        assert page.status == 404
        assert "This document is being revised" in page.text
        assert "Secret thoughts" not in page.text
    api.patch(f"/quotes/{quote['id']}", {"status": "sent"})
    assert client.get(path).status == 200


def test_the_page_speaks_the_language_of_the_document(api, client):
    german = api.make("/clients", language="de")
    quote = send_quote(api, client_id=german["id"])
    path = link(api, quote)
    page = client.get(path)
    assert '<html lang="de">' in page.html
    assert "Angebot annehmen" in page.text
    assert "Geben Sie Ihren Namen ein." in answer(client, path, answer="accept", name="").text
    assert "Sofie hat dieses Angebot am" in answer(client, path, answer="accept", name="Sofie").text
    lost = client.get("/client?token=x", HTTP_ACCEPT_LANGUAGE="de-AT,de;q=0.9")
    assert "Dieser Link funktioniert nicht" in lost.text


def test_unknown_revoked_and_expired_links_and_suspended_accounts_are_alike(api, client):
    invoice = api.make("/invoices", **SENT)
    live, revoked, expired = (link(api, invoice) for _ in range(3))

    listed = api.get(f"/invoices/{invoice['id']}/links").data

    assert len(listed) == 3
    assert all(each["url"] is None for each in listed), "the address is shown once"
    newest, middle = listed[0]["id"], listed[1]["id"]
    assert api.delete(f"/invoices/{invoice['id']}/links/{middle}").status == 204
    api.sql("UPDATE client_links SET expires_at = $1 WHERE id = $2", instant_after(utcnow(), -timedelta(1)), newest)
    seen = {client.get(each).html for each in (revoked, expired, f"{live}x", "/client?token=", "/client")}
    assert len(seen) == 1
    assert "This link does not work" in seen.pop()
    assert client.get(live).status == 200
    with api.operating() as tx:
        closing.suspend(tx, "Unpaid")
    for each in (live, live.replace("?", "/pdf?")):
        assert client.get(each).status == 404
    assert "This link does not work" in client.get(live).text


def test_a_link_shows_no_file_and_no_document_but_its_own(api, other_tenant, client):
    invoice, other = api.make("/invoices", **SENT), api.make("/invoices", **SENT)
    path = link(api, invoice)
    foreign = add_file(other_tenant, "client", other_tenant.make("/clients")["id"])
    for file in (add_file(api, "invoice", other["id"]), add_file(api, "client", invoice["client_id"]), foreign):
        page = client.get(path.replace("?", f"/files/{file['id']}?"))
        assert (page.status, "plan" in page.html) == (404, False)
    for part in ("/files/x", "/files/", "/xml/1", "/nothing"):
        assert client.get(path.replace("?", f"{part}?")).status == 404
    assert client.call("DELETE", path).status == 405
    assert other_tenant.get(f"/invoices/{invoice['id']}/links").status == 404


def test_each_request_of_an_address_is_counted_and_those_above_the_limit_see_nothing(api, client, monkeypatch):
    path = link(api, api.make("/invoices", **SENT))
    monkeypatch.setattr(site, "ADDRESS_LIMIT", 3)
    assert [client.get(f"/client?token={number}").status for number in range(3)] == [404, 404, 404]
    page = client.get(path)
    assert (page.status, page.headers["retry-after"].isdigit()) == (429, True)
    assert "Too many requests" in page.text
    assert client.post(path, {"answer": "accept"}).status == 429
    assert Visitor(api.app, "198.51.100.5").get(path).status == 200, "another address"


def test_files_of_a_link_are_counted_for_all_addresses_together(api, monkeypatch):
    monkeypatch.setattr(site, "LINK_LIMIT", 2)
    path = link(api, api.make("/invoices", **SENT)).replace("?", "/pdf?")
    statuses = [Visitor(api.app, f"198.51.100.{place}").get(path).status for place in range(3)]
    assert statuses == [200, 200, 429]


def test_a_link_that_is_revoked_while_its_answer_waits_changes_nothing(api):
    quote = send_quote(api)
    token = link(api, quote).partition("token=")[2]
    visitor = visitors.find_visitor(api.store, token, None)
    link_id = api.get(f"/quotes/{quote['id']}/links").data[0]["id"]
    api.delete(f"/quotes/{quote['id']}/links/{link_id}")
    forged = site.ClientAnswer(accepts=True, name="Eve", reason="", line_ids=[], version="1")
    with pytest.raises(ActorChanged), api.store.begin(visitor, write=True) as tx:
        site.save_answer(tx, visitor, forged, "")
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"


def test_only_the_hash_of_a_token_is_stored_and_its_opening_is_noted(api, client):
    invoice = api.make("/invoices", **SENT)
    path = link(api, invoice)
    token = path.partition("token=")[2]
    assert len(base64.urlsafe_b64decode(token + "=")) == 32, "256 bits"
    ((stored,),) = api.sql("SELECT hash FROM client_links")
    assert stored == visitors.digest(token)
    assert client.get(path).status == 200
    api.app.housekeeping.links_opened.write(api.store)
    (listed,) = api.get(f"/invoices/{invoice['id']}/links").data
    assert listed["last_opened_at"] > listed["created_at"]


def test_drafts_bad_days_and_a_server_without_an_address_have_no_links(api, unnamed):
    draft, sent = api.make("/invoices"), api.make("/invoices", **SENT)
    assert api.post(f"/invoices/{draft['id']}/links").code == "locked"
    for bad in ("2020-01-01T00:00:00Z", "2199-01-01T00:00:00Z"):
        assert "expires_at" in api.post(f"/invoices/{sent['id']}/links", {"expires_at": bad}).errors
    assert "RETAINER_BASE_URL" in unnamed.post(f"/invoices/{sent['id']}/links").errors["url"][0]


@pytest.mark.parametrize(
    "text",
    [
        *("http://pay.example/{number}", "https://{number}.example", "https://pay.example/{iban}"),
        *("https://user:word@pay.example", "https://pay.example/{", "javascript:alert(1)"),
    ],
)
def test_a_payment_address_is_https_and_names_only_what_it_may(text):
    with pytest.raises(ValueError, match=r"^$"):
        read_payment_url(text)


def test_the_token_is_in_no_log(api, client):
    path = link(api, api.make("/invoices", **SENT))
    assert client.get(path).status == 200
    assert urlsplit(path).query.partition("=")[2] not in client.logged()
