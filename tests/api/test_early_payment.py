"""Early-payment discounts: terms of the account or the client, printed on invoices and in their e-invoices."""

import pytest
from tests.api.test_files import PDF, SETTINGS, XML, set_account, text_of
from tests.documents.validators import broken_rules, texts

from retainer.errors import Refusal

LINE = {"description": "Design", "quantity": "1", "unit_price": "100", "tax_rate": "19"}
TERMS = "SpecifiedTradePaymentTerms/ram:Description"


def discount(percent, days):
    return {"early_payment_discount_percent": percent, "early_payment_discount_days": days}


def issue(api, **client):
    """Issue an invoice of 119.00 to a new client, in Germany unless said otherwise; return its path."""
    made = api.make("/clients", **{"name": "Bergmann", "country": "DE", "currency": "EUR"} | client)
    fields = {"client_id": made["id"], "lines": [LINE], "issue_date": "2026-03-02", "terms": "Danke", "status": "sent"}
    return f"/invoices/{api.make('/invoices', **fields)['id']}"


def described(api, path):
    xml = api.get(path, headers=XML).body
    assert broken_rules(xml) == []
    return texts(xml, TERMS)


@pytest.fixture(autouse=True)
def settings(api):
    set_account(api, **SETTINGS, **discount("2", 14))


def test_discount_is_printed_and_in_the_payment_terms_of_the_einvoice(api):
    path = issue(api, language="de")
    sentence = "Bei Zahlung bis zum 16. März 2026 gewähren wir 2 % Skonto: Sie zahlen dann 116,62 €."
    assert sentence in text_of(api.get(path, headers=PDF))
    (text,) = described(api, path)
    assert text.replace("\xa0", " ") == f"#SKONTO#TAGE=14#PROZENT=2.00#\n{sentence}\nDanke"


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        (discount("2.5", 0), "#SKONTO#TAGE=0#PROZENT=2.50#"),
        (discount("0", None), None),
        (discount("0", 9), None),
        (discount(None, None), "#SKONTO#TAGE=14#PROZENT=2.00#"),
    ],
)
def test_terms_of_the_client_come_before_those_of_the_account(api, own, shown):
    first, *rest = described(api, issue(api, **own))[0].split("\n")
    assert (first, len(rest)) == ((shown, 2) if shown else ("Danke", 0))


def test_line_for_programs_in_germany_is_only_for_them(api):
    set_account(api, country="AT", vat_number="ATU86091390")
    assert "SKONTO" in described(api, issue(api))[0]
    (text,) = described(api, issue(api, country="AT", language="en"))
    assert text.startswith("If you pay by 16\u00a0March\u00a02026, you can deduct a discount of 2% and pay €116.62.")


def test_issued_invoice_keeps_its_terms(api):
    path = issue(api, language="en")
    set_account(api, **discount("5", 3))
    assert described(api, path)[0].startswith("#SKONTO#TAGE=14#PROZENT=2.00#")
    assert "16 March 2026" in text_of(api.get(path, headers=PDF))
    note = api.make(f"{path}/credit-notes")
    assert "SKONTO" not in described(api, f"/credit-notes/{note['id']}")[0], "there is nothing to pay"


@pytest.mark.parametrize(
    ("sent", "field", "words"),
    [
        (discount("2", None), "early_payment_discount_days", "Is needed with early_payment_discount_percent"),
        (discount(None, 14), "early_payment_discount_percent", "Is needed with early_payment_discount_days"),
        (discount("2.125", 14), "early_payment_discount_percent", "at most 2 decimal places"),
        (discount("100.01", 14), "early_payment_discount_percent", "from 0 to 100"),
        (discount("2", 366), "early_payment_discount_days", "from 0 to 365"),
    ],
)
def test_wrong_or_half_terms_are_refused(api, sent, field, words):
    errors = api.post("/clients", {"name": "A"} | sent).errors
    assert errors.keys() == {field}
    assert words in errors[field][0]
    client = api.make("/clients", **discount("3", 7))
    assert api.patch(f"/clients/{client['id']}", {"early_payment_discount_days": None}).errors.keys() == {
        "early_payment_discount_days"
    }


def test_half_terms_of_the_account_are_refused(api):
    with pytest.raises(Refusal, match="early_payment_discount_days: Is needed with"):
        api.set_account({"early_payment_discount_days": None})
