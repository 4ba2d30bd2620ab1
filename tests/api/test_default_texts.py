"""Introduction, terms and footer: texts of the account in the client's language, and what comes before them."""

import pytest
from tests.api.test_files import PDF, SETTINGS, set_account, text_of

from retainer.identity.accounts import AccountSettings

LINE = {"description": "Design", "unit_price": "100", "tax_rate": "19"}
KINDS = ("quote", "invoice")
TEXTS = {
    f"{name}_{language}": f"{name.replace('_', ' ')} in {language}"
    for name in ("quote_introduction", "quote_terms", "invoice_introduction", "invoice_terms", "document_footer")
    for language in ("en", "de")
}


@pytest.fixture(autouse=True)
def settings(api):
    set_account(api, **SETTINGS, **TEXTS)


def client_of(api, language):
    return {"client_id": api.make("/clients", country="DE", currency="EUR", language=language)["id"]}


def texts(document):
    return document["notes"], document["terms"]


@pytest.mark.parametrize("kind", KINDS)
def test_new_document_has_the_texts_of_the_account_in_the_language_of_the_client(api, kind):
    for language in ("de", "en"):
        document = api.make(f"/{kind}s", **client_of(api, language))
        assert texts(document) == (f"{kind} introduction in {language}", f"{kind} terms in {language}")
    by_default = api.make(f"/{kind}s", **client_of(api, None))
    assert texts(by_default) == (f"{kind} introduction in de", f"{kind} terms in de"), "the account's language"


@pytest.mark.parametrize("kind", KINDS)
def test_sent_text_comes_before_the_default_and_null_or_blank_means_none(api, kind):
    client = client_of(api, "de")
    own = api.make(f"/{kind}s", **client, notes="Hello", terms="At once")
    assert texts(own) == ("Hello", "At once")
    assert texts(api.make(f"/{kind}s", **client, notes=None, terms=" ")) == (None, None)
    assert texts(api.make(f"/{kind}s", **client, terms=None)) == (f"{kind} introduction in de", None)


@pytest.mark.parametrize("kind", KINDS)
def test_null_means_no_reason_for_a_zero_rate(api, kind):
    set_account(api, tax_exemption_reason_de="Steuerfrei")
    client = client_of(api, "de")
    assert api.make(f"/{kind}s", **client)["tax_exemption_reason"] == "Steuerfrei"
    assert api.make(f"/{kind}s", **client, tax_exemption_reason=None)["tax_exemption_reason"] is None


def test_default_is_only_for_new_documents(api):
    invoice = api.make("/invoices", **client_of(api, "de"), notes=None)
    path = f"/invoices/{invoice['id']}"
    assert texts(api.patch(path, {"terms": None}).data) == (None, None)
    assert texts(api.put(path, {"subject": "Relaunch"}).data) == (None, None)
    assert texts(api.patch(path, client_of(api, "en")).data) == (None, None)


def test_invoice_of_a_quote_has_the_texts_of_invoices(api):
    client = client_of(api, "de")

    def convert(sent=None, **texts_of_quote):
        quote = api.make("/quotes", **client, **texts_of_quote, lines=[LINE], status="accepted")
        return texts(api.make("/invoices", **client, quote_id=quote["id"], **(sent or {})))

    assert convert() == ("invoice introduction in de", "invoice terms in de")
    assert convert(notes="Hello", terms=None) == ("invoice introduction in de", "invoice terms in de")
    assert convert(notes="Hello", sent={"notes": None, "terms": "At once"}) == (None, "At once")


def test_documents_in_one_batch_each_have_their_own_defaults(api):
    client = client_of(api, "de")
    operations = [{"method": "POST", "path": "/invoices", "body": client | each} for each in ({"notes": None}, {})]
    results = api.post("/batch", {"operations": operations, "atomic": True}).data["results"]
    assert [result["body"]["data"]["notes"] for result in results] == [None, "invoice introduction in de"]


def test_texts_are_printed_and_stay_when_the_settings_change(api):
    invoices = {
        language: api.make("/invoices", **client_of(api, language), lines=[LINE], status="sent")["id"]
        for language in ("de", "en")
    }
    set_account(api, **dict.fromkeys(TEXTS, "Another"))
    for language, invoice_id in invoices.items():
        printed = text_of(api.get(f"/invoices/{invoice_id}", headers=PDF))
        for name in ("invoice introduction", "invoice terms", "document footer"):
            assert f"{name} in {language}" in printed
        assert "Another" not in printed


def test_footer_of_a_draft_follows_the_language_of_the_client(api):
    quote = api.make("/quotes", **client_of(api, "en"), lines=[LINE])
    path = f"/quotes/{quote['id']}"
    assert "document footer in en" in text_of(api.get(path, headers=PDF))
    api.patch(f"/clients/{quote['client_id']}", {"language": "de"})
    assert "document footer in de" in text_of(api.get(path, headers=PDF))


def test_every_text_is_a_setting():
    assert set(TEXTS) <= set(AccountSettings.__struct_fields__)
